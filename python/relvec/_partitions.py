"""Rows in numbered partitions: what an engine runs on each, and the fixed tree in which answers are merged."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import _core

T = TypeVar("T")
# Further data of each row, in the order in which functions take them. Trailing ones may be left out.
FURTHER = ("sample_weight", "noise_variance", "exposure")
# Called with the number of a partition, its features, its targets, and arrays or None in the order of `FURTHER`.
Visit = Callable[..., bytes]
Merge = Callable[[bytes, bytes], bytes]


class Partitions:
    """Rows in the partitions of an engine, in the form that `relvec.distributed.fit` needs.

    A subclass defines the partitions. All functions that it runs are pure, so an engine may run them twice.
    """

    n_features: int
    feature_names: list[str] | None = None
    target_names: Sequence[str] = ()
    _classes: NDArray[Any] | None = None

    def each(self, visit: Visit, merge: Merge) -> bytes:
        """Call `visit` on every partition, and `merge` the answers in the tree of `tree`."""
        raise NotImplementedError

    def map_reduce(self, query: bytes) -> bytes:
        """Get the answer to a query of the core, merged over all partitions."""
        return self.each(partial(answer, query, self._classes), _core.merge)

    def classes(self) -> NDArray[Any]:
        """Find the classes in one pass; later queries use the index of a label among them."""
        classes: NDArray[Any] = pickle.loads(self.each(labels, union))
        if len(classes) < 2:
            names = ", ".join(repr(label) for label in classes.tolist()) or "none"
            raise ValueError(f"y has only these classes: {names}; two classes are needed")
        self._classes = classes
        return classes


def tree(items: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """Merge neighbours, then neighbours of the results, and so on; the order depends only on the positions."""
    left = list(items)
    if not left:
        raise ValueError("there is no partition: expected at least one")
    while len(left) > 1:
        left = [merge(*left[i : i + 2]) if i + 1 < len(left) else left[i] for i in range(0, len(left), 2)]
    return left[0]


def answer(query: bytes, classes: NDArray[Any] | None, part: int, x: Any, y: Any, *further: Any) -> bytes:
    """Answer a query of the core from one partition: `x` [N, D], `y` [N] or [N, K], each of `further` [N] or None."""
    rows, targets = reals(part, "X", x), reals(part, "y", y) if classes is None else places(part, y, classes)
    own = [None if one is None else reals(part, name, one) for name, one in zip(FURTHER, further, strict=False)]
    return _core.answer(query, part, rows, targets, *own)


def in_order(given: dict[str, Any]) -> list[Any]:
    """Put further data of rows into the order of `FURTHER`, None for those that are not given."""
    return [given.get(name) for name in FURTHER]


def labels(part: int, x: Any, y: Any, *further: Any) -> bytes:
    """Find the labels of one partition, pickled."""
    # The engines need pandas in any case.
    from pandas import isna

    values = np.asarray(y)
    for row in np.flatnonzero(isna(values)):
        raise ValueError(f"partition {part}: y[{row}] = {values[row]}: every row must have a class")
    try:
        return pickle.dumps(np.unique(values))
    except TypeError as error:
        raise ValueError(f"partition {part}: y holds labels that cannot be sorted: {error}") from None


def union(first: bytes, second: bytes) -> bytes:
    """Unite the labels of two partitions."""
    # The type of an empty partition has no meaning.
    own = [values for values in map(pickle.loads, (first, second)) if len(values) > 0]
    try:
        return pickle.dumps(np.unique(np.concatenate(own))) if own else first
    except TypeError as error:
        raise ValueError(f"y holds labels that cannot be sorted: {error}") from None


def places(part: int, y: Any, classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the indices of labels among the sorted `classes`."""
    values = np.asarray(y)
    if len(values) == 0:
        return np.empty(0, dtype=np.int64)
    found = np.minimum(np.searchsorted(classes, values), len(classes) - 1)
    for row in np.flatnonzero(classes[found] != values):
        raise ValueError(f"partition {part}: y[{row}] = {values[row]!r}: the pass over the classes did not meet it")
    return found.astype(np.int64)


def reals(part: int, name: str, values: Any) -> NDArray[np.float64]:
    """Convert cells to real numbers; the error of another cell names its position."""
    try:
        # Arrays from a socket may be unaligned.
        return np.require(values, np.float64, ["C", "ALIGNED"])
    except (TypeError, ValueError):
        for place, value in np.ndenumerate(np.asarray(values, dtype=object)):
            try:
                float(value)
            except (TypeError, ValueError):
                where = ", ".join(map(str, place))
                raise ValueError(f"partition {part}: {name}[{where}] = {value!r}: expected a number") from None
        raise


def for_task(model: Any, names: bool = True) -> Any:
    """Copy a fitted model for the tasks of an engine: one thread, and without `names` for rows that have none."""
    check_fitted(model)
    own = copy.copy(model)
    own.n_jobs, own.callback = 1, None
    if not names:
        vars(own).pop("feature_names_in_", None)
    return own


def check_fitted(model: Any) -> None:
    """Raise scikit-learn's NotFittedError for an estimator without a model."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)


def predicted(model: Any, x: Any, method: str, **options: Any) -> list[NDArray[Any]]:
    """Call a method on the rows of one partition, at least one, and return its result as a list of arrays."""
    values = getattr(model, method)(x, **options)
    return list(values) if isinstance(values, tuple) else [values]


def needs(engine: str, error: ImportError) -> ImportError:
    """Return the error of an engine's module if the engine is not installed."""
    return ImportError(f"relvec.{engine} needs packages that are missing ({error}): pip install 'relvec[{engine}]'")
