"""Fits and predictions of Ray data sets: blocks are not moved, and only sums over them are sent.

It needs the packages that ``pip install 'relvec[ray]'`` installs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from . import RVC, RVR, _partitions, distributed

try:
    import pandas as pd
    import ray
    import ray.data
except ImportError as _error:
    raise _partitions.needs("ray", _error) from None

__all__ = ["fit", "predict"]


def fit(
    dataset: Any, label: str, *, estimator: Any = None, features: Any = None, weight: Any = None, **own: Any
) -> Any:
    """Learn from the rows of a data set.

    A pass over the rows is one task for each block and a tree of merges. The object store of Ray keeps the used columns
    between passes. A block must fit into the memory of a worker.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows.
    label : str
        Column of the targets or classes.
    estimator : RVR or RVC, default=None
        An estimator with the parameters of the fit, which is not changed. None: ``RVR()``.
    features : list of str, default=None
        Columns of the features. None: all except `label` and `weight`.
    weight : str, default=None
        Column of the weights of the rows.
    **own : dict
        Further arguments of `relvec.distributed.fit`.

    Returns
    -------
    RVR or RVC
        A fitted estimator, which does not depend on Ray.

    Raises
    ------
    ValueError
        If a cell is not a finite number (the error names block and row), or a parameter cannot be distributed.
    """
    beside = [label] if weight is None else [label, weight]
    there = dataset.columns()
    columns = [name for name in there if name not in beside] if features is None else list(features)
    for name in [*columns, *beside]:
        if name not in there:
            raise ValueError(f"the data set has no column {name!r}: expected some of {', '.join(there)}")
    blocks = _Blocks(dataset, columns, beside)
    return distributed.fit(RVR() if estimator is None else clone(estimator), blocks, **own)


def predict(
    dataset: Any, model: RVR | RVC, *, features: Any = None, return_std: bool = False, return_proba: bool = False
) -> Any:
    """Predict lazily, block by block.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The rows.
    model : RVR or RVC
        A fitted estimator.
    features : list of str, default=None
        Columns of the features. None: those that the model was fitted to.
    return_std, return_proba : bool, default=False
        Whether to add standard deviations of new observations (regression), or the probabilities of `classes_`.

    Returns
    -------
    ray.data.Dataset
        The rows with the column ``prediction``, and with ``std`` or ``probability`` if requested.

    Raises
    ------
    ValueError
        If the names of the features are not known, or the model does not have the requested output.
    """
    own = _partitions.for_task(model)
    if return_proba if isinstance(own, RVR) else return_std:
        raise ValueError(f"{type(own).__name__} has no such column: return_std is for RVR, return_proba for RVC")
    names = getattr(own, "feature_names_in_", None) if features is None else features
    if names is None:
        raise ValueError("the model was fitted to features without names: give features")
    shared = ray.put(own)

    def run(block: pd.DataFrame) -> pd.DataFrame:
        # Ray drops blocks without rows, whatever their columns.
        return block if len(block) == 0 else _predict(block, ray.get(shared), list(names), return_std, return_proba)

    return dataset.map_batches(run, batch_size=None, batch_format="pandas")


class _Blocks(_partitions.Partitions):
    """Blocks of a data set, in its order."""

    def __init__(self, dataset: Any, features: list[str], beside: list[str]) -> None:
        self.n_features, self.feature_names, self.target_names = len(features), features, beside[:1]
        self.beside = beside
        options = dataset.context.execution_options
        earlier, options.preserve_order = options.preserve_order, True
        try:
            self.blocks = dataset.select_columns([*features, *beside]).to_pandas_refs()
        finally:
            options.preserve_order = earlier

    def each(self, visit: _partitions.Visit, merge: _partitions.Merge) -> bytes:
        """Call `visit` in one task for each block, and merge in a tree of tasks."""
        run, join = ray.remote(num_cpus=1)(_visit), ray.remote(num_cpus=1)(lambda a, b: merge(a, b))
        question = ray.put(visit)
        parts = [run.remote(question, k, self.feature_names, self.beside, one) for k, one in enumerate(self.blocks)]
        try:
            merged: bytes = ray.get(_partitions.tree(parts, join.remote))
        except ray.exceptions.RayTaskError as error:
            # The error is raised without the stacks of the workers.
            raise error.cause from None
        return merged


def _visit(visit: _partitions.Visit, part: int, features: list[str], beside: list[str], block: pd.DataFrame) -> bytes:
    rest = [block[name].to_numpy() for name in beside] if len(block) > 0 else [np.empty(0)] * len(beside)
    x = block[features].to_numpy() if len(block) > 0 else np.empty((0, len(features)))
    return visit(part, x, *rest, *[None] * (2 - len(rest)))


def _predict(block: pd.DataFrame, model: Any, features: list[str], std: bool, proba: bool) -> pd.DataFrame:
    """Return the block with its predictions."""
    out, x = block.copy(), block[features]
    values = _partitions.predicted(model, x, "predict", **({"return_std": True} if std else {}))
    out["prediction"] = values[0]
    if std:
        out["std"] = values[1]
    if proba:
        out["probability"] = list(model.predict_proba(x))
    return out
