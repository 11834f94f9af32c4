"""Checks of arguments: numbers, words, and values for each row."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

# Least rows per class on average without a warning: with fewer, the rarest classes have one or two rows.
LEAST_ROWS_OF_CLASS = 5


def one_of(name: str, value: Any, known: list[str]) -> str:
    """Check that `value` is one of the `known` words."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} = {value!r}: expected one of {', '.join(map(repr, known))}")
    return value


def whole(name: str, value: Any, least: int) -> int:
    """Check that `value` is a whole number of at least `least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} = {value!r}: expected a whole number of at least {least}")
    return int(value)


def real(name: str, value: Any) -> float:
    """Check that `value` is a finite number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise ValueError(f"{name} = {value!r}: expected a finite number")
    return float(value)


def positive(name: str, value: Any) -> float:
    """Check that `value` is a finite number above zero."""
    number = real(name, value)
    if number <= 0.0:
        raise ValueError(f"{name} = {value!r}: expected a positive number")
    return number


def finite(name: str, value: Any) -> None:
    """Check that all numbers of nested settings are finite."""
    plainly = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(plainly, dict):
        for key, own in plainly.items():
            finite(f"{name}[{key!r}]", own)
    elif isinstance(plainly, (list, tuple)):
        for i, own in enumerate(plainly):
            finite(f"{name}[{i}]", own)
    elif isinstance(plainly, float) and not math.isfinite(plainly):
        raise ValueError(f"{name} = {plainly}: expected a finite number")


def landmarks(estimator: Any, features: int) -> NDArray[np.float64] | None:
    """Check landmarks that are given as rows; return None if `landmarks` is a rule."""
    given = estimator.landmarks
    if isinstance(given, str):
        return None
    if estimator.basis == "given" or (isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"):
        given, candidates = ("basis='given'", "all columns of the design matrix")
        if estimator.basis != "given":
            given, candidates = ("kernel='precomputed'", "only training rows")
        raise ValueError(
            f"given landmarks cannot be combined with {given}: the candidates are {candidates}. Leave landmarks out"
        )
    if estimator.dictionary not in ("auto", "all"):
        raise ValueError(f"dictionary = {estimator.dictionary}: expected 'auto', since the landmarks are given")
    rows = points("landmarks", given)
    if rows.shape[1] != features:
        raise ValueError(f"landmarks has {rows.shape[1]} features, but X has {features}")
    return rows


def aligned(values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as an aligned C-contiguous array; arrays over the bytes of a message may be unaligned."""
    return np.require(values, np.float64, ["C", "A"])


def points(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Check rows that are given as a parameter, such as landmarks: at least one row of finite numbers."""
    try:
        rows: NDArray[np.float64] = check_array(given, dtype=np.float64, order="C", ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    for row, column in np.argwhere(~np.isfinite(rows))[:1]:
        raise ValueError(f"{name}[{row}, {column}] = {rows[row, column]}: every value must be a finite number")
    return rows


def sample_weights(sample_weight: ArrayLike | None, rows: int, negative: bool = False) -> NDArray[np.float64] | None:
    """Check sample weights, one per row or one for all; [N]. `negative`: whether negative weights are allowed."""
    if sample_weight is None:
        return None
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight contains values that are not numbers: {error}") from None
    if weights.ndim == 0:
        weights = np.full(rows, weights)
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if len(weights) != rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(rows,)}!")
    bad = np.flatnonzero(~(np.isfinite(weights) & (negative | (weights >= 0))))
    if len(bad) > 0:
        expected = "finite" if negative else "zero or positive, and finite"
        raise ValueError(f"sample_weight[{bad[0]}] = {weights[bad[0]]}: weights must be {expected}")
    return aligned(weights)


def known(name: str, values: ArrayLike | None, rows: int) -> NDArray[np.float64] | None:
    """Check known values of rows, one positive number per row; [N]."""
    if values is None:
        return None
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} contains values that are not numbers: {error}") from None
    if numbers.shape != (rows,):
        raise ValueError(f"{name} has shape {numbers.shape}, expected {(rows,)}: one value per row")
    for row in np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))[:1]:
        raise ValueError(f"{name}[{row}] = {numbers[row]}: every value must be positive and finite")
    return aligned(numbers)


def probabilities(name: str, given: ArrayLike) -> list[float]:
    """Check one probability, or a list of them: between 0 and 1, both excluded."""
    expected = "a number between 0 and 1, or a list of such numbers"
    try:
        values = np.asarray(given)
        if values.dtype.kind not in "iuf":
            raise TypeError(f"{values.dtype}")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} = {given!r}: expected {expected}") from error
    if values.ndim > 1 or values.size == 0:
        raise ValueError(f"{name} has shape {values.shape}: expected {expected}")
    for place, value in enumerate(values.ravel()):
        if not 0.0 < value < 1.0:
            where = name if values.ndim == 0 else f"{name}[{place}]"
            raise ValueError(f"{where} = {value}: expected a probability between 0 and 1, both excluded")
    return [float(value) for value in values.ravel()]


def class_numbers(labels: NDArray[Any], weights: NDArray[np.float64] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted classes and the class number of each row; all, at least two, need rows of positive weight."""
    classes, found = np.unique(labels, return_inverse=True)
    present = np.unique(found if weights is None else found[weights > 0])
    if len(present) < 2:
        names = ", ".join(repr(c) for c in classes[present].tolist())
        raise ValueError(f"y has only one class ({names}) among the rows of positive weight: two classes are needed")
    if len(present) < len(classes):
        (absent,) = classes[np.setdiff1d(np.arange(len(classes)), present)[:1]].tolist()
        raise ValueError(f"y has no row of positive weight of the class {absent!r}: leave its rows out")
    return classes, np.ascontiguousarray(found, dtype=np.int64)


def few_rows_of_classes(classes: int, rows: int) -> str | None:
    """Return the warning if there are more classes than a fifth of the rows, since y may be a quantity."""
    if LEAST_ROWS_OF_CLASS * classes <= rows:
        return None
    text = f"y has {classes} classes in {rows} rows: with fewer than {LEAST_ROWS_OF_CLASS} rows a class,"
    return f"{text} predictions of new rows are little more than guesses. If y is a quantity, use a regressor."


def warn_of_classes(estimator: str, classes: int, rows: int) -> None:
    """Warn if there are more classes than a fifth of the rows."""
    text = few_rows_of_classes(classes, rows)
    if text is not None:
        warnings.warn(f"{estimator}: {text}", UserWarning, stacklevel=3)


def class_weights(given: dict[Any, float] | str | None, classes: list[Any]) -> str | list[float]:
    """Check factors of the cost of errors: one for each class, or a rule."""
    if given is None:
        return "equal"
    if isinstance(given, dict):
        unknown = [c for c in given if c not in classes]
        if unknown:
            raise ValueError(f"class_weight names {unknown}, but the classes are {classes}")
        return [positive(f"class_weight[{c!r}]", given.get(c, 1.0)) for c in classes]
    return "balanced"
