"""Sparse rows: scipy matrices, and their parts for the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from . import _core
from ._checks import aligned

# Most numbers of sparse rows that are converted to dense rows, 800 MB, of which a fit stores a few copies. Ten times as
# many would exceed the memory of most machines.
MOST_FILLED = 100_000_000

# Starts of the rows, columns and values of the entries, and the number of columns.
Parts = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], int]


def parts(X: Any) -> Parts:
    """Return the parts of a CSR matrix for the core, which sorts entries, sums duplicates and drops zeros."""
    starts, columns = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int64, copy=False)
    return starts, columns, np.ascontiguousarray(X.data, dtype=np.float64), X.shape[1]


def rows(X: Any) -> Any:
    """Return validated rows in the core's form: an aligned array, or the parts of sparse rows."""
    return parts(X) if sparse.issparse(X) else aligned(X)


def centres(model: _core.Model) -> Any:
    """Return the centres of a model: an array, a CSR matrix for a model of sparse rows, or None if unknown."""
    known = model.sparse_centres
    if known is None:
        return model.centres
    values, columns, starts, features = known
    return sparse.csr_matrix((values, columns, starts), shape=(len(starts) - 1, features))


def count(rows: Any) -> int:
    """Count what `rows` returned."""
    return len(rows[0]) - 1 if isinstance(rows, tuple) else len(rows)


def is_too_large(X: Any) -> bool:
    """Return whether sparse rows are too large to be converted to dense rows."""
    return bool(sparse.issparse(X) and X.shape[0] * X.shape[1] > MOST_FILLED)


def is_wide(X: Any, used: NDArray[np.int64]) -> bool:
    """Return whether a CSR matrix is too large to be dense, or has more columns than different `used` rows."""
    if is_too_large(X):
        return True
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    rows: set[tuple[bytes, bytes]] = set()
    for row in used.tolist():
        own = slice(X.indptr[row], X.indptr[row + 1])
        rows.add((X.indices[own].tobytes(), X.data[own].tobytes()))
        if len(rows) == X.shape[1]:
            return False
    return True


def filled(X: Any, name: str, instead: str) -> NDArray[np.float64]:
    """Convert sparse rows to dense rows, and check them.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Validated rows. Arrays are not changed.
    name : str
        The operation that needs dense rows, for the error.
    instead : str
        Advice if there are too many numbers.
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
