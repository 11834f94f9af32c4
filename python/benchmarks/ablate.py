"""What each constant and part of the search buys: evidence, held-out log density and time on ten problems.

Each line changes one of them. Evidence is that of precisions learned for each weight (`weight_prior="ard"`) at a given
gamma, in nats above the search as it is; so is the log density of held-out rows, in nats for each; CPU seconds are
those of the fits, as a ratio.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import relvec
from defaults_tables import classifications, draw, regressions
from numpy.typing import NDArray
from sklearn.metrics import log_loss

Array = NDArray[np.float64]

ROWS = 300
TABLES = (
    "sinc",
    "friedman1",
    "noise",
    "boston",
    "kin40k",
    "elevators",
    "banana",
    "image",
    "waveform",
    "wine",
)
# A change of each constant, either way where both make sense.
CHANGES: dict[str, dict[str, Any]] = {
    "one column at a time (batch 1)": {"policy": {"batch": 1}},
    "batch 100": {"policy": {"batch": 100}},
    "share 0": {"policy": {"share": 0.0}},
    "share 0.5": {"policy": {"share": 0.5}},
    "clip 1": {"policy": {"clip": 1.0}},
    "clip 4": {"policy": {"clip": 4.0}},
    "prune below 1e-4": {"policy": {"prune_below": 1e-4}},
    "prune below 1e-2": {"policy": {"prune_below": 1e-2}},
    "rise 1e-1": {"policy": {"rise": 1e-1}},
    "rise 1e-5": {"policy": {"rise": 1e-5}},
    "20 joint steps": {"policy": {"steps": 20}},
    "4 steps with the curvature held": {"policy": {"frozen_steps": 4}},
    "no restart": {"restarts": 0},
    "one restart": {"restarts": 1},
    "restart at 2 times the precision": {"policy": {"restart_noise": 2.0}},
    "restart at 8 times the precision": {"policy": {"restart_noise": 8.0}},
    "restart gain 1e-3": {"policy": {"restart_gain": 1e-3}},
    "start from no basis function": {"start": "empty"},
}


def fitted(table: Any, rows: int, number: int, folder: Path, settings: dict[str, Any], nats: float) -> dict[str, float]:
    """Log evidence, log density of a held-out row, CPU seconds and kernels of one fit."""
    own = draw(table, rows, number, folder)
    assert own is not None
    estimator = relvec.RVC if table.classes else relvec.RVR
    model = estimator(
        weight_prior="ard",
        gamma=0.5 / own.X.shape[1],
        sparsity=nats,
        n_jobs=1,
        search=settings,
    )
    begin = time.process_time()
    model.fit(own.X, own.y)
    seconds = time.process_time() - begin
    if table.classes:
        density = -log_loss(own.y_test, model.predict_proba(own.X_test), labels=model.classes_)
    else:
        mean, std = model.predict(own.X_test, return_std=True)
        density = float(np.mean(-np.log(std) - 0.5 * ((own.y_test - mean) / std) ** 2)) - 0.5 * np.log(2.0 * np.pi)
    kernels = float(len(model.relevance_))
    return {"evidence": model.log_evidence_, "density": density, "seconds": seconds, "kernels": kernels}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each fit")
    parser.add_argument("--draws", type=int, default=3, help="draws of each table")
    parser.add_argument("--sparsity", type=float, default=1.0, help="nats that each kernel must gain")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = [table for table in regressions() + classifications() if table.name in TABLES]

    def run(settings: dict[str, Any]) -> pd.DataFrame:
        cases = [(table, number) for table in tables for number in range(arguments.draws)]
        found = [
            fitted(table, arguments.rows, number, arguments.data, settings, arguments.sparsity)
            for table, number in cases
        ]
        names = pd.MultiIndex.from_tuples([(table.name, number) for table, number in cases])
        return pd.DataFrame(found, index=names)

    run({})
    plain = run({})
    print(f"as it is: {plain['kernels'].mean():.1f} kernels, {plain['seconds'].sum():.2f} CPU seconds")
    print(f"{'change':36} {'evidence':>9} {'worst':>8} {'density':>8} {'worst':>8} {'kernels':>8} {'time':>6}")
    for name, settings in CHANGES.items():
        other = run(settings)
        evidence = other["evidence"] - plain["evidence"]
        density = (other["density"] - plain["density"]).groupby(level=0).mean()
        print(
            f"{name:36} {evidence.mean():9.2f} {evidence.min():8.2f} {density.mean():8.4f} {density.min():8.4f} "
            f"{other['kernels'].mean():8.1f} {other['seconds'].sum() / plain['seconds'].sum():6.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
