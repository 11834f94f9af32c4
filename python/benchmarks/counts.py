"""Counts: the Poisson likelihood beside Gaussian noise and learners of scikit-learn.

    cargo xtask bench counts --data FOLDER [--draws N]

FOLDER holds boston_housing.csv, california_housing.csv.gz and elevators.csv.gz, target last or called `target`;
Friedman 1 is generated. Counts are drawn at rates that follow the targets of these tables. Writes docs/counts.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from outliers import LEVELS, SETS, crps, facts_of_run, table_of, write
from relvec import RVR
from scipy.stats import norm, poisson
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer
from threadpoolctl import threadpool_limits
from uncertainty import FILES, table

Array = NDArray[np.float64]

ROWS = [100, 400, 1500]
MEANS = [1.0, 10.0]
# Standard deviation of the log rate, and the largest distance of a log rate from its mean in these units.
SPREAD, FARTHEST = 0.8, 3.0
HEAD = """# Counts

Made by `cargo xtask bench counts --data FOLDER`. The targets of four tables, standardised, times {spread:g} are log
rates, and counts are drawn at these rates. The targets contain noise, so that the counts vary more than Poisson counts
of a smooth rate do. Training rows and 2,000 test rows at most are drawn at random, and features are standardised by
the training rows. RVR has no settings but the ones named; the others have the defaults of scikit-learn, splines those
of `SplineTransformer`. Deviance is the Poisson deviance of test counts over that of the mean training count. CRPS is
the continuous ranked probability score from 19 quantiles, over that of a Poisson distribution with the mean count;
lower is better. Coverage is the share of test counts in the central 90 % interval, with both of its ends. CPU seconds
are those of the fit on one thread. Figures are means over friedman1, boston (at most 400 rows), california and
elevators, {draws} draws each.

{facts}
"""


def learners() -> dict[str, BaseEstimator]:
    """The learners, by the names in the tables."""
    logs = TransformedTargetRegressor(
        RVR(n_jobs=1), func=lambda t: np.log(t + 0.5), inverse_func=lambda f: np.exp(f) - 0.5, check_inverse=False
    )
    return {
        'RVR(likelihood="poisson")': RVR(likelihood="poisson", n_jobs=1),
        'RVR(likelihood="poisson", weight_prior="ard")': RVR(likelihood="poisson", weight_prior="ard", n_jobs=1),
        "RVR()": RVR(n_jobs=1),
        "RVR() of log(count + 1/2)": logs,
        "PoissonRegressor of splines": make_pipeline(SplineTransformer(), PoissonRegressor(max_iter=1000)),
        'HistGradientBoostingRegressor(loss="poisson")': HistGradientBoostingRegressor(loss="poisson", random_state=0),
    }


def quantiles(model: Any, rows: Array) -> Array | None:
    """The quantiles of new counts, (n_rows, n_levels), if the model has them."""
    if isinstance(model, RVR):
        return np.asarray(model.predict_quantiles(rows, LEVELS))
    if isinstance(model, TransformedTargetRegressor):
        mean, std = model.regressor_.predict(rows, return_std=True)
        return np.asarray(np.exp(mean[:, np.newaxis] + std[:, np.newaxis] * norm.ppf(LEVELS)) - 0.5)
    return None


def run(model: Any, split: tuple[Array, Array, Array, Array]) -> list[float]:
    """Deviance, CRPS, coverage and CPU seconds of a learner on one draw."""
    X, t, test, truth = split
    start = time.process_time()
    model.fit(X, t)
    seconds = time.process_time() - start
    constant = np.full(len(truth), t.mean())
    # Learners without the Poisson distribution may expect less than nothing.
    expected = np.maximum(model.predict(test), 1e-2 * t.mean())
    deviance = mean_poisson_deviance(truth, expected) / mean_poisson_deviance(truth, constant)
    found = quantiles(model, test)
    if found is None:
        return [deviance, np.nan, np.nan, seconds]
    plain = crps(truth, poisson.ppf(LEVELS, constant[:, np.newaxis]))
    inside = (found[:, 0] <= truth) & (truth <= found[:, -1])
    return [deviance, crps(truth, found) / plain, float(np.mean(inside)), seconds]


def counts(name: str, folder: Path, draw: int, rows: int, mean: float) -> tuple[Array, Array, Array, Array]:
    """Training rows and counts, test rows and counts."""
    X, t, test, truth = table(name, folder, draw, rows)
    random = np.random.default_rng([draw, rows])

    def drawn(targets: Array) -> Array:
        return random.poisson(mean * np.exp(SPREAD * np.clip(targets, -FARTHEST, FARTHEST))).astype(float)

    return X, drawn(t), test, drawn(truth)


def main() -> None:
    """Run the draws, print and write the tables."""
    parser = argparse.ArgumentParser(prog="cargo xtask bench counts", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {', '.join(FILES.values())}")
    parser.add_argument("--draws", type=int, default=4, help="draws of each set")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = []
    for rows in ROWS:
        for mean in MEANS:
            found: dict[str, list[list[float]]] = {}
            for name in [name for name in SETS if name != "boston" or rows <= 400]:
                for draw in range(arguments.draws):
                    split = counts(name, arguments.data, draw, rows, mean)
                    with threadpool_limits(1):
                        for learner, model in learners().items():
                            found.setdefault(learner, []).append(run(model, split))
            tables.append(table_of(f"{rows:,} rows, log rates about log {mean:g}", "deviance", found))
            print(tables[-1], flush=True)
    write("counts.md", HEAD.format(spread=SPREAD, draws=arguments.draws, facts=facts_of_run()), tables)


if __name__ == "__main__":
    main()
