"""Moments and a sample of rows in parts, and choice of landmarks."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from . import _checks, _core, _settings, _table
from ._base import Float, check_version, seed_of


class Survey:
    """Means, standard deviations and a sample of rows that come in parts, in any order, from any computers.

    The sample depends only on the values of the rows and on `random_state`, and not on the division into parts: it
    contains the different rows with the least hashes.

    Parameters
    ----------
    sample : int, default=20000
        Most rows of the sample; equal rows count once.
    random_state : int, RandomState or None, default=None
        Seed of the sample. Surveys merge only if theirs are equal.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    n_features : int or None
        Number of features; None before the first rows.
    weight : float
        Sum of the sample weights.
    mean_ : ndarray of shape (n_features,)
        Weighted mean of each feature.
    scale_ : ndarray of shape (n_features,)
        Standard deviation of each feature; 1 for a constant feature.
    sample : ndarray of shape (n_sampled, n_features)
        The sampled rows, in random order.

    See Also
    --------
    landmarks : Chooses landmarks, from a sample for example.
    Statistics : Sums over rows at landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import Survey, landmarks
    >>> X = np.random.default_rng(0).uniform(0, 10, (10_000, 2))
    >>> parts = [Survey(sample=500).update(X[i::4]) for i in range(4)]
    >>> all_rows = parts[0] + parts[1] + parts[2] + parts[3]
    >>> np.array_equal(all_rows.sample, Survey(sample=500).update(X).sample)
    True
    >>> landmarks((all_rows.sample - all_rows.mean_) / all_rows.scale_, 20).shape
    (20, 2)
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, sample: int = 20_000, *, random_state: Any = None) -> None:
        self._survey = _core.Survey(_checks.whole("sample", sample, 1), seed_of(random_state))

    def update(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> Survey:
        """Add rows; after an error the survey is unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; there may be none.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, zero or positive; rows of weight 0 are not sampled.

        Returns
        -------
        Survey
            This object.
        """
        rows = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=False, ensure_min_samples=0, input_name="X"
        )
        for row, column in np.argwhere(~np.isfinite(rows))[:1]:
            raise ValueError(f"X[{row}, {column}] = {rows[row, column]}: every value must be a finite number")
        self._survey.update(_checks.aligned(rows), _checks.sample_weights(sample_weight, len(rows)))
        return self

    def merge(self, other: Survey) -> Survey:
        """Add the rows of another survey, which must have a sample of the same size and seed.

        Parameters
        ----------
        other : Survey
            The survey to add; it is not changed.

        Returns
        -------
        Survey
            This object.
        """
        if not isinstance(other, Survey):
            raise TypeError(f"expected Survey, found {type(other).__name__}")
        self._survey.merge(other._survey)
        return self

    def to_bytes(self) -> bytes:
        """Return all content as bytes, with a checksum.

        Returns
        -------
        bytes
            Equal on every computer.
        """
        return self._survey.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Survey:
        """Read the bytes of `to_bytes`.

        Parameters
        ----------
        data : bytes
            The bytes.

        Returns
        -------
        Survey
            An equal object.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"expected bytes, found {type(data).__name__}")
        out = cls.__new__(cls)
        out._survey = _core.Survey.from_bytes(bytes(data))
        return out

    @property
    def n_rows(self) -> int:
        """Number of rows so far."""
        return self._survey.n_rows

    @property
    def n_features(self) -> int | None:
        """Number of features; None before the first rows."""
        return self._survey.n_features

    @property
    def weight(self) -> float:
        """Sum of the sample weights."""
        return self._survey.weight

    @property
    def mean_(self) -> Float:
        """Weighted mean of each feature."""
        return self._survey.scaling[0]

    @property
    def scale_(self) -> Float:
        """Standard deviation of each feature; 1 for a constant feature."""
        return self._survey.scaling[1]

    @property
    def sample(self) -> Float:
        """The sampled rows, in random order."""
        return self._survey.sample

    def __add__(self, other: Any) -> Survey:
        return Survey.from_bytes(self.to_bytes()).merge(other) if isinstance(other, Survey) else NotImplemented

    def __radd__(self, other: Any) -> Survey:
        # What `sum` starts from.
        return Survey.from_bytes(self.to_bytes()) if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: Any) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Survey) else NotImplemented

    def __getstate__(self) -> dict[str, Any]:
        return {"survey": self.to_bytes(), "version": _core.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_version("Survey", state.get("version"))
        self._survey = _core.Survey.from_bytes(state["survey"])

    def __repr__(self) -> str:
        features = "no" if self.n_features is None else self.n_features
        return f"Survey({self.n_rows} rows of {features} features, {len(self.sample)} sampled)"


def landmarks(
    X: ArrayLike,
    n: int,
    *,
    kernel: str = "rbf",
    gamma: float | ArrayLike | None = None,
    random_state: Any = None,
) -> Float:
    """Choose landmarks among rows: those nearest to the centres of k-means, in the space scaled by the kernel.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows, or a sample of them, such as that of a `Survey`.
    n : int
        Most landmarks, at least 1; there are fewer if fewer rows differ.
    kernel : str, default="rbf"
        The kernel.
    gamma : float or array-like of shape (n_features,), default=None
        Scale of the kernel. Only the ratios of the features' scales matter; None: all are equal.
    random_state : int, RandomState or None, default=None
        Seed of k-means.

    Returns
    -------
    ndarray of shape (n_landmarks, n_features)
        The chosen rows, all different, in the order of `X`.

    See Also
    --------
    Survey : Samples rows in parts.
    Statistics : Sums over all rows at the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import landmarks
    >>> landmarks([[0.0], [0.1], [5.0], [5.1]], 2).shape
    (2, 1)
    """
    rows = _checks.points("X", X)
    name = _checks.one_of("kernel", kernel, list(_table.KERNELS))
    # The landmarks do not depend on these numbers.
    own = {"gamma": 1.0 if gamma is None else gamma, "degree": 3, "coef0": 0.0, "shape": 1.0}
    settings = json.loads(_settings.as_json(_settings.kernel_of(name, own)))
    count, seed = _checks.whole("n", n, 1), seed_of(random_state)
    chosen = _core.landmarks(rows, count, json.dumps(settings), seed)
    found: Float = rows[chosen]
    return found
