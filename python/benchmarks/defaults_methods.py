"""What the benchmark of defaults compares: fits of one draw, and what they are scored by.

A method learns from a draw and returns its predictions of the test rows, the number of centres, and the CPU seconds of
the fit. A regression without a density of its own gets a normal one, whose variance is the mean squared error of 5-fold
cross-validation on the training rows.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from defaults_tables import BIG, Draw, Table
from dense_process import DenseClasses, DenseProcess
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.svm import SVC, SVR

Array = NDArray[np.float64]

# A normal lies within so many standard deviations with a probability of 0.95.
WITHIN_95 = 1.959964
# Features above which scikit-learn's process has one width for all: its gradient holds N x N numbers for every width.
MOST_WIDTHS = 50
# Fewer rows make no tree, as a leaf holds at least 20 of the four fifths that cross-validation leaves.
LEAST_ROWS_OF_TREES = 50
# Grids of 5-fold cross-validation; gamma in units of 1 / D, as features have unit variance.
COSTS = (1.0, 10.0, 100.0)
CLASS_COSTS = (0.1, 1.0, 10.0, 100.0)
WIDTHS = (0.1, 0.3, 1.0, 3.0)
TUBES = (0.01, 0.1, 0.3)
# Smaller probabilities of the true class count as this one, so that one row costs 35 nats at most.
LEAST_PROBABILITY = 1e-15


class Skipped(Exception):
    """Why a method does not run on a draw, in words."""


@dataclass(frozen=True)
class Normal:
    """A regression's predictions of the test rows: mean: [N], std: [N]."""

    mean: Array
    std: Array


@dataclass(frozen=True)
class Fitted:
    """What came of a fit: predictions, centres (None: it has none), CPU seconds."""

    predicted: Normal | Array
    centres: int | None
    cpu: float


@dataclass(frozen=True)
class Method:
    """What the page says of a method, and its fits."""

    about: str
    regression: Callable[[Draw], Fitted] | None = None
    classes: Callable[[Draw], Fitted] | None = None
    # Modules; a change in one of them makes earlier results out of date.
    modules: tuple[str, ...] = ("defaults_methods", "sklearn")
    # With more training rows a fit takes minutes.
    most_rows: int = 1200
    # Runs only if it is named, and "scale" at 1,000,000 rows.
    extra: bool = False


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its CPU seconds."""
    begin = time.process_time()
    found = call()
    return found, time.process_time() - begin


def scores(draw: Draw, table: Table, fitted: Fitted) -> dict[str, float]:
    """Regression: rmse, nlpd, coverage, r2; classes: error, loss. A value that is not finite is an error."""
    y = draw.y_test
    if table.classes:
        classes = np.unique(draw.y)
        p = np.clip(np.asarray(fitted.predicted), LEAST_PROBABILITY, 1.0)
        own = (y[:, None] == classes).argmax(axis=1)
        found = {
            "error": float(np.mean(classes[p.argmax(axis=1)] != y)),
            "loss": float(-np.mean(np.log(p[np.arange(len(y)), own]))),
        }
    else:
        assert isinstance(fitted.predicted, Normal)
        mean, std = fitted.predicted.mean, fitted.predicted.std
        z = (y - mean) / std
        found = {
            "rmse": float(np.sqrt(np.mean((y - mean) ** 2))),
            "nlpd": float(np.mean(0.5 * np.log(2.0 * np.pi * std**2) + 0.5 * z**2)),
            "coverage": float(np.mean(np.abs(z) <= WITHIN_95)),
            "r2": float(1.0 - np.mean((y - mean) ** 2) / y.var()),
        }
    wrong = [f"{name} = {value}" for name, value in found.items() if not np.isfinite(value)]
    if wrong:
        raise ArithmeticError(f"the scores are not finite: {', '.join(wrong)}")
    return found


def dense_regression(draw: Draw) -> Fitted:
    process, cpu = timed(lambda: DenseProcess().fit(draw.X, draw.y))
    mean, std = process.predict(draw.X_test)
    return Fitted(Normal(mean[:, 0], std), len(process.X) if process.structure_ else 0, cpu)


def dense_classes(draw: Draw) -> Fitted:
    model, cpu = timed(lambda: DenseClasses().fit(draw.X, draw.y))
    return Fitted(model.predict_proba(draw.X_test), len(model.process.X), cpu)


def accepted(machine: type, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings, if the installed relvec has all of them."""
    missing = [name for name in settings if name not in inspect.signature(machine).parameters]
    if missing:
        raise Skipped(f"the installed relvec has no parameter {', '.join(missing)}")
    return settings


def centres(model: Any) -> int:
    """Rows that a prediction needs."""
    found = getattr(model, "centres_", None)
    return len(model.relevance_vectors_ if found is None else found)


def relvec_regression(**settings: Any) -> Callable[[Draw], Fitted]:
    def fit(draw: Draw) -> Fitted:
        from relvec import RVR

        own = accepted(RVR, settings)
        model, cpu = timed(lambda: RVR(n_jobs=1, **own).fit(draw.X, draw.y))
        return Fitted(Normal(*model.predict(draw.X_test, return_std=True)), centres(model), cpu)

    return fit


def relvec_classes(**settings: Any) -> Callable[[Draw], Fitted]:
    def fit(draw: Draw) -> Fitted:
        from relvec import RVC

        own = accepted(RVC, settings)
        model, cpu = timed(lambda: RVC(n_jobs=1, **own).fit(draw.X, draw.y))
        return Fitted(model.predict_proba(draw.X_test), centres(model), cpu)

    return fit


def sklearn_process(draw: Draw) -> Fitted:
    D = draw.X.shape[1]
    lengths = np.ones(D if D <= MOST_WIDTHS else 1)
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(lengths, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    process, cpu = timed(lambda: process.fit(draw.X, draw.y))
    return Fitted(Normal(*process.predict(draw.X_test, return_std=True)), len(draw.X), cpu)


def spread_of_errors(model: Any, draw: Draw) -> float:
    """Root mean square error of 5-fold cross-validation."""
    return float(np.sqrt(np.mean((draw.y - cross_val_predict(model, draw.X, draw.y, cv=5)) ** 2)))


def grid(draw: Draw, **own: tuple[float, ...]) -> dict[str, list[float]]:
    """What is tried: gamma, and the parameters named."""
    return {
        "gamma": [width / draw.X.shape[1] for width in WIDTHS],
        **{name: list(values) for name, values in own.items()},
    }


def tuned_svr(draw: Draw) -> Fitted:
    def fit() -> tuple[Any, float]:
        # The limit ends fits with C = 100 to noise, which would take minutes; others converge before it.
        search = GridSearchCV(
            SVR(max_iter=100_000), grid(draw, C=COSTS, epsilon=TUBES), cv=5, scoring="neg_mean_squared_error"
        )
        search.fit(draw.X, draw.y)
        return search.best_estimator_, float(np.sqrt(-search.best_score_))

    (model, std), cpu = timed(fit)
    return Fitted(Normal(model.predict(draw.X_test), np.full(len(draw.y_test), std)), len(model.support_), cpu)


def tuned_svc(draw: Draw) -> Fitted:
    def fit() -> Any:
        best = GridSearchCV(SVC(), grid(draw, C=CLASS_COSTS), cv=5).fit(draw.X, draw.y).best_params_
        return SVC(probability=True, random_state=0, **best).fit(draw.X, draw.y)

    model, cpu = timed(fit)
    return Fitted(model.predict_proba(draw.X_test), len(model.support_), cpu)


def trees_regression(draw: Draw) -> Fitted:
    if len(draw.X) < LEAST_ROWS_OF_TREES:
        raise Skipped(f"fewer than {LEAST_ROWS_OF_TREES} rows")
    model = HistGradientBoostingRegressor(random_state=0)
    std, more = timed(lambda: spread_of_errors(model, draw))
    model, cpu = timed(lambda: model.fit(draw.X, draw.y))
    return Fitted(Normal(model.predict(draw.X_test), np.full(len(draw.y_test), std)), None, cpu + more)


def trees_classes(draw: Draw) -> Fitted:
    model, cpu = timed(lambda: HistGradientBoostingClassifier(random_state=0).fit(draw.X, draw.y))
    return Fitted(model.predict_proba(draw.X_test), None, cpu)


def linear_regression(draw: Draw) -> Fitted:
    model, cpu = timed(lambda: BayesianRidge().fit(draw.X, draw.y))
    return Fitted(Normal(*model.predict(draw.X_test, return_std=True)), None, cpu)


def logistic(draw: Draw) -> Fitted:
    model, cpu = timed(lambda: LogisticRegression(max_iter=1000).fit(draw.X, draw.y))
    return Fitted(model.predict_proba(draw.X_test), None, cpu)


OURS = ("defaults_methods", "relvec")
METHODS = {
    "dense": Method(
        "the dense process, on 1,000 of the rows at most; of classes on their labels, with a temperature",
        dense_regression,
        dense_classes,
        modules=("dense_process",),
        most_rows=BIG,
    ),
    "relvec": Method("`RVR()`, `RVC()`", relvec_regression(), relvec_classes(), modules=OURS, most_rows=BIG),
    "ard": Method(
        '`RVR(weight_prior="ard")`, `RVC(weight_prior="ard")`',
        relvec_regression(weight_prior="ard"),
        relvec_classes(weight_prior="ard"),
        modules=OURS,
        most_rows=BIG,
    ),
    "gp": Method("scikit-learn's GaussianProcessRegressor, one width per feature", sklearn_process),
    "svm": Method("SVR and SVC + Platt, tuned by 5-fold cross-validation", tuned_svr, tuned_svc),
    "trees": Method("HistGradientBoosting", trees_regression, trees_classes, most_rows=BIG),
    "linear": Method("BayesianRidge, LogisticRegression", linear_regression, logistic, most_rows=BIG),
    "evidence-ard": Method(
        '`RVR(gamma="evidence-ard", dictionary=1000)`',
        relvec_regression(gamma="evidence-ard", dictionary=1000),
        modules=OURS,
        most_rows=BIG,
        extra=True,
    ),
    "scale": Method(
        '`RVR(gamma="scale", weight_prior="ard", sparsity=0, variance="posterior")`',
        relvec_regression(gamma="scale", weight_prior="ard", sparsity=0.0, variance="posterior"),
        modules=OURS,
        extra=True,
    ),
}


def version(method: Method) -> str:
    """Tells versions of a method apart: results of another one are out of date."""
    found = hashlib.sha256("".join(map(content, method.modules)).encode())
    return found.hexdigest()[:12]


@cache
def content(module: str) -> str:
    """The version of scikit-learn, or a digest of all files of a module."""
    if module == "sklearn":
        return str(sklearn.__version__)
    path = Path(str(importlib.import_module(module).__file__))
    files = sorted(path.parent.glob("*.*")) if path.name == "__init__.py" else [path]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.is_file())).hexdigest()
