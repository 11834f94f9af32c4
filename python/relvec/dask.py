"""Fits and predictions on Dask: rows remain in their partitions, and only sums over them are sent.

It needs the packages that ``pip install 'relvec[dask]'`` installs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from . import _partitions, distributed
from . import rvc as _rvc
from . import rvr as _rvr

try:
    import dask
    import dask.array
    import dask.dataframe
    import pandas as pd

    from ._dask_rows import Collections
except ImportError as _error:
    raise _partitions.needs("dask", _error) from None

__all__ = ["RVC", "RVR"]


class _OnDask:
    """Methods of both estimators for Dask collections; other tables are passed to the base class."""

    _plain: Any

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, noise_variance: Any = None, exposure: Any = None, **own: Any
    ) -> Any:
        """Learn from rows in the partitions of a dask.dataframe or the chunks of a dask.array.

        A pass over the rows is one task for each partition and a tree of merges, on the current scheduler. A partition
        must fit into the memory of a worker. ``X.persist()`` keeps the rows there between passes.

        Parameters
        ----------
        X : dask.dataframe.DataFrame or dask.array.Array of shape (n_samples, n_features)
            Features.
        y, sample_weight, noise_variance, exposure : dask.dataframe.Series or dask.array.Array of shape (n_samples,)
            Targets or classes, weights (None: 1), known variances of the noise, and exposures of counts, in partitions
            like those of `X`.
        **own : dict
            Further arguments of `relvec.distributed.fit`.

        Returns
        -------
        RVR or RVC
            The estimator itself.

        Raises
        ------
        ValueError
            If a cell is not a finite number (the error names partition and row), or a parameter cannot be distributed.
        TypeError
            If `X`, `y` and the others are not collections of one kind.
        """
        plain = self._plain(**self.get_params(deep=False))  # type: ignore[attr-defined]
        further = {"sample_weight": sample_weight, "noise_variance": noise_variance, "exposure": exposure}
        vars(self).update(vars(distributed.fit(plain, Collections(X, y, **further), **own)))
        return self

    def to_local(self) -> Any:
        """Get the fitted model as a `relvec.RVR` or `relvec.RVC`, which does not depend on Dask."""
        _partitions.check_fitted(self)
        local = self._plain.__new__(self._plain)
        vars(local).update(vars(self))
        return local

    def _lazy(self, X: Any, method: str, columns: list[Any], dtype: Any, **options: Any) -> Any:
        """Return a lazy frame or array with a column for each of `columns`."""
        frame = isinstance(X, dask.dataframe.DataFrame)
        model = dask.delayed(_partitions.for_task(self.to_local(), names=frame))
        run = partial(_predict, method=method, columns=columns, dtype=dtype, options=options)
        if frame:
            return X.map_partitions(run, model, meta=run(X._meta, None), align_dataframes=False)
        chunks = (X.chunks[0], (len(columns),))
        return X.rechunk({1: -1}).map_blocks(run, model, chunks=chunks, dtype=dtype, meta=np.empty((0, 0), dtype))


class RVR(_OnDask, _rvr.RVR):
    """`relvec.RVR` for rows in dask.dataframe and dask.array, with the same parameters and attributes."""

    _plain = _rvr.RVR

    def predict(self, X: Any, return_std: bool = False, **options: Any) -> Any:  # type: ignore[override]
        """Predict lazily; with `return_std` the standard deviation of a new observation as well.

        The columns have the partitions of `X`; `variance` is the only further option. A table in memory is predicted by
        `relvec.RVR`, with all its options.
        """
        if not _is_lazy(X):
            return super().predict(X, return_std, **options)
        if wrong := set(options) - {"variance"}:
            raise TypeError(f"predict of a lazy collection has no option {', '.join(sorted(wrong))}: use to_local()")
        if not return_std:
            return _column(self._lazy(X, "predict", ["prediction"], np.float64), 0)
        both = self._lazy(X, "predict", ["prediction", "std"], np.float64, return_std=True, **options)
        return _column(both, 0), _column(both, 1)


class RVC(_OnDask, _rvc.RVC):
    """`relvec.RVC` for rows in dask.dataframe and dask.array, with the same parameters and attributes."""

    _plain = _rvc.RVC

    def predict(self, X: Any) -> Any:
        """Predict classes lazily; a table in memory is predicted by `relvec.RVC`."""
        if not _is_lazy(X):
            return super().predict(X)
        return _column(self._lazy(X, "predict", ["prediction"], self.classes_.dtype), 0)

    def predict_proba(self, X: Any, moderated: bool = True, prior: Any = None) -> Any:
        """Predict probabilities lazily, a column per class of `classes_`; `relvec.RVC` predicts a table in memory."""
        if not _is_lazy(X):
            return super().predict_proba(X, moderated, prior)
        own = {"moderated": moderated, "prior": prior}
        return self._lazy(X, "predict_proba", list(self.classes_), np.float64, **own)


def _predict(X: Any, model: Any, method: str, columns: list[Any], dtype: Any, options: dict[str, Any]) -> Any:
    """Return predictions of one partition, as a frame with the index of `X`, or as an array [N, columns]."""
    values = _partitions.predicted(model, X, method, **options) if len(X) > 0 else []
    table = np.column_stack(values) if values else np.empty((0, len(columns)), dtype)
    return pd.DataFrame(table, index=X.index, columns=columns) if isinstance(X, pd.DataFrame) else table


def _column(table: Any, k: int) -> Any:
    """Return a column of a lazy frame or array."""
    return table[table.columns[k]] if isinstance(table, dask.dataframe.DataFrame) else table[:, k]


def _is_lazy(X: Any) -> bool:
    return isinstance(X, (dask.dataframe.DataFrame, dask.array.Array))
