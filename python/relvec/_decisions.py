"""Decisions from class probabilities: priors, costs and rejection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _checks, _core
from ._base import Float
from ._threads import threads


class Decisions(NamedTuple):
    """Result of `decide`.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        The decided classes; for rejected rows the decision without rejection.
    probability : ndarray of shape (n_samples,)
        Probabilities of the decided classes.
    probabilities : ndarray of shape (n_samples, n_classes)
        Probabilities of all classes under the prior of the decision, with columns in the order of `classes_`.
    rejected : ndarray of shape (n_samples,), dtype=bool
        True for the rejected rows.
    expected_cost : ndarray of shape (n_samples,) or None
        Expected cost of each row, which is `reject_cost` if it is rejected; None without costs.
    """

    labels: NDArray[Any]
    probability: Float
    probabilities: Float
    rejected: NDArray[np.bool_]
    expected_cost: Float | None


def prior_of(prior: Any, classes: NDArray[Any]) -> list[float] | None:
    """Return the prior in the order of the classes; the core checks its numbers."""
    if prior is None:
        return None
    if not isinstance(prior, Mapping):
        values = np.asarray(prior)
        if values.ndim != 1:
            raise ValueError(f"prior has shape {values.shape}: expected a probability for each of {classes.tolist()}")
        return [_checks.real(f"prior[{k}]", p) for k, p in enumerate(values.tolist())]
    known = classes.tolist()
    for name in prior:
        if name not in known:
            raise ValueError(f"prior names the class {name!r}: the classes are {known}")
    for name in known:
        if name not in prior:
            raise ValueError(f"prior leaves out the class {name!r}: the classes are {known}")
    return [_checks.real(f"prior[{name!r}]", prior[name]) for name in known]


def costs_of(costs: Any, classes: NDArray[Any]) -> Float | None:
    """Return the costs in the order of the classes; the core checks their shape and numbers."""
    if costs is None:
        return None
    if hasattr(costs, "loc"):
        known = classes.tolist()
        for axis, names in (("index", costs.index), ("columns", costs.columns)):
            if len(names) != len(known) or set(names) != set(known):
                raise ValueError(f"the {axis} of costs are {names.tolist()}: the classes are {known}")
        costs = costs.loc[known, known]
    values = np.asarray(costs, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"costs have shape {values.shape}: expected ({len(classes)}, {len(classes)})")
    return np.ascontiguousarray(values)


def decide(
    estimator: Any, rows: Float, prior: Any, costs: Any, reject: float | None, reject_cost: float | None
) -> Decisions:
    """Decide with a fitted classifier on validated rows."""
    classes: NDArray[Any] = estimator.classes_
    model: _core.Model = estimator._model
    numbers, probability, probabilities, rejected, expected_cost = model.decide(
        rows,
        threads(estimator.n_jobs),
        prior_of(prior, classes),
        costs_of(costs, classes),
        None if reject is None else _checks.real("reject", reject),
        None if reject_cost is None else _checks.real("reject_cost", reject_cost),
    )
    return Decisions(classes[numbers], probability, probabilities, rejected, expected_cost)
