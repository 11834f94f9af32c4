"""Class labels in model files, which contain only booleans, numbers and words."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

KEY = "python"
"""Key of a model file that only this package reads; it is outside the model, whose checksum does not change."""
EXPECTED = (
    "expected booleans, whole numbers, numbers of at most 64 bits, words, datetime64 or timedelta64; "
    "other labels can be numbered by sklearn.preprocessing.LabelEncoder"
)


def for_file(classes: NDArray[Any]) -> list[Any]:
    """Return the classes in the form of a file: booleans, whole numbers, numbers and words.

    Raises
    ------
    ValueError
        If a file would not preserve their type.
    """
    kind = classes.dtype.kind
    if kind in "biuUT" or (kind == "f" and classes.dtype.itemsize <= 8):
        return list(classes.tolist())
    if kind in "Mm":
        if np.any(np.isnat(classes)):
            raise ValueError(f"y has the class NaT of type {classes.dtype}: leave its rows out")
        return list(np.datetime_as_string(classes).tolist() if kind == "M" else classes.astype(np.int64).tolist())
    if kind == "O":
        for label in classes:
            whole = isinstance(label, int | np.integer)
            if not (whole or isinstance(label, bool | np.bool_ | str | float)):
                raise ValueError(f"y has the class {label!r} of type {type(label).__name__}: {EXPECTED}")
        return [label.item() if isinstance(label, np.generic) else label for label in classes]
    raise ValueError(f"y has classes of type {classes.dtype}: {EXPECTED}")


def add_to(text: str, classes: NDArray[Any]) -> str:
    """Return the text of a model file with the type of the classes, if their names do not determine it."""
    labels = for_file(classes)
    if np.array(labels).dtype == classes.dtype:
        return text
    name = "T" if classes.dtype.kind == "T" else classes.dtype.str
    own = json.dumps({KEY: {"class_dtype": name}}, separators=(",", ":"))
    return text.rstrip().removesuffix("}") + "," + own.removeprefix("{") + "\n"


def read(text: str, labels: list[Any]) -> NDArray[Any]:
    """Return the classes of a model file with the type given in the file.

    Raises
    ------
    ValueError
        If the names do not fit the type.
    """
    own = json.loads(text).get(KEY, {})
    name = own.get("class_dtype") if isinstance(own, dict) else None
    if name is None:
        return np.array(labels)
    problem = ValueError(f'the class_dtype {name!r} in "{KEY}" does not fit the classes {labels}')
    try:
        if name == "T":
            return np.array(labels, dtype=np.dtypes.StringDType())
        dtype = np.dtype(name)
        classes = np.empty(len(labels), dtype=dtype)
        classes[:] = labels
        there_and_back = for_file(classes)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise problem from None
    if there_and_back != labels:
        raise problem
    return classes
