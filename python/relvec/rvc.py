"""Relevance vector classification as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from . import _checks, _core, _labels, _sparse
from ._base import Float, Kernel, RelevanceVectorMachine, target_names
from ._decisions import Decisions, decide, prior_of
from ._progress import Callback
from ._threads import threads


class RVC(ClassifierMixin, RelevanceVectorMachine):
    """Relevance vector classification: a sparse kernel model with class probabilities.

    Log odds are an expansion in kernels at some training rows, the relevance vectors. No setting is needed. A
    Gaussian process learns the labels, and its kernel is chosen by the probabilities of held-out rows. With
    ``weight_prior="ard"``, each weight has its own precision, and the model keeps the few kernels that maximise the
    evidence [1]_ [2]_ in Laplace's approximation. `relvec.presets.tipping2001` has the settings of [1]_.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes in training by weights, including class weights: the prior that the probabilities
        assume.
    relevance_ : ndarray of shape (n_relevance,)
        Training rows (0-based) that are relevance vectors; columns of `X` if ``basis="given"``, rows of
        `landmarks` if these are given, and indices of moved centres if ``centres="learned"`` has moved
        them.
    relevance_vectors_ : ndarray or CSR matrix of shape (n_relevance, n_features)
        The relevance vectors; empty with a precomputed kernel or ``basis="given"``. After a fit to sparse rows they
        are a CSR matrix, except for ``linear_spline``, sums of kernels, given landmarks and learned centres.
    dual_coef_ : ndarray of shape (n_functions, n_relevance)
        Weights, in the order of `relevance_vectors_`. For two classes there is one function. For more there is
        one for each class, or with ``"one_vs_one"`` for each pair of classes (0, 1), (0, 2), (1, 2), (0, 3) and so
        on. For several binary models a weight is 0 if a vector is not in a model.
    coef_ : ndarray of shape (n_functions, n_features)
        Weights of the features; linear kernel only.
    intercept_ : ndarray of shape (n_functions,)
        Weight of the constant; 0 if it was pruned or switched off.
    alpha_ : ndarray of shape (n_relevance,)
        Precisions (inverse prior variances) of the weights, as in the RVM papers; also
        `weight_precision_`, since scikit-learn's Bayesian linear models call these ``lambda_``. In a joint model all
        classes share them. For several binary models the shape is (n_functions, n_relevance), with infinity if a
        vector is not in a model. Not under a process prior, which has a
        covariance instead.
    intercept_alpha_ : float
        Precision of the intercept; infinite if it was pruned or switched off, 0 under a process prior. For several
        binary models an ndarray of shape (n_functions,).
    well_determined_ : ndarray of shape (n_relevance,)
        How far the data determine each weight: from 0 (only its prior does) to 1 (only the data do). For a joint model
        the mean over the classes; for several binary models of shape (n_functions, n_relevance). Not under a process
        prior, which has no posterior of the weights of classes.
    covariance_ : ndarray of shape (n_weights, n_weights)
        Posterior covariance of the weights, the intercept first if it is in the model. For a joint model of K classes
        it is the covariance of K - 1 contrasts (Helmert's, with unit norm), with all weights of the first contrast
        before those of the second. Neither for several binary models nor under a process prior.
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
        Log marginal likelihood of the model, in nats; for ``"variational"`` the lower bound on it, for several binary
        models their sum. Under a process prior: log probability of the classes, each row predicted from the others
        (above 3,000 rows estimated from 3,000 of them).
    n_iter_ : int
        Iterations done.
    report_ : dict
        Report of the fit, which prints in ten lines. It has:

        - ``status``, ``iterations``, ``seconds``, ``candidates`` (for relevance vectors) and ``warnings`` (their
          texts);
        - arrays of shape ``(n_iter_,)``, one value per iteration: ``log_evidence`` (nats), ``noise_std``
          (NaN), ``active`` (basis functions) and ``elapsed`` (seconds);
        - ``certificate``: the gain that was left (nats) and why the search ended; ``actions``: how many changes the
          search made; ``adjustments``: what was done to rows and numbers, such as merged rows;
        - ``nothing_found``: whether the model predicts a constant, or almost; ``interpolation``, only for a model that
          interpolates its rows: relevance vectors, rows and the signs;
        - if a kernel was learned or chosen, ``kernel_search``: for each kernel in ``tried`` its parameters, log
          evidence, evaluations and ``process``; the number of the ``chosen`` one, the ``rows`` it was learned from, and
          above 3,000 rows ``more_rows`` and ``more_centres``;
        - if centres were learned, ``centre_search``; under a process prior ``process``: centres and ``residual``;
        - with `folds`, ``validation``: scores of held-out rows, and those of each sparsity ``tried``;
        - for ``search="variational"``, ``lower_bound`` (equal to ``log_evidence``), ``in_use`` (numbers of used
          weights: ``by_weight``, above 1e-3 as in [3]_, and ``by_data``, well determined), and ``precisions``, the
          Gamma distributions of the precisions by their ``shape``, ``mean`` and ``rate``;
        - for several binary models, ``members``: their reports, which have the arrays with one value per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    RVR : Relevance vector regression.

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
    .. [4] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by
       pairwise coupling", Journal of Machine Learning Research 5, 975-1005, 2004.
    .. [5] M. Opper and C. Archambeau, "The variational Gaussian approximation revisited", Neural
       Computation 21, 786-792, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import RVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-1.0, 0.7, (60, 2)), rng.normal(1.0, 0.7, (60, 2))])
    >>> y = np.repeat(["no", "yes"], 60)
    >>> model = RVC().fit(X, y)
    >>> model.predict([[-1.0, -1.0], [1.0, 1.0]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.predict_proba([[0.0, 0.0]]).shape
    (1, 2)
    >>> len(model.relevance_) < 10
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
        class_weight: dict[Any, float] | str | None = None,
        multi_class: str = "auto",
        weight_prior: str = "auto",
        residual: float | None = None,
        search: str | dict[str, Any] | None = None,
        posterior: str = "auto",
        sparsity: float | str = "auto",
        folds: int | None = None,
        warm_start: bool = False,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> RVC:
        """Learn from rows `X` and their classes `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows. Sparse rows of more features than rows, or of more than 10^8 numbers with their zeros, stay
            sparse, and others are converted to dense rows. With ``kernel="precomputed"`` the square kernel matrix,
            with ``basis="given"`` the design matrix. A C-contiguous array of float64 is read in place.
        y : array-like of shape (n_samples,)
            Classes: numbers, words or booleans, at least two of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, from 0 to 2^53, that multiply the rows' log-likelihoods: a weight of 2 equals the row
            twice. Weights that sum to 1 count as one row in total.

        Returns
        -------
        RVC
            The estimator itself.
        """
        earlier = self._forget()
        self._refuse_sparse_values(X)
        rules: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": not issparse(X), "ensure_min_samples": 2}
        rows, labels = validate_data(self, X, y, dtype=np.float64, order="C", **rules)
        check_classification_targets(labels)
        weights = self._weights(sample_weight, len(labels))
        classes, numbers = _checks.class_numbers(labels, weights)
        _checks.warn_of_classes(type(self).__name__, len(classes), len(labels))
        self._fit(
            rows,
            numbers,
            self._class_weights(classes.tolist(), numbers, weights),
            {"bernoulli": {}},
            target_names(y),
            _labels.for_file(classes),
            earlier=earlier,
        )
        self.classes_ = classes
        return self

    def _class_weights(self, classes: list[Any], numbers: NDArray[np.int64], weights: Float | None) -> Float | None:
        """Return sample weights times class weights."""
        if self.class_weight is None:
            return weights
        own = np.ones(len(numbers)) if weights is None else weights
        given = _checks.class_weights(self.class_weight, classes)
        if isinstance(given, list):
            factors: Float = np.array(given)
        else:
            totals = np.bincount(numbers, own, minlength=len(classes))
            factors = totals.sum() / (len(classes) * totals)
        return own * factors[numbers]

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        super()._take(model, report)
        self.intercept_ = model.intercept
        # Older files do not contain them.
        if len(model.class_frequencies) > 0:
            self.class_prior_ = model.class_frequencies

    @property
    def coef_(self) -> Any:
        """Weights of the features; linear kernel only."""
        return self._coefficients(getattr(self, "relevance_vectors_", np.empty((0, 0))))

    def decision_function(self, X: ArrayLike) -> Float:
        """Return the log odds of the second class; for more than two classes a function for each class.

        They are moderated: closer to zero if the weights are less certain. Under a process prior they are not, since
        there is no posterior of the weights. `predict_proba` is their logistic function for two classes, and their
        softmax for more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes positive for the second; for more the log probabilities minus their mean.
        """
        check_is_fitted(self)
        if self._model.n_classes == 2:
            return self._model.log_odds(self._rows(X), threads(self.n_jobs), True)
        logs = self.predict_log_proba(X)
        functions: Float = logs - logs.mean(axis=1, keepdims=True)
        return functions

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of highest probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes.
        """
        check_is_fitted(self)
        if self._model.n_classes == 2:
            # Moderation does not change the sign.
            odds = self._model.log_odds(self._rows(X), threads(self.n_jobs), False)
            return self.classes_[(odds > 0.0).astype(np.intp)]
        most_likely: NDArray[Any] = self.classes_[np.argmax(self.predict_log_proba(X), axis=1)]
        return most_likely

    def decide(
        self,
        X: ArrayLike,
        prior: Any = None,
        costs: Any = None,
        reject: float | None = None,
        reject_cost: float | None = None,
    ) -> Decisions:
        """Decide by moderated probabilities, optionally with other priors than in training, costs, or rejection.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`; they sum to 1.
            None: `class_prior_`.
        costs : array-like of shape (n_classes, n_classes), default=None
            Costs, zero or positive, of each decision (columns) for each true class (rows), in the order of `classes_`.
            A data frame is sorted by its index and columns. The decision has the least expected cost. None: it is the
            most probable class.
        reject : float, default=None
            Without `costs`: rows are rejected if their decision is less probable than this number in (0, 1).
        reject_cost : float, default=None
            With `costs`: the cost of rejecting a row; rows are rejected if their least expected cost is higher.

        Returns
        -------
        Decisions
            A named tuple of ``labels``, their ``probability``, the ``probabilities`` of all classes, which rows are
            ``rejected``, and the ``expected_cost`` (None without `costs`).
        """
        return decide(self, self._rows(X), prior, costs, reject, reject_cost)

    def predict_proba(self, X: ArrayLike, moderated: bool = True, prior: Any = None) -> Float:
        """Predict class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.
        moderated : bool, default=True
            Whether to average over the posterior of the weights (by MacKay's approximation); False
            uses only the posterior mode. Both are equal under a process prior, which has no posterior.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`, instead of
            `class_prior_`; they sum to 1.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of `classes_`.
        """
        return self._probability(X, moderated, False, prior)

    def leave_one_out(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Float:
        """Predict the classes of each training row as if it had been held out, at fixed precisions.

        No further fit is needed: the cavity of Laplace's approximation gives the predictions. They are optimistic for
        models with many relevance vectors, since the precisions were learned from all rows; cross-validation (`folds`)
        is not.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows that the model was trained on.
        y : array-like of shape (n_samples,)
            Classes of the rows of `X`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of `X`, times the class weights if `class_weight` was given.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of `classes_`.
        """
        rows = self._rows(X)
        if self._model.members:
            raise ValueError(
                f"leave_one_out is not available for several binary models (multi_class={self._model.multi_class!r}): "
                "multi_class='joint' has it"
            )
        labels = column_or_1d(y)
        if not np.all(np.isin(labels, self.classes_)):
            raise ValueError(f"y has classes that the model does not know: expected {self.classes_.tolist()}")
        numbers = np.searchsorted(self.classes_, labels).astype(np.int64)
        weights = _checks.sample_weights(sample_weight, _sparse.count(rows))
        return np.exp(self._model.leave_one_out_classes(rows, numbers, weights, threads(self.n_jobs)))

    def predict_log_proba(self, X: ArrayLike, moderated: bool = True, prior: Any = None) -> Float:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `relevance_` are read.
        moderated : bool, default=True
            Whether to average over the posterior of the weights (by MacKay's approximation); False
            uses only the posterior mode. Both are equal under a process prior, which has no posterior.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`, instead of
            `class_prior_`; they sum to 1.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log probabilities, columns in the order of `classes_`.
        """
        return self._probability(X, moderated, True, prior)

    def _probability(self, X: ArrayLike, moderated: bool, log: bool, prior: Any) -> Float:
        rows = self._rows(X)
        given = prior_of(prior, self.classes_)
        return self._model.probability(rows, threads(self.n_jobs), bool(moderated), log, given)


RelevanceVectorClassifier = RVC
