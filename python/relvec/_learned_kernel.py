"""Kernels learned without a fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from . import _checks, _core, _settings, _table
from ._base import Float, seed_of
from ._errors import in_words_of_python
from ._statistics import column_names
from ._threads import threads

# Most values of an array, and significant digits, in the printed form.
SHOWN = 4
DIGITS = 4


@dataclass(frozen=True, eq=False, repr=False)
class LearnedKernel:
    """A kernel that `learn_kernel` has learned, with the Gaussian process used for it.

    The process is ``amplitude`` times the kernel, plus a constant, plus noise. For classes its targets are labels 0
    and 1 for each class (for two classes only for the second). For counts they are log rates, at which the
    log-likelihood is expanded.

    Parameters
    ----------
    kernel : str
        Name of the kernel, or the text of a sum or product, with the column names of a frame `X`.
    gamma : float, ndarray of shape (n_features,) or None
        Scale of the kernel, as in `RVR`, in the units of `X`. If there are several features it has one value for each,
        also if they share one width in units of their spread. None for kernels without `gamma`.
    kernel_params : dict
        All parameters of the kernel, gamma included: ``RVR(learned.kernel, **learned.kernel_params)``.
    amplitude : float or ndarray of shape (n_outputs,)
        Prior variance of the function if the kernel is 1, in squared units of the targets; one value for each output,
        or for each class if there are more than two.
    noise_variance : float or ndarray of shape (n_outputs,)
        Noise variance, with the shape of `amplitude`. If noise variances of rows are given, their geometric mean. For
        counts it is 1: the noise variance of a row is 1 over its expected count.
    log_evidence : float
        Log marginal likelihood of the process in nats, for the rows used and all outputs together.
    gain : float
        Log posterior density of the process minus the log marginal likelihood of a constant with noise, in nats.
        Below 0.5 the rows show no relation between features and targets. Minus infinity if no feature varies.
    has_structure : bool
        Whether a fit uses the kernel: the gain is at least 0.5, or there are further rows that were not used.
        Otherwise the model of a fit is a constant. A fit of counts compares the evidence of the counts instead.
    per_feature : bool
        Whether each feature has its own width.
    n_rows : int
        Number of rows used: all rows up to 1,000, otherwise a random sample.
    """

    kernel: str
    gamma: float | Float | None
    kernel_params: dict[str, Any]
    amplitude: float | Float
    noise_variance: float | Float
    log_evidence: float
    gain: float
    has_structure: bool
    per_feature: bool
    n_rows: int

    def __repr__(self) -> str:
        own = "".join(f", {name}={_short(value)}" for name, value in self.kernel_params.items())
        lines = [
            f"LearnedKernel({_rounded(self.kernel)!r}{own},",
            f"amplitude={_short(self.amplitude)}, noise_variance={_short(self.noise_variance)},",
            f"log_evidence={self.log_evidence:.6g}, gain={self.gain:.4g}, n_rows={self.n_rows})",
        ]
        return "\n    ".join(lines)


def learn_kernel(
    X: ArrayLike,
    y: ArrayLike,
    *,
    kernel: str | list[str] = "rbf",
    gamma: str | float | ArrayLike = "evidence",
    degree: int | list[int] = 3,
    coef0: float = 0.0,
    shape: float = 1.0,
    likelihood: str = "gaussian",
    classes: bool | None = None,
    sample_weight: ArrayLike | None = None,
    noise_variance: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> LearnedKernel:
    """Learn a kernel from rows by a dense Gaussian process, without fitting a model.

    This is the kernel that `RVR` and `RVC` with ``gamma="evidence"`` learn under a process prior: the parameters with
    the highest posterior density under weak priors, found by gradients. At most 1,000 rows are used. If there are more
    than 3,000 rows, a sparse process also uses 4,000 other rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets, counts, or names of classes. Several outputs share one kernel.
    kernel : str or list of str, default="rbf"
        The kernel, as in `RVR`. From a list, or ``"auto"``, the kernel with the highest posterior density is selected.
        ``"sigmoid"`` is not a covariance function and is refused, as are callables and ``"precomputed"``.
    gamma : {"evidence", "evidence-one", "evidence-ard", "evidence-isotropic", "scale", "auto"}, float or array-like \
of shape (n_features,), default="evidence"
        ``"evidence"`` learns one width, or one for each feature if the rows support that. ``"evidence-one"`` and
        ``"evidence-ard"`` select one of the two. ``"evidence-isotropic"`` learns one number for features that have
        one unit. For other values gamma is fixed, and only amplitude and noise are
        learned.
    degree : int or list of int, default=3
        Power of the polynomial kernel; several powers if kernels are selected from a list.
    coef0 : float, default=0.0
        Constant of the polynomial kernel; if positive, the initial value for learning.
    shape : float, default=1.0
        Exponent of the rational quadratic kernel, the initial value for learning.
    likelihood : {"gaussian", "student_t", "poisson"}, default="gaussian"
        Distribution of the targets. For ``"poisson"`` `y` contains counts. ``"student_t"`` is treated as
        ``"gaussian"`` here, so outliers keep their weight.
    classes : bool, default=None
        Whether `y` contains names of classes. None: true if it contains values other than numbers.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights, zero or positive: a weight of 2 equals the row twice.
    noise_variance : array-like of shape (n_samples,), default=None
        Known noise variance of each row, as in `RVR.fit`.
    exposure : array-like of shape (n_samples,), default=None
        Exposure of each count, as in `RVR.fit`.
    random_state : int or RandomState, default=None
        Seed of the sample of more than 1,000 rows; None is 0.
    n_jobs : int, default=None
        Number of threads, as in `RVR`. Results do not depend on it.

    Returns
    -------
    LearnedKernel
        The kernel, the amplitude and the noise of the process, and its evidence.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described.

    See Also
    --------
    RVR : Regression; ``gamma="evidence"`` learns the kernel in the fit.

    Notes
    -----
    For the kernel ``"rbf"`` the process is that of ``ConstantKernel(amplitude) * RBF((2 * gamma) ** -0.5)
    + WhiteKernel(noise_variance)`` in scikit-learn, plus a constant. A length scale l corresponds to
    gamma = 1 / (2 l^2). Length scales have the log-normal prior of [1]_, whose median grows with the square root of
    the number of features.

    References
    ----------
    .. [1] C. Hvarfner, E. O. Hellsten and L. Nardi, "Vanilla Bayesian optimization performs great in high
       dimensions", International Conference on Machine Learning, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR, learn_kernel
    >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
    >>> learned = learn_kernel(X, y)
    >>> bool(abs(learned.noise_variance**0.5 - 0.1) < 0.02), learned.has_structure
    (True, True)
    >>> model = RVR(learned.kernel, gamma=learned.gamma).fit(X, y)
    """
    if callable(kernel) or (isinstance(kernel, str) and kernel == "precomputed"):
        raise ValueError(
            f"kernel = {kernel!r}: expected a kernel that relvec computes, whose parameters can be learned"
        )
    rows = check_array(X, dtype=np.float64, order="C", ensure_min_samples=2, input_name="X")
    if y is None:
        raise ValueError("y is None: a kernel is learned from targets")
    check_consistent_length(rows, y)
    own = SimpleNamespace(kernel=kernel, gamma=gamma, degree=degree, coef0=coef0, shape=shape)
    features = column_names(X) or []
    _table.check("learn_kernel", likelihood=likelihood, n_jobs=n_jobs, random_state=random_state, **vars(own))
    # For kernels without gamma only amplitude and noise are learned, which is not an error here.
    names = [kernel] if isinstance(kernel, str) else kernel
    if not any("gamma" in _table.KERNELS.get(name, ["gamma"]) for name in names):
        own.gamma = "scale"
    own.feature_names_in_ = features
    named = _are_names(y) if classes is None else bool(classes)
    if named and likelihood != "gaussian":
        raise ValueError(f"likelihood = {likelihood!r}: expected 'gaussian', the default, where y names classes")
    weights = _checks.sample_weights(sample_weight, len(rows))
    if weights is not None and not np.any(weights > 0):
        raise ValueError("Every sample weight is zero: there is no row to learn from")
    settings = {
        **_settings.kernel(own, kernel),
        "likelihood": {"bernoulli" if named else likelihood: {}},
        "threads": threads(n_jobs),
        "seed": seed_of(random_state),
    }
    target = _checks.class_numbers(column_or_1d(y, warn=True), weights)[1] if named else _values(y)
    noise = _checks.known("noise_variance", noise_variance, len(rows))
    counted = _checks.known("exposure", exposure, len(rows))
    with in_words_of_python():
        found = _core.learn_kernel(_settings.as_json(settings), _checks.aligned(rows), target, weights, noise, counted)
    return _learned(json.loads(found), features)


def _are_names(y: Any) -> bool:
    """Return whether targets are not numbers; an object array is numeric if each element is a number."""
    values = np.asarray(y)
    if values.dtype.kind != "O":
        return values.dtype.kind not in "iuf"
    return not all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values.flat)


def _values(y: Any) -> Float:
    values = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
    return _checks.aligned(column_or_1d(values) if values.ndim == 1 or values.shape[1] == 1 else values)


def _learned(found: dict[str, Any], features: list[str]) -> LearnedKernel:
    ((name, own),) = found["kernel"].items()
    if name not in _table.KERNELS:
        name, own = _core.kernel_text(json.dumps(found["kernel"]), features), {}
    params = {key: np.array(value) if isinstance(value, list) else value for key, value in own.items()}
    amplitude, noise = (_one_or_all(found[key]) for key in ("amplitude", "noise_variance"))
    gain = found["gain"]
    return LearnedKernel(
        kernel=name,
        gamma=params.get("gamma"),
        kernel_params=params,
        amplitude=amplitude,
        noise_variance=noise,
        log_evidence=found["log_evidence"],
        # JSON has no infinity.
        gain=-np.inf if gain is None else gain,
        has_structure=found["has_structure"],
        per_feature=found["per_feature"],
        n_rows=found["rows"],
    )


def _one_or_all(values: list[float]) -> float | Float:
    return values[0] if len(values) == 1 else np.array(values)


def _short(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"{value:.4g}"
    if len(value) > SHOWN:
        return f"{len(value)} values from {value.min():.4g} to {value.max():.4g}"
    return f"[{', '.join(f'{v:.4g}' for v in value)}]"


def _rounded(kernel: str) -> str:
    """Return the text of a kernel with few digits."""
    if kernel in _table.KERNELS:
        return kernel
    names = _core.kernel_names(kernel)
    return _core.kernel_text(_core.parse_kernel(kernel, '"scale"', names), names, DIGITS)
