"""Warning about a model that interpolates its training rows, with advice."""

from __future__ import annotations

from typing import Any


class InterpolationWarning(UserWarning):
    """Warning that a fitted model interpolates its training rows.

    More than a third of the rows are relevance vectors and each weight has a precision, or the noise variance is at its
    lower limit. Intervals are then too narrow, and probabilities overconfident. ``report_["interpolation"]`` has the
    numbers.
    """


def text(found: dict[str, Any], estimator: Any, classifies: bool, rows: bool) -> str:
    """Return the warning for a report's ``interpolation``; `rows`: whether the fit used rows, and not only sums."""
    what, how = ("probabilities", "overconfident") if classifies else ("intervals", "too narrow")
    many = f"more than a third of the rows are relevance vectors ({found['vectors']} of {found['rows']})"
    if found["many_vectors"] and found["least_noise"]:
        said = f"{many}, and the noise variance is at its lower limit. The model interpolates the training rows:"
        said += f" {what} are far {how}"
    elif found["many_vectors"]:
        said = f"{many}: {what} are probably {how}"
    else:
        said = "the noise variance is at its lower limit, as if the target had no noise. If it has,"
        said += f" {what} are far {how}"
    options = []
    if rows and hasattr(estimator, "gamma_") and "kernel_search" not in estimator.report_:
        options.append('gamma="evidence" (learns the kernel width)')
    if rows and estimator.weight_prior == "ard":
        options.append('weight_prior="auto" (the prior of a Gaussian process)')
    if estimator.sparsity == 0:
        options.append('sparsity="auto" (each relevance vector must gain 1 nat)')
    if rows and "validation" not in estimator.report_:
        options.append("folds=5 (measures predictions of held-out rows)")
    if options:
        return f"{said}. Try {', '.join(options)}."
    return f"{said}. Check predictions of rows that the model has not seen."
