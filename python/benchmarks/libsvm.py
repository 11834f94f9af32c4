"""Support vector machines beside LIBSVM (as scikit-learn has it): time to train, and whether the results agree.

    cargo xtask bench svm [--data FOLDER] [--rows N] [--sets SET ...]

Digits come with scikit-learn; with --data also the first rows of adult (adult_a9a_train.csv.gz) and, for regression,
of kin40k (kin40k.csv.gz) in FOLDER. Equal tolerance and equal cache; both fits in turn, the best of several where
they are short. Writes docs/svm.md if all sets are run with all rows.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from computer import ROOT, facts
from numpy.typing import NDArray
from sklearn import svm
from sklearn.datasets import load_digits

Array = NDArray[Any]

CASES: dict[str, list[dict[str, Any]]] = {
    "digits": [{}, {"C": 10.0, "gamma": 0.001}],
    "adult": [{}, {"C": 10.0, "gamma": 0.05}, {"tol": 1e-5}],
    "kin40k": [{}, {"C": 10.0}, {"C": 100.0}, {"tol": 1e-5}, {"C": 10.0, "tol": 1e-5}],
}
ROWS = {"digits": 1797, "adult": 20_000, "kin40k": 10_000}
# Fits shorter than this are repeated.
SHORT = 2.0
HEAD = """# Support vector machines beside LIBSVM

Made by `cargo xtask bench svm --data FOLDER`. LIBSVM is the one in scikit-learn and uses one thread. relvec uses all
threads, the tolerance of both is 1e-3, the cache 200 MB and the kernel rbf, unless stated otherwise. Times are those
of `fit`. Dual objective: relative difference of ours from that of LIBSVM; positive is higher. Predictions: the largest
difference of decision values or predictions at the first 1,000 rows, and the share of equal classes. relvec merges
equal rows, which then count as one vector.

{facts}

| set | rows | features | settings | seconds | LIBSVM | ratio | dual objective | predictions | vectors | LIBSVM |
|---|---|---|---|---|---|---|---|---|---|---|
"""


def table(name: str, rows: int, folder: Path | None) -> tuple[Array, Array]:
    """Rows and targets; features standardised where they are not counts or indicators."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:rows], y[:rows]
    assert folder is not None
    file = {"adult": "adult_a9a_train.csv.gz", "kin40k": "kin40k.csv.gz"}[name]
    values = np.loadtxt(folder / file, delimiter=",", skiprows=1, max_rows=rows)
    X, y = np.ascontiguousarray(values[:, :-1]), values[:, -1]
    if name == "adult":
        return X, y.astype(int)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def fit(cls: Any, own: dict[str, Any], X: Array, y: Array) -> tuple[Any, float]:
    """A fitted machine and the seconds of its fastest fit."""
    best = np.inf
    spent = 0.0
    while spent < SHORT:
        start = time.perf_counter()
        model = cls(**own).fit(X, y)
        best = min(best, time.perf_counter() - start)
        spent += time.perf_counter() - start
    return model, best


def objective(model: Any, X: Array, y: Array) -> float:
    """The dual objective of one function; of several classes NaN."""
    if model.dual_coef_.shape[0] > 1:
        return float("nan")
    if hasattr(model, "report_"):
        # Not from the weights: those of equal rows of both classes have been added up.
        return float(model.report_["functions"][0]["objective"])
    beta = model.dual_coef_[0]
    gamma = model._gamma
    vectors = X[model.support_]
    squares = (vectors**2).sum(axis=1)
    quadratic = 0.0
    for start in range(0, len(beta), 1000):
        part = slice(start, start + 1000)
        distances = squares[part, np.newaxis] + squares - 2.0 * vectors[part] @ vectors.T
        quadratic += 0.5 * float(beta[part] @ np.exp(-gamma * np.maximum(distances, 0.0)) @ beta)
    if hasattr(model, "epsilon") and hasattr(model, "predict") and not hasattr(model, "classes_"):
        return quadratic - float(beta @ y[model.support_]) + model.epsilon * float(np.abs(beta).sum())
    return quadratic - float(np.abs(beta).sum())


def lines_of(name: str, own: dict[str, Any], X: Array, y: Array) -> list[str]:
    """Rows of the table: all threads, and one."""
    theirs = fit(svm.SVR if name == "kin40k" else svm.SVC, own, X, y)
    return [line(name, own, X, y, jobs, theirs) for jobs in (None, 1)]


def line(name: str, own: dict[str, Any], X: Array, y: Array, jobs: int | None, peer: tuple[Any, float]) -> str:
    """A row of the table."""
    import relvec

    classes = name != "kin40k"
    ours, own_seconds = fit(relvec.SVC if classes else relvec.SVR, {**own, "n_jobs": jobs}, X, y)
    theirs, seconds = peer
    values = [getattr(m, "decision_function" if classes else "predict")(X[:1000]) for m in (ours, theirs)]
    if classes and np.ndim(values[0]) > 1:
        agree = f"{100.0 * np.mean(ours.predict(X) == theirs.predict(X)):.2f} % equal"
    else:
        agree = f"{np.abs(values[0] - values[1]).max():.1e}"
        if classes:
            agree += f", {100.0 * np.mean(ours.predict(X[:1000]) == theirs.predict(X[:1000])):.2f} % equal"
    ends = [objective(m, X, y) for m in (ours, theirs)]
    off = "" if np.isnan(ends[0]) else f"{(ends[0] - ends[1]) / abs(ends[1]):+.1e}"
    words = ", ".join(f"{key} = {value:g}" for key, value in own.items()) or "defaults"
    threads = "" if jobs is None else f", {jobs} thread"
    return (
        f"| {name} | {len(X)} | {X.shape[1]} | {words}{threads} | {own_seconds:.3f} | {seconds:.3f} | "
        f"{own_seconds / seconds:.2f} | {off} | {agree} | {len(ours.support_)} | {len(theirs.support_)} |"
    )


def main() -> None:
    """Run the cases, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with the real tables")
    parser.add_argument("--rows", type=int, help="most rows of each set")
    parser.add_argument("--sets", nargs="+", choices=list(CASES), default=list(CASES))
    arguments = parser.parse_args()
    lines = []
    for name in arguments.sets:
        if name != "digits" and arguments.data is None:
            print(f"{name}: left out without --data")
            continue
        X, y = table(name, min(ROWS[name], arguments.rows or ROWS[name]), arguments.data)
        for own in CASES[name]:
            lines += lines_of(name, own, X, y)
            print(*lines[-2:], sep="\n", flush=True)
    if arguments.rows is None and len(lines) == 2 * sum(len(case) for case in CASES.values()):
        page = ROOT / "docs" / "svm.md"
        page.write_text(
            HEAD.format(
                facts="\n".join(f"- {name}: {value}" for name, value in facts(["scikit-learn", "numpy"]).items())
            )
            + "\n".join(lines)
            + "\n",
            encoding="utf-8",
        )
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
