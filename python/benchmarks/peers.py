"""Run the benchmarks beside other packages and write the tables.

    cargo xtask bench peers [--quick | --again] [--data FOLDER] [--list] [CASE ...]

The whole run writes docs/benchmarks.md; a part of it writes target/peers/benchmarks.md. All figures are
kept in results.json beside the latter; with --again those of the whole run, in which the cases named (which something
else on the computer has disturbed) take the place of their first run, if the commit and the packages are the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cases import Case, all_cases, mixture_data
from computer import ROOT, Speed, facts
from measure import with_threads
from report import (
    FASTRVM,
    HEAD,
    LEARNERS,
    candidates,
    classes,
    draws,
    fits,
    landmarks,
    operations,
    parts,
    prediction,
    solve,
)

HERE = Path(__file__).resolve().parent
KEPT = ROOT / "target" / "peers"
PACKAGES = ["relvec", "fastrvm", "sklearn-rvm", "scikit-learn", "numpy", "scipy"]

# Draws and threads of comparisons with fastrvm; rows, landmarks and threads of the large fit; landmarks and threads of
# fits to sums; rows, landmarks and threads of classes, and of counts; rows, seconds (if they are limited) and threads
# of fits with every row a candidate; rows and threads of two such searches; rows and threads of predictions.
SIZES: dict[str, list[tuple[int, ...]]] = {
    "draws": [(10, 2)],
    "landmarks": [(1_000_000, 1000, 2)],
    "solve": [(1000, 2), (2000, 2)],
    "classes": [(100_000, 300, 2)],
    "operations": [(20_000, 300, 1)],
    "candidates": [(20_000, 2), (50_000, 240, 2)],
    "parts": [(4000, 2)],
    "predict": [(1_000_000, 1), (1_000_000, 2)],
}
QUICK_SIZES: dict[str, list[tuple[int, ...]]] = {
    "draws": [(1, 2)],
    "landmarks": [(50_000, 200, 2)],
    "solve": [(200, 2)],
    "classes": [(10_000, 50, 2)],
    "operations": [(1000, 20, 1)],
    "candidates": [(2000, 2), (5000, 2, 2)],
    "parts": [(1200, 2)],
    "predict": [(50_000, 1)],
}
TABLES: dict[str, tuple[str, Callable[..., str]]] = {
    "draws": ("Error, evidence and time over several draws", draws),
    "landmarks": ("A million rows", landmarks),
    "solve": ("From sums to a model", solve),
    "classes": ("Classes beside a regression", classes),
    "operations": ("Operations of classes and of a regression", operations),
    "candidates": ("Every row a candidate", candidates),
    "parts": ("In working sets, and all candidates at once", parts),
    "predict": ("Prediction", prediction),
}
OWN = list(SIZES)
# Of these the last argument is the folder with real tables, where there is one.
ON_FILES = ["solve", "classes", "operations", "parts"]


def main() -> None:
    options = arguments()
    cases = all_cases(options.data)
    if options.list:
        print("\n".join([*(case.name for case in cases), *OWN]))
        return
    unknown = set(options.cases) - {case.name for case in cases} - set(OWN)
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))} (--list names them; some need --data)")
    earlier = kept_run(cases) if options.again else None
    if options.again and (not options.cases or set(options.cases) & set(OWN)):
        sys.exit("--again: name the cases beside fastrvm and others that are to be run again")
    wanted = [c for c in cases if c.name in options.cases or (not options.cases and (c.quick or not options.quick))]
    others = [name for name in OWN if name in options.cases or not options.cases]

    start, speed = time.time(), Speed()
    records = {case.name: fit_all(case, options.data, speed) for case in wanted}
    own: dict[str, Any] = {}
    if earlier:
        records = {**earlier["fits"], **records}
        own = {name: earlier[name] for name in OWN if name in earlier}
        wanted = [case for case in cases if case.name in records]
    sections = [LEARNERS.lstrip(), section(wanted, records)]
    sizes = QUICK_SIZES if options.quick else SIZES
    for name in others:
        folder = options.data if name in ON_FILES else None
        own[name] = [(size, script(f"{name}.py", size, folder, speed)) for size in sizes[name]]
    for name, (title, table) in TABLES.items():
        if name in own:
            sections += [f"## {title}\n", *[table(record, *size) for size, record in own[name]]]

    minutes = (time.time() - start) / 60
    known = facts(PACKAGES) | {"Steadiness": speed.text(), "Run": f"{time.strftime('%Y-%m-%d')}, {minutes:.0f} minutes"}
    if earlier:
        again = f"{', '.join(options.cases)} run again, at {known['Steadiness']}"
        known = earlier["facts"] | {"Run": f"{earlier['facts']['Run']}; {again}"}
    truth = mixture_data(2).truth
    page = HEAD.format(
        facts="\n".join(f"- {name}: {value}" for name, value in known.items()),
        bayes=float(np.minimum(truth, 1 - truth).mean()),
    )
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / "results.json").write_text(json.dumps({"facts": known, "fits": records, **own}, indent=1))
    whole = options.again or (not options.cases and not options.quick)
    out = options.out or (ROOT / "docs" / "benchmarks.md" if whole else KEPT / "benchmarks.md")
    out.write_text("\n".join([page, *sections]))
    print(f"{out} is written after {minutes:.1f} minutes")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask bench peers", description="Times beside other packages.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names of cases; all without")
    parser.add_argument("--quick", action="store_true", help="a few small cases, to see that it works")
    parser.add_argument("--again", action="store_true", help="put the cases named into the last whole run")
    parser.add_argument("--data", type=lambda name: Path(name).resolve(), help="folder with real data sets")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--out", type=Path, help="where to write the tables")
    return parser.parse_args()


def kept_run(cases: list[Case]) -> dict[str, Any]:
    """The figures of the last run, if it was whole and of this commit and these packages."""
    path = KEPT / "results.json"
    kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"facts": {}, "fits": {}}
    now = facts(PACKAGES)
    differs = [name for name, value in now.items() if kept["facts"].get(name) != value]
    if differs or not set(OWN) <= set(kept) or not {case.name for case in cases} <= set(kept["fits"]):
        sys.exit(f"--again: {path} is of no whole run, or of another {', '.join(differs) or 'part'}")
    return kept


def fit_all(case: Case, folder: Path | None, speed: Speed) -> list[list[dict[str, Any]]]:
    """All runs of a case by entry; learners take turns, and one that failed is not asked again."""
    speed.ask()
    runs: list[list[dict[str, Any]]] = [[] for _ in case.entries]
    for turn in range(case.repeats):
        for number, entry in enumerate(case.entries):
            if runs[number] and "failed" in runs[number][0]:
                continue
            own = [case.name, str(number), *([str(folder)] if folder else [])]
            record = process("run_one.py", own, entry.threads, case.timeout)
            words = record.get("failed") or f"{record['wall']:.3g} s"
            print(
                f"{case.name} {turn + 1}/{case.repeats}: {entry.label}, threads = {entry.threads}: {words}", flush=True
            )
            runs[number].append(record)
    # Should one of several runs have failed, the learner has failed.
    return [[r for r in own if "failed" in r] or own for own in runs]


def script(name: str, size: tuple[int, ...], folder: Path | None, speed: Speed) -> dict[str, Any]:
    """The record of one of the scripts with figures of their own; the number of threads is the last of its numbers."""
    speed.ask()
    record = process(name, [*map(str, size), *([str(folder)] if folder else [])], size[-1], 900)
    print(name, *size, record, flush=True)
    return record


def process(name: str, own: list[str], threads: int, timeout: float) -> dict[str, Any]:
    """Run a script; its last line is the record."""
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / name), *own],
            env=with_threads(threads),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {timeout:.0f} s"}
    if done.returncode != 0:
        last = (done.stderr.strip() or "nothing said").splitlines()[-1]
        return {"failed": f"ended with code {done.returncode}: {last}"}
    record: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return record


def section(cases: list[Case], records: dict[str, list[list[dict[str, Any]]]]) -> str:
    """The tables of all groups, in the order of the cases."""
    groups = list(dict.fromkeys(case.group for case in cases))
    off = [r["weights_off"] for runs in records.values() for own in runs for r in own if "weights_off" in r]
    out = []
    for group in groups:
        chosen = [case for case in cases if case.group == group]
        out.append(f"## {group}\n")
        if group == groups[0] and off:
            out.append(FASTRVM.format(off=max(off)).lstrip())
        out.append(fits(chosen, records))
    return "\n".join(out)


if __name__ == "__main__":
    main()
