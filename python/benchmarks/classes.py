"""What classes cost beside a regression of the same rows and landmarks: prints a line of JSON.

python classes.py ROWS LANDMARKS THREADS [FOLDER]
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from cases import Array, adult_data, friedman, skin_data
from landmarks import GAMMA
from measure import measured

# Classes that overlap: noise of this standard deviation before they are parted at the median.
NOISE = 2.0


def main() -> None:
    rows, size, threads, *folder = sys.argv[1:]
    warnings.simplefilter("ignore")
    X, t, labels = simulated(int(rows))
    found = {f"friedman-{rows}": beside(X, t, labels, GAMMA, int(size), int(threads))}
    if folder:
        for name, data, own in [
            ("adult_a9a", adult_data(Path(folder[0])), 500),
            ("skin_nonskin", skin_data(Path(folder[0])), 300),
        ]:
            found[name] = beside(data.X, data.t.astype(float), data.t, data.gamma, own, int(threads))
    print(json.dumps(found))


def simulated(rows: int) -> tuple[Array, Array, Array]:
    """Rows, targets with noise, and classes: above and below the median."""
    rng = np.random.default_rng(1)
    X, f = friedman(rows, rng)
    t = f + NOISE * rng.standard_normal(rows)
    return X, (t - t.mean()) / t.std(), (t > np.median(f)).astype(int)


def beside(X: Array, t: Array, labels: Array, gamma: Any, size: int, threads: int) -> dict[str, Any]:
    """The cost of both, a tiny fit of each first."""
    from relvec import RVC, RVR
    from relvec.presets import tipping2001

    RVR(**tipping2001(gamma), n_jobs=threads).fit(X[:20], X[:20, 0])
    RVC(**tipping2001(gamma, task="classify"), n_jobs=threads).fit(X[:20], X[:20, 0] > np.median(X[:20, 0]))
    out: dict[str, Any] = {"rows": len(X), "landmarks": size}
    for name, machine, task, target in [("regression", RVR, "regress", t), ("classes", RVC, "classify", labels)]:
        model = machine(**tipping2001(gamma, task=task), dictionary=size, n_jobs=threads)
        _, cost = measured(lambda model=model, target=target: model.fit(X, target))
        kernels, status = len(model.relevance_), model.report_["status"]
        out[name] = {"wall": cost.wall, "cpu": cost.cpu, "kernels": kernels, "status": status}
    return out


if __name__ == "__main__":
    main()
