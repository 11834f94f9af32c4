"""Support vector machines as scikit-learn estimators."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core, _labels, _settings, _sklearn_kernels, _sparse, _warnings
from ._base import Float, Kernel, KernelMachine, target_names
from ._decisions import Decisions, decide, prior_of
from ._errors import in_words_of_python
from ._progress import Callback, end_line, observer, svm_line
from ._threads import threads


class SupportVectorMachine(KernelMachine):
    """Base class of all support vector machines: fit and attributes."""

    max_iter: int

    def _fit(
        self,
        X: Any,
        target: NDArray[Any],
        weights: Float | None,
        own: dict[str, Any],
        names: list[str],
        classes: list[Any] | None = None,
        **computed: Any,
    ) -> None:
        """Fit to validated rows; `own`: settings that are not parameters, `computed`: values in place of parameters."""
        settings = _settings.svm(self, own, n_jobs=threads(self.n_jobs), **computed)
        design = _sparse.rows(X)
        if self._callable:
            X = _sparse.filled(X, "a kernel function", 'Use kernel="precomputed" with its values')
            design = self._kernel_values(X, X)
        elif self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed metric requires shape (n_samples, n_samples), found {X.shape}: "
                "in fit, a precomputed kernel is a square matrix"
            )
        watch = observer(int(self.verbose), self.callback, svm_line)
        with in_words_of_python():
            model, report = _core.fit_svm(settings, design, target, weights, watch)
        if self._precomputed or self._callable:
            kept = model.relevance
            centres = np.ascontiguousarray(X[kept]) if self._callable else None
            model = model.with_external_kernel(kept.tolist(), X.shape[1], centres)
        features = [str(feature) for feature in getattr(self, "feature_names_in_", [])]
        self._take(model.named(features, names, classes), json.loads(report))
        if self.verbose:
            print(end_line(model.status, model.iterations, self.report_["seconds"]), flush=True)
        _warnings.issue(self, _warnings.of_svm(self), stacklevel=3)

    def _translated(self, own: _sklearn_kernels.Translated) -> str:
        # A constant does not change decisions, since the weights of the rows sum to zero.
        lead = f"kernel = {self.kernel!r}:"
        if own.white:
            raise ValueError(f"{lead} a WhiteKernel is noise, which support vector machines lack. Leave the term out")
        if own.amplitude != 1.0:
            cost = "epsilon of NuSVR" if type(self).__name__ == "NuSVR" else "C"
            raise ValueError(f"{lead} an amplitude of {own.amplitude!r} has no effect but that of a factor of {cost}")
        return own.text()

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        super()._take(model, report)
        weights, self.intercept_ = _in_order(model)
        # As in scikit-learn: the vectors of the first class before those of the second.
        owner = model.vector_classes
        order = np.lexsort((model.relevance, owner))
        self.support_ = model.relevance[order].astype(np.int32)
        centres = _sparse.centres(model)
        self.support_vectors_ = np.empty((0, 0)) if centres is None else centres[order]
        # As in scikit-learn: sparse if the vectors are.
        self.dual_coef_ = sparse.csr_matrix(weights[:, order]) if sparse.issparse(centres) else weights[:, order]
        self.n_support_ = np.bincount(owner, minlength=max(model.n_classes, 1)).astype(np.int32)
        self.fit_status_ = int(model.status != "converged")
        if model.kernel is not None:
            (parameters,) = json.loads(model.kernel).values()
            if "gamma" in parameters:
                gamma = parameters["gamma"]
                self.gamma_ = np.array(gamma) if isinstance(gamma, list) else gamma

    @property
    def coef_(self) -> Any:
        """Weights of the features; linear kernel only."""
        return self._coefficients(getattr(self, "support_vectors_", np.empty((0, 0))))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse &= self.kernel != "linear_spline"
        return tags

    def _validated(self, X: ArrayLike, y: ArrayLike, **rules: Any) -> tuple[Any, NDArray[Any]]:
        """Return checked rows and targets; sparse rows as a CSR matrix, whose numbers the core checks."""
        self._refuse_sparse_values(X)
        finite = not sparse.issparse(X)
        rules |= {"accept_sparse": "csr", "ensure_all_finite": finite, "ensure_min_samples": 2}
        rows, targets = validate_data(self, X, y, dtype=np.float64, order="C", **rules)
        return rows, targets

    def _weights(self, sample_weight: ArrayLike | None, rows: int) -> Float | None:
        """Return checked weights [N]; rows of negative weight are left out, as in LIBSVM."""
        weights = _checks.sample_weights(sample_weight, rows, negative=True)
        if weights is None:
            return None
        if not np.any(weights > 0):
            raise ValueError("Every sample weight is zero or negative: there is no row to learn from")
        return np.maximum(weights, 0.0)

    def _functions(self, X: ArrayLike) -> Float:
        """Return the values of the functions in the core's order, (n, n_functions)."""
        rows = self._rows(X)
        return self._model.decision(rows, threads(self.n_jobs))


def _cost(C: float) -> float | None:
    """Return the cost of an error for the core: None for infinity, which JSON does not have."""
    return None if np.isinf(C) else C


def _in_order(model: _core.Model) -> tuple[Float, Float]:
    """Return weights and intercepts of the functions in scikit-learn's order and sign."""
    weights, intercept = model.weights, model.intercept
    if model.multi_class != "one_vs_one":
        return weights, intercept
    pairs = _pairs(model.n_classes)
    return -weights[pairs], -intercept[pairs]


def _pairs(classes: int) -> NDArray[np.intp]:
    """Return indices of the pairs (0, 1), (0, 2), ..., (1, 2), ... in the core's order (0, 1), (0, 2), (1, 2), ..."""
    return np.array(
        [second * (second - 1) // 2 + first for first in range(classes) for second in range(first + 1, classes)]
    )


class SupportVectorRegressor(RegressorMixin, SupportVectorMachine):
    """Base class of both regressors."""

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from rows `X` and real targets `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; with ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at most 2^53, that multiply `C` of each row: a weight of 2 equals the row twice. Rows of
            zero or negative weight are left out, as in LIBSVM.

        Returns
        -------
        object
            The estimator itself.
        """
        self._forget()
        rows, t = self._validated(X, y, y_numeric=True)
        target = _checks.aligned(t)
        weights = self._weights(sample_weight, len(target))
        self._fit(rows, target, weights, {"formulation": self._formulation()}, target_names(y))
        return self

    def _formulation(self) -> dict[str, Any]:
        raise NotImplementedError

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        super()._take(model, report)
        self.n_iter_ = model.iterations

    def predict(self, X: ArrayLike) -> Float:
        """Predict the target.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which only
            the columns `support_` are read.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        values: Float = self._functions(X)[:, 0]
        return values


class SupportVectorClassifier(ClassifierMixin, SupportVectorMachine):
    """Base class of both classifiers."""

    class_weight: dict[Any, float] | str | None
    multi_class: str
    probability: bool
    decision_function_shape: str
    break_ties: bool
    random_state: Any

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Any:
        """Learn from rows `X` and their classes `y`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; with ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Classes: numbers, words or booleans, at least two of them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, at most 2^53, that multiply the cost of an error on each row: a weight of 2 equals the
            row twice. Rows of zero or negative weight are left out, as in LIBSVM.

        Returns
        -------
        object
            The estimator itself.
        """
        self._forget()
        rows, labels = self._validated(X, y)
        check_classification_targets(labels)
        weights = self._weights(sample_weight, len(labels))
        classes, numbers = _checks.class_numbers(labels, weights)
        _checks.warn_of_classes(type(self).__name__, len(classes), len(labels))
        factors = _checks.class_weights(self.class_weight, classes.tolist())
        own, seed = {"formulation": self._formulation(), "class_weights": factors}, self._seed(self.random_state)
        self._fit(rows, numbers, weights, own, target_names(y), _labels.for_file(classes), random_state=seed)
        self.classes_ = classes
        self.class_weight_ = np.ones(len(classes))
        if isinstance(factors, list):
            self.class_weight_ = np.array(factors)
        elif factors == "balanced":
            totals = np.bincount(numbers, weights, minlength=len(classes))
            self.class_weight_ = totals.sum() / (len(classes) * totals)
        return self

    def _formulation(self) -> dict[str, Any]:
        raise NotImplementedError

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        super()._take(model, report)
        steps = np.array([f["iterations"] for f in report.get("functions", [])], dtype=np.int32)
        if model.multi_class == "one_vs_one" and len(steps) > 0:
            steps = steps[_pairs(model.n_classes)]
        # Older files do not contain them.
        if len(model.class_frequencies) > 0:
            self.class_prior_ = model.class_frequencies
        self.n_iter_ = steps if len(steps) > 0 else np.array([model.iterations], dtype=np.int32)
        sigmoids = model.sigmoids
        if model.multi_class == "one_vs_one" and len(sigmoids) > 0:
            # Each sigmoid is for the first class of its pair against the second.
            sigmoids = sigmoids[_pairs(model.n_classes)] * [1.0, -1.0]
        self.probA_, self.probB_ = sigmoids[:, 0].copy(), sigmoids[:, 1].copy()

    def decision_function(self, X: ArrayLike) -> Float:
        """Return decision values: distances of rows from the boundaries, in the norm of the weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which only
            the columns `support_` are read.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_classes * (n_classes - 1) / 2)
            For two classes positive for the second. For more with ``decision_function_shape="ovr"`` a value for each
            class: the number of pairs that it wins, plus less than a third for its margins (with
            ``multi_class="one_vs_rest"`` the functions themselves). With ``"ovo"`` a value for each pair (0, 1),
            (0, 2), ..., (1, 2), ..., positive for its first class.
        """
        f = self._functions(X)
        if self._model.n_classes == 2:
            values: Float = f[:, 0]
            return values
        if self._model.multi_class == "one_vs_rest":
            return f
        duels: Float = -f[:, _pairs(self._model.n_classes)]
        return duels if self.decision_function_shape == "ovo" else self._scores(duels)

    def _scores(self, duels: Float) -> Float:
        """Return the wins of each class, plus a tie-break between equal numbers of wins; (n, n_classes)."""
        classes = self._model.n_classes
        wins, sums = np.zeros((len(duels), classes)), np.zeros((len(duels), classes))
        pairs = ((first, second) for first in range(classes) for second in range(first + 1, classes))
        for (first, second), own in zip(pairs, duels.T, strict=True):
            wins[:, first] += own >= 0
            wins[:, second] += own < 0
            sums[:, first] += own
            sums[:, second] -= own
        scores: Float = wins + sums / (3 * (np.abs(sums) + 1))
        return scores

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class that the functions vote for.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which only
            the columns `support_` are read.

        Returns
        -------
        ndarray of shape (n_samples,)
            Classes. If several have equal votes, the first one, or with `break_ties` the one with the largest margin.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and self._model.n_classes > 2:
            clearest: NDArray[Any] = self.classes_[np.argmax(self.decision_function(X), axis=1)]
            return clearest
        voted: NDArray[Any] = self.classes_[self._model.vote(self._functions(X))]
        return voted

    def _has_probabilities(self) -> bool:
        if not self.probability:
            raise AttributeError("predict_proba is not available when probability=False")
        return True

    def _rows_with_probabilities(self, X: ArrayLike) -> Any:
        """Return new rows in the form that the model reads, if it was fitted with probabilities."""
        check_is_fitted(self)
        if len(self._model.sigmoids) == 0:
            name = type(self).__name__
            text = "predict_proba is not available when fitted with probability=False"
            raise NotFittedError(f"{text}: fit this {name} again, now that probability=True")
        return self._rows(X)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def decide(
        self,
        X: ArrayLike,
        prior: Any = None,
        costs: Any = None,
        reject: float | None = None,
        reject_cost: float | None = None,
    ) -> Decisions:
        """Decide by `predict_proba`, optionally with other priors than in training, costs, or rejection.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which
            only the columns `support_` are read.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`; they sum to 1.
            None: `class_prior_`.
        costs : array-like of shape (n_classes, n_classes), default=None
            Costs, zero or positive, of each decision (columns) for each true class (rows), in the order of `classes_`.
            A data frame is sorted by its index and columns. The decision has the least expected cost. None: it is
            the most probable class.
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
        rows = self._rows_with_probabilities(X)
        return decide(self, rows, prior, costs, reject, reject_cost)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: ArrayLike, prior: Any = None) -> Float:
        """Predict class probabilities; with ``probability=True`` only.

        They are sigmoids of the functions [1]_, coupled for more than two classes [2]_, and may disagree with
        `predict` if classes have similar probabilities. The sigmoids are fitted to held-out rows of a 5-fold
        cross-validation. For fewer than 5 rows of a class they are fitted to the training rows and agree with `predict`
        for two classes. If cross-validation does not separate the classes, they are the class frequencies. `fit` warns
        of both, and ``report_["functions"]`` has the source for each function under ``probabilities``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows, of which only
            the columns `support_` are read.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`, instead of
            `class_prior_`; they sum to 1.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns in the order of `classes_`.

        References
        ----------
        .. [1] J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
           likelihood methods", Advances in Large Margin Classifiers, 1999.
        .. [2] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by
           pairwise coupling", Journal of Machine Learning Research 5, 975-1005, 2004.
        """
        rows = self._rows_with_probabilities(X)
        return self._model.probability(rows, threads(self.n_jobs), False, False, prior_of(prior, self.classes_))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: ArrayLike, prior: Any = None) -> Float:
        """Predict logarithms of class probabilities; with ``probability=True`` only.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            As in `predict_proba`.
        prior : dict or array-like of shape (n_classes,), default=None
            Probabilities of the classes for the rows of `X`, by class or in the order of `classes_`, instead of
            `class_prior_`; they sum to 1.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log probabilities, columns in the order of `classes_`.
        """
        rows = self._rows_with_probabilities(X)
        return self._model.probability(rows, threads(self.n_jobs), False, True, prior_of(prior, self.classes_))


class SVC(SupportVectorClassifier):
    """Support vector classification: the widest margin with a cost of errors.

    Parameters, defaults, attributes and results are those of scikit-learn's SVC; the training is parallel and
    faster. The boundary is an expansion in kernels at the training rows that are inside the margin or
    on it [1]_, found by sequential minimal optimisation [2]_. For probabilities that need no second training, fewer
    vectors and no `C`, see RVC.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes in training, by sample weights only, which are the priors of probabilities.
    class_weight_ : ndarray of shape (n_classes,)
        Factors of the cost of errors.
    probA_ : ndarray of shape (n_functions,)
        A of the sigmoids 1 / (1 + exp(A f + B)) of the functions f of `decision_function` (with ``"ovo"`` of
        each pair); empty without `probability`.
    probB_ : ndarray of shape (n_functions,)
        B of these sigmoids.
    n_iter_ : ndarray of shape (n_functions,)
        Number of steps for each function.
    support_ : ndarray of shape (n_support,)
        Training rows (0-based) that are support vectors, those of the first class before those of the second;
        of equal rows only the first is listed.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        The support vectors, sparse after a fit to sparse rows; empty with a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
    dual_coef_ : ndarray or CSR matrix of shape (n_functions, n_support)
        Weights of the support vectors, for two classes positive for the second; sparse if the vectors are.
    coef_ : ndarray or CSR matrix of shape (n_functions, n_features)
        Weights of the features; linear kernel only.
    intercept_ : ndarray of shape (n_functions,)
        Constants of the functions.
    gamma_ : float or ndarray of shape (n_features,)
        The value of `gamma` in use; not for kernels without it.
    fit_status_ : int
        0 if the fit converged, else 1.
    report_ : dict
        Report of the fit: ``status``, ``iterations``, ``functions`` (for each ``status``, ``iterations``,
        ``objective`` (of the dual problem), ``gap``, ``vectors`` and ``bounded``, those at the upper bound),
        ``merged_rows``, ``warnings`` (their texts), ``seconds``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    NuSVC : Classification with a share of errors instead of their cost.
    RVC : Relevance vector classification.

    Notes
    -----
    Features are used unchanged: put a StandardScaler in front if their units differ. Sparse matrices of scipy are
    not converted to dense rows; scale them by MaxAbsScaler or ``StandardScaler(with_mean=False)``. Input may be in
    single precision; results are in double precision.

    References
    ----------
    .. [1] C. Cortes and V. Vapnik, "Support-vector networks", Machine Learning 20, 273-297, 1995.
    .. [2] R.-E. Fan, P.-H. Chen and C.-J. Lin, "Working set selection using second order information for
       training support vector machines", Journal of Machine Learning Research 6, 1889-1918, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import SVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-1.0, 0.7, (60, 2)), rng.normal(1.0, 0.7, (60, 2))])
    >>> y = np.repeat(["no", "yes"], 60)
    >>> model = SVC(gamma=0.5).fit(X, y)
    >>> model.predict([[-1.0, -1.0], [1.0, 1.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Kernel = "rbf",
        degree: int = 3,
        gamma: str | float | ArrayLike = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        shape: float = 1.0,
        multi_class: str = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def _formulation(self) -> dict[str, Any]:
        return {"c_svc": {"c": _cost(self.C)}}


class NuSVC(SupportVectorClassifier):
    """Support vector classification with a share of errors instead of their cost.

    Like SVC, but `nu` is an upper bound on the share of rows inside the margin or beyond it, and a lower bound on the
    share of support vectors [1]_.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    class_prior_ : ndarray of shape (n_classes,)
        Shares of the classes in training, by sample weights only, which are the priors of probabilities.
    class_weight_ : ndarray of shape (n_classes,)
        Factors of the cost of errors.
    probA_ : ndarray of shape (n_functions,)
        A of the sigmoids 1 / (1 + exp(A f + B)) of the functions f of `decision_function` (with ``"ovo"`` of
        each pair); empty without `probability`.
    probB_ : ndarray of shape (n_functions,)
        B of these sigmoids.
    n_iter_ : ndarray of shape (n_functions,)
        Number of steps for each function.
    support_ : ndarray of shape (n_support,)
        Training rows (0-based) that are support vectors, those of the first class before those of the second;
        of equal rows only the first is listed.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        The support vectors, sparse after a fit to sparse rows; empty with a precomputed kernel.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
    dual_coef_ : ndarray or CSR matrix of shape (n_functions, n_support)
        Weights of the support vectors, for two classes positive for the second; sparse if the vectors are.
    coef_ : ndarray or CSR matrix of shape (n_functions, n_features)
        Weights of the features; linear kernel only.
    intercept_ : ndarray of shape (n_functions,)
        Constants of the functions.
    gamma_ : float or ndarray of shape (n_features,)
        The value of `gamma` in use; not for kernels without it.
    fit_status_ : int
        0 if the fit converged, else 1.
    report_ : dict
        Report of the fit: ``status``, ``iterations``, ``functions`` (for each ``status``, ``iterations``,
        ``objective`` (of the dual problem), ``gap``, ``vectors`` and ``bounded``, those at the upper bound, and
        ``no_margin`` if `nu` leaves none), ``merged_rows``, ``warnings`` (their texts), ``seconds``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    SVC : Classification with a cost of errors.

    Notes
    -----
    Features are used unchanged: put a StandardScaler in front if their units differ. Sparse matrices of scipy are
    not converted to dense rows; scale them by MaxAbsScaler or ``StandardScaler(with_mean=False)``. Input may be in
    single precision; results are in double precision.

    References
    ----------
    .. [1] B. Scholkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett, "New support vector algorithms",
       Neural Computation 12, 1207-1245, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import NuSVC
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(-1.0, 0.7, (60, 2)), rng.normal(1.0, 0.7, (60, 2))])
    >>> y = np.repeat(["no", "yes"], 60)
    >>> model = NuSVC(nu=0.2, gamma=0.5).fit(X, y)
    >>> model.predict([[-1.0, -1.0], [1.0, 1.0]])
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: str | Kernel = "rbf",
        degree: int = 3,
        gamma: str | float | ArrayLike = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | str | None = None,
        verbose: int = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        shape: float = 1.0,
        multi_class: str = "auto",
        time_limit: float | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def _formulation(self) -> dict[str, Any]:
        return {"nu_svc": {"nu": self.nu}}


class SVR(SupportVectorRegressor):
    """Support vector regression: the flattest function for a tube, with a cost of errors beyond it.

    Parameters, defaults, attributes and results are those of scikit-learn's SVR; the training is parallel and
    faster [1]_. For error bars, fewer vectors and no `C` or `epsilon`, see RVR.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Training rows (0-based) that are support vectors; of equal rows only the first.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        The support vectors, sparse after a fit to sparse rows; empty with a precomputed kernel.
    n_support_ : ndarray of shape (1,), dtype=int32
        Number of support vectors.
    dual_coef_ : ndarray or CSR matrix of shape (1, n_support)
        Weights of the support vectors; sparse if the vectors are.
    coef_ : ndarray or CSR matrix of shape (1, n_features)
        Weights of the features; linear kernel only.
    intercept_ : ndarray of shape (1,)
        Constants of the functions.
    gamma_ : float or ndarray of shape (n_features,)
        The value of `gamma` in use; not for kernels without it.
    fit_status_ : int
        0 if the fit converged, else 1.
    n_iter_ : int
        Number of steps.
    report_ : dict
        Report of the fit: ``status``, ``iterations``, ``functions`` (for each ``status``, ``iterations``,
        ``objective`` (of the dual problem), ``gap``, ``vectors`` and ``bounded``, those at the upper bound),
        ``merged_rows``, ``warnings`` (their texts), ``seconds``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    NuSVR : Regression with a share of errors that sets the width of the tube.
    RVR : Relevance vector regression.

    Notes
    -----
    Features are used unchanged: put a StandardScaler in front if their units differ. Sparse matrices of scipy are
    not converted to dense rows; scale them by MaxAbsScaler or ``StandardScaler(with_mean=False)``. Input may be in
    single precision; results are in double precision.

    References
    ----------
    .. [1] V. Vapnik, "The nature of statistical learning theory", Springer, 1995.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import SVR
    >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi)
    >>> model = SVR(gamma=0.1).fit(X, t)
    >>> bool(np.all(np.abs(model.predict(X) - t) < 0.11))
    True
    """

    def __init__(
        self,
        *,
        kernel: str | Kernel = "rbf",
        degree: int = 3,
        gamma: str | float | ArrayLike = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        C: float = 1.0,
        epsilon: float = 0.1,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: int = -1,
        shape: float = 1.0,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def _formulation(self) -> dict[str, Any]:
        return {"epsilon_svr": {"c": _cost(self.C), "epsilon": self.epsilon}}


class NuSVR(SupportVectorRegressor):
    """Support vector regression with a share of errors that sets the width of the tube.

    Like SVR, but `nu` is an upper bound on the share of rows outside the tube, and a lower bound on the share of
    support vectors [1]_.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Training rows (0-based) that are support vectors; of equal rows only the first.
    support_vectors_ : ndarray or CSR matrix of shape (n_support, n_features)
        The support vectors, sparse after a fit to sparse rows; empty with a precomputed kernel.
    n_support_ : ndarray of shape (1,), dtype=int32
        Number of support vectors.
    dual_coef_ : ndarray or CSR matrix of shape (1, n_support)
        Weights of the support vectors; sparse if the vectors are.
    coef_ : ndarray or CSR matrix of shape (1, n_features)
        Weights of the features; linear kernel only.
    intercept_ : ndarray of shape (1,)
        Constants of the functions.
    gamma_ : float or ndarray of shape (n_features,)
        The value of `gamma` in use; not for kernels without it.
    fit_status_ : int
        0 if the fit converged, else 1.
    n_iter_ : int
        Number of steps.
    report_ : dict
        Report of the fit: ``status``, ``iterations``, ``functions`` (for each ``status``, ``iterations``,
        ``objective`` (of the dual problem), ``gap``, ``vectors`` and ``bounded``, those at the upper bound),
        ``merged_rows``, ``warnings`` (their texts), ``seconds``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if `X` had names.

    See Also
    --------
    SVR : Regression with a tube of given width.

    Notes
    -----
    Features are used unchanged: put a StandardScaler in front if their units differ. Sparse matrices of scipy are
    not converted to dense rows; scale them by MaxAbsScaler or ``StandardScaler(with_mean=False)``. Input may be in
    single precision; results are in double precision.

    References
    ----------
    .. [1] B. Scholkopf, A. J. Smola, R. C. Williamson and P. L. Bartlett, "New support vector algorithms",
       Neural Computation 12, 1207-1245, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import NuSVR
    >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi)
    >>> model = NuSVR(nu=0.5, gamma=0.1).fit(X, t)
    >>> bool(np.all(np.abs(model.predict(X) - t) < 0.11))
    True
    """

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: str | Kernel = "rbf",
        degree: int = 3,
        gamma: str | float | ArrayLike = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: int = False,
        max_iter: int = -1,
        shape: float = 1.0,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self._set(locals())

    def _formulation(self) -> dict[str, Any]:
        return {"nu_svr": {"c": self.C, "nu": self.nu}}
