"""A fitted estimator and its predictions as an HTML page, written by the core as by ``relvec report``."""

from __future__ import annotations

import inspect
import json
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from . import _checks, _core, _sparse
from ._summary import facts
from ._text import count, listed
from ._threads import threads

# Most characters of a setting that are shown.
LONGEST = 200


class Pages:
    """Methods that write a fitted model as an HTML page."""

    _model: _core.Model
    n_jobs: int | None
    report_: Any
    classes_: NDArray[Any]

    def _rows(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return new rows, validated, in the form that the model reads."""
        raise NotImplementedError

    def _values(self) -> dict[str, Any]:
        """Return the current values of the parameters."""
        raise NotImplementedError

    def report_html(
        self, X: ArrayLike | None = None, y: ArrayLike | None = None, path: str | os.PathLike[str] | None = None
    ) -> str:
        """Report on the model and on its predictions of `X` as an HTML page.

        The page needs no other file and no network, and can be read in a browser, printed or sent. It contains measures
        beside those of a constant prediction, feature relevance, relevance vectors, the search, settings, and warnings
        with advice. For values it shows predictions against observations, coverage of intervals and residuals; for
        classes ROC curves, reliability and confusions. For large tables some rows are drawn, but all rows are counted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows, as for `predict`. None: the page describes only the model.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True values or classes of the rows of `X`, needed with `X`.
        path : str or path-like, default=None
            File to which the page is also written.

        Returns
        -------
        str
            The page.

        Raises
        ------
        ValueError
            If only one of `X` and `y` is given, or `y` contains a class that is unknown to the model.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 50)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(50)
        >>> page = RVR().fit(X[::2], t[::2]).report_html(X[1::2], t[1::2])
        >>> "Coverage of intervals" in page
        True
        """
        return self._page(X, y, path)

    def _page(
        self,
        X: ArrayLike | None,
        y: ArrayLike | None,
        path: str | os.PathLike[str] | None,
        known: NDArray[np.float64] | None = None,
    ) -> str:
        check_is_fitted(self)
        given: dict[str, Any] = {}
        if X is not None and y is not None:
            rows = self._rows(_sparse.filled(X, "a report", "Report on fewer rows") if issparse(X) else X)
            truth = self._numbers_of(y) if self._model.classifier else self._targets_of(y)
            if len(truth) != len(rows):
                raise ValueError(f"X has {count(len(rows), 'row')}, y has {len(truth)}: expected one value per row")
            given = {"x": rows, "labels" if self._model.classifier else "values": truth}
        elif X is not None or y is not None:
            found, other = ("X", "y") if y is None else ("y", "X")
            raise ValueError(f"{found} was given without {other}: give both, or neither for a page on only the model")
        text = self._model.report_html(
            json.dumps(self._context()),
            known=None if known is None else known.tolist(),
            threads=threads(self.n_jobs),
            **given,
        )
        if path is not None:
            _core.save(os.fsdecode(path), text.encode())
        return text

    def _numbers_of(self, y: ArrayLike) -> list[int]:
        """Return the numbers of the classes, [N]."""
        labels = column_or_1d(y).tolist()
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in labels if label not in places]
        if unknown:
            expected = listed(map(repr, places))
            raise ValueError(f"y has the class {unknown[0]!r}, which the model does not know: expected {expected}")
        return [places[label] for label in labels]

    def _targets_of(self, y: ArrayLike) -> NDArray[np.float64]:
        """Return the values of the targets, [N, K]."""
        values: NDArray[np.float64] = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        values = _checks.aligned(values.reshape(len(values), -1))
        if values.shape[1] != self._model.n_outputs:
            expected = count(self._model.n_outputs, "column")
            raise ValueError(f"y has {count(values.shape[1], 'column')}: expected {expected}, one for each target")
        return values

    def _context(self) -> dict[str, Any]:
        """Return the information of the page beside the model and its predictions."""
        own, fitted = facts(self), "seconds" in self.report_
        defaults = inspect.signature(type(self)).parameters
        given = {name: value for name, value in self._values().items() if not _same(value, defaults[name].default)}
        trace = np.asarray(self.report_.get("log_evidence", []), dtype=np.float64)
        return {
            "model": type(self).__name__,
            "python": True,
            "warnings": own["warnings"],
            # The parameters of a model from a file may differ from those of its fit.
            "settings": [(name, _short(value)) for name, value in given.items()] if fitted else [],
            "trace": trace[np.isfinite(trace)].tolist(),
            "seconds": self.report_.get("seconds"),
        }


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and repr(value) == repr(default)


def _short(value: Any) -> str:
    text = f"array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
