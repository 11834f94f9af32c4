"""Every row a candidate, in units of one pass over the candidates: prints a line of JSON.

python candidates.py ROWS [SECONDS] THREADS

SECONDS limit the fit.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from cases import friedman, friedman_data
from measure import measured
from threadpoolctl import threadpool_limits

CENTRES, BLOCK = 250, 4096


def main() -> None:
    rows, *limit, threads = map(int, sys.argv[1:])
    from relvec import RVR
    from relvec.presets import tipping2001

    warnings.simplefilter("ignore")
    data = friedman_data(rows)
    RVR(**tipping2001(data.gamma), n_jobs=threads).fit(data.X[:20], data.t[:20])
    seconds = float(limit[0]) if limit else None
    model = RVR(**tipping2001(data.gamma), dictionary="all", n_jobs=threads, time_limit=seconds)
    # Once before and once after: the computer may not be the same all the time.
    rates = [prices(threads)]
    _, cost = measured(lambda: model.fit(data.X, data.t))
    rates.append(prices(threads))
    entry, product = (sum(figures) / len(figures) for figures in zip(*rates, strict=True))
    error = data.center + data.scale * model.predict(data.X_test) - data.truth
    out: dict[str, Any] = {
        "wall": cost.wall,
        "cpu": cost.cpu,
        "peak": cost.peak,
        "entry": entry,
        "product": product,
        # N^2 kernels and 2 N^2 M operations.
        "pass": rows**2 * (entry + 2 * len(model.relevance_) * product),
        "passes": model.report_["certificate"]["reason"].rsplit("; ", 1)[-1],
        "error": float(np.sqrt(np.mean(error**2))),
        "kernels": len(model.relevance_),
        "evidence": model.log_evidence_,
        "status": model.report_["status"],
        "iterations": model.n_iter_,
    }
    print(json.dumps(out))


def prices(threads: int) -> tuple[float, float]:
    """Seconds of a kernel value and of one operation of a matrix product by numpy.

    The former in a prediction, its product with a weight included.
    """
    from relvec import RVR
    from relvec.presets import tipping2001

    X, f = friedman(200_000, np.random.default_rng(3))
    # One iteration leaves every kernel in the model.
    model = RVR(**tipping2001(0.03), search={"scheme": "em", "max_iterations": 1}, n_jobs=threads).fit(
        X[:CENTRES], f[:CENTRES]
    )
    K = np.random.default_rng(4).standard_normal((BLOCK, BLOCK))
    with threadpool_limits(threads):
        product = fastest(lambda: K @ K[:, :CENTRES]) / (2 * BLOCK**2 * CENTRES)
    return fastest(lambda: model.predict(X)) / (len(X) * CENTRES), product


def fastest(call: Any) -> float:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
