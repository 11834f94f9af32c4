"""From the parameters of an estimator to the settings of the core, as JSON."""

from __future__ import annotations

import json
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from . import _core

KERNELS: dict[str, list[str]] = _core.kernels()
SCHEMES: list[str] = _core.inference_schemes()
LANDMARKS: list[str] = _core.landmarks()
RULES: list[str] = _core.multi_class_rules()
CLASS_PRECISIONS: list[str] = _core.class_precision_rules()
POSTERIORS: list[str] = _core.posterior_rules()
GAMMA_RULES: list[str] = _core.gamma_rules()
VARIANCES: list[str] = _core.variance_rules()
WEIGHT_PRIORS: list[str] = _core.weight_priors()
REGRESSION_PARAMETERS: dict[str, list[str]] = {
    "gaussian": ["noise_variance"],
    "poisson": [],
    "student_t": ["noise_degrees", "noise_variance"],
}
REGRESSIONS: list[str] = list(REGRESSION_PARAMETERS)
# Rows that a class should have on average: the rarest of fewer have one or two.
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
    """Check that there is neither NaN nor an infinity among the numbers of nested settings."""
    plainly = value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value
    if isinstance(plainly, dict):
        for key, own in plainly.items():
            finite(f"{name}[{key!r}]", own)
    elif isinstance(plainly, (list, tuple)):
        for i, own in enumerate(plainly):
            finite(f"{name}[{i}]", own)
    elif isinstance(plainly, float) and not math.isfinite(plainly):
        raise ValueError(f"{name} = {plainly}: expected a finite number")


def verbosity(value: Any) -> int:
    """Check how much is printed."""
    return whole("verbose", int(value) if isinstance(value, bool) else value, 0)


def gamma(value: Any) -> str | float | list[float]:
    """Check a scale: a rule, a number, or one number per feature."""
    if isinstance(value, str):
        return one_of("gamma", value, GAMMA_RULES)
    if np.ndim(value) == 0:
        return positive("gamma", value)
    if np.ndim(value) != 1:
        raise ValueError(f"gamma has {np.ndim(value)} dimensions: expected a number, or one per feature")
    return [positive(f"gamma[{i}]", number) for i, number in enumerate(np.asarray(value).tolist())]


def kernel(estimator: Any) -> dict[str, Any]:
    """The kernel's settings, or those of several to choose among; only the parameters that they have are looked at."""
    given = estimator.kernel
    several = given == "auto" if isinstance(given, str) else isinstance(given, (list, tuple))
    if not several:
        name = one_of("kernel", given, [*KERNELS, "auto", "precomputed"])
        learns(estimator, [name])
        return {"kernel": kernel_of(name, {own: getattr(estimator, own) for own in KERNELS[name]})}
    if isinstance(given, str):
        scale = gamma(estimator.gamma)
        all_of_them = json.loads(_core.candidate_kernels())
        for candidate in all_of_them:
            for parameters in candidate.values():
                if "gamma" in parameters:
                    parameters["gamma"] = scale
        return {"kernels": all_of_them}
    if not given:
        raise ValueError(f"kernel = {given!r}: expected at least one kernel to choose among")
    names = [one_of(f"kernel[{i}]", name, list(KERNELS)) for i, name in enumerate(given)]
    learns(estimator, names)
    kernels = []
    for name in names:
        own = {parameter: getattr(estimator, parameter) for parameter in KERNELS[name]}
        degrees = own.get("degree")
        for degree in degrees if isinstance(degrees, (list, tuple)) else [degrees]:
            kernels.append(kernel_of(name, own if degree is None else {**own, "degree": degree}))
    return {"kernels": kernels}


def learns(estimator: Any, names: list[str]) -> None:
    """Check that a gamma whose form is asked for belongs to one of the kernels; the default does where there is one."""
    asked = estimator.gamma
    if isinstance(asked, str) and asked.startswith("evidence-") and not any("gamma" in KERNELS[name] for name in names):
        which = f"the kernel {names[0]} has" if len(names) == 1 else "these kernels have"
        raise ValueError(f"gamma = {asked!r}: {which} no continuous parameters that could be learnt")


def centres(estimator: Any, given: bool) -> str:
    """Check whether centres are moved; `given`: there are none, or the kernel is the caller's."""
    rule = one_of("centres", estimator.centres, _core.centre_rules())
    if given and rule != "fixed":
        raise ValueError(f"centres = {rule!r}: expected 'fixed', unless relvec computes the kernel")
    return rule


def kernel_of(name: str, own: dict[str, Any]) -> dict[str, Any]:
    """The settings of the kernel of that name with those parameters."""
    checks: dict[str, Callable[[Any], Any]] = {
        "gamma": gamma,
        "degree": lambda value: whole("degree", value, 1),
        "coef0": lambda value: real("coef0", value),
        "shape": lambda value: positive("shape", value),
    }
    return {name: {parameter: checks[parameter](value) for parameter, value in own.items()}}


def dictionary(estimator: Any) -> str | int:
    """Check how many rows may be relevance vectors: a rule or a number."""
    if isinstance(estimator.dictionary, str) and estimator.dictionary in ("auto", "all"):
        return estimator.dictionary
    if isinstance(estimator.dictionary, str):
        raise ValueError(f"dictionary = {estimator.dictionary!r}: expected 'auto', 'all' or a whole number")
    size = whole("dictionary", estimator.dictionary, 1)
    if estimator.basis == "given":
        raise ValueError(f"dictionary = {size}: expected 'auto', since all columns of a design matrix are candidates")
    return size


def landmarks(estimator: Any, features: int) -> NDArray[np.float64] | None:
    """Check the landmarks: a way to choose them (None is returned), or the rows themselves."""
    given = estimator.landmarks
    if isinstance(given, str):
        one_of("landmarks", given, LANDMARKS)
        return None
    if np.ndim(given) == 0:
        raise ValueError(f"landmarks = {given!r}: expected one of {', '.join(map(repr, LANDMARKS))}, or rows")
    if estimator.basis == "given" or (isinstance(estimator.kernel, str) and estimator.kernel == "precomputed"):
        where = "of a design matrix all columns" if estimator.basis == "given" else "of a precomputed kernel only rows"
        raise ValueError(f"landmarks are given, but {where} can be candidates: leave them out")
    if estimator.dictionary not in ("auto", "all"):
        raise ValueError(f"dictionary = {estimator.dictionary}: expected 'auto', since the landmarks are given")
    rows = points("landmarks", given)
    if rows.shape[1] != features:
        raise ValueError(f"landmarks has {rows.shape[1]} features, but X has {features}")
    return rows


def points(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Check rows that are a parameter, such as landmarks: at least one, of finite numbers."""
    try:
        rows: NDArray[np.float64] = check_array(given, dtype=np.float64, order="C", ensure_all_finite=False)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    for row, column in np.argwhere(~np.isfinite(rows))[:1]:
        raise ValueError(f"{name}[{row}, {column}] = {rows[row, column]}: every value must be a finite number")
    return rows


def sample_weights(sample_weight: ArrayLike | None, rows: int, negative: bool = False) -> NDArray[np.float64] | None:
    """Check sample weights, one per row or one for all; [N]. `negative`: whether those are allowed."""
    if sample_weight is None:
        return None
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight holds something that is no number: {error}") from None
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
    return np.ascontiguousarray(weights)


def warn_of_small_weights(estimator: Any, small: dict[str, float] | None, stacklevel: int) -> None:
    """Warn of weights that count as fewer than a tenth of the rows, if the report says so."""
    if small is not None:
        total, rows = small["total"], small["rows"]
        text = (
            f"the sample weights of {rows} rows sum to {total:.4g}. A weight of 1 counts as one row, so that this fit"
        )
        text += f" learns almost nothing; multiply the weights by {rows / total:.4g}"
        warnings.warn(f"{type(estimator).__name__}: {text}", UserWarning, stacklevel=stacklevel)


def known(name: str, values: ArrayLike | None, rows: int) -> NDArray[np.float64] | None:
    """Check what is known of each row, one positive number per row; [N]."""
    if values is None:
        return None
    try:
        given = np.asarray(values)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers")
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds something that is no number: {error}") from None
    if numbers.shape != (rows,):
        raise ValueError(f"{name} has shape {numbers.shape}, expected {(rows,)}: one value per row")
    for row in np.flatnonzero(~(np.isfinite(numbers) & (numbers > 0)))[:1]:
        raise ValueError(f"{name}[{row}] = {numbers[row]}: every value must be positive and finite")
    return np.ascontiguousarray(numbers)


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


def regression(estimator: Any) -> dict[str, Any]:
    """The settings of a likelihood of real targets or counts."""
    name = one_of("likelihood", estimator.likelihood, REGRESSIONS)
    given = {"noise_variance": estimator.noise_variance, "noise_degrees": estimator.noise_degrees}
    own: dict[str, Any] = {}
    for parameter, value in given.items():
        if parameter in REGRESSION_PARAMETERS[name]:
            own[parameter] = None if value is None else positive(parameter, value)
        elif value is not None:
            raise ValueError(f"{parameter} = {value!r}: expected None, since the likelihood {name!r} has none")
    return {name: own}


def cost(name: str, value: Any) -> float | None:
    """Check the cost of an error, which may be infinite: then None, as JSON has no infinity."""
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and value == math.inf:
        return None
    return real(name, value)


def class_numbers(labels: NDArray[Any], weights: NDArray[np.float64] | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The classes, sorted, and the number of each row's; at least two must have rows of positive weight, and all."""
    classes, found = np.unique(labels, return_inverse=True)
    present = np.unique(found if weights is None else found[weights > 0])
    if len(present) < 2:
        names = ", ".join(repr(c) for c in classes[present].tolist())
        raise ValueError(f"y has only one class ({names}) among the rows of positive weight: two classes are needed")
    if len(present) < len(classes):
        (absent,) = classes[np.setdiff1d(np.arange(len(classes)), present)[:1]].tolist()
        raise ValueError(f"y has no row of positive weight of the class {absent!r}: leave its rows out")
    return classes, np.ascontiguousarray(found, dtype=np.int64)


def warn_of_classes(estimator: str, classes: int, rows: int) -> None:
    """Warn of more classes than a fifth of the rows: y may be a quantity."""
    if LEAST_ROWS_OF_CLASS * classes > rows:
        text = f"y has {classes} classes in {rows} rows: with fewer than {LEAST_ROWS_OF_CLASS} rows a class,"
        text += " predictions of new rows are little more than guesses. If y is a quantity, use a regressor"
        warnings.warn(f"{estimator}: {text}", UserWarning, stacklevel=3)


def class_weights(given: Any, classes: list[Any]) -> str | list[float]:
    """Check factors of the cost of errors: one for each class, or a rule."""
    if given is None:
        return "equal"
    if isinstance(given, dict):
        unknown = [c for c in given if c not in classes]
        if unknown:
            raise ValueError(f"class_weight names {unknown}, but the classes are {classes}")
        return [positive(f"class_weight[{c!r}]", given.get(c, 1.0)) for c in classes]
    if not isinstance(given, str) or given != "balanced":
        raise ValueError(f"class_weight = {given!r}: expected 'balanced', a dict or None")
    return given


def svm_settings(estimator: Any, own: dict[str, Any], threads: int) -> str:
    """All settings of a support vector machine; `own`: those that not all have."""
    given = callable(estimator.kernel) or (isinstance(estimator.kernel, str) and estimator.kernel == "precomputed")
    steps = estimator.max_iter
    settings: dict[str, Any] = {
        "basis": "given" if given else "kernel",
        "shrinking": bool(estimator.shrinking),
        "tolerance": positive("tol", estimator.tol),
        "cache_size": positive("cache_size", estimator.cache_size),
        "max_iterations": None if steps == -1 else whole("max_iter", steps, 1),
        "threads": threads,
        **own,
    }
    if not given:
        name = one_of("kernel", estimator.kernel, [*KERNELS, "precomputed"])
        scale = estimator.gamma
        if isinstance(scale, str) and "gamma" in KERNELS[name]:
            one_of("gamma", scale, ["scale", "auto"])
        settings["kernel"] = kernel_of(name, {own: getattr(estimator, own) for own in KERNELS[name]})
    if estimator.time_limit is not None:
        settings["time_limit"] = positive("time_limit", estimator.time_limit)
    return json.dumps(settings, allow_nan=False, default=plain)


def inference(estimator: Any, start: dict[str, Any] | None = None) -> dict[str, Any]:
    """The inference scheme's settings; `start`: precisions to begin at."""
    name = one_of("inference", estimator.inference, SCHEMES)
    if not isinstance(estimator.inference_params, (dict, type(None))):
        raise ValueError(f"inference_params = {estimator.inference_params!r}: expected a dict or None")
    own = dict(estimator.inference_params or {})
    finite("inference_params", own)
    if estimator.tol is not None:
        own["tolerance"] = positive("tol", estimator.tol)
    if start is not None:
        own["start"] = {"given": start}
    return {name: own}


def sparsity(value: Any) -> str | float:
    """Check what a kernel must gain: nats, or how they are chosen."""
    if isinstance(value, str):
        return one_of("sparsity", value, ["auto", "cv"])
    number = real("sparsity", value)
    if number < 0.0:
        raise ValueError(f"sparsity = {value!r}: expected zero or a positive number of nats, 'auto' or 'cv'")
    return number


def settings(
    estimator: Any,
    likelihood: dict[str, Any],
    given: bool,
    threads: int,
    seed: int,
    start: dict[str, Any] | None = None,
) -> str:
    """All settings of a fit; `given`: the rows are values of basis functions already; `start`: precisions."""
    own: dict[str, Any] = {
        "basis": "given" if given else "kernel",
        "bias": bool(estimator.fit_intercept),
        "likelihood": likelihood,
        "inference": inference(estimator, start),
        "posterior": one_of("posterior", estimator.posterior, POSTERIORS),
        "sparsity": sparsity(estimator.sparsity),
        "cv": None if estimator.folds is None else whole("folds", estimator.folds, 2),
        "max_iterations": whole("max_iter", estimator.max_iter, 1),
        "threads": threads,
        "seed": seed,
    }
    if not given:
        own |= kernel(estimator)
    elif estimator.basis != "given" and isinstance(estimator.gamma, str) and estimator.gamma.startswith("evidence-"):
        raise ValueError(
            f"gamma = {estimator.gamma!r}: expected a kernel that relvec computes, to learn its parameters"
        )
    rule = centres(estimator, given)
    if not given:
        own["centres"] = rule
    own["weight_prior"] = one_of("weight_prior", estimator.weight_prior, WEIGHT_PRIORS)
    own["residual"] = None if estimator.residual is None else positive("residual", estimator.residual)
    if hasattr(estimator, "calibrate"):
        own["calibrate"] = bool(estimator.calibrate)
        variance = one_of("variance", estimator.variance, ["auto", *VARIANCES])
        own["variance"] = None if variance == "auto" else variance
        own["keep_statistics"] = bool(estimator.keep_statistics)
        own["keep_rows"] = None if estimator.keep_rows is None else whole("keep_rows", estimator.keep_rows, 1)
    if hasattr(estimator, "multi_class"):
        own["multi_class"] = one_of("multi_class", estimator.multi_class, RULES)
        own["class_precisions"] = one_of("class_precisions", estimator.class_precisions, CLASS_PRECISIONS)
    size = dictionary(estimator)
    own["refresh"] = whole("refresh", estimator.refresh, 0)
    if given and own["refresh"]:
        raise ValueError(f"refresh = {estimator.refresh}: expected 0, unless relvec computes the kernel")
    # Of a precomputed or callable kernel the rows are drawn before the core sees it.
    if not given:
        own["dictionary"] = size
        # Rows that are landmarks go as they are, not as text.
        if isinstance(estimator.landmarks, str):
            own["landmarks"] = estimator.landmarks
    if estimator.time_limit is not None:
        own["time_limit"] = positive("time_limit", estimator.time_limit)
    if estimator.memory_limit is not None:
        own["memory_limit"] = whole("memory_limit", estimator.memory_limit, 1)
    try:
        return json.dumps(own, allow_nan=False, default=plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"inference_params = {estimator.inference_params!r}: {error}") from None


def plain(value: Any) -> Any:
    """Numbers and arrays of numpy as those of Python."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of a setting")
