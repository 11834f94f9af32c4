"""Predicted against observed values with error bars, for any number of features."""

from __future__ import annotations

import inspect
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import PredictionErrorDisplay
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length, column_or_1d, resample
from sklearn.utils.validation import check_is_fitted

from . import _checks, _figures
from ._base import Float
from ._figures import BLUE, ORANGE
from ._text import share, significant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

# Most bars that can be distinguished in a figure of the usual size.
BARS = 300


class PredictionIntervalDisplay(PredictionErrorDisplay):
    """Predicted against observed values, or residuals, with the intervals of the predictions.

    For a regression with any number of features. The bar of a row crosses the line if the observed value is inside its
    interval. Rows outside their intervals have another colour; for intervals of 95 % these should be 5 % of the rows.
    Created by `from_estimator` or `from_predictions`.

    Parameters
    ----------
    y_true : ndarray of shape (n_samples,)
        Observed values.
    y_pred : ndarray of shape (n_samples,)
        Predictions.
    lower, upper : ndarray of shape (n_samples,)
        Ends of the intervals that new observations should be in.
    level : float, default=0.95
        Probability of the intervals, between 0 and 1.

    Attributes
    ----------
    coverage : float
        Share of the observed values that are inside their intervals, from 0 to 1.
    line_ : matplotlib Line2D
        Where predicted and observed values are equal.
    errors_lines_ : matplotlib LineCollection
        The intervals.
    scatter_ : matplotlib PathCollection
        The rows.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.

    See Also
    --------
    RegressionDisplay : The prediction itself, for one feature.
    sklearn.metrics.PredictionErrorDisplay : Without intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR
    >>> from relvec.plotting import PredictionIntervalDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0.0, 2.0, (300, 2))
    >>> y = np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(300)
    >>> model = RVR().fit(X[::2], y[::2])
    >>> display = PredictionIntervalDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    >>> display.plot(kind="residual_vs_predicted")  # doctest: +SKIP
    """

    line_: Line2D
    errors_lines_: LineCollection
    scatter_: PathCollection
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, y_true: Float, y_pred: Float, lower: Float, upper: Float, level: float = 0.95) -> None:
        super().__init__(y_true=y_true, y_pred=y_pred)
        self.lower = lower
        self.upper = upper
        self.level = level

    @property
    def coverage(self) -> float:
        """Share of the observed values that are inside their intervals."""
        return float(np.mean(self._inside()))

    def _inside(self) -> Any:
        return (self.lower <= self.y_true) & (self.y_true <= self.upper)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        level: float = 0.95,
        kind: str = "actual_vs_predicted",
        subsample: int | None = BARS,
        random_state: Any = None,
        ax: Axes | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
        line_kwargs: dict[str, Any] | None = None,
        errors_kwargs: dict[str, Any] | None = None,
    ) -> PredictionIntervalDisplay:
        """Draw a fitted regressor on rows, preferably rows that were not used for training.

        Parameters
        ----------
        estimator : RVR, Pipeline or regressor
            Fitted, with one output. A regressor of scikit-learn must have ``return_std`` in `predict`; its intervals
            are those of normal distributions.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets of the rows of `X`.
        level : float, default=0.95
            Probability of the intervals, between 0 and 1.
        kind : {"actual_vs_predicted", "residual_vs_predicted"}, default="actual_vs_predicted"
            Whether observed values or residuals are drawn against the predictions.
        subsample : int, default=300
            Most rows that are drawn, as a random sample; None: all rows. All rows count in the coverage.
        random_state : int, RandomState or None, default=None
            Seed of the sample; None is 0.
        ax : matplotlib Axes, default=None
            Where to draw; None: in a new figure.
        scatter_kwargs, line_kwargs, errors_kwargs : dict, default=None
            Passed to matplotlib's `scatter` for the rows, to its `plot` for the line, and to its `hlines` or `vlines`
            for the intervals.

        Returns
        -------
        PredictionIntervalDisplay
            The display.
        """
        own: dict[str, Any] = {"level": level, "kind": kind, "subsample": subsample, "random_state": random_state}
        own |= {"ax": ax, "scatter_kwargs": scatter_kwargs, "line_kwargs": line_kwargs, "errors_kwargs": errors_kwargs}
        return cls.from_predictions(y, *_intervals(cls, estimator, X, level), **own)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        level: float = 0.95,
        kind: str = "actual_vs_predicted",
        subsample: int | None = BARS,
        random_state: Any = None,
        ax: Axes | None = None,
        scatter_kwargs: dict[str, Any] | None = None,
        line_kwargs: dict[str, Any] | None = None,
        errors_kwargs: dict[str, Any] | None = None,
    ) -> PredictionIntervalDisplay:
        """Draw predictions and intervals, such as those of `predict_interval`.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Observed values.
        y_pred : array-like of shape (n_samples,)
            Predictions.
        lower, upper : array-like of shape (n_samples,)
            Ends of the intervals.
        level : float, default=0.95
            Probability of the intervals, for the legend.
        kind : {"actual_vs_predicted", "residual_vs_predicted"}, default="actual_vs_predicted"
            Whether observed values or residuals are drawn against the predictions.
        subsample : int, default=300
            Most rows that are drawn, as a random sample; None: all rows. All rows count in the coverage.
        random_state : int, RandomState or None, default=None
            Seed of the sample; None is 0.
        ax : matplotlib Axes, default=None
            Where to draw; None: in a new figure.
        scatter_kwargs, line_kwargs, errors_kwargs : dict, default=None
            Passed to matplotlib's `scatter` for the rows, to its `plot` for the line, and to its `hlines` or `vlines`
            for the intervals.

        Returns
        -------
        PredictionIntervalDisplay
            The display.
        """
        (own,) = _checks.probabilities("level", level)
        given = {"y_true": y_true, "y_pred": y_pred, "lower": lower, "upper": upper}
        columns = {name: np.asarray(column_or_1d(values), dtype=np.float64) for name, values in given.items()}
        check_consistent_length(*columns.values())
        for row in np.flatnonzero(~(columns["lower"] <= columns["upper"]))[:1]:
            low, high = columns["lower"][row], columns["upper"][row]
            raise ValueError(f"lower[{row}] = {low} and upper[{row}] = {high}: expected lower <= upper")
        display = cls(**columns, level=own)
        return display.plot(
            ax=ax,
            kind=kind,
            subsample=subsample,
            random_state=random_state,
            scatter_kwargs=scatter_kwargs,
            line_kwargs=line_kwargs,
            errors_kwargs=errors_kwargs,
        )

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: str = "actual_vs_predicted",
        subsample: int | None = BARS,
        random_state: Any = None,
        scatter_kwargs: dict[str, Any] | None = None,
        line_kwargs: dict[str, Any] | None = None,
        errors_kwargs: dict[str, Any] | None = None,
    ) -> PredictionIntervalDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None: in a new figure.
        kind : {"actual_vs_predicted", "residual_vs_predicted"}, default="actual_vs_predicted"
            Whether observed values or residuals are drawn against the predictions.
        subsample : int, default=300
            Most rows that are drawn, as a random sample; None: all rows. All rows count in the coverage.
        random_state : int, RandomState or None, default=None
            Seed of the sample; None is 0.
        scatter_kwargs, line_kwargs, errors_kwargs : dict, default=None
            Passed to matplotlib's `scatter` for the rows, to its `plot` for the line, and to its `hlines` or `vlines`
            for the intervals.

        Returns
        -------
        PredictionIntervalDisplay
            The display itself.
        """
        _checks.one_of("kind", kind, ["actual_vs_predicted", "residual_vs_predicted"])
        ax = _figures.axes(ax)
        inside = self._inside()
        drawn = np.arange(len(inside))
        if subsample is not None and _checks.whole("subsample", subsample, 1) < len(drawn):
            seed = 0 if random_state is None else random_state
            drawn = np.sort(resample(drawn, replace=False, n_samples=subsample, random_state=seed))
        true, predicted, lower, upper = (own[drawn] for own in (self.y_true, self.y_pred, self.lower, self.upper))
        colors = np.where(inside[drawn], BLUE, ORANGE)
        scatter = _figures.over({"color": colors, "s": 14, "alpha": 1.0, "linewidths": 0, "zorder": 3}, scatter_kwargs)
        shown = PredictionErrorDisplay(y_true=true, y_pred=predicted).plot(
            ax=ax, kind=kind, scatter_kwargs=scatter, line_kwargs=line_kwargs
        )
        self.line_, self.scatter_ = shown.line_, shown.scatter_
        bars: dict[str, Any] = {
            "colors": colors,
            "alpha": 0.35,
            "linewidths": 1.0,
            "zorder": 1,
            **(errors_kwargs or {}),
        }
        if kind == "actual_vs_predicted":
            self.errors_lines_ = ax.hlines(true, lower, upper, **bars)
            _usual_ticks(ax)
        else:
            self.errors_lines_ = ax.vlines(predicted, true - upper, true - lower, **bars)
        self._legend(ax, int(inside.sum()), len(inside))
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _legend(self, ax: Axes, inside: int, rows: int) -> None:
        """Draw the legend: the two colours, with the number of rows of each."""
        percent = f"{significant(100.0 * self.level)} %"
        named = [(BLUE, f"inside the {percent} interval", inside), (ORANGE, "outside", rows - inside)]
        handles = [
            ax.scatter([], [], s=20, color=color, label=f"{what}: {share(count, rows, 'row')}")
            for color, what, count in named
        ]
        # Above the axes: bars may be anywhere in them.
        ax.legend(handles=handles, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False)


def _intervals(display: type, estimator: Any, X: Any, level: float) -> tuple[Float, Float, Float]:
    """Return predictions and the lower and upper ends of their intervals, (n_samples,) each."""
    final = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    check_is_fitted(final)
    (own,) = _checks.probabilities("level", level)
    if getattr(final, "n_outputs_", 1) > 1:
        raise ValueError(
            f"{display.__name__} shows a model of one output, this one has {final.n_outputs_}: take its output(k)"
        )
    rows = _figures.transformed(estimator, X)
    if hasattr(final, "predict_interval"):
        return (final.predict(rows), *final.predict_interval(rows, own))
    if "return_std" not in inspect.signature(final.predict).parameters:
        raise ValueError(
            f"{display.__name__} needs intervals, but {type(final).__name__} has neither predict_interval nor "
            "predict(X, return_std=True): sklearn.metrics.PredictionErrorDisplay draws predictions alone"
        )
    mean, std = final.predict(rows, return_std=True)
    half = NormalDist().inv_cdf(0.5 + 0.5 * own) * std
    return mean, mean - half, mean + half


def _usual_ticks(ax: Axes) -> None:
    """Set ticks at round values; scikit-learn sets them at the ends of the data."""
    from matplotlib.ticker import AutoLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(AutoLocator())
