"""From the sums over the rows to the model, in units of one Cholesky factor of that size: prints a line of JSON.

python solve.py LANDMARKS THREADS [FOLDER]
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from cases import Array, friedman, regression_file, standardised
from landmarks import GAMMA, factorisation
from measure import measured

# One scale per feature, as `gamma = "evidence-ard"` has learned them from these tables (of the latter from 8,000 rows).
WIDTHS = {
    "kin40k": [0.044, 0.067, 0.17, 0.145, 0.146, 0.22, 0.225, 0.124],
    "protein_casp": [1.85, 5e-5, 0.104, 2.09, 5e-5, 2.57, 5e-5, 1.14, 0.0386],
}
ROWS = 20_000
TIMES = 3


def main() -> None:
    size, threads, *folder = sys.argv[1:]
    warnings.simplefilter("ignore")
    tables = [made(name, Path(folder[0])) for name in WIDTHS] if folder else [simulated()]
    before = factorisation(int(size))
    found = {name: solve(X, t, gamma, int(size), int(threads)) for name, X, t, gamma in tables}
    print(json.dumps({"cholesky": [before, factorisation(int(size))], "tables": found}))


def made(name: str, folder: Path) -> tuple[str, Array, Array, Any]:
    """A table from a file, and the widths."""
    data = regression_file(folder, name)
    return name, data.X, data.t, WIDTHS[name]


def simulated() -> tuple[str, Array, Array, Any]:
    """Where there are no files."""
    rng = np.random.default_rng(1)
    X, f = friedman(ROWS, rng)
    data = standardised(X, f + rng.standard_normal(ROWS), X, f, 1.0)
    # The widths are those of the cube.
    return f"friedman-{ROWS}", X, data.t, GAMMA


def solve(X: Array, t: Array, gamma: Any, size: int, threads: int) -> dict[str, Any]:
    """The pass over the rows, and several times the fit to its sums."""
    from relvec import RVR, Statistics
    from relvec.presets import tipping2001

    # One iteration leaves every landmark in the model.
    first = RVR(**tipping2001(gamma), dictionary=size, search={"scheme": "em", "max_iterations": 1}, n_jobs=threads)
    centres = first.fit(X, t).relevance_vectors_
    sums, streaming = measured(lambda: Statistics(gamma=gamma, centres=centres).update(X, t))
    costs = []
    for _ in range(TIMES):
        model, cost = measured(lambda: sums.fit(sparsity=0.0, n_jobs=threads))
        costs.append(cost)
    best = min(costs, key=lambda cost: cost.wall)
    return {
        "pass": streaming.wall,
        "wall": best.wall,
        "cpu": best.cpu,
        "kernels": len(model.relevance_),
        "evidence": model.log_evidence_,
        "status": model.report_["status"],
        "actions": model.report_["actions"],
    }


if __name__ == "__main__":
    main()
