"""Sparse rows: matrices of scipy, and their parts for the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _core
from ._checks import aligned

# Most numbers of sparse rows that are filled up with zeros where only dense rows will do: 800 MB, which a fit holds a
# few times. Ten times as many would not fit into the memory of most machines.
MOST_FILLED = 100_000_000

# Starts of the rows, columns and values of the entries, and the number of columns.
Parts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]


def parts(X: Any) -> Parts:
    """Give the core the parts of a CSR matrix; it sorts entries, adds up those of one place, and leaves out zeros."""
    starts, columns = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int64, copy=False)
    return starts, columns, np.ascontiguousarray(X.data, dtype=np.float64), X.shape[1]


def rows(X: Any) -> Any:
    """What the core takes of validated rows: aligned arrays, of sparse rows the parts."""
    return parts(X) if sparse.issparse(X) else aligned(X)


def centres(model: _core.Model) -> Any:
    """The centres of a model that are known: an array, of a model of sparse rows a CSR matrix, or None."""
    known = model.sparse_centres
    if known is None:
        return model.centres
    values, columns, starts, features = known
    return sparse.csr_matrix((values, columns, starts), shape=(len(starts) - 1, features))


def count(rows: Any) -> int:
    """Count what `rows` returned."""
    return len(rows[0]) - 1 if isinstance(rows, tuple) else len(rows)


def is_too_large(X: Any) -> bool:
    """Whether sparse rows have more numbers than are filled up with zeros."""
    return bool(sparse.issparse(X) and X.shape[0] * X.shape[1] > MOST_FILLED)


def distinct(X: Any, used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of a CSR matrix among the `used` that are all different, each by the first of its kind."""
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    kinds: dict[tuple[bytes, bytes], int] = {}
    for row in used.tolist():
        own = slice(X.indptr[row], X.indptr[row + 1])
        kinds.setdefault((X.indices[own].tobytes(), X.data[own].tobytes()), row)
    return np.array(list(kinds.values()), dtype=np.int64)


def variance(X: Any, weights: NDArray[np.float64] | None) -> float:
    """Give the variance of all numbers of a CSR matrix by the weights of its rows, as ``gamma="scale"`` needs it."""
    own = np.ones(X.shape[0]) if weights is None else weights
    each = np.repeat(own, np.diff(X.indptr)) / (own.sum() * X.shape[1])
    return float(each @ X.data**2 - (each @ X.data) ** 2)


def filled(X: Any, name: str, instead: str) -> NDArray[np.float64]:
    """Fill up sparse rows with zeros where only dense rows will do, and check them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Validated rows. Arrays stay as they are.
    name : str
        What needs dense rows.
    instead : str
        What to do if there are too many numbers.
    """
    if not sparse.issparse(X):
        dense: NDArray[np.float64] = aligned(X)
        return dense
    numbers = X.shape[0] * X.shape[1]
    if is_too_large(X):
        raise ValueError(
            f"X is sparse, of shape {X.shape}: {name} needs dense rows, and at most {MOST_FILLED} numbers are filled "
            f"up with zeros (found {numbers}). {instead}"
        )
    check_finite(X)
    made: NDArray[np.float64] = np.ascontiguousarray(X.toarray())
    return made


def check_finite(X: Any) -> None:
    """Raise ValueError that names the first entry of a CSR matrix that is not finite."""
    for place in np.flatnonzero(~np.isfinite(X.data))[:1]:
        row = int(np.searchsorted(X.indptr, place, side="right")) - 1
        where = f"row {row}, column {X.indices[place]}"
        raise ValueError(f"X, {where} is {X.data[place]}: every value must be a finite number (no NaN, no infinity)")
