"""Conversion of the parameters of an estimator to the settings of the core, as JSON."""

from __future__ import annotations

import json
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _core
from ._checks import finite, one_of, positive
from ._table import AROUND, KERNELS, REGRESSION_PARAMETERS, SCHEMES, Expressions


def as_json(settings: dict[str, Any]) -> str:
    """Return settings as text."""
    return json.dumps(settings, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Convert numbers and arrays of numpy, and other real numbers, to those of Python."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"{type(value).__name__} is not a value of a setting")


def by_path(estimator: Any, **computed: Any) -> dict[str, Any]:
    """Return the values of all parameters that are settings, by path; `computed`: values that replace parameters."""
    values = estimator._values() | computed
    return {one.path: values[name] for name, one in estimator._entries.items() if one.path}


def scheme(given: Any) -> Any:
    """Return the inference scheme of a parameter `search`."""
    return given.get("scheme", "search") if isinstance(given, dict) else given or "search"


def search(given: str | dict[str, Any] | None, start: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings of a parameter `search`; `start`: initial precisions."""
    name = one_of("search['scheme']", scheme(given), list(SCHEMES))
    own = {key: value for key, value in given.items() if key != "scheme"} if isinstance(given, dict) else {}
    known = [*SCHEMES[name], *AROUND]
    for key in own:
        if key not in known:
            raise ValueError(f"search[{key!r}]: expected a setting of the scheme {name!r}, one of {', '.join(known)}")
    finite("search", own)
    try:
        as_json(own)
    except (TypeError, ValueError) as error:
        raise ValueError(f"search = {given!r}: {error}") from None
    around = {key: own.pop(key) for key in AROUND if key in own}
    return {"inference": {name: own if start is None else {**own, "start": {"given": start}}}, **around}


def gamma(value: Any) -> Any:
    """Check a gamma with one number per feature."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return value
    if np.ndim(value) != 1:
        raise ValueError(f"gamma has {np.ndim(value)} dimensions: expected a number, or one per feature")
    return [positive(f"gamma[{i}]", number) for i, number in enumerate(np.asarray(value).tolist())]


def kernel_of(name: str, given: dict[str, Any], features: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of a kernel by its name or text, from the given parameters of any kernel.

    `features`: the names of the features, which the text may contain.
    """
    if name not in KERNELS:
        named = [str(feature) for feature in features]
        unknown = [] if named else _core.kernel_names(name)
        if unknown:
            raise ValueError(
                f"kernel = {name!r}: X has no column names, so that {unknown[0]!r} is unknown. Pass a frame, or write "
                "the number of the column, from 0. In a pipeline, set_output(transform='pandas') keeps names"
            )
        found: dict[str, Any] = json.loads(_core.parse_kernel(name, as_json(gamma(given["gamma"])), named))
        return found
    return {name: {own: gamma(given[own]) if own == "gamma" else given[own] for own in KERNELS[name]}}


def kernel(estimator: Any, given: Any) -> dict[str, Any]:
    """Return the settings of the `given` kernel, or of several to select from; only their own parameters are read."""
    scale = estimator.gamma
    if isinstance(given, str) and given == "auto":
        kernels = json.loads(_core.candidate_kernels())
        for own in (own for candidate in kernels for own in candidate.values() if "gamma" in own):
            own["gamma"] = gamma(scale)
        return {"kernels": kernels}
    several = isinstance(given, list)
    if several and not given:
        raise ValueError(f"kernel = {given!r}: expected at least one kernel to choose among")
    written = Expressions(set()).is_satisfied_by
    check = [(f"kernel[{i}]", name, [name] if written(name) else list(KERNELS)) for i, name in enumerate(given)]
    names = [one_of(*one) for one in check] if several else [given]
    if _is_form(scale) and not any("gamma" in KERNELS.get(name, ["gamma"]) for name in names):
        which = "these kernels have" if len(names) > 1 else f"the kernel {names[0]} has"
        raise ValueError(f"gamma = {scale!r}: {which} no continuous parameters that could be learned")
    values = {own: getattr(estimator, own) for own in ("gamma", "degree", "coef0", "shape")}
    features = getattr(estimator, "feature_names_in_", [])
    if not several:
        return {"kernel": kernel_of(given, values, features)}
    degrees = estimator.degree if isinstance(estimator.degree, list) else [estimator.degree]
    if not degrees and "poly" in names:
        raise ValueError(f"degree = {degrees!r}: expected at least one degree for the kernel poly")
    each = [(name, degree) for name in names for degree in (degrees if "degree" in KERNELS.get(name, []) else [None])]
    return {"kernels": [kernel_of(name, {**values, "degree": degree}, features) for name, degree in each]}


def _is_form(scale: Any) -> bool:
    """Return whether a gamma is a rule that learns a given form; the default applies only if a kernel has a gamma."""
    return isinstance(scale, str) and scale.startswith("evidence-")


def regression(estimator: Any) -> dict[str, Any]:
    """Return the settings of a likelihood of real targets or counts."""
    name = estimator.likelihood
    given = {"noise_variance": estimator.noise_variance, "noise_degrees": estimator.noise_degrees}
    for parameter, value in given.items():
        if value is not None and parameter not in REGRESSION_PARAMETERS[name]:
            raise ValueError(f"{parameter} = {value!r}: expected None, since likelihood={name!r} has no {parameter}")
    return {name: {parameter: given[parameter] for parameter in REGRESSION_PARAMETERS[name]}}


def rvm(
    estimator: Any,
    likelihood: dict[str, Any],
    given: bool,
    start: dict[str, Any] | None = None,
    **computed: Any,
) -> str:
    """Return all settings of a fit; `given`: the rows are values of basis functions; `start`: initial precisions."""
    around = search(estimator.search, start)
    settings = {"basis": "given" if given else "kernel", "likelihood": likelihood, **around}
    settings |= by_path(estimator, **computed)
    if settings.get("variance") == "auto":
        settings["variance"] = None
    # Landmarks given as rows are passed as an array, not as text.
    if not isinstance(estimator.landmarks, str):
        del settings["landmarks"]
    if not given:
        return as_json(settings | kernel(estimator, estimator._kernel_of_fit()))
    if estimator.basis != "given":
        scale, centres = estimator.gamma, estimator.centres
        for name, value, is_asked in [("gamma", scale, _is_form(scale)), ("centres", centres, centres != "fixed")]:
            if is_asked:
                raise ValueError(
                    f"{name} = {value!r} needs a kernel that relvec computes: leave it at its default with "
                    "callable and precomputed kernels and given designs"
                )
        # The candidates of a precomputed or callable kernel are drawn before the core sees it.
        settings |= {"dictionary": "auto", "landmarks": "kmedoids"}
    return as_json(settings)


def svm(estimator: Any, own: dict[str, Any], **computed: Any) -> str:
    """Return all settings of a support vector machine; `own`: settings that are not parameters."""
    given = estimator._callable or estimator._precomputed
    steps = None if estimator.max_iter == -1 else estimator.max_iter
    settings = by_path(estimator, max_iter=steps, **computed) | {"basis": "given" if given else "kernel", **own}
    return as_json(settings if given else settings | kernel(estimator, estimator._kernel_of_fit()))
