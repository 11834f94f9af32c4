"""Comparison of models by cross-validation on the same folds."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, column_or_1d, indexable

from ._base import Float
from .presets import tipping2001
from .rvc import RVC
from .rvr import RVR
from .svm import SVC, SVR

# Named models in the order of the table, with the settings that are chosen for each.
OWN: dict[str, list[str]] = {"rvm": ["gamma"], "rvm evidence": [], "vrvm": ["gamma"], "svm": ["gamma", "c", "epsilon"]}
# Values among which settings are chosen, the simplest model first.
GRID = {"gamma": [0.03, 0.1, 0.3, 1.0, 3.0], "c": [0.1, 1.0, 10.0, 100.0], "epsilon": [0.2, 0.05]}
# Most candidates of the variational scheme, whose iterations take a time that grows with their third power, and its
# tolerance in nats, which is reached 10 to 20 times faster than the default and leads to equal predictions.
MOST_VARIATIONAL = 200
VARIATIONAL_TOLERANCE = 1e-3
# Half width of the central 95 % interval of a Gaussian, in standard deviations.
HALF_WIDTH = 1.959963984540054
# Number of bins of the probability of the most probable class.
BINS = 15
OF_VALUES = ["rmse", "mae", "negative_log_density", "coverage_95"]
OF_CLASSES = ["error_rate", "log_loss", "brier", "calibration_error"]
OF_ALL = ["kernels", "choice_seconds", "fit_seconds", "predict_seconds_per_row"]


def compare(
    X: ArrayLike,
    y: ArrayLike,
    machines: Mapping[str, Any] | Iterable[Any] | None = None,
    *,
    task: str | None = None,
    cv: Any = 5,
    inner_cv: int = 3,
    grid: Mapping[str, Iterable[float]] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
) -> Any:
    """Compare models by cross-validation on the same folds.

    Each fold is predicted by models that were fitted to the other folds only. Within these, the settings of the models
    named below are chosen by an inner cross-validation, and their features are standardised. The command
    ``relvec compare`` does the same with other folds.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows: an array, or a frame.
    y : array-like of shape (n_samples,)
        Values or classes.
    machines : list or dict, default=None
        Estimators of scikit-learn and names of models; the keys of a dict are their names in the table.
        ``"rvm"`` is `RVR` or `RVC` with the gamma of the least squared error, or error rate, of the inner folds.
        ``"rvm evidence"`` uses ``gamma="evidence"``. ``"vrvm"`` uses ``search="variational"``, at most 200
        candidates, pruning of useless weights, and the gamma of ``"rvm"``. ``"svm"`` is `SVR` or `SVC` with the C,
        gamma and epsilon of the least error of the inner folds. None: these four. The other settings of `RVR` and
        `RVC` are those of `presets.tipping2001`. Estimators are cloned and fitted unchanged: use a pipeline to scale
        features, or a search to choose settings.
    task : {"regress", "classify"}, default=None
        What to learn. None: the task of the estimators. Without estimators, classes if `y` is not numeric or has
        exactly two different values, otherwise values.
    cv : int, splitter or iterable, default=5
        Number of folds, drawn at random with classes spread evenly, whatever the order of the rows; or any `cv` of
        scikit-learn.
    inner_cv : int, default=3
        Number of inner folds.
    grid : dict, default=None
        Values among which settings are chosen, as lists by the keys ``"gamma"`` (in multiples of
        1 / (n_features * variance) of the standardised features), ``"c"`` (in regression in standard deviations of
        `y`) and ``"epsilon"`` (in standard deviations of `y`). A single value is used without a choice. Default:
        ``gamma`` 0.03, 0.1, 0.3, 1, 3, ``c`` 0.1, 1, 10, 100, ``epsilon`` 0.05, 0.2.
    random_state : int, default=0
        Seed of the outer and inner folds. None: the folds differ in each call.
    n_jobs : int, default=None
        Number of parallel fits in the inner cross-validation, as in GridSearchCV.

    Returns
    -------
    pandas.DataFrame
        A row for each model. Each measure has a column with the mean over the folds, and one with its standard error,
        named ``<measure>_standard_error``. Measures that a model does not have are NaN. For values: ``rmse``, ``mae``,
        ``negative_log_density`` (mean, nats, of the normal distribution with the predicted mean and standard
        deviation), ``coverage_95`` (share of rows in its central 95 % interval). For classes: ``error_rate``,
        ``log_loss`` (nats), ``brier`` (summed over the classes), ``calibration_error`` (expected, 15 bins of the
        largest probability). For both: ``kernels`` (relevance or support vectors), ``choice_seconds`` (inner
        cross-validation), ``fit_seconds``, ``predict_seconds_per_row``.

    Notes
    -----
    Density and coverage need ``predict(X, return_std=True)``, whose standard deviation must be that of a new
    observation; for a Gaussian process it includes the noise if the kernel has a WhiteKernel. For an `RVR` with
    Student-t noise or counts, both use its own distribution, as `predict_interval` does. Log loss, Brier score and
    calibration need `predict_proba`.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import compare
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-10, 10, (90, 1))
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(90)
    >>> process = GaussianProcessRegressor(RBF() + WhiteKernel())
    >>> table = compare(X, y, {"rvm": "rvm", "svm": "svm", "process": process}, cv=3, grid={"gamma": [3, 10]})
    >>> table[["rmse", "coverage_95"]].round(1)  # doctest: +NORMALIZE_WHITESPACE
             rmse  coverage_95
    machine
    rvm       0.1          0.9
    svm       0.1          NaN
    process   0.1          0.9
    >>> bool(table.loc["rvm", "kernels"] < table.loc["svm", "kernels"])
    True
    """
    try:
        import pandas as pd
    except ImportError as missing:
        raise ImportError(
            "relvec.compare returns a frame of pandas, which is not installed: pip install pandas"
        ) from missing

    X, y = indexable(X, column_or_1d(y))
    y = np.asarray(y)
    named = _named(machines)
    classify = _classifies(task, named, y)
    if not classify:
        y = y.astype(np.float64)
    values = _values(grid, named, classify)
    splits = _splits(X, y, cv, inner_cv, classify, random_state)
    folds: dict[str, list[list[float]]] = {name: [] for name in named}
    for train, test in splits:
        fold = _Fold(X, y, train, values, classify, inner_cv, random_state, n_jobs)
        for name, machine in named.items():
            model, choosing, fitting = fold.fit(machine)
            measures, predicting = _measures(
                model, _safe_indexing(X, test), y[test], np.unique(y) if classify else None
            )
            folds[name].append([*measures, _kernels(model), choosing, fitting, predicting / len(test)])

    columns = (OF_CLASSES if classify else OF_VALUES) + OF_ALL
    rows = {}
    for name, found in folds.items():
        mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
        rows[name] = [number for pair in zip(mean, error, strict=True) for number in pair]
    names = [name for column in columns for name in (column, f"{column}_standard_error")]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=names)
    return table.rename_axis("machine")


def _named(machines: Mapping[str, Any] | Iterable[Any] | None) -> dict[str, Any]:
    """Return the models by their names in the table."""
    if isinstance(machines, str):
        machines = [machines]
    if machines is None:
        machines = OWN
    if isinstance(machines, Mapping):
        named = {str(name): name if machines is OWN else machine for name, machine in machines.items()}
    else:
        named = {}
        for machine in machines:
            name = machine if isinstance(machine, str) else type(_last(machine)).__name__
            if name in named:
                raise ValueError(f"two machines are called {name!r}: give a dict of different names")
            named[name] = machine
    if not named:
        raise ValueError("there is no machine to compare")
    for name, machine in named.items():
        if isinstance(machine, str) and machine not in OWN:
            raise ValueError(f"unknown machine {machine!r}; known: {', '.join(map(repr, OWN))}, and estimators")
        if not isinstance(machine, str) and not (hasattr(machine, "fit") and hasattr(machine, "predict")):
            raise TypeError(f"the machine {name!r} is neither a name nor an estimator: {machine!r}")
    return named


def _classifies(task: str | None, named: dict[str, Any], y: NDArray[Any]) -> bool:
    """Return whether the task is classification."""
    if task not in (None, "regress", "classify"):
        raise ValueError(f"task={task!r}: expected 'regress', 'classify' or None")
    given = {name: machine for name, machine in named.items() if not isinstance(machine, str)}
    classifiers = [name for name, machine in given.items() if is_classifier(machine)]
    regressors = [name for name, machine in given.items() if is_regressor(machine)]
    if classifiers and regressors:
        raise ValueError(
            f"{classifiers[0]!r} is a classifier and {regressors[0]!r} a regressor: compare one kind at a time"
        )
    if (task == "classify" and regressors) or (task == "regress" and classifiers):
        raise ValueError(f"task={task!r}, but {(regressors or classifiers)[0]!r} is for the other task")
    if task is not None or classifiers or regressors:
        return task == "classify" or bool(classifiers)
    return y.dtype.kind not in "iuf" or len(np.unique(y)) == 2


def _values(
    grid: Mapping[str, Iterable[float]] | None, named: dict[str, Any], classify: bool
) -> dict[str, list[float]]:
    """Return the values of each setting, the simplest model first."""
    values = dict(GRID)
    for name, given in (grid or {}).items():
        if name not in GRID:
            raise ValueError(f"grid: unknown setting {name!r}; known: {', '.join(map(repr, GRID))}")
        if not any(isinstance(machine, str) and name in OWN[machine] for machine in named.values()):
            raise ValueError(f"grid: no machine chooses {name!r}")
        if name == "epsilon" and classify:
            raise ValueError("grid: 'epsilon' is for regression")
        own = sorted({float(value) for value in given}, reverse=name == "epsilon")
        if not own or not all(np.isfinite(v) and (v > 0 or (v == 0 and name == "epsilon")) for v in own):
            raise ValueError(f"grid: {name!r} needs positive numbers, found {own}")
        values[name] = own
    return values


def _splits(
    X: Any, y: NDArray[Any], cv: Any, inner_cv: int, classify: bool, random_state: int | None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Return the training rows and the held-out rows of each fold."""
    if not isinstance(inner_cv, int | np.integer) or inner_cv < 2:
        raise ValueError(f"inner_cv={inner_cv!r}: expected a whole number, 2 or more")
    if isinstance(cv, int | np.integer):
        if cv < 2:
            raise ValueError(f"cv={cv}: expected a whole number, 2 or more")
        # scikit-learn would only warn of a class with fewer rows than folds.
        smallest = np.unique(y, return_counts=True)[1].min() if classify else len(y)
        if smallest < cv:
            what = "the smallest class has" if classify else "there are"
            raise ValueError(f"cv={cv}: {what} {smallest} rows only")
        # If features are numbers, the folds do not depend on the order of the rows.
        order = _order(X, y)
        folds = _folds(int(cv), classify, random_state).split(order, y[order])
        return [(order[train], order[test]) for train, test in folds]
    splits = list(check_cv(cv, y, classifier=classify).split(X, y))
    if len(splits) < 2:
        raise ValueError("cv: one fold has no standard error; expected two or more")
    return splits


def _order(X: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Return the order of the rows by features, then by `y`; the given order if features are not numbers."""
    try:
        features = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return np.arange(len(y))
    columns = features.reshape(len(y), -1).T
    return np.lexsort([np.unique(y, return_inverse=True)[1], *columns[::-1]])


def _folds(count: int, classify: bool, random_state: int | None) -> Any:
    return (StratifiedKFold if classify else KFold)(count, shuffle=True, random_state=random_state)


class _Fold:
    """The training rows of a fold, and the fits of models to them."""

    def __init__(
        self,
        X: Any,
        y: NDArray[Any],
        train: NDArray[np.intp],
        values: dict[str, list[float]],
        classify: bool,
        inner_cv: int,
        random_state: int | None,
        n_jobs: int | None,
    ) -> None:
        self.X, self.y = _safe_indexing(X, train), y[train]
        self.values, self.classify, self.n_jobs = values, classify, n_jobs
        self.inner = _folds(int(inner_cv), classify, random_state)
        # The gamma chosen for a relevance vector machine, and the seconds of the choice; two models use it.
        self.chosen: tuple[dict[str, Any], float] | None = None

    def fit(self, machine: Any) -> tuple[Any, float, float]:
        """Return the fitted model, the seconds of the choice of its settings, and those of the fit."""
        settings: dict[str, Any] = {}
        choosing = 0.0
        if not isinstance(machine, str):
            model = clone(machine)
        elif machine == "svm":
            model = self._own((SVC if self.classify else SVR)())
            settings, choosing = self._choose(model, self._points(OWN["svm"]))
            if self.classify:
                settings = {**settings, "machine__probability": True}
        elif machine == "rvm evidence":
            model = self._own(self._papers("evidence"))
        else:
            model = self._own(self._papers())
            if self.chosen is None:
                self.chosen = self._choose(model, self._points(OWN["rvm"]))
            settings, choosing = self.chosen
            if machine == "vrvm":
                model = self._own(self._variational())
        start = time.perf_counter()
        model = model.set_params(**settings).fit(self.X, self.y)
        fitting = time.perf_counter() - start
        if hasattr(model, "refit_time_"):
            # A search: all fits except the last one belong to the choice.
            choosing, fitting = fitting - model.refit_time_, model.refit_time_
        return model, choosing, fitting

    def _own(self, machine: Any) -> Pipeline:
        return Pipeline([("scaler", StandardScaler()), ("machine", machine)])

    def _papers(self, gamma: str = "scale", **own: Any) -> Any:
        """Return a relevance vector machine with the settings of the papers, except for the given ones."""
        settings = tipping2001(gamma, task="classify" if self.classify else "regress")
        return (RVC if self.classify else RVR)(**settings, **own)

    def _variational(self) -> Any:
        return self._papers(
            search={"scheme": "variational", "prune": True, "tolerance": VARIATIONAL_TOLERANCE},
            dictionary=MOST_VARIATIONAL if len(self.y) > MOST_VARIATIONAL else "auto",
        )

    def _points(self, names: list[str]) -> list[dict[str, float]]:
        """Return the settings to choose among, in the units of these rows."""
        # Constant features remain constant; the others have variance 1.
        variance = StandardScaler().fit_transform(self.X).var()
        width = np.shape(self.X)[1] * (variance if variance > 0 else 1.0)
        unit = (float(np.std(self.y)) or 1.0) if not self.classify else 1.0
        points = [{"machine__gamma": gamma / width} for gamma in self.values["gamma"]]
        if "c" in names:
            points = [{**point, "machine__C": c * unit} for point in points for c in self.values["c"]]
            if not self.classify:
                # The tolerance is also in units of the target.
                own = {"machine__tol": SVR().tol * unit}
                points = [
                    {**point, "machine__epsilon": epsilon * unit, **own}
                    for point in points
                    for epsilon in self.values["epsilon"]
                ]
        return points

    def _choose(self, model: Pipeline, points: list[dict[str, float]]) -> tuple[dict[str, Any], float]:
        """Return the settings with the least error over the inner folds (the first if equal), and the seconds taken."""
        if len(points) == 1:
            return points[0], 0.0
        start = time.perf_counter()
        scoring = "accuracy" if self.classify else "neg_mean_squared_error"
        grid = [{name: [value] for name, value in point.items()} for point in points]
        search = GridSearchCV(model, grid, scoring=scoring, cv=self.inner, refit=False, n_jobs=self.n_jobs)
        best: dict[str, Any] = search.fit(self.X, self.y).best_params_
        return best, time.perf_counter() - start


def _last(model: Any) -> Any:
    """Return the last estimator of a search, a pipeline or a transformed target."""
    while True:
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "regressor_"):
            model = model.regressor_
        else:
            return model


def _kernels(model: Any) -> float:
    """Return the number of relevance or support vectors; NaN for other models."""
    last = _last(model)
    if hasattr(last, "centres_"):
        return float(len(last.centres_))
    if hasattr(last, "relevance_"):
        return float(len(last.relevance_))
    # A selector of features has a `support_` as well, but no weights.
    return float(len(last.support_)) if hasattr(last, "support_") and hasattr(last, "dual_coef_") else np.nan


def _measures(model: Any, X: Any, truth: NDArray[Any], classes: NDArray[Any] | None) -> tuple[list[float], float]:
    """Return the measures of the task on held-out rows, and the seconds of their predictions."""
    if classes is None:
        return _of_values(model, X, truth)
    start = time.perf_counter()
    if hasattr(model, "predict_proba"):
        own = np.asarray(model.predict_proba(X))
        seconds = time.perf_counter() - start
        predicted = model.predict(X)
        p = np.zeros((len(truth), len(classes)))
        p[:, np.searchsorted(classes, model.classes_)] = own
        of_p = [metrics.log_loss(truth, p, labels=classes), _brier(truth, p, classes), _calibration(truth, p, classes)]
    else:
        predicted = model.predict(X)
        seconds = time.perf_counter() - start
        of_p = [np.nan] * 3
    return [metrics.zero_one_loss(truth, predicted), *of_p], seconds


def _of_values(model: Any, X: Any, truth: NDArray[Any]) -> tuple[list[float], float]:
    # A search does not pass arguments to its estimator.
    inner = getattr(model, "best_estimator_", model)
    last = inner.steps[-1][1] if isinstance(inner, Pipeline) else inner
    has_std = "return_std" in inspect.signature(last.predict).parameters
    start = time.perf_counter()
    mean, std = inner.predict(X, return_std=True) if has_std else (model.predict(X), None)
    seconds = time.perf_counter() - start
    mean = np.reshape(mean, len(truth))
    of_std = [np.nan, np.nan]
    if isinstance(last, RVR) and last.likelihood != "gaussian":
        own = inner[:-1].transform(X) if isinstance(inner, Pipeline) else X
        t = np.asarray(truth, dtype=np.float64)
        lower, upper = last.predict_interval(own)
        of_std = [-float(np.mean(last._log_density(own, t))), float(np.mean((lower <= t) & (t <= upper)))]
    elif std is not None:
        error = truth - mean
        of_std[1] = float(np.mean(np.abs(error) <= HALF_WIDTH * std))
        # Without a width there is no density.
        if np.all(std > 0):
            of_std[0] = float(np.mean(0.5 * np.log(2.0 * np.pi) + np.log(std) + 0.5 * (error / std) ** 2))
    return [metrics.root_mean_squared_error(truth, mean), metrics.mean_absolute_error(truth, mean), *of_std], seconds


def _brier(truth: NDArray[Any], p: Float, classes: NDArray[Any]) -> float:
    """Return the mean squared distance of the probabilities from the class, summed over the classes."""
    return float(np.mean(np.sum((p - (truth[:, np.newaxis] == classes)) ** 2, axis=1)))


def _calibration(truth: NDArray[Any], p: Float, classes: NDArray[Any]) -> float:
    """Return the expected calibration error: the difference of largest probability and accuracy over bins."""
    top = np.argmax(p, axis=1)
    sure = p[np.arange(len(p)), top]
    # A bin includes its upper end.
    place = np.clip(np.ceil(sure * BINS).astype(int), 1, BINS) - 1
    excess = np.bincount(place, weights=sure - (classes[top] == truth), minlength=BINS)
    return float(np.sum(np.abs(excess)) / len(truth))
