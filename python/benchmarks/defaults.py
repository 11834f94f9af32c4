"""Fits without settings: how good their predictions and intervals are, beside a dense process and other learners.

    cargo xtask bench defaults --data FOLDER [--quick] [--only TABLES] [--sizes NUMBERS] [--draws NUMBER]
        [--methods METHODS] [--big] [--million] [--work FOLDER] [--again] [--summary]

Every result is a line of results.jsonl in the work folder, so that an interrupted run goes on where it stopped; a
result is measured again if its method, its rows or the installed relvec have changed. The summary, plain text that two
versions can be compared by, goes to summary-VERSION.txt there. A whole run writes docs/defaults.md, part of one
defaults.md in the work folder. About an hour; `--quick` takes three minutes.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from computer import ROOT
from defaults_figures import frame
from defaults_methods import METHODS, Fitted, Skipped, scores, version
from defaults_page import page, summary
from defaults_tables import BIG, TABLES, Draw, Table, draw
from threadpoolctl import threadpool_limits

DRAWS = 3
# Single tables come in sizes of their own: 20 (lines), 80 (spectra), 300 (classes).
QUICK = {"sizes": (20, 80, 100, 200, 300), "draws": 2, "methods": ["dense", "relvec", "svm"]}
BIG_DRAWS = 5
MILLION = 1_000_000

Record = dict[str, Any]


class Task(NamedTuple):
    """A method on a draw of a table."""

    table: str
    size: int
    draw: int
    method: str


class Results:
    """Records of tasks by version of their method, kept in a file of JSON lines."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "results.jsonl"
        self.found: dict[tuple[Task, str], Record] = {}
        if self.path.exists():
            for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
                try:
                    self.keep(json.loads(line))
                except (ValueError, KeyError) as problem:
                    raise SystemExit(f"{self.path}, line {number}: expected a result, {problem!r}; delete it") from None

    def keep(self, record: Record) -> None:
        """Replaces an earlier record of the same version."""
        task = Task(*(record[name] for name in Task._fields))
        self.found[task, record["version"]] = record

    def add(self, record: Record) -> None:
        """Kept and written."""
        self.keep(record)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    def get(self, task: Task) -> Record | None:
        """Of the method as it is installed."""
        return self.found.get((task, version(METHODS[task.method])))

    def current(self) -> pd.DataFrame:
        """All records of methods as they are installed."""
        versions = {name: version(method) for name, method in METHODS.items()}
        records = [record for (task, own), record in self.found.items() if own == versions.get(task.method)]
        return frame(records)


def fitting(method: str, table: Table) -> Any:
    return METHODS[method].classes if table.classes else METHODS[method].regression


def tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """What the arguments ask for; methods that are compared run one after the other on the same rows."""
    for name in arguments.only:
        table = TABLES[name]
        sizes = [size for size in table.sizes if arguments.sizes is None or size in arguments.sizes]
        draws = [(size, number) for size in sizes for number in range(arguments.draws)]
        if arguments.big and table.big:
            draws += [(BIG, number) for number in range(BIG_DRAWS)]
        for size, number in draws:
            for method in arguments.methods:
                # Classes alone are judged beside a support vector machine.
                left_out = arguments.quick and method == "svm" and not table.classes
                if not left_out and fitting(method, table) and size <= METHODS[method].most_rows:
                    yield Task(name, size, number, method)
    if arguments.million:
        yield from (Task("friedman1", MILLION, 0, method) for method in ("relvec", "scale"))


def measured(method: str, table: Table, own: Draw) -> Record:
    """Scores and costs, or in words why there are none."""
    try:
        fitted: Fitted = fitting(method, table)(own)
        return {"centres": fitted.centres, "cpu": fitted.cpu, **scores(own, table, fitted)}
    except Skipped as reason:
        return {"skipped": str(reason)}
    except Exception as problem:
        # A default fit that fails is a result as well, and the worst one.
        return {"failed": f"{type(problem).__name__}: {problem}"}


def warm_up(arguments: argparse.Namespace) -> None:
    """Loads libraries by fits that are not timed."""
    for name in ("friedman1", "iris"):
        small = draw(TABLES[name], 60, 0, arguments.data)
        assert small is not None
        for method in {task.method for task in tasks(arguments) if fitting(task.method, TABLES[name])}:
            measured(method, TABLES[name], small)


def run(arguments: argparse.Namespace, results: Results) -> None:
    """Measures what is not in the results."""
    before: tuple[str, int, int] | None = None
    own: Draw | None = None
    warm = False
    for task in tasks(arguments):
        table = TABLES[task.table]
        if task[:3] != before:
            before, own = task[:3], draw(table, task.size, task.draw, arguments.data)
        known = results.get(task)
        if own is None or (known is not None and known["digest"] == own.digest and not arguments.again):
            continue
        if not warm:
            warm_up(arguments)
            warm = True
        head = {**task._asdict(), "version": version(METHODS[task.method]), "digest": own.digest, "rows": len(own.X)}
        record = {**head, **measured(task.method, table, own)}
        results.add(record)
        shown = [f"{name} {value:.4g}" for name, value in record.items() if isinstance(value, float)]
        words = [f"{name}: {record[name]}" for name in ("skipped", "failed") if name in record]
        print(*task, *shown, *words, flush=True)


def whole(arguments: argparse.Namespace, results: Results) -> bool:
    """Whether all tables, sizes, draws and methods have been measured."""
    every = argparse.Namespace(
        **{**vars(arguments), **asked_by_default(), "quick": False, "big": False, "million": False}
    )
    return all(
        results.get(task) is not None or draw(TABLES[task.table], *task[1:3], arguments.data) is None
        for task in tasks(every)
    )


def asked_by_default() -> dict[str, Any]:
    methods = [name for name, method in METHODS.items() if not method.extra]
    return {"only": list(TABLES), "sizes": None, "draws": DRAWS, "methods": methods}


def parsed() -> argparse.Namespace:
    def numbers(text: str) -> tuple[int, ...]:
        return tuple(int(word) for word in text.split(","))

    def names(known: dict[str, Any]) -> Any:
        def of(text: str) -> list[str]:
            wrong = [word for word in text.split(",") if word not in known]
            if wrong:
                raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: expected some of {', '.join(known)}")
            return text.split(",")

        return of

    parser = argparse.ArgumentParser(prog="cargo xtask bench defaults", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the tables")
    parser.add_argument("--work", type=Path, default=ROOT / "target" / "defaults", help="folder of results")
    parser.add_argument("--only", type=names(TABLES), help="tables, separated by commas")
    parser.add_argument("--sizes", type=numbers, help="numbers of training rows, separated by commas")
    parser.add_argument("--draws", type=int, help="draws of each table and size")
    parser.add_argument("--methods", type=names(METHODS), help="methods, separated by commas")
    parser.add_argument("--quick", action="store_true", help="two sizes, two draws, the dense process and relvec")
    parser.add_argument("--big", action="store_true", help="also three tables of 10,000 rows")
    parser.add_argument("--million", action="store_true", help="also Friedman 1 with 1,000,000 rows")
    parser.add_argument("--again", action="store_true", help="measure what has been measured as well")
    parser.add_argument("--summary", action="store_true", help="measure nothing, print the summary")
    arguments = parser.parse_args()
    for name, value in {**asked_by_default(), **(QUICK if arguments.quick else {})}.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


def main() -> None:
    """Measure, print the summary, write it and the page."""
    arguments = parsed()
    # scikit-learn warns of limits of its optimisers and of deprecated parameters, relvec of tables without structure.
    warnings.simplefilter("ignore")
    results = Results(arguments.work)
    if not arguments.summary:
        with threadpool_limits(1):
            run(arguments, results)
    found = results.current()
    if found.empty:
        raise SystemExit(f"{results.path}: no results of the installed relvec")
    text = summary(found)
    path = arguments.work / f"summary-{version(METHODS['relvec'])}.txt"
    path.write_text(text, encoding="utf-8")
    print(text)
    print(f"wrote {path}")
    if not arguments.summary:
        path = ROOT / "docs" / "defaults.md" if whole(arguments, results) else arguments.work / "defaults.md"
        path.write_text(page(found), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
