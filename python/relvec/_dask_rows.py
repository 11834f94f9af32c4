"""Rows in the partitions of frames, or in the chunks of arrays, of Dask."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np

from . import _partitions
from ._base import target_names


class Collections(_partitions.Partitions):
    """Features, targets and further data by their names; the columns of frames are sent together."""

    def __init__(self, X: Any, y: Any, **further: Any) -> None:
        frame = isinstance(X, dd.DataFrame)
        given = {"X": X, "y": y} | {name: one for name, one in further.items() if one is not None}
        for name, one in given.items():
            if not isinstance(one, (dd.DataFrame, dd.Series) if frame else da.Array):
                wanted = "collections of dask.dataframe" if frame else "collections of dask.dataframe, or of dask.array"
                raise TypeError(f"{name} is a {type(one).__name__}: expected {', '.join(given)} to be {wanted}")
        self.n_features, self.beside = X.shape[1], list(given)[2:]
        if frame:
            self.feature_names = [name for name in X.columns if isinstance(name, str)] or None
            self.target_names = target_names(y)
            table = X.assign(**{f"relvec {name}": one for name, one in given.items() if name != "X"})
            self.pieces = [(piece,) for piece in table.to_delayed()]
        else:
            columns = _same_chunks(given)
            self.pieces = list(zip(*(column.to_delayed().ravel() for column in columns), strict=True))

    def each(self, visit: _partitions.Visit, merge: _partitions.Merge) -> bytes:
        """Call `visit` in one task for each partition, and merge in a tree of tasks."""
        run, join = dask.delayed(_visit, pure=False), dask.delayed(merge, pure=False)
        # The query is stored once in the graph.
        once = dask.delayed(visit)
        parts = [run(once, k, self.n_features, self.beside, *piece) for k, piece in enumerate(self.pieces)]
        merged: bytes = _partitions.tree(parts, join).compute()
        return merged


def _same_chunks(given: dict[str, Any]) -> list[Any]:
    """Return arrays with the row chunks of X and one chunk of columns."""
    X = given["X"]
    known = not np.isnan(X.shape[0])
    for name, one in given.items():
        if one.shape[0] != X.shape[0] if known else one.numblocks[0] != X.numblocks[0]:
            raise ValueError(f"{name} has chunks of rows {one.chunks[0]}: expected those of X, {X.chunks[0]}")
    rows = {0: X.chunks[0]} if known else {}
    return [one.rechunk(rows | ({1: -1} if one.ndim > 1 else {})) for one in given.values()]


def _visit(visit: _partitions.Visit, part: int, features: int, beside: list[str], X: Any, *rest: Any) -> bytes:
    """Call `visit` on one partition: a frame whose last columns are the targets and the data `beside`, or arrays."""
    if not rest:
        rest = tuple(X.iloc[:, k].to_numpy() for k in range(features, X.shape[1]))
        X = X.iloc[:, :features].to_numpy()
    return visit(part, X, rest[0], *_partitions.in_order(dict(zip(beside, rest[1:], strict=True))))
