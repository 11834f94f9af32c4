"""Regression with wrong training targets: Student-t and Gaussian noise, beside robust learners of scikit-learn.

    cargo xtask bench outliers --data FOLDER [--draws N]

FOLDER holds boston_housing.csv, california_housing.csv.gz and elevators.csv.gz, target last or called `target`;
Friedman 1 is generated. A share of the training targets are wrong. Test targets are right. Writes docs/outliers.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from computer import ROOT, facts
from numpy.typing import NDArray
from relvec import RVR
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from threadpoolctl import threadpool_limits
from uncertainty import FILES, table

Array = NDArray[np.float64]

SETS = ["friedman1", "boston", "california", "elevators"]
ROWS = [100, 400]
SHARES = [0.0, 0.1]
# Wrong targets are off by a normal number of this standard deviation, in units of that of the targets.
WRONG = 3.0
LEVELS = np.linspace(0.05, 0.95, 19)
HEAD = """# Regression with outliers

Made by `cargo xtask bench outliers --data FOLDER`. Training rows and 2,000 test rows at most are drawn at random.
Features and targets are standardised by the training rows. A share of the training targets is then wrong by a normal
number of standard deviation {wrong:g}; test targets are right. RVR has no settings but the ones named. The Gaussian
process is that of scikit-learn, with a width for each feature, an amplitude and a noise that are learned. Error is
the RMSE of the mean. CRPS is the continuous ranked probability score from 19 quantiles, in units of the target; lower
is better. Coverage is the share of test targets in the central 90 % interval. CPU seconds are those of the fit on one
thread. Figures are means over friedman1, boston, california and elevators, {draws} draws each.

{facts}
"""


def learners(features: int) -> dict[str, BaseEstimator]:
    """The learners, by the names in the tables."""
    kernel = ConstantKernel() * RBF(np.full(features, np.sqrt(features))) + WhiteKernel(0.1)
    return {
        'RVR(likelihood="student_t")': RVR(likelihood="student_t", n_jobs=1),
        'RVR(likelihood="student_t", weight_prior="ard")': RVR(likelihood="student_t", weight_prior="ard", n_jobs=1),
        "RVR()": RVR(n_jobs=1),
        "GaussianProcessRegressor": GaussianProcessRegressor(kernel, normalize_y=True),
        "HistGradientBoostingRegressor, absolute error": HistGradientBoostingRegressor(
            loss="absolute_error", random_state=0
        ),
    }


def quantiles(model: Any, rows: Array) -> Array | None:
    """The quantiles of new targets, (n_rows, n_levels), if the model has them."""
    if isinstance(model, RVR):
        return np.asarray(model.predict_quantiles(rows, LEVELS))
    if isinstance(model, GaussianProcessRegressor):
        mean, std = model.predict(rows, return_std=True)
        return np.asarray(mean[:, np.newaxis] + std[:, np.newaxis] * norm.ppf(LEVELS))
    return None


def crps(targets: Array, found: Array) -> float:
    """Twice the mean pinball loss of the quantiles."""
    off = targets[:, np.newaxis] - found
    return 2.0 * float(np.mean(np.maximum(LEVELS * off, (LEVELS - 1.0) * off)))


def run(model: Any, split: tuple[Array, Array, Array, Array]) -> list[float]:
    """Error, CRPS, coverage and CPU seconds of a learner on one draw."""
    X, t, test, truth = split
    start = time.process_time()
    model.fit(X, t)
    seconds = time.process_time() - start
    error = float(np.sqrt(np.mean((model.predict(test) - truth) ** 2)))
    found = quantiles(model, test)
    if found is None:
        return [error, np.nan, np.nan, seconds]
    inside = (found[:, 0] <= truth) & (truth <= found[:, -1])
    return [error, crps(truth, found), float(np.mean(inside)), seconds]


def table_of(title: str, measure: str, found: dict[str, list[list[float]]]) -> str:
    """A table of means: a measure, CRPS, coverage and CPU seconds of each learner."""
    lines = [
        f"## {title}",
        "",
        f"| learner | {measure} | CRPS | coverage of 90 % | CPU seconds |",
        "|---|---|---|---|---|",
    ]
    for learner, values in found.items():
        first, score, inside, seconds = np.mean(values, axis=0)
        rest = "| | |" if np.isnan(score) else f"| {score:.3f} | {100.0 * inside:.1f} % |"
        lines.append(f"| {learner} | {first:.3f} {rest} {seconds:.2f} |")
    return "\n".join(lines) + "\n"


def facts_of_run() -> str:
    """The commit, the computer and the packages, one in a line."""
    return "\n".join(f"- {name}: {value}" for name, value in facts(["scikit-learn", "numpy"]).items())


def write(name: str, head: str, tables: list[str]) -> None:
    """Write a page of docs/."""
    page = ROOT / "docs" / name
    page.write_text(head + "\n" + "\n".join(tables), encoding="utf-8")
    print(f"wrote {page}")


def main() -> None:
    """Run the draws, print and write the tables."""
    parser = argparse.ArgumentParser(prog="cargo xtask bench outliers", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help=f"folder with {', '.join(FILES.values())}")
    parser.add_argument("--draws", type=int, default=4, help="draws of each set")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = []
    for rows in ROWS:
        for share in SHARES:
            found: dict[str, list[list[float]]] = {}
            for name in SETS:
                for draw in range(arguments.draws):
                    X, t, test, truth = table(name, arguments.data, draw, rows)
                    random = np.random.default_rng([draw, rows])
                    wrong = random.permutation(rows) < round(share * rows)
                    t = t + np.where(wrong, WRONG * random.standard_normal(rows), 0.0)
                    with threadpool_limits(1):
                        for learner, model in learners(X.shape[1]).items():
                            found.setdefault(learner, []).append(run(model, (X, t, test, truth)))
            tables.append(table_of(f"{rows} rows, {100.0 * share:.0f} % of them wrong", "error", found))
            print(tables[-1], flush=True)
    write("outliers.md", HEAD.format(wrong=WRONG, draws=arguments.draws, facts=facts_of_run()), tables)


if __name__ == "__main__":
    main()
