"""Relevance vector regression as a scikit-learn estimator."""

from __future__ import annotations

import os
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.base import RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, validate_data

from . import _checks, _core, _settings, _sparse
from ._base import Float, Kernel, RelevanceVectorMachine, target_names
from ._errors import in_words_of_python
from ._progress import Callback
from ._table import NAMES
from ._threads import threads


class RVR(RegressorMixin, RelevanceVectorMachine):
    """Relevance vector regression: a sparse kernel model with error bars.

    The prediction is an expansion in kernels at some training rows, the centres. The kernel, the centres
    and the noise are learned by maximising the evidence (marginal likelihood) [1]_ [2]_: no setting is needed,
    and there is no C and no epsilon to cross-validate. The weights have the prior of a Gaussian
    process [5]_. With ``weight_prior="ard"`` each weight has its own precision, and the model keeps few kernels.
    `relvec.presets.tipping2001` has the settings of [1]_.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    relevance_ : ndarray of shape (n_relevance,)
        Training rows (0-based) that are relevance vectors; columns of `X` if ``basis="given"``, rows of
        `landmarks` if these are given, and indices of moved centres if ``centres="learned"`` has moved
        them.
    relevance_vectors_ : ndarray or CSR matrix of shape (n_relevance, n_features)
        The relevance vectors; empty with a precomputed kernel or ``basis="given"``. After a fit to sparse rows they
        are a CSR matrix, except for ``linear_spline``, sums of kernels, given landmarks, learned centres and
        `keep_statistics`.
    centres_ : ndarray of shape (n_centres,)
        All basis functions of the model, numbered as in `relevance_`: the relevance vectors, and under a process prior
        further rows that are needed to span the process.
    n_outputs_ : int
        Number of outputs. If there are several, the attributes below have an axis for them in front. The outputs share
        their relevance vectors, and the weight precisions relative to the noise precision of each output.
    dual_coef_ : ndarray of shape (n_outputs, n_centres)
        Weights, in the order of `centres_`, in units of the target.
    coef_ : ndarray of shape (n_features,)
        Weights of the features; linear kernel only.
    intercept_ : float
        Weight of the constant; 0 if it was pruned or switched off.
    alpha_ : ndarray of shape (n_relevance,)
        Precisions (inverse prior variances) of the weights, as in the RVM papers; also
        `weight_precision_`, since scikit-learn's Bayesian linear models call these ``lambda_``. Not under a process
        prior, which has a covariance instead.
    intercept_alpha_ : float
        Precision of the intercept; infinite if it was pruned or switched off; 0 under a process prior, which is flat
        for the intercept.
    well_determined_ : ndarray of shape (n_centres,)
        How far the data determine each weight: from 0 (only its prior does) to 1 (only the data do).
    covariance_ : ndarray of shape (n_weights, n_weights)
        Posterior covariance of the weights, the intercept first if it is in the model.
    noise_variance_ : float
        Noise variance, in squared units of the target; for ``"student_t"`` the squared scale of the noise. 0 if noise
        variances of the rows were given, since those of new rows are not known. Not for ``"poisson"``.
    noise_degrees_ : float
        Degrees of freedom of ``"student_t"`` noise. For ``"variational"`` with learned noise, the degrees of freedom of
        the Student-t distribution of predictions that results from integrating out the noise precision; its scale is
        the predicted standard deviation. Otherwise infinite, since predictions have a normal distribution.
    variance_factor_ : float
        Factor of the predictive variances; 1 unless ``calibrate=True`` found them too small.
    kernel_ : str
        The kernel in use, the selected one if several were given; not if the caller computes the kernel.
    gamma_ : float or ndarray of shape (n_features,)
        The value of `gamma` in use; not for kernels without it.
    degree_ : int
        The value of `degree` in use; not for kernels without it.
    coef0_ : float
        The value of `coef0` in use; not for kernels without it.
    shape_ : float
        The value of `shape` in use; not for kernels without it.
    feature_relevance_ : ndarray of shape (n_features,)
        Influence of each feature on the kernel, as shares of 1: gamma times the variance of the feature
        over the training rows (its standard deviation for ``"laplacian"``). Only with one gamma per
        feature.
    log_evidence_ : float
        Log marginal likelihood of the model, in nats; for ``"variational"`` the lower bound on it. Under a
        process prior it is that of the process: do not compare it with that of a model whose weights have precisions.
    n_iter_ : int
        Iterations done.
    report_ : dict
        Report of the fit, which prints in ten lines. It has:

        - ``status``, ``iterations``, ``seconds``, ``candidates`` (for relevance vectors) and ``warnings`` (their
          texts);
        - arrays of shape ``(n_iter_,)``, one value per iteration: ``log_evidence`` (nats), ``noise_std``
          (units of the target), ``active`` (basis functions) and ``elapsed`` (seconds);
        - ``certificate``: the gain that was left (nats) and why the search ended; ``actions``: how many changes the
          search made; ``adjustments``: what was done to rows and numbers, such as merged rows;
        - ``nothing_found``: whether the model predicts a constant, or almost; ``interpolation``, only for a model that
          interpolates its rows: relevance vectors, rows and the signs;
        - if a kernel was learned or chosen, ``kernel_search``: for each kernel in ``tried`` its parameters, log
          evidence, evaluations and ``process``; the number of the ``chosen`` one, the ``rows`` it was learned from, and
          above 3,000 rows ``more_rows`` and ``more_centres``;
        - if centres were learned, ``centre_search``; under a process prior ``process``: centres, the number of them
          that the search selected, the ``residual`` and whether it was ``reached``;
        - ``noise_share``: the standard deviation of the noise over that of the target; for one target and Gaussian
          noise, without sample weights;
        - with `folds`, ``validation``: scores of held-out rows, and those of each sparsity ``tried``;
        - for ``likelihood="student_t"``, ``row_weights``: how much each row counts, almost nothing if it is an outlier;
        - for ``search="variational"``, ``lower_bound`` (equal to ``log_evidence``), ``in_use`` (numbers of used
          weights: ``by_weight``, above 1e-3 as in [3]_, and ``by_data``, well determined), and ``precisions``, the
          Gamma distributions of the precisions by their ``shape``, ``mean`` and ``rate``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    RVC : Relevance vector classification.
    relvec.presets.tipping2001 : The settings of the papers.

    Notes
    -----
    A learned `gamma` is in units of each feature's spread. A given number, ``"scale"`` and ``"auto"`` use the features
    unchanged: put a StandardScaler in front if their units differ.

    References
    ----------
    .. [1] M. E. Tipping, "Sparse Bayesian learning and the relevance vector machine", Journal of
       Machine Learning Research 1, 211-244, 2001.
    .. [2] M. E. Tipping and A. C. Faul, "Fast marginal likelihood maximisation for sparse Bayesian
       models", Artificial Intelligence and Statistics, 2003.
    .. [3] C. M. Bishop and M. E. Tipping, "Variational relevance vector machines", Uncertainty in
       Artificial Intelligence, 2000.
    .. [4] C. E. Rasmussen and J. Quinonero-Candela, "Healing the relevance vector machine through
       augmentation", International Conference on Machine Learning, 2005.
    .. [5] E. Snelson and Z. Ghahramani, "Sparse Gaussian processes using pseudo-inputs", Advances in Neural Information
       Processing Systems 18, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVR
    >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
    >>> model = RVR().fit(X, t)
    >>> mean, std = model.predict([[0.0], [3.0]], return_std=True)
    >>> bool(np.all(np.abs(mean - [1.0, 0.047]) < 2 * std))
    True
    >>> len(model.centres_) < 15
    True
    """

    def __init__(
        self,
        kernel: str | list[str] | Kernel = "rbf",
        *,
        gamma: str | float | ArrayLike = "evidence",
        degree: int | list[int] = 3,
        coef0: float = 0.0,
        shape: float = 1.0,
        basis: str = "kernel",
        dictionary: str | int = "auto",
        landmarks: str | ArrayLike = "kmedoids",
        centres: str = "fixed",
        fit_intercept: bool = True,
        likelihood: str = "gaussian",
        noise_variance: float | None = None,
        noise_degrees: float | None = None,
        search: str | dict[str, Any] | None = None,
        posterior: str = "auto",
        sparsity: float | str = "auto",
        folds: int | None = None,
        warm_start: bool = False,
        calibrate: bool = False,
        weight_prior: str = "auto",
        residual: float | None = None,
        variance: str = "auto",
        keep_rows: int | None = None,
        keep_statistics: bool = False,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> RVR:
        """Learn from rows `X` and real targets, or counts, `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows. Sparse rows of more features than rows, or of more than 10^8 numbers with their zeros, stay
            sparse, and others are converted to dense rows. With ``kernel="precomputed"`` the square kernel matrix,
            with ``basis="given"`` the design matrix. A C-contiguous array of float64 is read in place.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets. Several outputs have a column each and share their relevance vectors.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, from 0 to 2^53, that multiply the rows' log-likelihoods: a weight of 2 equals the row
            twice. Weights that sum to 1 count as one row in total.
        noise_variance : array-like of shape (n_samples,), default=None
            Known noise variance of each row, positive, in squared units of the target. For the likelihood
            ``"gaussian"`` if the parameter `noise_variance` is None.
        exposure : array-like of shape (n_samples,), default=None
            Exposure of each count, positive: the time, the area or the number of people that it refers to. For the
            likelihood ``"poisson"``; the rate then refers to an exposure of 1.

        Returns
        -------
        RVR
            The estimator itself.
        """
        earlier = self._forget()
        if np.isscalar(y) or getattr(y, "ndim", 1) == 0:
            y = column_or_1d(y)
        self._refuse_sparse_values(X)
        rules: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": not issparse(X), "ensure_min_samples": 2}
        rows, t = validate_data(self, X, y, dtype=np.float64, order="C", y_numeric=True, multi_output=True, **rules)
        if t.ndim == 2 and t.shape[1] == 1:
            t = column_or_1d(t, warn=not self._several_outputs)
        likelihood = _settings.regression(self)
        self._fit(
            rows,
            _checks.aligned(t),
            self._weights(sample_weight, len(t)),
            likelihood,
            target_names(y),
            noise_variance=_checks.known("noise_variance", noise_variance, len(t)),
            exposure=_checks.known("exposure", exposure, len(t)),
            earlier=earlier,
        )
        # With weights the plain standard deviation of the target is not comparable with the noise.
        noise, spread = self._model.noise_variance, np.std(t)
        single = t.ndim == 1 and sample_weight is None and self._model.likelihood == "gaussian"
        if single and noise and spread > 0.0:
            self.report_["noise_share"] = float(np.sqrt(noise) / spread)
        return self

    @available_if(lambda self: self.keep_statistics)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        noise_variance: ArrayLike | None = None,
    ) -> RVR:
        """Add rows to the sums that the model keeps, and continue the search from the current model.

        The landmarks of the first rows are kept. Only with ``keep_statistics=True``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further rows, or the first rows if nothing has been fitted yet.
        y : array-like of shape (n_samples,)
            Targets of the rows of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of `X`.
        noise_variance : array-like of shape (n_samples,), default=None
            Noise variances of the rows of `X`, if noise variances were given for the first rows.

        Returns
        -------
        RVR
            The estimator itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, noise_variance=noise_variance)
        self._check()
        if self._model.encoding is not None:
            raise ValueError(
                "a model with categories or means of missing cells takes more rows by the command: relvec fit --add-to"
            )
        rules: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": not issparse(X)}
        rows, t = validate_data(self, X, y, reset=False, dtype=np.float64, order="C", y_numeric=True, **rules)
        rows = _sparse.filled(rows, "partial_fit", "Add fewer rows at a time")
        settings, _ = self._settings(_settings.regression(self), False)
        own = _checks.known("noise_variance", noise_variance, len(rows))
        target = _checks.aligned(t)
        weights, watch = self._weights(sample_weight, len(rows)), self._observer()
        with in_words_of_python():
            model, report = _core.fit_more(settings, self._model, rows, target, weights, watch, own)
        name = self._model.target
        self._end(model, report, [] if name is None else [name], rows=False)
        return self

    def _fit_statistics(self, sums: _core.Statistics, features: list[str] | None) -> None:
        """Fit to sums over rows; `features`: their names."""
        self._check()
        if features is not None:
            self.feature_names_in_ = np.array(features, dtype=object)
        settings, _ = self._settings(_settings.regression(self), False)
        with in_words_of_python():
            model, report = sums.fit(settings, self._observer())
        self.n_features_in_ = sums.n_features
        self._end(model, report, [], rows=False)

    @property
    def _several_outputs(self) -> bool:
        """Return whether targets of several outputs can be learned."""
        plain = self.likelihood == "gaussian" and self._scheme != "variational"
        return plain and not self.keep_statistics

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._several_outputs
        tags.target_tags.positive_only = self.likelihood == "poisson"
        return tags

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        super()._take(model, report)
        self.n_outputs_ = model.n_outputs
        several = self.n_outputs_ > 1
        self.intercept_: float | Float = model.intercept if several else float(model.intercept[0])
        self.centres_ = model.relevance
        if model.process is not None:
            _, self.relevance_, _ = model.process
            self.relevance_vectors_ = self.relevance_vectors_[np.searchsorted(self.centres_, self.relevance_)]
        if several:
            if model.process is None:
                self.alpha_ = model.alpha / model.variance_ratios[:, np.newaxis]
            self.intercept_alpha_ = model.intercept_alpha / model.variance_ratios
        if model.noise_variance is not None:
            self.noise_variance_: float | Float = model.noise_variance
            if several:
                self.noise_variance_ = model.noise_variance * model.variance_ratios
        self.noise_degrees_ = model.noise_degrees
        self.variance_factor_ = model.variance_factor

    @property
    def coef_(self) -> Any:
        """Weights of the features; linear kernel only."""
        check_is_fitted(self)
        centres = _sparse.centres(self._model)
        weights = self._coefficients(np.empty((0, 0)) if centres is None else centres)
        return weights if self.n_outputs_ > 1 else weights[0]

    @property
    def covariance_(self) -> Float:
        """Posterior covariance of the weights, the intercept first if it is in the model."""
        covariance = super().covariance_
        if self.n_outputs_ > 1:
            return covariance * self._model.variance_ratios[:, np.newaxis, np.newaxis]
        return covariance

    def output(self, k: int) -> RVR:
        """Get the model of one of several outputs.

        Parameters
        ----------
        k : int
            Index of the output, counted from 0.

        Returns
        -------
        RVR
            A fitted estimator of one output, as if read from a file. It predicts and can be plotted.
        """
        check_is_fitted(self)
        one: RVR = clone(self)
        one._adopt(self._model.output(int(k)))
        return one

    @overload
    def predict(self, X: ArrayLike) -> Float: ...
    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: Literal[False] = False,
        return_parts: Literal[False] = False,
        return_cov: Literal[False] = False,
        variance: str | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Float: ...
    @overload
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_parts: bool = False,
        return_cov: bool = False,
        variance: str | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any: ...
    def predict(
        self,
        X: ArrayLike,
        return_std: bool = False,
        return_parts: bool = False,
        return_cov: bool = False,
        variance: str | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any:
        """Predict the mean, and optionally its standard deviation or covariance.

        For the likelihood ``"poisson"`` the mean is the expected count, averaged over the uncertain rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.
        return_std : bool, default=False
            Whether to also return the standard deviation of a new observation.
        return_parts : bool, default=False
            Whether to return its two parts: the standard deviation from the uncertainty of the weights, and that of
            the noise (of a count at a known rate). The sum of their squares is the square of `return_std`.
        return_cov : bool, default=False
            Whether to return the joint covariance of new observations instead of `return_std`: the covariance of the
            model, plus the noise variance on the diagonal. Not with a healed variance, which exists only for single
            rows; for ``"student_t"`` only if `noise_degrees_` is above 2, since the covariance is infinite otherwise.
        variance : {"posterior", "healed"}, default=None
            The variance to use instead of that of the constructor; ``"healed"`` needs a model that keeps rows. The mean
            depends on it.
        noise_variance : array-like of shape (n_samples,), default=None
            Noise variances of these rows, for models that were fitted with noise variances of rows. Without them the
            standard deviation describes the function, as in GaussianProcessRegressor.
        exposure : array-like of shape (n_samples,), default=None
            Exposures of these rows, for the likelihood ``"poisson"``; None: 1 each.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The predictive mean.
        std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Only with `return_std`. For ``"student_t"`` infinite if `noise_degrees_` is 2 or less.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_outputs)
            Only with `return_cov`.
        model_std, noise_std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Only with `return_parts`.
        """
        if return_std and return_cov:
            raise RuntimeError(
                "return_std cannot be combined with return_cov: its squares are the diagonal of the covariance"
            )
        rule = self._rule(variance, noise_variance, exposure)
        if return_cov and rule == "healed":
            raise ValueError(
                "variance = 'healed' cannot be combined with return_cov: healed variances are those of single rows. "
                "Use variance='posterior'"
            )
        noise: Float
        if self._model.likelihood == "poisson" and not return_cov:
            rows = self._rows(X)
            over = _checks.known("exposure", exposure, _sparse.count(rows))
            mean, model_variance = self._model.predict_counts(rows, threads(self.n_jobs), over)
            noise = mean
        elif return_std or return_parts or return_cov or rule == "healed":
            mean, model_variance, own = self._moments(X, rule)
            noise = self._noise(mean.shape, noise_variance, own)
        else:
            return self._mean(X)
        out = [mean]
        if return_std:
            out.append(np.sqrt(model_variance + noise))
        if return_cov:
            out.append(self._covariance(X, None if noise_variance is None else noise))
        if return_parts:
            out += [np.sqrt(model_variance), np.sqrt(noise)]
        return tuple(out) if len(out) > 1 else mean

    def predict_interval(
        self,
        X: ArrayLike,
        level: float = 0.95,
        *,
        variance: str | None = None,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> tuple[Float, Float]:
        """Predict the central interval that contains a new observation with a given probability.

        Its ends are the quantiles ``(1 - level) / 2`` and ``(1 + level) / 2`` of `predict_quantiles`. They are those of
        a normal distribution for Gaussian noise, wider if the noise is Student-t or its variance is uncertain, and
        whole numbers for counts. ``relvec predict`` writes the same intervals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as in `predict`.
        level : float, default=0.95
            Probability of the interval, between 0 and 1.
        variance : {"posterior", "healed"}, default=None
            The variance to use instead of that of the constructor.
        noise_variance : array-like of shape (n_samples,), default=None
            Noise variances of these rows, for models that were fitted with noise variances of rows. Without them
            the interval describes the function.
        exposure : array-like of shape (n_samples,), default=None
            Exposures of these rows, for the likelihood ``"poisson"``; None: 1 each.

        Returns
        -------
        lower : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The lower end of the interval, in units of the target.
        upper : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            The upper end.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
        >>> lower, upper = RVR().fit(X, t).predict_interval(X, level=0.9)
        >>> print(f"{np.mean((lower < t) & (t < upper)):.0%}")
        94%
        """
        rows, rule, known = self._of_new(X, variance, noise_variance, exposure)
        if np.ndim(level) > 0:
            raise ValueError(f"level = {level!r}: expected a number between 0 and 1")
        (own,) = _checks.probabilities("level", level)
        lower, upper = self._model.predict_interval(rows, own, threads(self.n_jobs), rule, known)
        return (lower, upper) if self.n_outputs_ > 1 else (lower[:, 0], upper[:, 0])

    def predict_quantiles(
        self,
        X: ArrayLike,
        q: ArrayLike,
        *,
        variance: str | None = None,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Float:
        """Predict quantiles of a new observation with given probabilities.

        For Gaussian noise the distribution is normal; for ``search="variational"`` with learned noise it is Student's t
        with `noise_degrees_` degrees of freedom. For ``"student_t"`` it is the distribution of the sum of Student-t
        noise and a normal function value. For counts a quantile is the smallest whole number that is not exceeded with
        the given probability, including the uncertainty of the rate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as in `predict`.
        q : float or array-like of shape (n_quantiles,)
            Probabilities, between 0 and 1.
        variance, noise_variance, exposure : optional
            As in `predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_outputs), (n_samples, n_quantiles) or \
(n_samples, n_outputs, n_quantiles)
            The quantiles, in units of the target; without the last axis if `q` is a number. For degrees of freedom far
            below 1 they may be infinite.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
        >>> model = RVR().fit(X, t)
        >>> low, median, high = model.predict_quantiles(X, [0.05, 0.5, 0.95]).T
        >>> bool(np.all(low < median) and np.all(median == model.predict(X)))
        True
        """
        rows, rule, known = self._of_new(X, variance, noise_variance, exposure)
        own = _checks.probabilities("q", q)
        found = self._model.predict_quantiles(rows, own, threads(self.n_jobs), rule, known)
        found = found if self.n_outputs_ > 1 else found[:, 0]
        return found[..., 0] if np.ndim(q) == 0 else found

    def report_html(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> str:
        """Report on the model and on its predictions of `X` as an HTML page.

        The page needs no other file and no network, and can be read in a browser, printed or sent. It contains measures
        beside those of a constant prediction, predictions against observations, coverage of intervals, residuals,
        feature relevance, relevance vectors, the search, settings, and warnings with advice. For large tables some rows
        are drawn, but all rows are counted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), default=None
            Rows, as for `predict`. None: the page describes only the model.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True values of the rows of `X`, needed with `X`.
        path : str or path-like, default=None
            File to which the page is also written.
        noise_variance : array-like of shape (n_samples,), default=None
            Noise variance of each row, for a model that was fitted with noise variances of rows. Without it the page
            has no intervals.
        exposure : array-like of shape (n_samples,), default=None
            Exposure of each count, for the likelihood ``"poisson"``. None: 1 each.

        Returns
        -------
        str
            The page.

        Raises
        ------
        ValueError
            If only one of `X` and `y` is given, or known values of rows that the model does not use.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 50)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(50)
        >>> page = RVR().fit(X[::2], t[::2]).report_html(X[1::2], t[1::2])
        >>> "Coverage of intervals" in page
        True
        """
        known = None
        if X is not None and (noise_variance is not None or exposure is not None):
            _, _, known = self._of_new(X, None, noise_variance, exposure)
        return self._page(X, y, path, known)

    def _log_density(self, X: ArrayLike, y: Float) -> Float:
        """Return log predictive densities of targets `y`, (n_samples,), of one output; log probabilities for counts."""
        rows, rule, _ = self._of_new(X, None, None, None)
        return self._model.log_density(rows, y, threads(self.n_jobs), rule)

    def _of_new(
        self, X: ArrayLike, variance: str | None, noise_variance: ArrayLike | None, exposure: ArrayLike | None
    ) -> tuple[Float, str, Float | None]:
        """Return new rows, the variance in use, and the known noise variances or exposures, if the model uses one."""
        rule = self._rule(variance, noise_variance, exposure)
        rows = self._rows(X)
        noise = _checks.known("noise_variance", noise_variance, _sparse.count(rows))
        return rows, rule, _checks.known("exposure", exposure, _sparse.count(rows)) if noise is None else noise

    def _rule(self, variance: str | None, noise_variance: ArrayLike | None, exposure: ArrayLike | None) -> str:
        """Return the variance in use, after checking that the model uses the given noise variances or exposures."""
        check_is_fitted(self)
        if exposure is not None and self._model.likelihood != "poisson":
            raise ValueError("exposure is for models of counts: those with likelihood='poisson'")
        if noise_variance is not None and self._model.noise_variance != 0.0:
            raise ValueError("noise_variance is for models that were fitted with the noise of each row")
        if variance is None:
            return self._model.variance
        return _checks.one_of("variance", variance, NAMES["variance"])

    def _covariance(self, X: ArrayLike, noise: Float | None) -> Float:
        """Return the joint covariance, [N, N], or [N, N, K] for several outputs; plus `noise` on the diagonal."""
        rows = self._rows(X)
        models = [self._model.output(k) for k in range(self.n_outputs_)]
        each = [one.predict_covariance(rows, threads(self.n_jobs), self.memory_limit)[1] for one in models]
        cov = np.stack(each, axis=-1) if len(each) > 1 else each[0]
        if noise is not None:
            cov[np.diag_indices(_sparse.count(rows))] += noise
        return cov

    def _noise(self, shape: tuple[int, ...], noise_variance: ArrayLike | None, learned: Float) -> Float:
        """Return noise variances of new rows in the shape of their means; `learned`: the variance of the model."""
        if noise_variance is not None:
            own = _checks.known("noise_variance", noise_variance, shape[0])
            assert own is not None
            return np.broadcast_to(own.reshape(-1, *[1] * (len(shape) - 1)), shape)
        wide = 1.0
        if self._model.likelihood == "student_t" and np.isfinite(self.noise_degrees_):
            above = self.noise_degrees_ - 2.0
            wide = self.noise_degrees_ / above if above > 0.0 else np.inf
        return np.full(shape, wide * learned)

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: Any = 0, noise: bool = True) -> Float:
        """Draw functions from the posterior and evaluate them.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Rows.
        n_samples : int, default=1
            Number of functions to draw.
        random_state : int, RandomState or None, default=0
            Seed of the draws.
        noise : bool, default=True
            Whether to add independent noise to each value. The draws are then new observations, with the covariance of
            ``predict(X, return_cov=True)``; the noise is Student-t for the likelihood ``"student_t"`` and normal
            otherwise. Without noise the draws are values of the function.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_outputs, n_samples)
            A function in each column.
        """
        rows = self._rows(X)
        count = _checks.whole("n_samples", n_samples, 1)
        seed, several = self._seed(random_state), self.n_outputs_ > 1
        # Given the noise precisions the outputs are independent, so each has its own seed.
        seeds = np.random.default_rng(seed).integers(2**63, size=self.n_outputs_) if several else [seed]
        each = [
            self._model.output(k).draws(rows, count, int(own), bool(noise), threads(self.n_jobs))
            for k, own in enumerate(seeds)
        ]
        return np.stack(each, axis=1) if several else each[0]

    def leave_one_out(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        noise_variance: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> tuple[Float, Float, Float]:
        """Predict each training row as if it had been held out, at fixed precisions.

        No further fit is needed. The predictions are exact for Gaussian noise and approximate for counts (Laplace) and
        for Student-t noise (given the weights of the other rows). They are optimistic for models with many relevance
        vectors, since the precisions were learned from all rows; cross-validation (`folds`) is not. Under a process
        prior the kernel, the amplitude and the noise variance are fixed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that the model was trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets of the rows of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of `X`.
        noise_variance : array-like of shape (n_samples,), default=None
            The noise of each row, if it was given in `fit`.
        exposure : array-like of shape (n_samples,), default=None
            The exposure of each row, if it was given in `fit`.

        Returns
        -------
        mean, std : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions of the targets.
        log_density : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Log predictive density of the targets (for counts the log of their probability), in nats.
        """
        rows = self._rows(X)
        weights = _checks.sample_weights(sample_weight, _sparse.count(rows))
        if self.n_outputs_ == 1:
            columns = [column_or_1d(y)]
        else:
            columns = list(check_array(y, dtype=np.float64).T)
            if len(columns) != self.n_outputs_:
                raise ValueError(f"y has {len(columns)} columns: expected {self.n_outputs_}, one for each output")
        noise = _checks.known("noise_variance", noise_variance, _sparse.count(rows))
        over = _checks.known("exposure", exposure, _sparse.count(rows))
        each = [
            self._model.output(k).leave_one_out(rows, _checks.aligned(t), weights, threads(self.n_jobs), noise, over)
            for k, t in enumerate(columns)
        ]
        mean, variance, log_density = (
            np.stack(parts, axis=-1) if len(each) > 1 else parts[0] for parts in zip(*each, strict=True)
        )
        return mean, np.sqrt(variance), log_density


RelevanceVectorRegressor = RVR
