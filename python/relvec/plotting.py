"""Figures of fitted estimators, with scikit-learn's Display convention; they need matplotlib.

`from_estimator` computes the data of a figure and draws it. The returned object has the data, and the artists in
attributes whose names end in ``_``, so that they can be restyled or drawn again with `plot`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from . import _checks, _figures
from ._base import Float, RelevanceVectorMachine
from ._figures import BLUE, ORANGE, SHADES
from ._interval_display import PredictionIntervalDisplay
from .rvc import RVC
from .rvr import RVR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
    from matplotlib.colorbar import Colorbar
    from matplotlib.container import BarContainer
    from matplotlib.contour import QuadContourSet
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

__all__ = [
    "AlphaDisplay",
    "DecisionDisplay",
    "EvidenceDisplay",
    "FeatureRelevanceDisplay",
    "PredictionIntervalDisplay",
    "RegressionDisplay",
    "ReliabilityDisplay",
]


class RegressionDisplay:
    """Fit of an RVR to one feature: mean, error bars, data and relevance vectors.

    Created by `from_estimator`.

    Parameters
    ----------
    grid : ndarray of shape (n_grid,)
        Values of the feature where the model was evaluated.
    mean : ndarray of shape (n_grid,)
        Predictive mean there.
    model_std, noise_std : ndarray of shape (n_grid,)
        Standard deviations from the uncertainty of the weights, and from the noise. The latter are infinite for
        Student-t noise of 2 degrees of freedom or fewer.
    x, y : ndarray of shape (n_samples,)
        The data.
    interval : tuple of (float, ndarray, ndarray) or None, default=None
        Probability, lower and upper ends, of shape (n_grid,), of the interval that is drawn in place of infinite
        standard deviations.
    relevance : ndarray of shape (n_relevance,), default=None
        Indices of the data that are relevance vectors; None: none is marked.
    x_label, y_label : str, default="x", "y"
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The mean.
    band_ : matplotlib PolyCollection
        The band of all uncertainty.
    model_band_ : matplotlib PolyCollection or None
        The band without the noise, with ``parts=True``.
    points_ : matplotlib PathCollection
        The data.
    circles_ : matplotlib PathCollection or None
        The circles around relevance vectors.

    See Also
    --------
    DecisionDisplay : Class probabilities over two features.
    PredictionIntervalDisplay : Predictions with intervals, for any number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR
    >>> from relvec.plotting import RegressionDisplay
    >>> X = np.linspace(-10, 10, 50)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(50)
    >>> model = RVR(gamma=0.1).fit(X, t)
    >>> display = RegressionDisplay.from_estimator(model, X, t)  # doctest: +SKIP
    >>> display.figure_.savefig("sinc.pdf")  # doctest: +SKIP
    """

    line_: Line2D
    band_: PolyCollection
    model_band_: PolyCollection | None
    points_: PathCollection
    circles_: PathCollection | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        *,
        grid: Float,
        mean: Float,
        model_std: Float,
        noise_std: Float,
        x: Float,
        y: Float,
        interval: tuple[float, Float, Float] | None = None,
        relevance: NDArray[np.int64] | None = None,
        x_label: str = "x",
        y_label: str = "y",
    ) -> None:
        self.grid = grid
        self.mean = mean
        self.model_std = model_std
        self.noise_std = noise_std
        self.x = x
        self.y = y
        self.interval = interval
        self.relevance = relevance
        self.x_label = x_label
        self.y_label = y_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        n_std: float = 2.0,
        parts: bool = False,
        mark_relevance: bool = True,
        grid_resolution: int = 400,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> RegressionDisplay:
        """Draw a fitted estimator and the data.

        Parameters
        ----------
        estimator : RVR or Pipeline
            Fitted; a Pipeline must end in an RVR, and is drawn over its input feature.
        X : array-like of shape (n_samples, 1)
            The training rows; any rows with ``mark_relevance=False``.
        y : array-like of shape (n_samples,)
            Targets of the rows of `X`.
        n_std : float, default=2.0
            Half the height of the band in standard deviations. If these are infinite, the band is the interval of the
            probability that a normal distribution has within `n_std` standard deviations.
        parts : bool, default=False
            Whether to show the part of the band without the noise.
        mark_relevance : bool, default=True
            Whether to circle the relevance vectors. With ``basis="given"`` or given landmarks there are none.
        grid_resolution : int, default=400
            Number of values of the feature where the model is evaluated.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the mean.

        Returns
        -------
        RegressionDisplay
            The display.
        """
        final = _figures.last_step(estimator, RVR, cls)
        values = _figures.features(X, 1, cls)
        targets = _figures.column(y, values).astype(np.float64)
        relevance = _figures.relevance(estimator, final, X) if mark_relevance else None
        grid = _figures.axis(values[:, 0], 0.05, grid_resolution)
        rows = _figures.transformed(estimator, _figures.like(X, grid[:, np.newaxis]))
        mean, model_std, noise_std = final.predict(rows, return_parts=True)
        level, infinite = math.erf(n_std / math.sqrt(2.0)), not np.isfinite(noise_std).all()
        display = cls(
            grid=grid,
            mean=mean,
            model_std=model_std,
            noise_std=noise_std,
            x=values[:, 0],
            y=targets,
            interval=(level, *final.predict_interval(rows, level)) if infinite else None,
            relevance=relevance,
            x_label=_figures.names(estimator, ["x"])[0],
            y_label=final._model.target or "y",
        )
        return display.plot(ax=ax, n_std=n_std, parts=parts, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, n_std: float = 2.0, parts: bool = False, **kwargs: Any
    ) -> RegressionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        n_std : float, default=2.0
            Half the height of the band in standard deviations. It has no effect on an interval.
        parts : bool, default=False
            Whether to show the part of the band without the noise.
        **kwargs : dict
            Passed to matplotlib's `plot` for the mean.

        Returns
        -------
        RegressionDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        std = np.hypot(self.model_std, self.noise_std)
        label = whole = f"± {n_std:g} std"
        lower, upper = self.mean - n_std * std, self.mean + n_std * std
        if self.interval is not None:
            level, lower, upper = self.interval
            whole = f"{100.0 * level:.3g} % interval"
        self.band_ = ax.fill_between(
            self.grid,
            lower,
            upper,
            color=BLUE,
            alpha=0.18,
            linewidth=0,
            label=f"{whole}, model and noise" if parts else whole,
        )
        self.model_band_ = None
        if parts:
            self.model_band_ = ax.fill_between(
                self.grid,
                self.mean - n_std * self.model_std,
                self.mean + n_std * self.model_std,
                color=BLUE,
                alpha=0.35,
                linewidth=0,
                label=f"{label}, model",
            )
        (self.line_,) = ax.plot(self.grid, self.mean, **_figures.style(kwargs, color=BLUE, linewidth=1.8, label="mean"))
        self.points_ = ax.scatter(self.x, self.y, s=12, color="0.25", linewidths=0, zorder=3, label="data")
        self.circles_ = _figures.circle(ax, self.x, self.y, self.relevance)
        ax.set(xlabel=self.x_label, ylabel=self.y_label, xlim=(self.grid[0], self.grid[-1]))
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class DecisionDisplay:
    """Class probabilities of an RVC over two features, with the boundary and the data.

    Created by `from_estimator`.

    Parameters
    ----------
    x0, x1 : ndarray of shape (n_grid,)
        Values of the features; the model was evaluated at all pairs of them.
    probability : ndarray of shape (n_grid, n_grid)
        Probability of the second class, by `x1` (rows) and `x0` (columns).
    X : ndarray of shape (n_samples, 2)
        The data.
    y : ndarray of shape (n_samples,)
        Classes of the rows of `X`.
    classes : ndarray of shape (2,)
        The classes.
    relevance : ndarray of shape (n_relevance,), default=None
        Indices of the data that are relevance vectors; None: none is marked.
    x_label, y_label : str, default="$x_0$", "$x_1$"
        Labels of the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    shading_ : matplotlib QuadMesh
        The heat map of the probability.
    contours_ : matplotlib QuadContourSet or None
        The boundary at 0.5 and the lines at 0.25 and 0.75, if these probabilities occur.
    points_ : list of matplotlib PathCollection
        The data, one per class.
    circles_ : matplotlib PathCollection or None
        The circles around relevance vectors.
    colorbar_ : matplotlib Colorbar or None
        The scale of the heat map.

    See Also
    --------
    RegressionDisplay : Fit of a regression to one feature.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVC
    >>> from relvec.plotting import DecisionDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-1.0, 0.7, (60, 2)), rng.normal(1.0, 0.7, (60, 2))])
    >>> y = np.repeat(["no", "yes"], 60)
    >>> model = RVC(gamma=0.5).fit(X, y)
    >>> display = DecisionDisplay.from_estimator(model, X, y)  # doctest: +SKIP
    """

    shading_: QuadMesh
    contours_: QuadContourSet | None
    points_: list[PathCollection]
    circles_: PathCollection | None
    colorbar_: Colorbar | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        *,
        x0: Float,
        x1: Float,
        probability: Float,
        X: Float,
        y: NDArray[Any],
        classes: NDArray[Any],
        relevance: NDArray[np.int64] | None = None,
        x_label: str = "$x_0$",
        y_label: str = "$x_1$",
    ) -> None:
        self.x0 = x0
        self.x1 = x1
        self.probability = probability
        self.X = X
        self.y = y
        self.classes = classes
        self.relevance = relevance
        self.x_label = x_label
        self.y_label = y_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        colorbar: bool = True,
        mark_relevance: bool = True,
        grid_resolution: int = 200,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> DecisionDisplay:
        """Draw a fitted estimator and the data.

        Parameters
        ----------
        estimator : RVC or Pipeline
            Fitted, with two classes; a Pipeline must end in an RVC, and is drawn over its input features.
        X : array-like of shape (n_samples, 2)
            The training rows; any rows with ``mark_relevance=False``.
        y : array-like of shape (n_samples,)
            Classes of the rows of `X`.
        colorbar : bool, default=True
            Whether to show the scale of the probabilities beside the figure.
        mark_relevance : bool, default=True
            Whether to circle the relevance vectors. With ``basis="given"`` or given landmarks there are none.
        grid_resolution : int, default=200
            Number of values of each feature; the model is evaluated at all pairs of them.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `pcolormesh` for the heat map.

        Returns
        -------
        DecisionDisplay
            The display.
        """
        final = _figures.last_step(estimator, RVC, cls)
        if len(final.classes_) != 2:
            raise ValueError(f"{cls.__name__} shows two classes: the estimator has {len(final.classes_)}")
        values = _figures.features(X, 2, cls)
        labels = _figures.column(y, values)
        strange = labels[~np.isin(labels, final.classes_)]
        if len(strange) > 0:
            raise ValueError(f"y has the class {strange[0]!r}, but the estimator's are {final.classes_.tolist()}")
        relevance = _figures.relevance(estimator, final, X) if mark_relevance else None
        x0, x1 = (_figures.axis(column, 0.1, grid_resolution) for column in values.T)
        pairs = np.stack(np.meshgrid(x0, x1), axis=-1)
        probability = final.predict_proba(_figures.transformed(estimator, _figures.like(X, pairs.reshape(-1, 2))))[:, 1]
        x_label, y_label = _figures.names(estimator, ["$x_0$", "$x_1$"])
        display = cls(
            x0=x0,
            x1=x1,
            probability=probability.reshape(pairs.shape[:2]),
            X=values,
            y=labels,
            classes=final.classes_,
            relevance=relevance,
            x_label=x_label,
            y_label=y_label,
        )
        return display.plot(ax=ax, colorbar=colorbar, **kwargs)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True, **kwargs: Any) -> DecisionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        colorbar : bool, default=True
            Whether to show the scale of the probabilities beside the figure.
        **kwargs : dict
            Passed to matplotlib's `pcolormesh` for the heat map.

        Returns
        -------
        DecisionDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        from matplotlib.colors import LinearSegmentedColormap

        # In a vector file only the heat map is stored as pixels.
        shading: dict[str, Any] = {
            "cmap": LinearSegmentedColormap.from_list("relvec", SHADES),
            "vmin": 0.0,
            "vmax": 1.0,
            "shading": "nearest",
            "rasterized": True,
        }
        self.shading_ = ax.pcolormesh(self.x0, self.x1, self.probability, **(shading | kwargs))
        lines = {0.25: "--", 0.5: "-", 0.75: "--"}
        # matplotlib warns of levels that do not occur.
        levels = [p for p in lines if self.probability.min() < p < self.probability.max()]
        self.contours_ = None
        if levels:
            self.contours_ = ax.contour(
                self.x0,
                self.x1,
                self.probability,
                levels=levels,
                colors="0.2",
                linewidths=[1.6 if p == 0.5 else 0.9 for p in levels],
                linestyles=[lines[p] for p in levels],
            )
            ax.clabel(self.contours_, fontsize="x-small")
        self.points_ = []
        for label, color, marker, size in zip(self.classes, [BLUE, ORANGE], ["o", "^"], [20, 26], strict=False):
            own = self.X[self.y == label]
            points = ax.scatter(
                own[:, 0],
                own[:, 1],
                s=size,
                color=color,
                marker=marker,
                edgecolors="white",
                linewidths=0.4,
                zorder=3,
                label=f"class {label}",
            )
            self.points_.append(points)
        self.circles_ = _figures.circle(ax, self.X[:, 0], self.X[:, 1], self.relevance)
        self.colorbar_ = None
        if colorbar:
            self.colorbar_ = ax.figure.colorbar(
                self.shading_, ax=ax, label=f"probability of class {self.classes[1]}", ticks=[0.0, 0.25, 0.5, 0.75, 1.0]
            )
        ax.set(
            xlabel=self.x_label,
            ylabel=self.y_label,
            xlim=(self.x0[0], self.x0[-1]),
            ylim=(self.x1[0], self.x1[-1]),
        )
        # Above the axes, since the whole plane shows data.
        ax.legend(
            fontsize="small",
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=3,
            frameon=False,
            columnspacing=1.2,
            handletextpad=0.3,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self


class EvidenceDisplay:
    """Log evidence by iteration, and optionally the number of basis functions.

    Created by `from_estimator`.

    Parameters
    ----------
    log_evidence : ndarray of shape (n_iterations,)
        Log marginal likelihood after each iteration, in nats.
    active : ndarray of shape (n_iterations,)
        Basis functions in the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The log evidence.
    active_ax_ : matplotlib Axes or None
        The second vertical axis, with ``active=True``.
    active_line_ : matplotlib Line2D or None
        The number of basis functions.

    See Also
    --------
    AlphaDisplay : The precisions at the end of the fit.
    """

    line_: Line2D
    active_ax_: Axes | None
    active_line_: Line2D | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, log_evidence: Float, active: NDArray[np.int64]) -> None:
        self.log_evidence = log_evidence
        self.active = active

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, active: bool = False, ax: Axes | None = None, **kwargs: Any
    ) -> EvidenceDisplay:
        """Draw the course of the fit of an estimator.

        Parameters
        ----------
        estimator : RVR, RVC or Pipeline
            Fitted; a Pipeline must end in an RVR or RVC. A model that was loaded from a file has no trace.
        active : bool, default=False
            Whether to show the number of basis functions, on a second axis.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the log evidence.

        Returns
        -------
        EvidenceDisplay
            The display.
        """
        final = _figures.one_model(estimator, cls)
        if "log_evidence" not in final.report_:
            raise ValueError(
                f"{cls.__name__}: report_ has no trace of the log evidence, as in a model that was loaded from a file"
            )
        display = cls(log_evidence=final.report_["log_evidence"], active=final.report_["active"])
        return display.plot(ax=ax, active=active, **kwargs)

    def plot(self, ax: Axes | None = None, *, active: bool = False, **kwargs: Any) -> EvidenceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        active : bool, default=False
            Whether to show the number of basis functions, on a second axis.
        **kwargs : dict
            Passed to matplotlib's `plot` for the log evidence.

        Returns
        -------
        EvidenceDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        iterations = np.arange(1, len(self.log_evidence) + 1)
        style = _figures.style(kwargs, color=BLUE, linewidth=1.8, label="log evidence")
        (self.line_,) = ax.plot(iterations, self.log_evidence, **style)
        ax.set(xlabel="iteration", ylabel="log evidence (nats)")
        _figures.whole_numbers(ax.xaxis)
        self.active_ax_ = self.active_line_ = None
        if active:
            self.active_ax_ = ax.twinx()
            (self.active_line_,) = self.active_ax_.plot(
                iterations,
                self.active,
                color=ORANGE,
                linewidth=1.3,
                linestyle="--",
                drawstyle="steps-mid",
                label="basis functions",
            )
            self.active_ax_.set(ylabel="basis functions", ylim=(0, None))
            _figures.whole_numbers(self.active_ax_.yaxis)
            # In the upper axes, since the second curve would cover it otherwise.
            self.active_ax_.legend(handles=[self.line_, self.active_line_], loc="center right", fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class AlphaDisplay:
    """Spectrum of the weights' precisions: log10 of alpha, sorted.

    A weight with a low precision can be large. A weight with a high precision is close to zero, and is pruned if its
    precision increases further. Created by `from_estimator`.

    Parameters
    ----------
    alpha : ndarray of shape (n_relevance,)
        Precisions of the weights.
    intercept_alpha : float, default=inf
        Precision of the intercept; infinite if it is not in the model.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The precisions of the kernels' weights, by rank.
    intercept_ : matplotlib Line2D or None
        The precision of the intercept, if it is in the model.

    See Also
    --------
    EvidenceDisplay : The course of the fit.
    """

    line_: Line2D
    intercept_: Line2D | None
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, alpha: Float, intercept_alpha: float = np.inf) -> None:
        self.alpha = alpha
        self.intercept_alpha = intercept_alpha

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None, **kwargs: Any) -> AlphaDisplay:
        """Draw the precisions of a fitted estimator.

        Parameters
        ----------
        estimator : RVR, RVC or Pipeline
            Fitted; a Pipeline must end in an RVR or RVC.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the weights.

        Returns
        -------
        AlphaDisplay
            The display.
        """
        final = _figures.one_model(estimator, cls)
        return cls(alpha=final.alpha_, intercept_alpha=final.intercept_alpha_).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> AlphaDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the weights.

        Returns
        -------
        AlphaDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        alpha = np.sort(self.alpha)
        rank = np.arange(1, len(alpha) + 1)
        self.intercept_ = None
        if np.isfinite(self.intercept_alpha):
            # The intercept is inserted in the order, and later ranks move by one.
            place = np.searchsorted(alpha, self.intercept_alpha)
            rank[place:] += 1
            (self.intercept_,) = ax.plot(
                [place + 1],
                [np.log10(self.intercept_alpha)],
                "D",
                color=ORANGE,
                markersize=7,
                label="intercept",
            )
        style = _figures.style(kwargs, color=BLUE, marker="o", markersize=6, linestyle="none", label="weights")
        (self.line_,) = ax.plot(rank, np.log10(alpha), **style)
        ax.set(xlabel="rank", ylabel=r"precision, $\log_{10}\,\alpha$")
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        _figures.whole_numbers(ax.xaxis)
        ax.legend(fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


class FeatureRelevanceDisplay:
    """Influence of each feature on a kernel with one gamma per feature, as bars.

    The shares are gamma times the variance of the feature over the training rows, so that units have no effect.
    Created by `from_estimator`.

    Parameters
    ----------
    relevance : ndarray of shape (n_features,)
        Shares of 1.
    names : list of str
        Names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    bars_ : matplotlib BarContainer
        The bars, the most relevant on top.

    See Also
    --------
    AlphaDisplay : The precisions of the weights.
    """

    bars_: BarContainer
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, relevance: Float, names: list[str]) -> None:
        self.relevance = relevance
        self.names = names

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, names: list[str] | None = None, ax: Axes | None = None, **kwargs: Any
    ) -> FeatureRelevanceDisplay:
        """Draw the relevances of a fitted estimator.

        Parameters
        ----------
        estimator : RVR, RVC or Pipeline
            Fitted with one gamma per feature, learned (``gamma="evidence-ard"``) or given; a Pipeline must
            end in an RVR or RVC.
        names : list of str, default=None
            Names of the input features of the RVR or RVC; None: those of a data frame, or numbers.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `barh`.

        Returns
        -------
        FeatureRelevanceDisplay
            The display.
        """
        final = _figures.last_step(estimator, RelevanceVectorMachine, cls)
        relevance = getattr(final, "feature_relevance_", None)
        if relevance is None:
            raise ValueError(f"{cls.__name__} needs one gamma per feature, as gamma='evidence-ard' learns them")
        known = (
            _figures.names(final, [str(number) for number in range(len(relevance))]) if names is None else list(names)
        )
        if len(known) != len(relevance):
            raise ValueError(f"names has {len(known)} entries, but there are {len(relevance)} features")
        return cls(relevance=relevance, names=known).plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> FeatureRelevanceDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `barh`.

        Returns
        -------
        FeatureRelevanceDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        # The most relevant on top, and the first of equal ones.
        order = np.argsort(-self.relevance, kind="stable")[::-1]
        place = np.arange(len(order))
        self.bars_ = ax.barh(place, self.relevance[order], **{"color": BLUE, **kwargs})
        ax.set_yticks(place, [self.names[feature] for feature in order])
        ax.set(xlabel="relevance, share of 1", xlim=(0.0, None))
        ax.grid(axis="x", color="0.9")
        ax.set_axisbelow(True)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class ReliabilityDisplay:
    """Reliability of probabilities: the share of correct predictions against their probability.

    Rows whose predicted (most probable) class has about the same probability form a bin, for any number of classes.
    Created by `from_estimator` or `from_predictions`.

    Parameters
    ----------
    probability : ndarray of shape (n_bins,)
        Mean probability of the predicted classes in each bin that has rows, ascending.
    right : ndarray of shape (n_bins,)
        Share of the predictions that are correct.
    rows : ndarray of shape (n_bins,)
        Number of rows in the bins.
    name : str, default="predictions"
        Name in the legend.

    Attributes
    ----------
    calibration_error : float
        Expected calibration error: the mean difference of the two over the bins, weighted by rows [1]_.
    ax_ : matplotlib Axes
        The axes of the figure.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    line_ : matplotlib Line2D
        The line through the bins.
    points_ : matplotlib PathCollection
        The bins, with areas proportional to their rows.
    diagonal_ : matplotlib Line2D
        The line of perfect calibration.

    See Also
    --------
    sklearn.calibration.CalibrationDisplay : Reliability of the probability of the second of two classes.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks", International
       Conference on Machine Learning, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVC
    >>> from relvec.plotting import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-1.0, 1.0, (300, 2)), rng.normal(1.0, 1.0, (300, 2))])
    >>> y = np.repeat(["no", "yes"], 300)
    >>> model = RVC(gamma=0.5).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    """

    line_: Line2D
    points_: PathCollection
    diagonal_: Line2D
    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, *, probability: Float, right: Float, rows: NDArray[np.int64], name: str = "predictions") -> None:
        self.probability = probability
        self.right = right
        self.rows = rows
        self.name = name
        self.calibration_error = float(np.abs(probability - right) @ rows / rows.sum())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        bins: int = 15,
        moderated: bool = True,
        prior: Any = None,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw a fitted classifier on rows that it was not trained on.

        Parameters
        ----------
        estimator : classifier or Pipeline
            Fitted, with `predict_proba`; may be a classifier of scikit-learn.
        X : array-like of shape (n_samples, n_features)
            Rows, preferably not those of training.
        y : array-like of shape (n_samples,)
            Classes of the rows of `X`.
        bins : int, default=15
            Number of bins of equal width.
        moderated : bool, default=True
            As in `predict_proba` of RVC.
        prior : dict or array-like of shape (n_classes,), default=None
            As in `predict_proba` of RVC, SVC and NuSVC.
        name : str, default=None
            Name in the legend; None: the name of the estimator's class.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the line.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"{cls.__name__} needs probabilities: {type(estimator).__name__} has no predict_proba")
        # Only given options are passed, since other estimators do not have them.
        asked: dict[str, Any] = {} if moderated else {"moderated": False}
        if prior is not None:
            asked["prior"] = prior
        final = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
        return cls.from_predictions(
            y,
            estimator.predict_proba(X, **asked),
            classes=estimator.classes_,
            bins=bins,
            name=type(final).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        probability: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        bins: int = 15,
        name: str = "predictions",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw probabilities, such as those of `cross_val_predict`.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            The classes.
        probability : array-like of shape (n_samples, n_classes)
            Probabilities of all classes.
        classes : array-like of shape (n_classes,), default=None
            The classes in the order of the columns; None: those in `y`, sorted.
        bins : int, default=15
            Number of bins of equal width.
        name : str, default="predictions"
            What the legend calls it.
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the line.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        values: Float = check_array(probability, dtype=np.float64, input_name="probability")
        truth = _figures.column(y, values)
        names = np.unique(truth) if classes is None else np.asarray(classes)
        if values.shape[1] != len(names):
            raise ValueError(f"probability has {values.shape[1]} columns, but there are {len(names)} classes")
        for row in np.flatnonzero(np.any(values < 0.0, axis=1) | (np.abs(values.sum(axis=1) - 1.0) > 1e-6))[:1]:
            raise ValueError(f"probability[{row}] = {values[row].tolist()}: expected numbers from 0 on with a sum of 1")
        count = _checks.whole("bins", bins, 1)
        top = values.argmax(axis=1)
        p = values[np.arange(len(top)), top]
        # A bin includes its upper end.
        place = np.clip(np.ceil(p * count).astype(np.int64), 1, count)
        rows = np.bincount(place, minlength=count + 1)
        kept = rows > 0
        display = cls(
            probability=np.bincount(place, p, count + 1)[kept] / rows[kept],
            right=np.bincount(place, names[top] == truth, count + 1)[kept] / rows[kept],
            rows=rows[kept],
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw in; None: those of a new figure.
        **kwargs : dict
            Passed to matplotlib's `plot` for the line.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        ax = _figures.axes(ax)
        (self.diagonal_,) = ax.plot([0.0, 1.0], [0.0, 1.0], color="0.7", linewidth=1.0, zorder=1)
        label = f"{self.name}, ECE {100.0 * self.calibration_error:.1f} %"
        style = _figures.style(kwargs, color=BLUE, linewidth=1.5, label=label)
        (self.line_,) = ax.plot(self.probability, self.right, **style)
        area = 120.0 * self.rows / self.rows.max()
        self.points_ = ax.scatter(self.probability, self.right, s=area, color=self.line_.get_color(), linewidths=0)
        ax.set(xlabel="probability of the predicted class", ylabel="share that is right", aspect="equal")
        ax.set(xlim=(0.0, 1.02), ylim=(0.0, 1.02))
        ax.legend(fontsize="small", loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self
