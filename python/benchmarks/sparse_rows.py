"""Machines on sparse rows: support vector machines beside those of scikit-learn, and relevance vector classification.

    cargo xtask bench sparse [--rows N] [--rounds N]

Rows are like texts: words of Zipf's law, weighted by tf-idf, of unit length. Both fit in turn, in each round. Writes
docs/sparse.md if all rows are used.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import relvec
from computer import ROOT, facts
from numpy.typing import NDArray
from scipy import sparse
from sklearn import svm
from sklearn.feature_extraction.text import TfidfTransformer

Array = NDArray[Any]

ROWS, FEATURES, WORDS = 4000, 50_000, 120
TEST_ROWS = 1000
# Machines with their settings; the regression predicts the share of a topic.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SVC", {"C": 10.0}),
    ("SVC", {"C": 1.0, "kernel": "linear"}),
    ("NuSVC", {"nu": 0.2}),
    ("SVR", {"C": 10.0, "epsilon": 0.05}),
]
# Relevance vector machines, each followed by a support vector machine.
RELEVANCE: list[tuple[str, dict[str, Any]]] = [
    ("RVC", {}),
    ("RVC", {"weight_prior": "ard", "gamma": "scale"}),
    CASES[0],
    ("RVR", {}),
    ("RVR", {"weight_prior": "ard", "gamma": "scale"}),
    CASES[3],
]
# Rows of the case of many rows, of which 1,000 are landmarks.
MANY_ROWS = 20_000
MANY: list[tuple[str, dict[str, Any]]] = [("RVC", {}), CASES[0], ("RVR", {})]
MANY_HEAD = """
### More rows

{rows} rows like these, of which 1,000, drawn at random, are landmarks. One fit each.

| machine | settings | fit | predict | at the other rows | vectors | file |
|---|---|---|---|---|---|---|
"""
RELEVANCE_HEAD = """
## Relevance vector machines

Fits to the same rows, by the inner products of all rows, which are computed without zeros. One fit each. At the other
rows, right: share of labels; R2: share of the variance of the targets; covered: share in intervals of 90 %.

| machine | settings | fit | predict | at the other rows | vectors | file |
|---|---|---|---|---|---|---|
"""
HEAD = """# Sparse rows

Made by `cargo xtask bench sparse`. {rows} rows to learn from and {test} others, of {features} features, {words} of them
not zero in each row: words of Zipf's law in two topics, weighted by tf-idf, of unit length. scikit-learn is LIBSVM on
CSR matrices and uses one thread; relvec uses all. Both fit in turn, {rounds} rounds. Times in seconds are medians, and
a ratio is the median of the ratios of the rounds: scikit-learn's time over that of relvec. Decisions: the largest
difference of decision values or predictions at the other rows. File: the model file of relvec in MB. Dense: what all
numbers of its vectors would take at two characters each.

{facts}

| machine | settings | fit | scikit-learn | ratio | predict | scikit-learn | ratio | decisions | equal labels \
| vectors | scikit-learn | file | dense |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def texts(rows: int, seed: int = 0) -> tuple[Any, Array, Array]:
    """Rows like texts; which of two topics most of their words are of; and the share of that topic."""
    random = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(FEATURES) + 10.0)
    # The topics use the same frequent words, and others with another frequency each.
    topics = [frequency, frequency.copy()]
    order = 100 + random.permutation(FEATURES - 100)
    topics[1][100:] = frequency[order]
    share = random.beta(2.0, 2.0, rows)
    both = [np.cumsum(topic / topic.sum()) for topic in topics]
    starts, columns, counts = [0], [], []
    for own in share:
        words: Array = np.empty(0, dtype=np.int64)
        while len(words) < WORDS:
            draws = [
                np.searchsorted(both[k], random.random(int(4 * WORDS * part) + 1))
                for k, part in ((1, own), (0, 1.0 - own))
            ]
            drawn = np.minimum(random.permutation(np.concatenate([words, *draws])), FEATURES - 1)
            words = drawn
            found, first, count = np.unique(words, return_index=True, return_counts=True)
            if len(found) >= WORDS:
                kept = np.argsort(first)[:WORDS]
                columns.append(found[kept])
                counts.append(count[kept])
                break
        starts.append(starts[-1] + WORDS)
    data = np.concatenate(counts).astype(np.float64)
    X = sparse.csr_matrix((data, np.concatenate(columns), starts), shape=(rows, FEATURES))
    X.sort_indices()
    return TfidfTransformer(sublinear_tf=True).fit_transform(X).tocsr(), (share > 0.5).astype(int), share


def timed(work: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def line(name: str, own: dict[str, Any], rounds: int, data: tuple[Any, Array, Array], rows: int) -> str:
    """A row of the table."""
    X, labels, share = data
    y = labels if "SVC" in name else share
    method = "decision_function" if "SVC" in name else "predict"
    machines = [getattr(relvec, name), getattr(svm, name)]
    fits, predictions = np.empty((rounds, 2)), np.empty((rounds, 2))
    models, values = [None, None], [None, None]
    for k in range(rounds):
        for i, machine in enumerate(machines):
            models[i], fits[k, i] = timed(lambda machine=machine: machine(**own).fit(X[:rows], y[:rows]))
            values[i], predictions[k, i] = timed(lambda i=i: getattr(models[i], method)(X[rows:]))
    ours, theirs = models
    apart = np.abs(values[0] - values[1]).max()
    equal = f"{100.0 * np.mean(ours.predict(X[rows:]) == theirs.predict(X[rows:])):.2f} %" if "SVC" in name else ""
    medians, times = np.median(fits, axis=0), np.median(predictions, axis=0)
    ratios = [np.median(measured[:, 1] / measured[:, 0]) for measured in (fits, predictions)]
    vectors = len(ours.support_)
    settings = ", ".join(f"{key} = {value}" for key, value in own.items())
    file = len(ours._model.to_json()) / 1e6
    return (
        f"| {name} | {settings} | {medians[0]:.2f} | {medians[1]:.2f} | {ratios[0]:.1f} "
        f"| {times[0]:.3f} | {times[1]:.3f} | {ratios[1]:.1f} | {apart:.1e} | {equal} "
        f"| {vectors} | {len(theirs.support_)} | {file:.1f} | {2 * vectors * FEATURES / 1e6:.0f} |"
    )


def relevance(data: tuple[Any, Array, Array], rows: int, cases: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The rows of a table of relevance vector machines, with support vector machines beside them."""
    X, labels, share = data
    lines = []
    for name, own in cases:
        machine, y = getattr(relvec, name)(**own), labels if name in ("RVC", "SVC") else share
        model, fit = timed(lambda machine=machine, y=y: machine.fit(X[:rows], y[:rows]))
        found, predict = timed(lambda model=model: model.predict(X[rows:]))
        vectors, file = len(model._model.relevance), len(model._model.to_json()) / 1e6
        settings = ", ".join(f"{key} = {value}" for key, value in own.items()) or "none"
        if y is labels:
            text = f"right {100.0 * np.mean(found == y[rows:]):.1f} %"
        else:
            text = f"R2 {1.0 - np.mean((found - y[rows:]) ** 2) / np.var(y[rows:]):.3f}"
        if name == "RVR":
            low, high = model.predict_interval(X[rows:], level=0.9)
            text += f", covered {100.0 * np.mean((low <= y[rows:]) & (y[rows:] <= high)):.1f} %"
        lines.append(f"| {name} | {settings} | {fit:.2f} | {predict:.3f} | {text} | {vectors} | {file:.1f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    """Run the cases, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows to learn from")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    data = texts(arguments.rows + TEST_ROWS)
    lines = []
    for name, own in CASES:
        lines.append(line(name, own, arguments.rounds, data, arguments.rows))
        print(lines[-1], flush=True)
    relevant = relevance(data, arguments.rows, RELEVANCE)
    if arguments.rows == ROWS:
        many = relevance(texts(MANY_ROWS + TEST_ROWS), MANY_ROWS, MANY)
        page = ROOT / "docs" / "sparse.md"
        machine = "\n".join(f"- {key}: {value}" for key, value in facts(["scikit-learn", "scipy", "numpy"]).items())
        sizes = {"rows": ROWS, "test": TEST_ROWS, "features": FEATURES, "words": WORDS, "rounds": arguments.rounds}
        text = HEAD.format(facts=machine, **sizes) + "\n".join(lines) + "\n"
        text += RELEVANCE_HEAD + "\n".join(relevant) + "\n" + MANY_HEAD.format(rows=MANY_ROWS) + "\n".join(many) + "\n"
        page.write_text(text, encoding="utf-8")
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
