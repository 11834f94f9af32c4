"""Named settings of the estimators, from papers."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ._checks import one_of


def tipping2001(gamma: str | float | ArrayLike = "scale", *, task: str = "regress") -> dict[str, Any]:
    """Return the settings of the papers on relevance vector machines, for `RVR` or `RVC`.

    The kernel is given, each weight has its own precision, relevance vectors have no penalty (sparsity 0), and the
    variance of predictions is that of the posterior.

    Parameters
    ----------
    gamma : {"scale", "auto", "evidence", "evidence-ard", "evidence-one", "evidence-isotropic"}, float or \
array-like of shape (n_features,), default="scale"
        Scale of the kernel, as in `RVR`. The papers choose it by cross-validation.
    task : {"regress", "classify"}, default="regress"
        ``"classify"``: parameters of `RVC`, which has no `variance`.

    Returns
    -------
    dict
        Parameters of the estimator by their names.

    Raises
    ------
    ValueError
        If `task` has another value.

    See Also
    --------
    relvec.RVR : Relevance vector regression.
    relvec.RVC : Relevance vector classification.

    Notes
    -----
    The model is that of [1]_, the search that of [2]_. ``relvec fit --preset tipping2001`` uses these settings.

    References
    ----------
    .. [1] M. E. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of
       Machine Learning Research 1, 211-244, 2001.
    .. [2] M. E. Tipping and A. C. Faul, "Fast marginal likelihood maximisation for sparse Bayesian
       models", Artificial Intelligence and Statistics, 2003.

    Examples
    --------
    >>> from relvec import RVC, RVR, presets
    >>> presets.tipping2001(gamma=0.1)
    {'gamma': 0.1, 'sparsity': 0.0, 'weight_prior': 'ard', 'variance': 'posterior'}
    >>> regressor = RVR("matern52", **presets.tipping2001(gamma=0.1))
    >>> classifier = RVC(**presets.tipping2001(task="classify"))
    """
    settings: dict[str, Any] = {"gamma": gamma, "sparsity": 0.0, "weight_prior": "ard"}
    if one_of("task", task, ["regress", "classify"]) == "regress":
        settings["variance"] = "posterior"
    return settings
