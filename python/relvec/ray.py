"""Fits and predictions of Ray data sets: blocks are not moved, and only sums over them are sent.

It needs the packages that ``pip install 'relvec[ray]'`` installs.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from . import RVC, RVR, _partitions, distributed

try:
    import pandas as pd
    import ray
    import ray.data

    from ._ray_rows import Blocks
except ImportError as _error:
    raise _partitions.needs("ray", _error) from None

__all__ = ["fit", "predict"]


def fit(
    dataset: Any,
    label: str,
    *,
    estimator: Any = None,
    features: Any = None,
    weight: Any = None,
    noise_variance: Any = None,
    exposure: Any = None,
    **own: Any,
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
        Columns of the features. None: all that have no other name here.
    weight, noise_variance, exposure : str, default=None
        Columns of the weights of the rows, of known variances of the noise, and of exposures of counts.
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
    further = {"sample_weight": weight, "noise_variance": noise_variance, "exposure": exposure}
    further = {own: name for own, name in further.items() if name is not None}
    taken, there = [label, *further.values()], dataset.columns()
    columns = [name for name in there if name not in taken] if features is None else list(features)
    for name in [*columns, *taken]:
        if name not in there:
            raise ValueError(f"the data set has no column {name!r}: expected some of {', '.join(there)}")
    blocks = Blocks(dataset, columns, label, further)
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
