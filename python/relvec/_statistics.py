"""Sums over rows that can be computed in parts, merged in any order, and fitted."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from . import _checks, _core, _settings, _table
from ._base import Float, check_version
from ._threads import threads
from .rvr import RVR

# Parameters of RVR that the statistics determine.
DECIDED = ["kernel", "gamma", "degree", "coef0", "shape", "basis", "dictionary", "landmarks", "centres"]


class Statistics:
    """Sums over rows that are sufficient for a regression on landmarks.

    There is one column for each centre (landmark), and a column of ones. The sums are those of products of two
    columns, and of a column and the target. Their memory does not depend on the number of rows, and they can be added:
    rows may come in blocks, from many processes or computers, in any order. The time of `fit` does not depend on the
    number of rows.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern32", "matern52", "rational_quadratic", "linear", "poly", \
"sigmoid", "linear_spline"}, default="rbf"
        The kernel, as in `RVR`. It must be known before the first row, so ``"precomputed"`` and callables are not
        possible.
    centres : array-like of shape (n_centres, n_features)
        The landmarks, usually some hundred rows of the data that cover the inputs.
    gamma : float or array-like of shape (n_features,), default=None
        Scale of the kernel, or one per feature; required if the kernel has one. ``"scale"`` and ``"evidence"`` are not
        possible, since they need the rows. `learn_kernel` learns it from some of the rows.
    degree : int, default=3
        Power of the polynomial kernel.
    coef0 : float, default=0.0
        Constant of the polynomial and sigmoid kernels.
    shape : float, default=1.0
        Exponent of the rational quadratic kernel.

    Attributes
    ----------
    kernel : str
        The kernel.
    kernel_params : dict
        Parameters of the kernel.
    centres : ndarray of shape (n_centres, n_features)
        The landmarks.
    feature_names : list of str or None
        Names of the features: those of the first rows, or centres, that had names.
    n_features : int
        Number of features.
    n_rows : int
        Number of rows of positive weight so far.
    weight : float
        Sum of their weights.
    gram : ndarray of shape (n_centres + 1, n_centres + 1)
        Weighted sums of products of two columns, the column of ones first. If noise variances of rows are known,
        weights are divided by them.
    target_mean : float
        Weighted mean of the targets; NaN before the first row.
    target_sums : ndarray of shape (n_centres + 1,)
        Weighted sums of products of a column and the target minus its mean.
    target_square : float
        Weighted sum of squares of the target minus its mean.

    See Also
    --------
    learn_kernel : Learns the kernel from some of the rows.
    RVR : Its parameter `landmarks` does the same for rows in memory.

    Notes
    -----
    Two objects are equal if all their bits are equal. For any division of the rows, sums agree up to rounding. For
    equal bits, add equal parts in the same order.

    Features are used unchanged: scale all blocks by the same numbers if their units differ.

    Python threads may share an object. Each update is added as a whole, and a fit, a copy or a pickle uses the sums
    at that moment.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import Statistics
    >>> X = np.linspace(-10, 10, 10_000)[:, np.newaxis]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(10_000)
    >>> parts = [Statistics(gamma=0.1, centres=X[::250]).update(X[i::4], y[i::4]) for i in range(4)]
    >>> model = sum(parts).fit()
    >>> bool(abs(model.noise_variance_**0.5 - 0.1) < 0.005)
    True
    >>> bool(np.all(np.abs(model.predict(X) - np.sinc(X[:, 0] / np.pi)) < 0.02))
    True
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        centres: ArrayLike,
        gamma: float | ArrayLike | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        shape: float = 1.0,
    ) -> None:
        if callable(kernel) or (isinstance(kernel, str) and kernel == "precomputed"):
            raise ValueError(
                f"kernel = {kernel!r}: statistics need a kernel that relvec computes, one of "
                + ", ".join(map(repr, _table.KERNELS))
            )
        name = _checks.one_of("kernel", kernel, list(_table.KERNELS))
        own = {"gamma": gamma, "degree": degree, "coef0": coef0, "shape": shape}
        if "gamma" not in _table.KERNELS[name]:
            own["gamma"] = "scale"
        elif gamma is None or isinstance(gamma, str):
            raise ValueError(
                f"gamma = {gamma!r}: expected a positive number, or one per feature; a rule would need all rows "
                "(relvec.learn_kernel learns gamma from some of them)"
            )
        _table.check("Statistics", **own)
        points = _checks.points("centres", centres)
        self._sums = _core.Statistics(_settings.as_json(_settings.kernel_of(name, own)), points)
        self._names = column_names(centres)

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Statistics:
        """Add rows; after an error or an interrupt the sums are unchanged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; there may be none.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, zero or positive: a weight of 2 equals the row twice.
        noise_variance : array-like of shape (n_samples,), default=None
            Known noise variance of each row, as in `RVR.fit`; for all updates or for none.
        n_jobs : int, default=None
            Number of threads, as in `RVR`. The sums do not depend on it.

        Returns
        -------
        Statistics
            This object.
        """
        names = self._agree(column_names(X))
        rows = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=False, ensure_min_samples=0, input_name="X"
        )
        if y is None:
            raise ValueError("y is None: statistics need targets")
        targets = column_or_1d(y, dtype=np.float64, warn=True)
        check_consistent_length(rows, targets)
        if rows.shape[1] != self.n_features:
            raise ValueError(f"X has {rows.shape[1]} features, but the centres have {self.n_features}")
        for row, column in np.argwhere(~np.isfinite(rows))[:1]:
            raise ValueError(f"X[{row}, {column}] = {rows[row, column]}: every value must be a finite number")
        for row in np.flatnonzero(~np.isfinite(targets))[:1]:
            raise ValueError(f"y[{row}] = {targets[row]}: every value must be a finite number")
        weights = _checks.sample_weights(sample_weight, len(rows))
        noise = _checks.known("noise_variance", noise_variance, len(rows))
        self._sums.update(_checks.aligned(rows), _checks.aligned(targets), weights, noise, threads(n_jobs))
        self._names = names
        return self

    def merge(self, other: Statistics) -> Statistics:
        """Add the rows of another object, which must have the same kernel and centres.

        Parameters
        ----------
        other : Statistics
            The sums to add; they are not changed.

        Returns
        -------
        Statistics
            This object.
        """
        if not isinstance(other, Statistics):
            raise TypeError(f"expected Statistics, found {type(other).__name__}")
        names = self._agree(other._names)
        self._sums.merge(other._sums)
        self._names = names
        return self

    def fit(self, **parameters: Any) -> RVR:
        """Fit to all rows so far.

        Parameters
        ----------
        **parameters : dict
            Parameters of `RVR`, except for those that the statistics determine: the kernel, its parameters, and the
            choice of landmarks.

        Returns
        -------
        RVR
            A fitted estimator. Its `relevance_` contains indices of centres, and its parameter `landmarks` contains
            the centres, so that a clone learns the same model from rows.
        """
        known = [name for name in inspect.signature(RVR).parameters if name not in DECIDED]
        for name in parameters:
            if name in DECIDED:
                raise TypeError(f"fit() takes no {name!r}: the statistics were made with it")
            if name not in known:
                raise TypeError(f"fit() has no parameter {name!r}; known: {', '.join(known)}")
        # Sums of products do not determine the posterior under a process prior.
        own = {"weight_prior": "ard", **parameters}
        model = RVR(self.kernel, landmarks=self.centres, **self.kernel_params, **own)
        model._fit_statistics(self._sums, self._names)
        return model

    def to_bytes(self) -> bytes:
        """Return all content except the names of features as bytes, with a checksum.

        Returns
        -------
        bytes
            Equal on every computer; Rust can read them.
        """
        return self._sums.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Statistics:
        """Read the bytes of `to_bytes`.

        Parameters
        ----------
        data : bytes
            The bytes.

        Returns
        -------
        Statistics
            An equal object.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"expected bytes, found {type(data).__name__}")
        return cls._of(_core.Statistics.from_bytes(bytes(data)), None)

    @classmethod
    def _of(cls, sums: _core.Statistics, names: list[str] | None) -> Statistics:
        out = cls.__new__(cls)
        out._sums, out._names = sums, names
        return out

    @property
    def kernel(self) -> str:
        """The kernel."""
        (name,) = json.loads(self._sums.kernel)
        return str(name)

    @property
    def kernel_params(self) -> dict[str, Any]:
        """Parameters of the kernel."""
        (own,) = json.loads(self._sums.kernel).values()
        return {name: np.array(value) if isinstance(value, list) else value for name, value in own.items()}

    @property
    def centres(self) -> Float:
        """The landmarks."""
        return self._sums.centres

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the features, if any rows had names."""
        return None if self._names is None else list(self._names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self._sums.n_features

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight so far."""
        return self._sums.n_rows

    @property
    def weight(self) -> float:
        """Sum of the sample weights so far."""
        return self._sums.weight

    @property
    def gram(self) -> Float:
        """Weighted sums of products of two columns, the column of ones first."""
        return self._sums.gram

    @property
    def target_mean(self) -> float:
        """Weighted mean of the targets; NaN before the first row."""
        mean = self._sums.target_sums[2]
        return np.nan if mean is None else mean

    @property
    def target_sums(self) -> Float:
        """Weighted sums of products of a column and the target minus its mean."""
        return self._sums.target_sums[0]

    @property
    def target_square(self) -> float:
        """Weighted sum of squares of the target minus its mean."""
        return self._sums.target_sums[1]

    def _agree(self, names: list[str] | None) -> list[str] | None:
        """Return the names of features, after checking that added rows have the same names."""
        if self._names is None or names is None or names == self._names:
            return self._names or names
        raise ValueError(f"the features are {', '.join(names)}, but those so far are {', '.join(self._names)}")

    def __add__(self, other: Any) -> Statistics:
        return self.__copy__().merge(other) if isinstance(other, Statistics) else NotImplemented

    def __radd__(self, other: Any) -> Statistics:
        # What `sum` starts from.
        return self.__copy__() if isinstance(other, int) and other == 0 else NotImplemented

    def __iadd__(self, other: Any) -> Statistics:
        return self.merge(other) if isinstance(other, Statistics) else NotImplemented

    def __eq__(self, other: Any) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Statistics) else NotImplemented

    def __copy__(self) -> Statistics:
        return self._of(self._sums.copy(), self._names)

    def __deepcopy__(self, memo: dict[int, Any]) -> Statistics:
        return self.__copy__()

    def __getstate__(self) -> dict[str, Any]:
        return {"sums": self.to_bytes(), "names": self._names, "version": _core.__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        check_version("Statistics", state.get("version"))
        self._sums, self._names = _core.Statistics.from_bytes(state["sums"]), state["names"]

    def __repr__(self) -> str:
        own = "".join(f", {name}={_short(value)}" for name, value in self.kernel_params.items())
        count, features = self.centres.shape
        return f"Statistics({self.kernel!r}{own}: {self.n_rows} rows, {count} centres of {features} features)"


def column_names(table: Any) -> list[str] | None:
    """Return the names of the columns of a pandas or polars frame."""
    columns = getattr(table, "columns", None)
    names = [] if columns is None else list(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def _short(value: Any) -> str:
    return f"[{', '.join(f'{v:g}' for v in value)}]" if isinstance(value, np.ndarray) else f"{value:g}"
