"""The search in working sets beside that of all candidates at once, both of every row: prints a line of JSON.

python parts.py ROWS THREADS [FOLDER]
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cases import Array, Data, friedman_data, median_gamma, standardised, table
from measure import measured

DRAWS = 3
# Where a search ends rounding decides: each is made so often, targets moved by so little but for the first time.
TRIALS = 5
MOVED = 1e-6
FILES = ("kin40k", "protein_casp", "california_housing", "elevators")
# Seconds that either may take: a model of a thousand kernels in four thousand columns takes minutes.
LIMIT = 60.0


def main() -> None:
    rows, threads, *folder = sys.argv[1:]
    warnings.simplefilter("ignore")
    found = {}
    for name, data in tables(int(rows), Path(folder[0]) if folder else None):
        found[name] = beside(data, int(threads))
        print(name, found[name], file=sys.stderr, flush=True)
    print(json.dumps(found))


def tables(rows: int, folder: Path | None) -> Iterator[tuple[str, Data]]:
    """Friedman 1, some draws of it, and the first rows of tables in files, in an order of our own."""
    for draw in range(DRAWS):
        yield f"friedman-{rows}, draw {draw + 1}", friedman_data(rows, 10 + draw)
    for name in FILES if folder else ():
        all_rows = table(folder, name)
        some = all_rows[np.random.default_rng(0).permutation(len(all_rows))[:rows]]
        yield name, standardised(some[:, :-1], some[:, -1], some[:, :-1], some[:, -1], median_gamma)


def beside(data: Data, threads: int) -> dict[str, Any]:
    """Evidence and cost of both: the whole is a fit to sums over the rows, every row a centre."""
    from relvec import RVR, Statistics
    from relvec.presets import tipping2001

    def whole(t: Array) -> Any:
        return (
            Statistics(gamma=data.gamma, centres=data.X)
            .update(data.X, t)
            .fit(sparsity=0.0, n_jobs=threads, time_limit=LIMIT)
        )

    def parts(t: Array) -> Any:
        return RVR(**tipping2001(data.gamma), dictionary="all", n_jobs=threads, time_limit=LIMIT).fit(data.X, t)

    trials = [data.t + MOVED * np.random.default_rng(k).standard_normal(len(data.t)) for k in range(1, TRIALS)]
    out: dict[str, Any] = {}
    for name, fit in (("parts", parts), ("whole", whole)):
        runs = [measured(lambda fit=fit, t=t: fit(t)) for t in (data.t, *trials)]
        out[name] = {
            "wall": [cost.wall for _, cost in runs],
            "cpu": [cost.cpu for _, cost in runs],
            "evidence": [model.log_evidence_ for model, _ in runs],
            "kernels": [len(model.relevance_) for model, _ in runs],
            "status": [model.report_["status"] for model, _ in runs],
        }
    return out


if __name__ == "__main__":
    main()
