"""Translation of scikit-learn's kernels of Gaussian processes to kernels of relvec."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

# Name and parameters of a kernel.
Factor = tuple[str, dict[str, Any]]
# A product: its amplitude and its factors. A constant has no factors.
Term = tuple[float, list[Factor]]
WHITE: Factor = ("white", {})
# Parameters that a text keeps if the others are learned.
KEPT = ("degree", "period")
# Names of the kernels with one length scale: the covariances of Matern by nu, and those of PairwiseKernel by metric.
MATERN = {1.5: "matern32", 2.5: "matern52", math.inf: "rbf"}
METRICS = {"rbf": "rbf", "laplacian": "laplacian", "linear": "linear"}


@dataclass
class Translated:
    """A kernel of scikit-learn in terms of relvec's kernels."""

    # At least one, none of them a constant or noise.
    terms: list[Term]
    # Whether there are terms of noise, and constant terms.
    white: bool
    constant: bool
    # Names of parameters that a Gaussian process of scikit-learn would optimise. The noise level and a common
    # amplitude are not included, since a fit learns them.
    free: list[str]

    @property
    def amplitude(self) -> float:
        """Return the amplitude of a single term; 1 for several terms, whose amplitudes are in the text."""
        return self.terms[0][0] if len(self.terms) == 1 else 1.0

    def text(self, learned: bool = False) -> str:
        """Return the kernel as text for the parameter `kernel`; `learned`: without numbers that a fit can learn."""
        several = len(self.terms) > 1 and not learned
        products = ["*".join(_text(name, own, learned) for name, own in factors) for _, factors in self.terms]
        numbers = [f"{amplitude!r}*" if several else "" for amplitude, _ in self.terms]
        return " + ".join(number + product for number, product in zip(numbers, products, strict=True))


def _text(name: str, own: dict[str, Any], learned: bool) -> str:
    shown = [f"{key}={json.dumps(value)}" for key, value in own.items() if not learned or key in KEPT]
    return f"{name}({', '.join(shown)})" if shown else name


def is_one(kernel: Any) -> bool:
    """Return whether this is a kernel of scikit-learn's Gaussian processes, without importing these."""
    module = sys.modules.get("sklearn.gaussian_process.kernels")
    return module is not None and isinstance(kernel, module.Kernel)


def translate(kernel: Any, features: int) -> Translated:
    """Translate a kernel for rows with `features` features, with unchanged parameters.

    Raises
    ------
    ValueError
        For a term that no kernel of relvec equals, with the term and advice.
    """
    terms = _terms(kernel, kernel, features)
    for amplitude, factors in terms:
        if WHITE in factors and len(factors) > 1:
            raise _refused(kernel, "WhiteKernel in a product", "noise of one variance is a term of its own")
        if not (math.isfinite(amplitude) and amplitude > 0.0):
            raise _refused(kernel, f"an amplitude of {amplitude!r}", "an amplitude is a positive number")
    own = [(amplitude, factors) for amplitude, factors in terms if factors and WHITE not in factors]
    if not own:
        raise ValueError(f"kernel = {kernel!r}: expected a kernel that depends on the rows beside constants and noise")
    found_by_fits = ["noise_level", *(["constant_value"] if len(own) == 1 else [])]
    free = [one.name.rsplit("__", 1)[-1] for one in kernel.hyperparameters if not one.fixed]
    return Translated(
        own,
        white=any(WHITE in factors for _, factors in terms),
        constant=any(not factors for _, factors in terms),
        free=[name for name in dict.fromkeys(free) if name not in found_by_fits],
    )


def _terms(kernel: Any, whole: Any, features: int) -> list[Term]:
    """Return the terms of a part of the `whole` kernel."""
    # A subclass may compute other values, so the exact type counts.
    name, p = type(kernel).__name__, kernel.get_params(deep=False)
    if type(kernel).__module__ != "sklearn.gaussian_process.kernels":
        raise _refused(whole, name, "it is not a kernel of scikit-learn")
    if name == "Sum":
        return _terms(p["k1"], whole, features) + _terms(p["k2"], whole, features)
    if name == "Product":
        second = _terms(p["k2"], whole, features)
        return [(a * b, f + g) for a, f in _terms(p["k1"], whole, features) for b, g in second]
    if name == "ConstantKernel":
        return [(float(p["constant_value"]), [])]
    if name == "WhiteKernel":
        if p["noise_level_bounds"] == "fixed":
            text = "use RVR(noise_variance=...) for a known noise variance, and leave the term out"
            raise _refused(whole, f"{kernel!r} of a fixed level", text)
        return [(float(p["noise_level"]), [WHITE])]
    return [(1.0, [_factor(kernel, whole, features)])]


def _factor(kernel: Any, whole: Any, features: int) -> Factor:
    """Return the kernel of relvec that equals a kernel that is neither a sum nor a product."""
    name, p = type(kernel).__name__, kernel.get_params(deep=False)
    if name == "RBF" or (name == "Matern" and p["nu"] in MATERN):
        return MATERN.get(p.get("nu"), "rbf"), {"gamma": _gamma(p["length_scale"])}
    if name == "RationalQuadratic":
        return "rational_quadratic", {"gamma": _gamma(p["length_scale"]), "shape": float(p["alpha"])}
    if (name == "Matern" and p["nu"] == 0.5) or name == "ExpSineSquared":
        if features > 1:
            text = f"of {features} features it depends on their Euclidean distance, and relvec's on each by itself"
            raise _refused(whole, repr(kernel), text)
        scale = float(np.ravel(p["length_scale"])[0])
        if name == "Matern":
            return "laplacian", {"gamma": 1.0 / scale}
        return "periodic", {"gamma": _gamma(scale), "period": float(p["periodicity"])}
    if name == "PairwiseKernel" and p["metric"] in METRICS and not p["pairwise_kernels_kwargs"]:
        return METRICS[p["metric"]], {} if p["metric"] == "linear" else {"gamma": float(p["gamma"])}
    base, power = (p["kernel"], p["exponent"]) if name == "Exponentiation" else (kernel, 1)
    if type(base).__name__ == "DotProduct" and power >= 1 and float(power).is_integer():
        return "poly", {"gamma": 1.0, "coef0": float(base.sigma_0) ** 2, "degree": int(power)}
    raise _refused(whole, repr(kernel), "no kernel of relvec equals it")


def _gamma(length_scale: Any) -> Any:
    """Return gamma = 1 / (2 l^2) for each length scale l."""
    return (0.5 / np.square(np.asarray(length_scale, dtype=np.float64))).tolist()


def _refused(kernel: Any, term: str, reason: str) -> ValueError:
    text = f"kernel = {kernel!r}: {term} cannot be translated: {reason}. To use the kernel as a function with fixed"
    return ValueError(f"{text} parameters, pass kernel=lambda a, b: k(a, b)")
