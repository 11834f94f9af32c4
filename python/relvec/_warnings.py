"""Warnings after a fit: the consequence for predictions, and advice."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from . import _sklearn_kernels
from ._interpolation import InterpolationWarning
from ._interpolation import text as interpolation_text
from ._text import count

Found = list[tuple[type[Warning], str]]
BEST_SO_FAR = "the model is the best so far"


def issue(estimator: Any, found: Found, stacklevel: int) -> None:
    """Store the texts in the report, and warn of each; `stacklevel` has the caller's meaning in `warnings.warn`."""
    estimator.report_["warnings"] = [text for _, text in found]
    for kind, text in found:
        warnings.warn(f"{type(estimator).__name__}: {text}", kind, stacklevel=stacklevel + 1)


def of_rvm(estimator: Any, rows: bool) -> Found:
    """Return the warnings of a relevance vector machine: a limit that was reached, and doubts about predictions.

    `rows`: whether the fit used rows, and not only sums over them.
    """
    model, report = estimator._model, estimator.report_
    adjustments, found = report["adjustments"], []
    if model.status in LIMITS:
        text = LIMITS[model.status](estimator)
        left_out = adjustments["left_out_rows"]
        if model.status == "time_limit" and left_out:
            text = f"time_limit={estimator.time_limit} seconds are not enough for all rows: {left_out} of them were"
            text += " left out, at random. Raise time_limit to learn from all of them."
        found.append((ConvergenceWarning, text))
    if adjustments["zero_columns"] and len(model.relevance) == 0:
        text = f"{adjustments['zero_columns']} of {report['candidates']} candidates are zero on every row, or landmarks"
        text += " with no row near them, and no other is useful: the model predicts a constant. Use a wider kernel"
        found.append((UserWarning, f"{text} (smaller gamma), or training rows as landmarks."))
    elif report["nothing_found"]:
        found.append((ConvergenceWarning, _nothing_found(estimator)))
    found += _small_weights(adjustments)
    if "interpolation" in report:
        text = interpolation_text(report["interpolation"], estimator, model.classifier, rows)
        found.append((InterpolationWarning, text))
    if "residual_over_noise" in adjustments:
        times = f"{adjustments['residual_over_noise']:.3g}"
        text = f"the given noise is too small to be reached: residuals are {times} times it, and predicted standard"
        text += " deviations too small by about this factor. Give a larger noise_variance, or None to learn it."
        found.append((ConvergenceWarning, text))
    if "noise_over_process" in adjustments:
        times = f"{adjustments['noise_over_process']:.3g}"
        text = (
            f"the noise of the model is {times} times that of the Gaussian process that learned the kernel: the model"
        )
        found.append((ConvergenceWarning, f"{text} misses structure. {_less_noise(estimator)}"))
    if _sklearn_kernels.is_one(estimator.kernel) and estimator.basis != "given":
        own = _sklearn_kernels.translate(estimator.kernel, estimator.n_features_in_)
        if own.free:
            text = f"parameters of the scikit-learn kernel stay as given, and are not optimised: {', '.join(own.free)}."
            text += f' Use kernel="{own.text(learned=True)}" to learn them, or the bounds "fixed" to keep them.'
            found.append((UserWarning, text))
    # A rule and given landmarks use all candidates. There are none if nothing was found to learn.
    size, candidates = estimator.dictionary, report["candidates"]
    if not isinstance(size, str) and 0 < candidates < size and not adjustments["left_out_rows"]:
        text = f"dictionary={size}, but there are only {candidates} different rows: all of them are candidates."
        found.append((UserWarning, f'{text} Use dictionary="all" for that.'))
    return found


def of_svm(estimator: Any) -> Found:
    """Return the warnings of an SVM: limits, kernels that are not positive definite, no margin, rough probabilities."""
    model, report = estimator._model, estimator.report_
    functions, found = report["functions"], []
    if model.status == "iteration_limit":
        steps = max((f["iterations"] for f in functions if f["status"] == "iteration_limit"), default=0)
        limited = estimator.max_iter != -1
        made, action = (f"max_iter={estimator.max_iter}", "Raise max_iter") if limited else (str(steps), "Raise tol")
        text = f"{made} steps were made before the fit converged: {BEST_SO_FAR}. {action}, or standardise the features."
        found.append((ConvergenceWarning, text))
    elif model.status == "time_limit":
        found.append((ConvergenceWarning, LIMITS["time_limit"](estimator)))
    elif model.status == "singular":
        text = f"64-bit numbers allow no further step before tol is reached: {BEST_SO_FAR}. Raise tol, or standardise"
        found.append((ConvergenceWarning, f"{text} the features."))
    negative = estimator.kernel == "linear_spline" and np.any(estimator.support_vectors_ < 0)
    if isinstance(estimator.kernel, str) and (estimator.kernel == "sigmoid" or negative):
        text = f"the kernel {estimator.kernel} is not positive definite on these rows: this may be a local optimum."
        found.append((UserWarning, f'{text} Use kernel="rbf".'))
    if any(f.get("no_margin", False) for f in functions):
        text = f"nu={estimator.nu} leaves no margin, since the classes overlap: the fit equals an SVC"
        text += " with a large C. Raise nu, or use a kernel that separates more"
        found.append((UserWarning, f"{text} (larger gamma)."))
    found += _small_weights(report)
    sources = [f.get("probabilities") for f in functions]
    for source, text in _fallbacks(estimator).items():
        if source in sources:
            which = f" (of {sources.count(source)} of {len(sources)} functions)" if len(sources) > 1 else ""
            found.append((UserWarning, text.format(which)))
    return found


def _iteration_limit(estimator: Any) -> str:
    more = {"scheme": estimator._scheme} if estimator._scheme != "search" else {}
    text = f"the fit did not converge in {count(estimator.n_iter_, 'iteration')}: {BEST_SO_FAR}."
    return f"{text} search={more | {'max_iterations': 10 * estimator.n_iter_}} allows more."


def _time_limit(estimator: Any) -> str:
    text = f"time_limit={estimator.time_limit} seconds ran out before the fit converged: {BEST_SO_FAR}."
    return f"{text} Raise time_limit."


def _memory_limit(estimator: Any) -> str:
    return f"the memory limit left the model no room to grow: {BEST_SO_FAR}. Raise memory_limit."


def _singular(estimator: Any) -> str:
    return (
        f"the posterior became singular before the fit converged: {BEST_SO_FAR}. Try another kernel, or a larger gamma."
    )


LIMITS = {
    "iteration_limit": _iteration_limit,
    "time_limit": _time_limit,
    "memory_limit": _memory_limit,
    "singular": _singular,
}


def _nothing_found(estimator: Any) -> str:
    """Return the warning for a model that explains no more than a constant, with advice."""
    vectors = len(estimator._model.relevance)
    if vectors:
        verb = "explains" if vectors == 1 else "explain"
        text = f"{count(vectors, 'relevance vector')} {verb} no more than a constant does"
    else:
        vector = "relevance vector" if "process" not in estimator.report_ else "centre"
        text = f"no {vector} was selected; the model predicts a constant"
    outliers = ""
    if estimator._model.likelihood == "gaussian":
        outliers = ' If some targets may be outliers, try likelihood="student_t".'
    if "kernel_search" in estimator.report_:
        advice = "check that the features carry information, or add rows"
        return f"{text}. The kernel was learned from the data: {advice}.{outliers}"
    width = "use another kernel"
    if hasattr(estimator, "gamma_"):
        width = 'use another kernel width (gamma="evidence" learns it)'
    return f"{text}. Standardise the features, {width}, or check that the features carry information.{outliers}"


def _less_noise(estimator: Any) -> str:
    """Return the advice for a model whose basis functions miss structure that the process found."""
    if estimator.dictionary not in ("auto", "all"):
        return "Raise dictionary."
    if estimator._scheme != "search":
        return 'Use search="search".'
    return 'Use weight_prior="process", or sparsity=0.'


def _small_weights(where: dict[str, Any]) -> Found:
    """Return the warning for weights that count as fewer than a tenth of the rows, if the report has it."""
    small = where.get("small_weights")
    if small is None:
        return []
    total, rows = small["total"], small["rows"]
    text = f"the sample weights of {count(rows, 'row')} sum to {total:.4g}. A weight of 1 counts as one row, so that"
    return [(UserWarning, f"{text} this fit learns almost nothing. Multiply the weights by {rows / total:.4g}.")]


def _fallbacks(estimator: Any) -> dict[str, str]:
    """Return texts on probabilities that are not based on held-out rows, by their source in the report."""
    cost = "nu" if hasattr(estimator, "nu") else "C"
    return {
        "training_rows": "there are too few rows for a cross-validation of the probabilities{}, which needs 5 of each "
        "class: they are computed from the training rows and are rough. Add rows of the small classes.",
        "class_frequencies": "cross-validation does not separate the classes: the probabilities{} are class "
        f"frequencies, which can contradict predict. Try another kernel, gamma or {cost}.",
    }
