"""Figures of the experiments of the papers: fits on a line, classifiers in the plane, precisions, the lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from relvec import SVC

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[Any]

# Colours of Okabe and Ito: classes, and curves of fit and truth.
COLOURS = ["#0072b2", "#d55e00", "#00785a"]
MARKERS = ["o", "^", "s"]
TINTS = {2: ["#8fc1e3", "#ffffff", "#f5b58a"], 3: ["#8fc1e3", "#f5b58a", "#8fd0b0"]}
# Grid points of a plane along each axis.
POINTS = 80


def axes(panels: int, columns: int = 2) -> tuple[Figure, Array]:
    """A figure and the axes of its panels, row by row."""
    rows = -(-panels // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(4.8 * columns, 4.0 * rows), squeeze=False, layout="constrained")
    for ax in grid.ravel()[panels:]:
        ax.set_axis_off()
    return figure, grid.ravel()


def circles(ax: Any, x: Array, y: Array) -> None:
    ax.scatter(x, y, s=80, facecolors="none", edgecolors="black", zorder=4, label="vectors")


def curves(
    panels: Sequence[tuple[str, Any, Array, Any]], train: tuple[Array, Array], test: tuple[Array, Array]
) -> Figure:
    """Fits to train beside the true function in test: title, model, rows that are vectors, half the band of each."""
    figure, grid = axes(len(panels), min(len(panels), 2))
    (X, t), (x, truth) = train, (test[0][:, 0], test[1])
    for ax, (title, model, at, band) in zip(grid, panels, strict=True):
        mean = model.predict(test[0])
        ax.fill_between(x, mean - band, mean + band, color=COLOURS[0], alpha=0.2, lw=0, label="band")
        ax.plot(x, truth, color=COLOURS[1], lw=1.2, label="truth")
        ax.plot(x, mean, color=COLOURS[0], label="fit")
        ax.plot(X[:, 0], t, ".", color="0.4", ms=4, label="data")
        circles(ax, X[at, 0], t[at])
        ax.set(title=title, xlabel="x", ylabel="t")
    grid[0].legend(fontsize="small")
    return figure


def planes(panels: Sequence[tuple[str, Any, Array]], X: Array, y: Array, columns: int = 2) -> Figure:
    """Classifiers of the rows X in the plane and their vectors: title, model and rows that are vectors of each."""
    figure, grid = axes(len(panels), columns)
    x0, x1 = (np.linspace(c.min() - 0.06 * np.ptp(c), c.max() + 0.06 * np.ptp(c), POINTS) for c in X.T)
    plane = np.column_stack([values.ravel() for values in np.meshgrid(x0, x1)])
    for ax, (title, model, at) in zip(grid, panels, strict=False):
        if len(model.classes_) > 2:
            values, levels, ends = model.predict(plane), [0.5, 1.5], (0.0, 2.0)
        elif isinstance(model, SVC):
            values, levels, ends = model.decision_function(plane), [-1.0, 0.0, 1.0], (-2.0, 2.0)
        else:
            values, levels, ends = model.predict_proba(plane)[:, 1], [0.25, 0.5, 0.75], (0.0, 1.0)
        values = values.reshape(POINTS, POINTS)
        tints = LinearSegmentedColormap.from_list("classes", TINTS[len(model.classes_)])
        ax.pcolormesh(x0, x1, values, cmap=tints, vmin=ends[0], vmax=ends[1], shading="nearest", rasterized=True)
        middle = levels[len(levels) // 2]
        widths = [1.8 if len(levels) == 2 or level == middle else 0.8 for level in levels]
        ax.contour(x0, x1, values, levels=levels, colors="0.2", linewidths=widths, linestyles="-")
        for name, colour, marker in zip(model.classes_, COLOURS, MARKERS, strict=False):
            ax.scatter(*X[y == name].T, s=12, color=colour, marker=marker, label=f"class {name:g}")
        circles(ax, *X[at].T)
        ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    grid[0].legend(fontsize="small")
    return figure


def precisions(series: dict[str, tuple[Array, Array]]) -> Figure:
    """Precisions of weights on a logarithmic scale, as spikes over the rows of their basis functions."""
    figure, (ax,) = axes(1, 1)
    foot = min(alpha.min() for _, alpha in series.values()) / 2.0
    for (name, (rows, alpha)), colour, shift in zip(series.items(), COLOURS, (0.0, 0.3), strict=False):
        ax.plot(rows + shift, alpha, "o", color=colour, ms=3, label=name)
        ax.vlines(rows + shift, foot, alpha, color=colour, lw=0.8)
    ax.set(yscale="log", xlabel="basis function (row)", ylabel="precision of the weight")
    ax.legend(fontsize="small")
    return figure


def bound(values: Array) -> Figure:
    """The lower bound on the log evidence after each iteration but the first, over a logarithmic scale."""
    figure, (ax,) = axes(1, 1)
    ax.semilogx(np.arange(2, len(values) + 1), values[1:], color=COLOURS[0])
    ax.set(xlabel="iteration", ylabel="lower bound on the log evidence (nats)")
    return figure
