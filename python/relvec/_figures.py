"""Common parts of the figures: colours, axes, and checks of their input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from ._base import Float, RelevanceVectorMachine
from ._text import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

# Colours of Okabe and Ito: they differ for any colour vision, and by lightness in print.
BLUE = "#0072B2"
ORANGE = "#D55E00"
# Paler than the points drawn on top, and white for equal class probabilities.
SHADES = ["#8FC1E3", "#FFFFFF", "#F5B58A"]


def axes(ax: Axes | None) -> Axes:
    """Return the axes to draw in; matplotlib is first needed here."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('relvec.plotting needs matplotlib: pip install "relvec[plot]"') from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    assert ax is not None
    return ax


def style(kwargs: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return the settings of a line; the user's override ours, also in abbreviated form (`c`, `lw`)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.lines import Line2D

    return defaults | normalize_kwargs(kwargs, Line2D)


def over(defaults: dict[str, Any], given: dict[str, Any] | None) -> dict[str, Any]:
    """Return the settings of points; the user's override ours, also in abbreviated form (`c`, `lw`)."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    own = normalize_kwargs(given or {}, PathCollection)
    usual = normalize_kwargs(defaults, PathCollection)
    # matplotlib does not accept color together with the colours of faces or edges.
    if own.keys() & {"facecolor", "edgecolor", "c"}:
        usual.pop("color", None)
    return usual | own


def whole_numbers(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True))


def circle(ax: Axes, x: Float, y: Float, relevance: NDArray[np.int64] | None) -> PathCollection | None:
    """Draw circles around the relevance vectors."""
    if relevance is None:
        return None
    return ax.scatter(
        x[relevance],
        y[relevance],
        s=90,
        facecolors="none",
        edgecolors="black",
        linewidths=1.3,
        zorder=4,
        label="relevance vectors",
    )


def one_model(estimator: Any, display: type) -> Any:
    """Return the fitted estimator, which must not consist of several binary models."""
    final = last_step(estimator, RelevanceVectorMachine, display)
    if final._model.members:
        rule = final._model.multi_class
        raise ValueError(f"{display.__name__} shows one model: with multi_class={rule!r} the estimator is several")
    return final


def last_step(estimator: Any, kind: type, display: type) -> Any:
    """Return the estimator, or the last step of a Pipeline; it must be fitted and of the right kind."""
    final = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(final, kind):
        wanted = "RVR or RVC" if kind is RelevanceVectorMachine else kind.__name__
        raise ValueError(
            f"{display.__name__} shows a fitted {wanted}, or a Pipeline that ends in one: got {type(final).__name__}"
        )
    check_is_fitted(final)
    outputs = getattr(final, "n_outputs_", 1)
    if outputs > 1:
        raise ValueError(f"{display.__name__} shows a model of one output, this one has {outputs}: take its output(k)")
    return final


def transformed(estimator: Any, X: Any) -> Any:
    """Return rows in the form that the last step of a Pipeline accepts."""
    return estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X


def features(X: Any, wanted: int, display: type) -> Float:
    """Return the rows as numbers, with as many features as the display has axes."""
    values: Float = check_array(X, dtype=np.float64, input_name="X")
    if values.shape[1] != wanted:
        other = "PredictionIntervalDisplay" if wanted == 1 else "ReliabilityDisplay"
        raise ValueError(
            f"{display.__name__} draws {count(wanted, 'feature')}, but X has {values.shape[1]}: "
            f"{other} draws models of any number of features"
        )
    return values


def column(y: ArrayLike, values: Float) -> NDArray[Any]:
    """Return one target per row."""
    targets: NDArray[Any] = column_or_1d(np.asarray(y))
    check_consistent_length(values, targets)
    return targets


def axis(values: Float, margin: float, points: int) -> Float:
    """Return evenly spaced values over the range of the data and a margin, a share of that range."""
    low, high = values.min(), values.max()
    margin *= (high - low) or 1.0
    return np.linspace(low - margin, high + margin, points)


def like(X: Any, values: Float) -> Any:
    """Return `values` as a table like `X`, since scikit-learn requires the names of the training rows."""
    names = getattr(X, "columns", None)
    return values if names is None else type(X)(dict(zip(names, values.T, strict=False)))


def names(estimator: Any, default: list[str]) -> list[str]:
    """Return the names of the features of the estimator, for the axes."""
    return [str(name) for name in getattr(estimator, "feature_names_in_", default)]


def relevance(estimator: Any, final: Any, X: Any) -> NDArray[np.int64] | None:
    """Return which rows of `X`, the training rows, are relevance vectors; None if basis functions are not rows.

    They are identified by number and not by value, since a Pipeline transforms rows and targets belong to rows.
    """
    if final._model.basis == "given" or final._model.learned_centres or not isinstance(final.landmarks, str):
        return None
    rows = np.asarray(transformed(estimator, X), dtype=np.float64)
    advice = "pass the rows that the estimator was fitted to, or mark_relevance=False"
    if len(rows) != final._model.n_rows:
        raise ValueError(
            f"X has {len(rows)} rows, but the estimator was fitted to {final._model.n_rows}, and relevance vectors "
            f"are marked by their row in training: {advice}"
        )
    relevance: NDArray[np.int64] = final.relevance_
    vectors = final.relevance_vectors_
    vectors = vectors.toarray() if issparse(vectors) else vectors
    # With a precomputed kernel there are no vectors to compare with. The vectors of a model file that standardises
    # equal the rows only up to rounding. A file does not distinguish the numbers of landmarks from those of rows.
    if np.any(relevance >= len(rows)) or (
        vectors.size > 0 and np.any(np.abs(rows[relevance] - vectors) > 1e-9 * np.abs(vectors).max(axis=0))
    ):
        raise ValueError(f"The rows of X are not those of training, by the relevance vectors among them: {advice}")
    return relevance
