"""A million rows, a thousand landmarks, in units of one symmetric product of that size: prints a line of JSON.

python landmarks.py ROWS LANDMARKS THREADS
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import numpy as np
from cases import Array, friedman
from measure import measured
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits

# One scale per feature: half of Friedman's features do not matter, and two are nearly linear.
GAMMA = [0.7, 0.7, 0.3, 0.01, 0.01, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6]
BLOCK = 4096


def main() -> None:
    rows, landmarks, threads = map(int, sys.argv[1:])
    from relvec import RVR
    from relvec.presets import tipping2001

    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    X, f = friedman(rows, rng)
    t = f + rng.standard_normal(rows)
    center, scale = t.mean(), t.std()
    t = (t - center) / scale
    RVR(**tipping2001(GAMMA), n_jobs=threads).fit(X[:20], t[:20])
    # Once before and once after: the computer may not be the same all the time.
    products = [symmetric_product(X, landmarks, threads)]
    model = RVR(**tipping2001(GAMMA), dictionary=landmarks, n_jobs=threads)
    _, cost = measured(lambda: model.fit(X, t))
    products.append(symmetric_product(X, landmarks, threads))
    X_test, truth = friedman(100_000, np.random.default_rng(2))
    error = float(np.sqrt(np.mean((center + scale * model.predict(X_test) - truth) ** 2)))
    print(
        json.dumps(
            {
                "wall": cost.wall,
                "cpu": cost.cpu,
                # `measured` counts from where the rows and the targets are there.
                "peak": cost.peak,
                "products": products,
                "cholesky": factorisation(landmarks),
                "error": error,
                "kernels": len(model.relevance_),
                "evidence": model.log_evidence_,
                "status": model.report_["status"],
                "iterations": model.n_iter_,
                "noise": scale * float(np.sqrt(model.noise_variance_)),
            }
        )
    )


def symmetric_product(X: Array, landmarks: int, threads: int) -> list[float]:
    """Seconds and CPU seconds of K'K for K [N, L], summed over blocks of rows; one block stands for all.

    A quarter of the blocks is done. On a busy computer the matrix library may be slower with more threads:
    the faster of one and all of them counts.
    """
    K = np.exp(-((X[:BLOCK, None, :1] - X[None, :landmarks, :1]) ** 2).sum(axis=-1))
    total = K.T @ K
    blocks = max(1, len(X) // (4 * BLOCK))
    factor = len(X) / (blocks * len(K))

    def product() -> None:
        nonlocal total
        for _ in range(blocks):
            total += K.T @ K

    found = []
    for count in {1, threads}:
        with threadpool_limits(count):
            _, cost = measured(product)
            found.append([factor * cost.wall, factor * cost.cpu])
    return min(found)


def factorisation(landmarks: int) -> float:
    """Seconds of one Cholesky factor [L, L]."""
    A = np.random.default_rng(0).standard_normal((landmarks, landmarks))
    A = A @ A.T + landmarks * np.eye(landmarks)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        cholesky(A, lower=True)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
