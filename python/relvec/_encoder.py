"""Encoding of tables: categories and missing cells as features, by the rules of the command line."""

from __future__ import annotations

import datetime
import json
import numbers
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _checks, _core

Float = NDArray[np.float64]

# The limits of the command line: most categories of a column and least rows of each on average, unless it is named;
# most categories of a column that is named; most bytes of a category.
MOST_CATEGORIES = 50
LEAST_ROWS = 10
MOST_NAMED = 1000
LONGEST = 1000
# Texts of missing cells; upper and lower case count as equal.
MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "null", "?"])
RULES = ["mean", "indicator"]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
NAMES_SHOWN = 10
_DATES = "leave the column out; or convert it to numbers, such as days since the first date, the month, the hour"


class _Column(NamedTuple):
    """The cells of a column: numbers with NaN where one is missing, or texts with None."""

    numbers: Float | None
    texts: list[str | None]
    # Whether its type is categorical.
    categorical: bool

    @property
    def missing(self) -> NDArray[np.bool_]:
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([text is None for text in self.texts], dtype=bool)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn the columns of a table into features: categories into 0 and 1, missing cells into means.

    The rules are those of the command line, and a model file contains the encoding. A column of texts or booleans, or
    of a categorical type, holds categories. Two categories become one feature, 0 for the first and 1 for the second in
    alphabetical order. Three or more become one feature each. Columns of numbers are not changed.

    Parameters
    ----------
    missing : {"mean", "indicator"} or None, default=None
        Rule for missing cells, which are None, NaN and the texts NA, N/A, NaN, null and ?. None refuses them.
        ``"mean"`` fills them with the mean of the column; for categories with the share of each category.
        ``"indicator"`` also fills them, and adds to a column with missing cells a feature that is 1 if the cell is
        missing.
    unknown : {"error", "ignore"}, default="error"
        Rule of `transform` for a category that did not occur in `fit`. ``"ignore"`` sets the features of the column to
        their means.
    categories : list of str, default=()
        Names of columns that hold categories, whatever their cells, with at most 1000 categories each. Other columns
        may have at most 50 categories, and at most one for every ten rows.

    Attributes
    ----------
    encoding_ : dict
        The columns with their categories and means, in the form of a model file.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        Names of the columns, if the table has names.

    Examples
    --------
    >>> import pandas as pd
    >>> from relvec import TableEncoder
    >>> table = pd.DataFrame({"age": [31, 45, None], "smoker": ["no", "yes", "no"]})
    >>> encoder = TableEncoder(missing="mean").fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'smoker=yes']
    >>> encoder.transform(table).tolist()
    [[31.0, 0.0], [45.0, 1.0], [38.0, 0.0]]
    """

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    encoding_: dict[str, Any]

    def __init__(self, missing: str | None = None, unknown: str = "error", categories: Sequence[str] = ()) -> None:
        self.missing = missing
        self.unknown = unknown
        self.categories = categories

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> TableEncoder:
        """Find the categories and the means.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            The table, of pandas, polars or NumPy.
        y : None
            Not used.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows in the means.

        Returns
        -------
        TableEncoder
            The encoder itself.

        Raises
        ------
        ValueError
            If a column holds dates, too many different texts, texts among numbers, or missing cells without a rule for
            them.
        """
        if self.missing is not None:
            _checks.one_of("missing", self.missing, RULES)
        _checks.one_of("unknown", self.unknown, ["error", "ignore"])
        names, columns = self._columns(X, reset=True)
        rows = len(columns[0].missing)
        weights = _checks.sample_weights(sample_weight, rows)
        weights = np.ones(rows) if weights is None else weights
        if not np.any(weights > 0):
            raise ValueError("Every sample weight is zero: there is no row to learn from")
        stored = []
        for name, column in zip(names, columns, strict=True):
            self._check_missing(name, column)
            stored.append(self._learn(name, column, weights))
        encoding: dict[str, Any] = {"columns": stored}
        if self.missing is not None:
            encoding["missing"] = self.missing
        features = _features(encoding)
        twice = (
            sorted({name for name in features if features.count(name) > 1})
            if len(set(features)) < len(features)
            else []
        )
        if twice:
            raise ValueError(f"two features are called {twice[0]!r}; rename a column")
        self.encoding_ = encoding
        return self

    def _learn(self, name: str, column: _Column, weights: Float) -> dict[str, Any]:
        """Return the encoding of a column, in the form of a model file."""
        there = ~column.missing
        weight = float(weights[there].sum())
        if not weight > 0.0:
            raise ValueError(f"column {name!r} has no value in any row; leave it out")
        indicator = {"indicator": True} if self.missing == "indicator" and not there.all() else {}
        if column.numbers is not None:
            mean = float(np.average(column.numbers[there], weights=weights[there]))
            return {"name": name, **indicator, "means": [mean]}
        found = sorted({text for text in column.texts if text is not None})
        named = name in self.categories or column.categorical
        most = MOST_NAMED if named else min(MOST_CATEGORIES, max(len(weights) // LEAST_ROWS, 2))
        if len(found) > most:
            advice = f"at most {MOST_NAMED} are accepted"
            if not named:
                advice = (
                    f"too many for categories, which are at most {MOST_CATEGORIES}, with {LEAST_ROWS} rows each on "
                    f"average; leave it out, group the texts, or accept all with categories=[{name!r}]"
                )
            some = ", ".join(found[:3])
            raise ValueError(
                f"column {name!r} holds {len(found)} different texts ({some}, ...) in {len(weights)} rows: {advice}"
            )
        for text in found:
            if len(text.encode()) > LONGEST:
                raise ValueError(
                    f"column {name!r}: a text of {len(text)} characters is no category; leave the column out"
                )
        places = {text: place for place, text in enumerate(found)}
        codes = np.array([places[text] for text in column.texts if text is not None])
        shares = (np.bincount(codes, weights[there], len(found)) / weight).tolist()
        return {"name": name, "categories": found, **indicator, "means": shares[1:] if len(found) == 2 else shares}

    def transform(self, X: ArrayLike) -> Float:
        """Return the features of the rows of a table.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_rows, n_columns)
            A table with the columns of the one in `fit`.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The features, named by `get_feature_names_out`.

        Raises
        ------
        ValueError
            If a cell is of another kind than its column, a category is unknown, or a missing cell has no rule.
        """
        check_is_fitted(self)
        _, columns = self._columns(X, reset=False)
        out = []
        for stored, column in zip(self.encoding_["columns"], columns, strict=True):
            self._check_missing(stored["name"], column)
            out.append(self._encode(stored, column))
        return np.ascontiguousarray(np.column_stack(out))

    def _encode(self, stored: dict[str, Any], column: _Column) -> Float:
        """Return the features of a column."""
        name, categories, means = stored["name"], stored.get("categories", []), np.array(stored["means"])
        missing, unknown = column.missing, np.zeros(len(column.missing), dtype=bool)
        if not categories:
            if column.numbers is None:
                row = next((i for i, text in enumerate(column.texts) if text is not None), None)
                if row is not None:
                    raise ValueError(f"row {row}, column {name!r}: {column.texts[row]!r} is not a number")
            values = (
                np.full((len(missing), 1), np.nan) if column.numbers is None else column.numbers[:, np.newaxis].copy()
            )
        else:
            texts = (
                column.texts if column.numbers is None else [None if np.isnan(v) else _text(v) for v in column.numbers]
            )
            places = {text: place for place, text in enumerate(categories)}
            # Booleans are written as true, True or TRUE.
            booleans = {text.lower(): place for text, place in places.items() if text.lower() in ("true", "false")}
            for text in {text for text in texts if text is not None and text not in places}:
                if text.lower() in booleans:
                    places[text] = booleans[text.lower()]
            codes = np.array([-1 if text is None else places.get(text, -2) for text in texts], dtype=int)
            unknown = codes == -2
            if self.unknown == "error" and unknown.any():
                row = int(np.flatnonzero(unknown)[0])
                shown = ", ".join(categories[:NAMES_SHOWN]) + (", ..." if len(categories) > NAMES_SHOWN else "")
                raise ValueError(
                    f"row {row}, column {name!r}: {texts[row]!r} is none of the categories that the model knows: "
                    f"{shown}. unknown='ignore' treats such cells as missing"
                )
            one = codes[:, np.newaxis] == np.arange(len(categories))
            values = (one[:, 1:] if len(categories) == 2 else one).astype(np.float64)
        values[missing | unknown] = means
        if stored.get("indicator", False):
            values = np.column_stack([values, missing.astype(np.float64)])
        return values

    def _check_missing(self, name: str, column: _Column) -> None:
        """Refuse missing cells if there is no rule for them."""
        missing = column.missing
        if self.missing in RULES or not missing.any():
            return
        row = int(np.flatnonzero(missing)[0])
        advice = (
            "the model was trained on complete rows: leave such rows out"
            if self.missing == "drop"
            else "missing='mean' and missing='indicator' fill such cells; or leave these rows out"
        )
        raise ValueError(
            f"row {row}, column {name!r} is missing or NaN ({missing.sum()} of {len(missing)} cells): {advice}"
        )

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Return the names of the features, such as ``age``, ``smoker=yes`` and ``age is missing``.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str
            One name for each feature.
        """
        check_is_fitted(self)
        return np.array(_features(self.encoding_), dtype=object)

    def _columns(self, X: Any, reset: bool) -> tuple[list[str], list[_Column]]:
        """Return names and cells of the columns."""
        names = getattr(X, "columns", None)
        if names is None or isinstance(X, np.ndarray):
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self, input_name="X")
            validate_data(self, X, reset=reset, skip_check_array=True)
            own = [str(place) for place in range(X.shape[1])]
            cells = [X[:, place] for place in range(X.shape[1])]
        else:
            validate_data(self, X, reset=reset, skip_check_array=True)
            own = [str(name) for name in names]
            cells = [X[name] for name in names]
            if len(own) == 0 or len(X) == 0:
                raise ValueError(
                    f"Found array with {len(X)} sample(s) and {len(own)} feature(s): at least 1 of each is needed"
                )
        unknown = [name for name in self.categories if name not in own]
        if reset and unknown:
            raise ValueError(f"categories = {list(self.categories)!r}: there is no column {unknown[0]!r}")
        pairs = zip(own, cells, strict=True)
        return own, [
            _read(name, column, name in self.categories or self._holds_categories(name)) for name, column in pairs
        ]

    def _holds_categories(self, name: str) -> bool:
        """Return whether a fit has found categories in the column."""
        columns = getattr(self, "encoding_", {"columns": []})["columns"]
        return any(column["name"] == name and column.get("categories") for column in columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing is not None
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    @classmethod
    def _of(cls, encoding: str) -> TableEncoder:
        """Return the encoder of a model file."""
        stored = json.loads(encoding)
        encoder = cls(missing=stored.get("missing"))
        encoder.encoding_ = stored
        encoder.n_features_in_ = len(stored["columns"])
        encoder.feature_names_in_ = np.array([column["name"] for column in stored["columns"]], dtype=object)
        return encoder

    def _raw(self, X: Any) -> Float:
        """Return the features of a frame, with columns in any order among others, or of an array of the columns."""
        names = list(self.feature_names_in_)
        columns = getattr(X, "columns", None)
        if columns is not None:
            missing = [name for name in names if name not in list(columns)]
            if missing:
                raise ValueError(
                    f"X has no column {', '.join(missing[:NAMES_SHOWN])}, expected {', '.join(names[:NAMES_SHOWN])}"
                )
            return self.transform(X[names])
        given = np.asarray(X, dtype=object)
        if given.ndim != 2 or given.shape[1] != len(names):
            raise ValueError(
                f"X has shape {given.shape}, expected a table with the {len(names)} columns {', '.join(names)}"
            )
        # An array has no names, so it is transformed by an encoder without names.
        plain = type(self)(self.missing, self.unknown)
        plain.encoding_, plain.n_features_in_ = self.encoding_, self.n_features_in_
        return plain.transform(given)


def _features(encoding: dict[str, Any]) -> list[str]:
    """Return the names of the features of an encoding."""
    names = []
    for column in encoding["columns"]:
        categories = column.get("categories", [])
        own = categories[1:] if len(categories) == 2 else categories
        names += [f"{column['name']}={category}" for category in own] if categories else [column["name"]]
        names += [f"{column['name']} is missing"] if column.get("indicator", False) else []
    return names


def _text(value: Any) -> str:
    """Return the text of a value that is a category."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e16 else repr(number)
    return str(value).strip()


def _is_categorical(column: Any) -> bool:
    """Return whether a pandas or polars column has a categorical type."""
    return type(getattr(column, "dtype", None)).__name__ in ("CategoricalDtype", "Categorical", "Enum") or str(
        getattr(column, "dtype", "")
    ) in ("Categorical", "Enum")


def _read(name: str, column: Any, named: bool) -> _Column:
    """Return the cells of a column; `named`: whether it holds categories, whatever its cells."""
    categorical = _is_categorical(column)
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind in ("i", "u", "f") and not named and isinstance(getattr(column, "dtype", None), np.dtype):
        return _Column(_finite(name, np.asarray(column, dtype=np.float64)), [], False)
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers")
    cells = column.to_list() if hasattr(column, "to_list") else list(column)
    cells = [None if _is_missing(cell) else cell for cell in cells]
    for row, cell in enumerate(cells):
        if isinstance(cell, (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)):
            raise ValueError(f"row {row}, column {name!r}: {cell} is a date or a time, which is no feature: {_DATES}")
    if named or categorical:
        return _Column(None, [None if cell is None else _text(cell) for cell in cells], categorical)
    there = [(row, cell) for row, cell in enumerate(cells) if cell is not None]
    if not there:
        return _Column(np.full(len(cells), np.nan), [], False)
    # The first value decides the kind of the column, as on the command line.
    row, first = there[0]
    found = _core.kind_of_text(first.strip()) if isinstance(first, str) else ""
    if found == "date":
        raise ValueError(f"row {row}, column {name!r}: {first!r} is a date or a time, which is no feature: {_DATES}")
    if found == "quantity":
        raise ValueError(
            f"row {row}, column {name!r}: {first!r} is not a plain number: write only the number, without units and "
            f"separators; or use categories=[{name!r}] to read the column as names"
        )
    if isinstance(there[0][1], (bool, np.bool_)) or not _is_number(there[0][1]):
        for row, cell in there:
            if _is_number(cell) or not isinstance(cell, (str, bool, np.bool_)):
                what = "a number" if _is_number(cell) else type(cell).__name__
                raise ValueError(
                    f"row {row}, column {name!r}: {cell!r} is {what}, and "
                    f"{first!r} (row {there[0][0]}) is not; categories=[{name!r}] reads the column as names"
                )
        return _Column(None, [None if cell is None else _text(cell) for cell in cells], False)
    values = np.full(len(cells), np.nan)
    for row, cell in there:
        if not _is_number(cell):
            raise ValueError(
                f"row {row}, column {name!r}: could not convert string to float: {cell!r} is not a number, and the "
                f"cells above it are; correct it, or use categories=[{name!r}] to read the column as names"
            )
        values[row] = float(cell)
    return _Column(_finite(name, values), [], False)


def _finite(name: str, values: Float) -> Float:
    """Refuse infinite numbers; NaN are missing cells."""
    for row in np.flatnonzero(np.isinf(values))[:1]:
        raise ValueError(
            f"row {row}, column {name!r} is {values[row]}: infinity is not allowed, every number must be finite"
        )
    return values


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    # NaN and NaT are not equal to themselves, and comparing pandas.NA gives neither True nor False.
    equal = cell == cell
    return not isinstance(equal, (bool, np.bool_)) or not equal


def _is_number(cell: Any) -> bool:
    if isinstance(cell, str):
        return NUMBER.fullmatch(cell.strip()) is not None
    return isinstance(cell, numbers.Real) and not isinstance(cell, (bool, np.bool_))
