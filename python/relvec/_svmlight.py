"""Tables in LIBSVM's svmlight format."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file


def read_svmlight(path: str | os.PathLike[str], n_features: int | None = None) -> tuple[Any, NDArray[np.float64]]:
    r"""Read a table in LIBSVM's svmlight format.

    Parameters
    ----------
    path : str or path-like
        Name of the file, which may be compressed (``.gz`` or ``.bz2``).
    n_features : int, default=None
        Number of features. None: the largest index in the file, which is too small if no row has an entry for the last
        features. Give it for a table of new rows.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features)
        The rows. Indices count from 1, or from 0 if the file has an index 0.
    y : ndarray of shape (n_samples,)
        Labels or targets.

    Raises
    ------
    ValueError
        If the file has another format; the error contains its name.

    Examples
    --------
    >>> import os, tempfile
    >>> from relvec import read_svmlight
    >>> path = os.path.join(tempfile.mkdtemp(), "two.svm")
    >>> with open(path, "w") as file:
    ...     _ = file.write("1 1:0.5 3:2\n-1 2:1\n")
    >>> X, y = read_svmlight(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    try:
        X, y = load_svmlight_file(os.fspath(path), n_features=n_features, dtype=np.float64)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r}: {error}") from None
    return X, y
