"""Prediction for a million rows, beside its bare cost and beside SVR: prints a line of JSON.

python predict.py ROWS THREADS
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median

import numpy as np
from cases import Array, friedman
from scipy.linalg.blas import dtrmm

KERNELS, FEATURES, GAMMA, BLOCK, REPEATS = 250, 10, 0.3, 4096, 3
# Rows that are kept for a healed variance, and rows that are predicted with it.
KEPT, HEALED = 1000, 10_000


def main() -> None:
    rows, threads = int(sys.argv[1]), int(sys.argv[2])
    from relvec import RVR
    from relvec.presets import tipping2001
    from sklearn.svm import SVR

    warnings.simplefilter("ignore")
    X, f = friedman(rows, np.random.default_rng(0), FEATURES)
    Z, t = X[:KERNELS].copy(), f[:KERNELS]
    # One iteration leaves every kernel in the model; of an SVR without a margin every row is a vector.
    model = RVR(**tipping2001(GAMMA), search={"scheme": "em", "max_iterations": 1}, n_jobs=threads).fit(Z, t)
    svr = SVR(gamma=GAMMA, C=10.0, epsilon=0.0).fit(Z, t)
    calls: dict[str, Callable[[], object]] = {
        "mean": lambda: model.predict(X),
        "mean and std": lambda: model.predict(X, return_std=True),
        "distances and exp": lambda: distances_and_exp(X, Z),
        "triangular product": lambda: triangular(rows),
    }
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(REPEATS):
        for name, call in calls.items():
            seconds[name].append(clocked(call))
    out: dict[str, object] = {name: median(values) for name, values in seconds.items()}
    out |= healed(threads)
    # The longest by far, and of one thread whatever it is told.
    out["SVR"] = clocked(lambda: svr.predict(X))
    print(json.dumps(out | {"vectors": [len(model.relevance_), len(svr.support_)]}))


def healed(threads: int) -> dict[str, object]:
    """A healed variance, beside that of the posterior and beside one product of kept rows, kernels and new rows."""
    from relvec import RVR
    from relvec.presets import tipping2001

    random = np.random.default_rng(1)
    X, f = friedman(KEPT + HEALED, random, FEATURES)
    t = f[:KEPT] + random.standard_normal(KEPT)
    model = RVR(**tipping2001(0.05), keep_rows=KEPT, n_jobs=threads).fit(X[:KEPT], t)
    new, kernels = X[KEPT:], len(model.relevance_)
    left, right = random.standard_normal((HEALED, KEPT)), random.standard_normal((KEPT, kernels))
    calls: dict[str, Callable[[], object]] = {
        "healed": lambda: model.predict(new, return_std=True, variance="healed"),
        "posterior": lambda: model.predict(new, return_std=True, variance="posterior"),
        "distances and exp of kept rows": lambda: distances_and_exp(new, X[:KEPT]),
        "product of kept rows": lambda: left @ right,
    }
    seconds = {name: median([clocked(call) for _ in range(1 + REPEATS)][1:]) for name, call in calls.items()}
    return {**seconds, "kernels of kept rows": kernels}


def clocked(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def distances_and_exp(X: Array, Z: Array) -> float:
    """The kernel block by block and nothing else, as numpy does it: a product, its scaling in place, exp."""
    z = (Z**2).sum(axis=1)
    twice = 2 * Z.T
    block = np.empty((BLOCK, len(Z)))
    last = 0.0
    for start in range(0, len(X), BLOCK):
        rows = X[start : start + BLOCK]
        K = block[: len(rows)]
        np.matmul(rows, twice, out=K)
        K -= z
        K -= (rows**2).sum(axis=1)[:, None]
        K *= GAMMA
        np.exp(K, out=K)
        last = float(K[-1, -1])
    return last


def triangular(rows: int) -> None:
    """Products of a triangle [M, M] with as many columns as there are rows, block by block."""
    triangle = np.asfortranarray(np.tril(np.random.default_rng(0).standard_normal((KERNELS, KERNELS))))
    block = np.asfortranarray(np.random.default_rng(1).standard_normal((KERNELS, BLOCK)))
    for start in range(0, rows, BLOCK):
        width = min(BLOCK, rows - start)
        dtrmm(1.0, triangle, block[:, :width], lower=1)


if __name__ == "__main__":
    main()
