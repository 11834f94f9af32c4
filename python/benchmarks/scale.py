"""Fits with learned kernels and centres to real tables, and what they should reach.

    cargo xtask bench scale FOLDER [--seeds N] [--list] [CASE ...]

FOLDER holds the tables by name, as CSV with a header and the target last, gzipped. The whole run writes
docs/scale.md, a part of it, or what is done so far, target/scale/scale.md.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from computer import ROOT, Speed, facts
from numpy.typing import NDArray
from relvec import RVC, RVR
from relvec.presets import tipping2001

Array = NDArray[np.float64]

KEPT = ROOT / "target" / "scale"
# A normal lies within so many standard deviations with a probability of 0.95.
WITHIN_95 = 1.959964


@dataclass(frozen=True)
class Case:
    """A table, a dictionary, and the figures to reach: error, loss and number of kernels."""

    table: str
    dictionary: int
    reach: tuple[float, float, int]
    # An error above this is a failure.
    fail: float
    centres: str = "fixed"
    gamma: str = "evidence-ard"
    # Rows of training at most, drawn at random.
    rows: int | None = None
    # The table of the official test rows, if there is one.
    test: str | None = None
    classes: bool = False
    # Of classes: how the posterior is approximated.
    posterior: str = "auto"
    # Of regression: the variance that predictions have.
    variance: str = "posterior"
    # Nats that each kernel must gain.
    sparsity: float = 0.0

    @property
    def setting(self) -> str:
        """The dictionary, and what is not a default."""
        own = [] if self.posterior == "auto" else [self.posterior]
        own += [] if self.variance == "posterior" else [self.variance]
        own += [f"sparsity {self.sparsity:g}"] if self.sparsity > 0.0 else []
        return ", ".join([f"{self.centres} {self.dictionary}", *own])

    @property
    def name(self) -> str:
        """What the command line calls it."""
        return f"{self.table}-{self.setting}".replace(", ", "-").replace(" ", "-")


CASES = [
    Case("kin40k", 1000, (0.23, -0.05, 820), 0.24),
    Case("kin40k", 2000, (0.175, -0.33, 1250), 0.19),
    Case("kin40k", 800, (0.145, -0.50, 760), 0.16, centres="learned"),
    Case("protein_casp", 1000, (0.668, 1.015, 620), 0.685),
    Case("protein_casp", 800, (0.635, 0.965, 600), 0.65, centres="learned"),
    Case("elevators", 1000, (0.375, 0.437, 110), 0.39),
    Case("elevators", 400, (0.369, 0.42, 80), 0.38, centres="learned"),
    Case("california_housing", 1000, (0.46, 0.645, 290), 0.48),
    Case("diamonds", 1000, (0.149, -0.50, 190), 0.156),
    Case("pumadyn32nm", 250, (0.278, 0.14, 35), 0.29),
    Case("houston_flights", 1000, (0.915, 1.33, 170), 0.925),
    # Features are 0 or 1: one width for all of them.
    Case("adult_a9a_train", 500, (15.3, 0.326, 110), 15.6, gamma="evidence", test="adult_a9a_test", classes=True),
    Case("skin_nonskin", 300, (0.12, 0.006, 40), 0.2, rows=60_000, classes=True),
    Case("skin_nonskin", 300, (0.12, 0.006, 40), 0.2, rows=60_000, classes=True, posterior="averaged"),
    # As many kernels as were asked for, or fewer: what they cost.
    Case("kin40k", 2000, (0.175, -0.33, 1250), 0.19, sparsity=3.0),
    Case("kin40k", 800, (0.145, -0.50, 760), 0.16, centres="learned", sparsity=1.0),
    Case("protein_casp", 1000, (0.668, 1.015, 620), 0.685, sparsity=0.5),
    Case("protein_casp", 800, (0.635, 0.965, 600), 0.65, centres="learned", variance="healed", sparsity=4.0),
    Case("california_housing", 1000, (0.46, 0.645, 290), 0.48, sparsity=2.0),
    Case("diamonds", 1000, (0.149, -0.50, 190), 0.156, sparsity=3.0),
    Case("pumadyn32nm", 250, (0.278, 0.14, 35), 0.29, sparsity=4.0),
    Case("houston_flights", 1000, (0.915, 1.33, 170), 0.925, sparsity=40.0),
]

HEAD = """# Learned kernels and centres on real tables

This page is written by `cargo xtask bench scale FOLDER`. Nine tenths of the rows, drawn at random, are training rows
and one tenth are test rows ({seeds}; figures are means). Features and targets are standardised by the training rows.
RMSE and NLPD (mean negative log predictive density) are in units of the standardised target. For classes the figures
are the error in per cent and the log loss. "kernels" is the number of relevance vectors. "reach" contains the goals for
error, loss and number of kernels. They are the results of a prototype on the same kind of splits. The last column is
"reached" if all three figures are at least as good as the goals, and "failed" if the error is above "fail above".
Otherwise it names the goals that are missed.

All settings are those of the papers (`relvec.presets.tipping2001`), except for those named. "averaged" is
`posterior="averaged"`, which binary models use only on request. "healed" is `variance="healed"`, which does not shrink
away from the rows. "sparsity" is the penalty per kernel in nats. It was chosen by hand for each table so that no more
kernels remain than the goal allows.

The second table contains the times of whole fits, which include the learning of the kernel. "products K'K" is the time
in units of one symmetric product K'K of N x L by numpy on the same threads. "learning" is the time for the kernel in
seconds, and "centres" the time for moving the centres, without the second fit.

{facts}

"""


def read(folder: Path, name: str) -> Array:
    """A table, [N, D + 1]."""
    with gzip.open(folder / f"{name}.csv.gz", "rt") as file:
        next(file)
        return np.loadtxt(file, delimiter=",")


def split(case: Case, folder: Path, seed: int) -> tuple[Array, Array, Array, Array]:
    """Rows and targets to learn from, and to test."""
    table = read(folder, case.table)
    if case.test is not None:
        train, test = table, read(folder, case.test)
    else:
        order = np.random.default_rng(seed).permutation(len(table))
        tenth = round(0.1 * len(table))
        train, test = table[order[tenth:]], table[order[:tenth]]
    train = train[: case.rows]
    mean, std = train.mean(axis=0), train.std(axis=0)
    std[std == 0.0] = 1.0
    if case.classes:
        mean[-1], std[-1] = 0.0, 1.0
    train, test = (train - mean) / std, (test - mean) / std
    return train[:, :-1].copy(), train[:, -1].copy(), test[:, :-1].copy(), test[:, -1].copy()


def symmetric_product(rows: int, columns: int) -> float:
    """Seconds of K'K, K of so many rows and columns; measured on some of the rows."""
    some = min(rows, 20_000)
    K = np.random.default_rng(0).standard_normal((some, columns))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        K.T @ K
        seconds.append(time.perf_counter() - start)
    return min(seconds) * rows / some


def run(case: Case, folder: Path, seed: int) -> dict[str, float]:
    """One fit and its figures."""
    X, y, X_test, y_test = split(case, folder, seed)
    settings = {
        **tipping2001(case.gamma, task="classify" if case.classes else "regress"),
        **({} if case.classes else {"variance": case.variance}),
        "sparsity": case.sparsity,
    }
    machine: Any = (RVC if case.classes else RVR)(
        dictionary=case.dictionary,
        centres=case.centres,
        posterior=case.posterior,
        random_state=seed,
        **settings,
    )
    start = time.perf_counter()
    machine.fit(X, y)
    seconds = time.perf_counter() - start
    if case.classes:
        p = machine.predict_proba(X_test)[np.arange(len(y_test)), (y_test > 0.5).astype(int)]
        figures = {"error": 100.0 * float(np.mean(p < 0.5)), "loss": float(-np.log(p).mean())}
    else:
        mean, std = machine.predict(X_test, return_std=True)
        off = y_test - mean
        density = 0.5 * np.log(2 * np.pi * std**2) + 0.5 * (off / std) ** 2
        figures = {
            "error": float(np.sqrt(np.mean(off**2))),
            "loss": float(density.mean()),
            "coverage": 100.0 * float(np.mean(np.abs(off) < WITHIN_95 * std)),
            # How far predictions go, against how far targets do.
            "farthest": float(np.max(np.abs(mean)) / np.max(np.abs(y))),
        }
    report = machine.report_
    search = report["kernel_search"]
    chosen = search["tried"][search["chosen"]]
    return figures | {
        "kernels": float(len(machine.relevance_)),
        "seconds": seconds,
        "learning": search["seconds"],
        "centres": report.get("centre_search", {}).get("seconds", 0.0),
        "products": seconds / symmetric_product(len(X), case.dictionary),
        "evaluations": float(chosen["evaluations"]),
        "rows": float(len(X)),
        "converged": float(report["status"] == "converged"),
    }


def verdict(case: Case, mean: dict[str, float]) -> str:
    """Returns whether the figures were reached, and which were not."""
    if mean["error"] > case.fail:
        return "failed"
    wanted = zip((mean["error"], mean["loss"], mean["kernels"]), case.reach, strict=True)
    missed = [name for name, (got, reach) in zip(("error", "loss", "kernels"), wanted, strict=True) if got > reach]
    return "reached" if not missed else f"{', '.join(missed)} missed"


def table(results: list[tuple[Case, list[dict[str, float]]]]) -> str:
    """The figures of all cases, as Markdown."""
    lines = [
        "| table | rows | dictionary | RMSE, error in % | NLPD, log loss | in 95 % | kernels | reach | fail above | |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    times = [
        "",
        "| table | dictionary | products K'K | seconds | learning | centres | evaluations |",
        "|---|" + 6 * "---|",
    ]
    for case, runs in results:
        mean = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        coverage = "" if case.classes else f"{mean['coverage']:.1f} %"
        reach = " / ".join(f"{value:g}" for value in case.reach)
        names = f"{case.table} | {mean['rows']:.0f} | {case.setting}"
        lines.append(
            f"| {names} | {mean['error']:.4g} | {mean['loss']:.4f} | {coverage} | "
            f"{mean['kernels']:.0f} | {reach} | {case.fail:g} | {verdict(case, mean)} |"
        )
        times.append(
            f"| {case.table} | {case.setting} | {mean['products']:.0f} | {mean['seconds']:.1f} | "
            f"{mean['learning']:.1f} | {mean['centres']:.1f} | {mean['evaluations']:.0f} |"
        )
    farthest = max((run.get("farthest", 0.0) for _, runs in results for run in runs), default=0.0)
    remark = f"\nNo prediction exceeds {farthest:.2g} times the largest training target in magnitude.\n"
    unfinished = sum(run["converged"] == 0.0 for _, runs in results for run in runs)
    end = f"\n{unfinished} of the fits did not converge.\n" if unfinished else "\nAll fits converged.\n"
    return "\n".join(lines + times) + "\n" + remark + end


def main() -> None:
    parser = argparse.ArgumentParser(prog="cargo xtask bench scale", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="where the tables are")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all")
    parser.add_argument("--seeds", type=int, default=3, help="splits, and seeds of the fits")
    parser.add_argument("--list", action="store_true", help="print the names of all cases and end")
    options = parser.parse_intermixed_args()
    if options.list:
        print("\n".join(case.name for case in CASES))
        return
    unknown = set(options.cases) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))} (--list names them)")
    wanted = [case for case in CASES if not options.cases or case.name in options.cases]
    start, speed = time.time(), Speed()
    results = []
    KEPT.mkdir(parents=True, exist_ok=True)

    def write(out: Path) -> None:
        """The page of what is done so far."""
        known = facts(["relvec", "numpy"]) | {
            "Steadiness": speed.text(),
            "Run": f"{time.strftime('%Y-%m-%d')}, {(time.time() - start) / 60:.0f} minutes",
        }
        seeds = "one seed" if options.seeds == 1 else f"{options.seeds} seeds"
        page = HEAD.format(seeds=seeds, facts="\n".join(f"- {name}: {value}" for name, value in known.items()))
        out.write_text(page + table(results), encoding="utf-8")

    for case in wanted:
        speed.ask()
        runs = [run(case, options.folder, seed) for seed in range(options.seeds)]
        results.append((case, runs))
        print(case.name, {name: round(float(np.mean([run[name] for run in runs])), 4) for name in runs[0]}, flush=True)
        write(KEPT / "scale.md")
    whole = not options.cases and options.seeds >= 3
    out = ROOT / "docs" / "scale.md" if whole else KEPT / "scale.md"
    write(out)
    print(f"written to {out}")


if __name__ == "__main__":
    main()
