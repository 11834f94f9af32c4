"""Fits to distributed rows: in many arrays, in files, or on the workers of an engine.

A fit sends queries to the rows, which are in parts. The owner of the rows answers a query for each part with
`relvec._core.answer` and merges the answers with `relvec._core.merge`. Both are pure functions from bytes to bytes, so
an engine may run them anywhere, in any order, and again after a failure: equal parts give equal bits.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from . import _checks, _core, _labels, _settings
from ._base import Float, RelevanceVectorMachine, target_names
from ._errors import in_words_of_python

__all__ = ["Arrays", "Rows", "fit"]

Estimator = TypeVar("Estimator", bound=RelevanceVectorMachine)


class Rows(Protocol):
    """Interface of an owner of rows, as `fit` needs it.

    An object may have more attributes: ``feature_names``, a list of words or None, and ``target_names``, a list of
    one word for each target.
    """

    n_features: int

    def map_reduce(self, query: bytes) -> bytes:
        """Answer a query for all parts, and merge the answers.

        Parameters
        ----------
        query : bytes
            The first argument of `relvec._core.answer`; the others are the number of a part, its rows and their
            targets. Parts are numbered from 0 without gaps. A part has the same rows for every query, possibly none.

        Returns
        -------
        bytes
            The answers, merged by `relvec._core.merge` in any order. Merging neighbouring parts first keeps them small.
        """
        ...

    def classes(self) -> NDArray[Any]:
        """List the classes, only for classifiers.

        Returns
        -------
        ndarray of shape (n_classes,)
            All classes, sorted. The targets of rows are the indices of their classes in it, as int64.
        """
        ...


class Arrays:
    """Rows in arrays of this process, in parts.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Real targets, counts, or classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, as in `RVR.fit`.
    parts : int, default=1
        Parts of consecutive rows, of about equal size.
    noise_variance : array-like of shape (n_samples,), default=None
        Known variances of the noise, as in `RVR.fit`.
    exposure : array-like of shape (n_samples,), default=None
        Exposures of counts, as in `RVR.fit`.

    Attributes
    ----------
    n_features : int
        Number of features.
    feature_names : list of str or None
        Names of the features, of a frame.
    target_names : list of str
        Names of the targets, if they have any.

    See Also
    --------
    fit : Fits to them.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR
    >>> from relvec.distributed import Arrays, fit
    >>> X = np.linspace(-10, 10, 30_000)[:, np.newaxis]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(30_000)
    >>> model = fit(RVR(gamma=0.1), Arrays(X, y, parts=8), sample=2000)
    >>> bool(abs(model.noise_variance_**0.5 - 0.1) < 0.005)
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        parts: int = 1,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> None:
        columns = getattr(X, "columns", None)
        names = [] if columns is None else list(columns)
        self.feature_names = names if names and all(isinstance(name, str) for name in names) else None
        self.target_names = target_names(y)
        # The core's errors name the part, row and column of a value that is not a number.
        self._x = _checks.aligned(
            check_array(X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, input_name="X")
        )
        self._y = np.asarray(y)
        if self._y.ndim != 2 or self._y.shape[1] == 1:
            self._y = column_or_1d(y, warn=True)
        check_consistent_length(self._x, self._y)
        if noise_variance is not None and exposure is not None:
            raise ValueError("noise_variance is for real targets and exposure for counts: give one of them")
        further = (
            _checks.sample_weights(sample_weight, len(self._x)),
            _checks.known("noise_variance", noise_variance, len(self._x)),
            _checks.known("exposure", exposure, len(self._x)),
        )
        self._weights, self._further = further[0], further
        self._parts = np.array_split(np.arange(len(self._x)), _checks.whole("parts", parts, 1))
        self.n_features = int(self._x.shape[1])
        self._targets: NDArray[Any] | None = None

    def classes(self) -> NDArray[Any]:
        """List the classes.

        Returns
        -------
        ndarray of shape (n_classes,)
            All classes, sorted.
        """
        classes, self._targets = _checks.class_numbers(self._y, self._weights)
        return classes

    def map_reduce(self, query: bytes) -> bytes:
        """Answer a query for all parts, and merge the answers.

        Parameters
        ----------
        query : bytes
            The query.

        Returns
        -------
        bytes
            The merged answers.
        """
        targets = _checks.aligned(self._y) if self._targets is None else self._targets
        answers = (
            _core.answer(
                query,
                part,
                self._x[own],
                targets[own],
                *(None if given is None else given[own] for given in self._further),
            )
            for part, own in enumerate(self._parts)
        )
        return reduce(_core.merge, answers)


def fit(estimator: Estimator, rows: Any, *, standardize: bool = False, sample: int | None = None) -> Estimator:
    """Fit an estimator to distributed rows.

    A first pass takes moments and a sample of the rows. The kernel, the centres, the amplitude and the noise are
    learned from the sample. The weights are computed from sums over all rows, in one to three more passes for
    regression and up to about ten more for classes, counts and Student-t noise. A table with at most as many different
    rows as the sample is fitted in memory, as by ``estimator.fit``.

    With ``weight_prior="ard"``, the kernel and the centres are learned from the sample. Regression takes two passes,
    the second for sums over all rows, and Student-t noise one for each step of EM. Classes and counts take 7 to 30
    passes. More than two classes have a model each against the others, in the same passes.

    Parameters
    ----------
    estimator : RVR or RVC
        The estimator. Its parameters are those of a fit in memory, except for those that need the rows themselves.
    rows : object
        The owner of the rows, such as `Arrays`; see `Rows`.
    standardize : bool, default=False
        Whether features are standardised by their means and standard deviations over all rows. The model then also
        standardises new rows. A given gamma and `relevance_vectors_` are in standardised units.
    sample : int, default=None
        Most different rows of the sample, at least 2; None: 20,000.

    Returns
    -------
    RVR or RVC
        The fitted estimator, with the attributes of a fit in memory. Its `relevance_` numbers the rows part after part,
        or given landmarks.

    Raises
    ------
    ValueError
        If a value is not a finite number (the error names part, row and column), if parts are missing, counted twice
        or changed between passes, or if a parameter needs all rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVC
    >>> from relvec.distributed import Arrays, fit
    >>> X = np.random.default_rng(0).uniform(-2, 2, (25_000, 2))
    >>> y = np.where(np.sum(X**2, axis=1) < 2, "in", "out")
    >>> model = fit(RVC(gamma=1.0), Arrays(X, y, parts=5), sample=2000)
    >>> bool(np.mean(model.predict(X) == y) > 0.98)
    True
    """
    if not isinstance(estimator, RelevanceVectorMachine):
        raise TypeError(f"expected RVR or RVC, found {type(estimator).__name__}")
    earlier = estimator._forget()
    _refuse(estimator, earlier)
    estimator.n_features_in_ = int(rows.n_features)
    names = getattr(rows, "feature_names", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    classes = np.asarray(rows.classes()) if is_classifier(estimator) else None
    likelihood = {"bernoulli": {}} if classes is not None else _settings.regression(estimator)
    settings, _ = estimator._settings(likelihood, False)
    landmarks: Float | None = _checks.landmarks(estimator, estimator.n_features_in_)
    most = None if sample is None else _checks.whole("sample", sample, 2)
    with in_words_of_python():
        model, report = _core.fit_rows(
            settings,
            rows.map_reduce,
            None if classes is None else len(classes),
            bool(standardize),
            most,
            estimator._observer(),
            landmarks,
        )
    labels = None if classes is None else _labels.for_file(classes)
    estimator._end(model, report, list(getattr(rows, "target_names", [])), labels, rows=False)
    if classes is not None:
        estimator.classes_ = classes
    return estimator


def _refuse(estimator: RelevanceVectorMachine, earlier: Any) -> None:
    """Raise ValueError for parameters that need all rows in memory."""
    if estimator.basis == "given" or estimator._callable or estimator._precomputed:
        found = "basis = 'given'" if estimator.basis == "given" else f"kernel = {estimator.kernel!r}"
        raise ValueError(f"{found} cannot be distributed: parts of the rows need a kernel that relvec computes")
    if getattr(estimator, "class_weight", None) is not None:
        raise ValueError("class_weight cannot be distributed: give the rows weights (sample_weight) instead")
    if earlier is not None:
        raise ValueError("warm_start cannot be distributed: use warm_start=False")
