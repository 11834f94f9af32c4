"""Base classes of the estimators: validation, rows, fit, and fitted attributes."""

from __future__ import annotations

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _checks, _core, _labels, _settings, _sklearn_kernels, _sparse, _table, _warnings
from ._card import folded_below
from ._encoder import TableEncoder
from ._errors import in_words_of_python
from ._export import Exports
from ._page import Pages
from ._progress import Callback, bound_line, end_line, line, observer
from ._report import Report
from ._summary import ModelSummary, one_line
from ._threads import threads

Float = NDArray[np.float64]
Kernel = Callable[[Any, Any], Any]


def seed_of(random_state: Any) -> int:
    """Return the seed of a fit; 0 for None, so that fits are reproducible."""
    seed = 0 if random_state is None else random_state
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return int(seed)


class KernelMachine(Exports, Pages, BaseEstimator):
    """Base class of all estimators: parameters, rows, kernel, file, and printed forms."""

    kernel: Any
    n_jobs: int | None
    verbose: Any
    callback: Callback | None
    time_limit: float | None
    dual_coef_: Float
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    report_: Report
    # Only for a model that was loaded from a file with an encoding.
    encoder_: TableEncoder
    _model: _core.Model
    _entries: ClassVar[dict[str, _table.Parameter]] = {}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init_subclass__(cls, **request: Any) -> None:
        """Give a class the constraints and the docstring of the parameters in its constructor."""
        super().__init_subclass__(**request)
        # A subclass may have fewer parameters and set the others itself.
        cls._entries = cls._entries | _table.parameters(cls)
        cls._parameter_constraints = _table.constraints(cls._entries)
        cls.__doc__ = _table.docstring(cls)

    def _set(self, given: dict[str, Any]) -> None:
        """Set the parameters from the `locals()` of a constructor."""
        self.__dict__.update({name: value for name, value in given.items() if name in self._entries})

    def _values(self) -> dict[str, Any]:
        """Return the current values of the parameters."""
        return {name: getattr(self, name) for name in self._entries}

    def _check(self) -> None:
        """Check each parameter separately."""
        validate_parameter_constraints(self._parameter_constraints, self._values(), type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _callable(self) -> bool:
        """Return whether the kernel is a function whose values are computed in Python."""
        return callable(self.kernel) and not _sklearn_kernels.is_one(self.kernel)

    def _kernel_of_fit(self) -> Any:
        """Return the parameter `kernel`, as text if it is a kernel of scikit-learn; the rows have been validated."""
        if not _sklearn_kernels.is_one(self.kernel):
            return self.kernel
        return self._translated(_sklearn_kernels.translate(self.kernel, self.n_features_in_))

    def _translated(self, own: _sklearn_kernels.Translated) -> str:
        """Return a kernel of scikit-learn as text, if this kind of model supports it."""
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickle, copy, joblib and skops: the model as text of its file, and a version."""
        state = {**super().__getstate__(), "_relvec_version": _core.__version__}
        if "_model" in state:
            state["_model"] = self._model.to_json()
        if "report_" in state:
            # A special type would have to be declared as trusted for skops.
            state["report_"] = dict(self.report_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        check_version(type(self).__name__, state.pop("_relvec_version", None))
        # Version 0.1.0 pickled the model itself.
        if isinstance(state.get("_model"), str):
            state["_model"] = _core.Model(state["_model"])
        super().__setstate__(state)
        self._complete()

    def _complete(self) -> None:
        """Add the parameters and attributes that a pickle of an older version lacks."""
        signature = inspect.signature(type(self)).parameters
        missing = {
            name: own.default for name, own in signature.items() if name in self._entries and name not in vars(self)
        }
        self.__dict__.update(missing)
        if "report_" in vars(self):
            self.report_ = Report(self.report_)
        if missing and "_model" in vars(self):
            self._take(self._model, self.report_)

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        """Set the fitted attributes."""
        self._model = model
        self.report_ = Report(report)

    def _forget(self) -> _core.Model | None:
        """Forget an earlier fit, before anything can fail, and return the model of a warm start.

        Each parameter is checked separately.
        """
        earlier: _core.Model | None = getattr(self, "_model", None) if getattr(self, "warm_start", False) else None
        for name in [name for name in vars(self) if name == "_model" or name.endswith("_")]:
            delattr(self, name)
        self._check()
        return earlier

    def _weights(self, sample_weight: ArrayLike | None, rows: int) -> Float | None:
        """Weights [N], checked."""
        weights = _checks.sample_weights(sample_weight, rows)
        if weights is not None and not np.any(weights > 0):
            raise ValueError("Every sample weight is zero: there is no row to learn from")
        return weights

    def _seed(self, random_state: Any) -> int:
        return seed_of(random_state)

    def _kernel_values(self, A: Float, B: Float) -> Float:
        """Return the checked values of a callable kernel between the rows of two arrays."""
        assert callable(self.kernel)
        if len(B) == 0:
            # A model with only an intercept; many kernel functions refuse an empty list of rows.
            return np.empty((len(A), 0))
        values = np.asarray(self.kernel(A, B))
        if values.shape != (len(A), len(B)):
            raise ValueError(f"the kernel function returned shape {values.shape}: expected {(len(A), len(B))}")
        if values.dtype.kind not in "biuf" or not np.all(np.isfinite(values)):
            raise ValueError("the kernel function returned values that are not finite real numbers")
        return np.ascontiguousarray(values, dtype=np.float64)

    def _refuse_sparse_values(self, X: Any) -> None:
        """Raise TypeError for a sparse matrix of kernel values, as scikit-learn does."""
        if self._precomputed and issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass an array, such as X.toarray()")

    def _rows(self, X: ArrayLike) -> Any:
        """Return new rows, validated, in the form that the model reads: an array, or the parts of sparse rows."""
        check_is_fitted(self)
        self._refuse_sparse_values(X)
        if self._model.encoding is not None:
            return self.encoder_._raw(X)
        # Of a precomputed kernel only the columns in the model count, and the core checks those; what has
        # another number of columns is no kernel matrix, and what is wrong with it is said in the usual order.
        matrix = self._model.basis == "external" and self._model.centres is None
        partial = matrix and getattr(X, "shape", ())[1:] == (self.n_features_in_,)
        finite = not (partial or issparse(X))
        rows = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64, order="C", ensure_all_finite=finite
        )
        if matrix:
            own = np.ascontiguousarray(rows[:, self._model.relevance])
            for row, column in np.argwhere(~np.isfinite(own))[:1]:
                where = f"X[{row}, {self._model.relevance[column]}]"
                raise ValueError(f"{where} = {own[row, column]}: a kernel value must be finite")
            return own
        if self._model.basis == "external":
            centres = self._model.centres
            assert centres is not None
            return self._kernel_values(
                _sparse.filled(rows, "a kernel function", "Predict fewer rows at a time"), centres
            )
        return _sparse.rows(rows)

    def _adopt(self, model: _core.Model) -> None:
        """Set a model that was not fitted by this estimator."""
        self.n_features_in_ = model.n_features
        if model.encoding is not None:
            self.encoder_ = TableEncoder._of(model.encoding)
            self.n_features_in_, self.feature_names_in_ = self.encoder_.n_features_in_, self.encoder_.feature_names_in_
        elif model.features:
            self.feature_names_in_ = np.array(model.features, dtype=object)
        self._take(model, {"status": model.status, "iterations": model.iterations})

    def _coefficients(self, vectors: Any) -> Any:
        """Return the weights of the features, (n_functions, n_features), from the `vectors`; linear kernel only.

        The array is read-only: it is computed from `dual_coef_`, and changing it would not change predictions.
        """
        check_is_fitted(self)
        if "linear" not in json.loads(self._model.kernel or "{}"):
            raise AttributeError("coef_ is only available when using a linear kernel")
        weights: Any = self.dual_coef_ @ vectors
        (weights.data if issparse(weights) else weights).flags.writeable = False
        return weights

    def summary(self) -> ModelSummary:
        """Summarise the fitted model: its parts, the course of the fit, and warnings.

        Returns
        -------
        ModelSummary
            Its text is that of ``relvec inspect``; `as_dict` has the numbers, and notebooks show a card.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 100)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(100)
        >>> print(RVR(gamma=0.1).fit(X, t).summary())  # doctest: +ELLIPSIS
        RVR: regression on 1 feature, 100 rows; converged in ...
        """
        check_is_fitted(self)
        return ModelSummary(self)

    def _repr_html_inner(self) -> str:
        """Return a card, with scikit-learn's own display folded below."""
        diagram: str = super()._repr_html_inner()
        return folded_below(self.summary()._repr_html_(), diagram) if self.__sklearn_is_fitted__() else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle

    def __str__(self) -> str:
        """Return the parameters, with a line on the fitted model below."""
        text = repr(self)
        return f"{text}\n{one_line(self)}" if self.__sklearn_is_fitted__() else text

    def save(self, path: str | os.PathLike[str], encoder: TableEncoder | None = None) -> None:
        """Write the model to a file that the command line, Rust and `relvec.load` read.

        Parameters
        ----------
        path : str or path-like
            Name of the file. It is written completely or not at all, and keeps the permissions of a file that it
            replaces. Symbolic links are followed, and pipes and devices can be written to.
        encoder : TableEncoder, optional
            The encoder of the features, such as the first step of a pipeline. The file then accepts unencoded rows.

        Raises
        ------
        OSError
            If the file cannot be written; a read-only file is not replaced.
        ValueError
            If the encoder has another number of features than the model.
        """
        check_is_fitted(self)
        model = self._model
        if encoder is not None:
            check_is_fitted(encoder)
            width = len(encoder.get_feature_names_out())
            if width != model.n_features:
                raise ValueError(f"the encoder makes {width} features, and the model was fitted to {model.n_features}")
            model = model.encoded(json.dumps(encoder.encoding_))
        _core.save(os.fsdecode(path), self._text(model).encode())

    def _text(self, model: _core.Model | None = None) -> str:
        """Return the text of a model file, for another `model` if one is given."""
        text = (self._model if model is None else model).to_json()
        return _labels.add_to(text, self.classes_) if self._model.classifier else text


# Advice if sparse rows are too large for a relevance vector machine.
_FEWER = (
    "Zeros are not filled in with a kernel of distances or inner products and one gamma, without keep_statistics, "
    "given landmarks and centres='learned'. Or reduce the features (TruncatedSVD of scikit-learn), or use a support "
    "vector machine (SVC, SVR)"
)


class _Precisions:
    """Raises the reason why a fitted model has no `alpha_`; other models set the attribute itself."""

    def __get__(self, estimator: RelevanceVectorMachine | None, owner: type[RelevanceVectorMachine]) -> Float:
        if estimator is None or "_model" not in vars(estimator):
            raise AttributeError(f"{owner.__name__!r} object has no attribute 'alpha_'")
        estimator._needs_posterior("alpha_")
        raise AttributeError("alpha_: the weights have a process prior, and no precisions; see covariance_")


class RelevanceVectorMachine(KernelMachine):
    """Base class of both relevance vector machines: fit and attributes."""

    basis: str
    dictionary: str | int
    landmarks: str | ArrayLike
    fit_intercept: bool
    centres: str
    search: str | dict[str, Any] | None
    gamma: Any
    weight_prior: str
    memory_limit: int | None
    random_state: Any
    kernel_: str
    gamma_: float | Float
    degree_: int
    coef0_: float
    shape_: float
    alpha_ = _Precisions()

    @property
    def _precomputed(self) -> bool:
        return self.basis != "given" and super()._precomputed

    @property
    def _callable(self) -> bool:
        return self.basis != "given" and super()._callable

    def _translated(self, own: _sklearn_kernels.Translated, known_noise: bool = False) -> str:
        if own.constant and not self.fit_intercept:
            raise ValueError(
                f"kernel = {self.kernel!r}: a ConstantKernel that is a term is the intercept, which "
                "fit_intercept=False excludes. Use fit_intercept=True, or leave the term out"
            )
        learns = getattr(self, "likelihood", "") in ("gaussian", "student_t") and not known_noise
        if own.white and not (learns and getattr(self, "noise_variance", None) is None):
            raise ValueError(
                f"kernel = {self.kernel!r}: a WhiteKernel is noise that the fit learns, and here there is none to be "
                "learned. Leave the term out of the kernel"
            )
        return own.text()

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "inference" in state:
            # A pickle from before the parameter `search`.
            state = dict(state)
            own = state.pop("inference_params", None) or {}
            state.pop("refresh", None)
            old = {"inference": "scheme", "tol": "tolerance", "max_iter": "max_iterations"}
            moved = {new: state.pop(name, None) for name, new in old.items()}
            state["search"] = own | {name: value for name, value in moved.items() if value is not None}
        super().__setstate__(state)

    def _fit(
        self,
        X: Float,
        target: NDArray[Any],
        weights: Float | None,
        likelihood: dict[str, Any],
        names: list[str],
        classes: list[Any] | None = None,
        noise_variance: Float | None = None,
        exposure: Float | None = None,
        earlier: _core.Model | None = None,
    ) -> None:
        """Fit to validated rows, starting from an `earlier` model if there is one, and set the fitted attributes."""
        # Checked before any work is done on the data.
        external = self._precomputed or self._callable
        settings, seed = self._settings(likelihood, external or self.basis == "given")
        start = self._start(earlier, X.shape[1], target)
        if start is not None:
            settings, seed = self._settings(likelihood, external or self.basis == "given", start)
        sparse = issparse(X)
        used = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
        named = not external and isinstance(self.landmarks, str)
        wide = sparse and named and _core.fits_sparse(settings) and _sparse.is_wide(X, used)
        if not wide:
            X = _sparse.filled(X, type(self).__name__, _FEWER)
        landmarks = _checks.landmarks(self, X.shape[1])
        if noise_variance is not None and self.basis != "given" and _sklearn_kernels.is_one(self.kernel):
            self._translated(_sklearn_kernels.translate(self.kernel, X.shape[1]), known_noise=True)

        design: Any = X
        dictionary, centres = used, None
        if self._precomputed:
            # The whole matrix is in memory, so a rule saves nothing.
            rule = "all" if isinstance(self.dictionary, str) else self.dictionary
            dictionary = _draw(_distinct_columns(X, used), rule, seed)
            design = np.ascontiguousarray(X[:, dictionary])
        elif self._callable:
            if landmarks is None:
                _, first = np.unique(X[used], axis=0, return_index=True)
                dictionary = _draw(used[first], self.dictionary, seed)
                centres = X[dictionary]
            else:
                dictionary = np.sort(np.unique(landmarks, axis=0, return_index=True)[1])
                centres, landmarks = landmarks[dictionary], None
            design = self._kernel_values(X, centres)
        elif wide:
            _sparse.check_finite(X)
            design = _sparse.parts(X)
        watch = self._observer()
        with in_words_of_python():
            model, report = _core.fit(settings, design, target, weights, watch, landmarks, noise_variance, exposure)
        if external:
            kept = model.relevance
            model = model.with_external_kernel(
                dictionary[kept].tolist(), X.shape[1], None if centres is None else np.ascontiguousarray(centres[kept])
            )
        if sparse and named:
            model = model.with_sparse_centres()
        self._end(model, report, names, classes)

    @property
    def _scheme(self) -> str:
        """Return the name of the inference scheme."""
        return str(_settings.scheme(self.search))

    def _observer(self) -> Callback | None:
        """Return the observer of a fit, which prints progress and calls the callback."""
        return observer(int(self.verbose), self.callback, bound_line if self._scheme == "variational" else line)

    def _start(self, earlier: _core.Model | None, features: int, target: NDArray[Any]) -> dict[str, Any] | None:
        """Return the precisions of an earlier model for a warm start, if there is one."""
        if earlier is None:
            return None
        if earlier.n_features != features:
            raise ValueError(f"warm_start: the earlier model has {earlier.n_features} features, X has {features}")
        if earlier.kernel is not None and isinstance(self.kernel, str):
            (name,) = json.loads(earlier.kernel)
            if name in _table.KERNELS and name != self.kernel:
                raise ValueError(f"warm_start: the earlier model has the kernel {name!r}, kernel = {self.kernel!r}")
        if earlier.learned_centres:
            raise ValueError(
                "warm_start: the centres of the earlier model are learned and not training rows: "
                "fit it with centres='fixed', or use warm_start=False"
            )
        if earlier.basis == "external" or not isinstance(self.landmarks, str):
            raise ValueError(
                "warm_start needs a kernel that relvec computes, and training rows as candidates: use warm_start=False "
                "with callable and precomputed kernels and with given landmarks"
            )
        if earlier.members or self._scheme != "search":
            found = "several binary models" if earlier.members else f"search = {self._scheme!r}"
            raise ValueError(f"warm_start needs one model and the scheme 'search', found {found}: use warm_start=False")
        outputs = target.shape[1] if target.ndim == 2 else 1
        if earlier.n_outputs != outputs:
            raise ValueError(f"warm_start: the earlier model has {earlier.n_outputs} outputs, y has {outputs}")
        if earlier.process is not None or earlier.label_regression:
            raise ValueError(
                "warm_start: the earlier model has a process prior and no precisions to start from: "
                "fit it with weight_prior='ard', or use warm_start=False"
            )
        bias = earlier.intercept_alpha
        return {
            "relevance": earlier.relevance.tolist(),
            "alpha": earlier.alpha.tolist(),
            "intercept_alpha": bias if np.isfinite(bias) and self.fit_intercept else None,
            "noise_variance": earlier.noise_variance,
            "variance_ratios": earlier.variance_ratios.tolist(),
        }

    def _settings(
        self, likelihood: dict[str, Any], given: bool, start: dict[str, Any] | None = None
    ) -> tuple[str, int]:
        """Return all settings of a fit for the core, checked, and the seed; `start`: initial precisions."""
        seed = self._seed(self.random_state)
        return _settings.rvm(self, likelihood, given, start, n_jobs=threads(self.n_jobs), random_state=seed), seed

    def _end(
        self,
        model: _core.Model,
        report: str,
        names: list[str],
        classes: list[Any] | None = None,
        rows: bool = True,
    ) -> None:
        """Set the fitted attributes, and warn; `rows`: whether the fit used rows, and not only sums over them."""
        features = [str(feature) for feature in getattr(self, "feature_names_in_", [])]
        own = _report(report)
        if model.inference == "variational":
            _add_bound(own, model)
        self._take(model.named(features, names, classes), own)
        if self.verbose:
            print(end_line(self._model.status, self.n_iter_, self.report_["seconds"]), flush=True)
        _warnings.issue(self, _warnings.of_rvm(self, rows), stacklevel=4)

    def _take(self, model: _core.Model, report: dict[str, Any]) -> None:
        """Set the fitted attributes that both estimators have."""
        super()._take(model, report)
        self.relevance_ = model.relevance
        centres = _sparse.centres(model)
        self.relevance_vectors_ = np.empty((0, 0)) if centres is None else centres
        self.dual_coef_ = model.weights
        members = model.members
        if hasattr(self, "alpha_"):
            del self.alpha_
        if model.process is None and not model.label_regression:
            self.alpha_ = _spread(model, "alpha", np.inf) if members else model.alpha
        self.intercept_alpha_ = np.array([m.intercept_alpha for m in members]) if members else model.intercept_alpha
        if model.class_alpha is not None:
            self.alpha_, self.intercept_alpha_ = model.class_alpha
        self.log_evidence_ = model.log_evidence
        self.n_iter_ = model.iterations
        if model.kernel is not None:
            ((own, parameters),) = json.loads(model.kernel).items()
            self.kernel_ = own if own in _table.KERNELS else _core.kernel_text(model.kernel, model.features)
            for name, value in parameters.items() if own in _table.KERNELS else []:
                setattr(self, f"{name}_", np.array(value) if isinstance(value, list) else value)
        if len(model.feature_relevance) > 0:
            self.feature_relevance_ = model.feature_relevance

    def _moments(self, X: ArrayLike, variance: str | None = None) -> tuple[Float, Float, Float]:
        """Return mean and model variance at rows `X`, and the noise variance of each output."""
        rows = self._rows(X)
        if self._model.n_outputs > 1:
            return self._model.predict_outputs(rows, threads(self.n_jobs), variance)
        mean, model_variance, noise = self._model.predict(rows, threads(self.n_jobs), variance)
        return mean, model_variance, np.array(noise)

    def _mean(self, X: ArrayLike) -> Float:
        """Return only the mean at rows `X`, which is much cheaper than the variance."""
        rows = self._rows(X)
        if self._model.n_outputs > 1:
            return self._model.predict_output_means(rows, threads(self.n_jobs))
        return self._model.predict_mean(rows, threads(self.n_jobs))

    def _needs_posterior(self, name: str) -> None:
        """Raise AttributeError with the reason for a model without a posterior of its weights."""
        if self._model.label_regression:
            raise AttributeError(
                f"{name}: under a process prior classes are learned by regression on their labels, which has no "
                "posterior of the weights; weight_prior='ard' has one"
            )

    @property
    def weight_precision_(self) -> Float:
        """Precisions of the weights, equal to `alpha_`, under a name that has one meaning in all packages."""
        check_is_fitted(self)
        return self.alpha_

    @property
    def well_determined_(self) -> Float:
        """Well-determinedness of each weight except the intercept: from 0 (by the prior only) to 1 (by the data)."""
        check_is_fitted(self)
        self._needs_posterior("well_determined_")
        return _spread(self._model, "well_determined", 0.0) if self._model.members else self._model.well_determined

    @property
    def covariance_(self) -> Float:
        """Posterior covariance of the weights, the intercept first if it is in the model."""
        check_is_fitted(self)
        self._needs_posterior("covariance_")
        if self._model.members:
            raise AttributeError(
                f"covariance_ is not available for several binary models (multi_class={self._model.multi_class!r}): "
                "multi_class='joint' has one"
            )
        return self._model.covariance


def _distinct_columns(K: Float, used: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the different rows of positive weight, each by its first occurrence."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"Precomputed metric requires shape (n_samples, n_samples), found {K.shape}: "
            "in fit, a precomputed kernel is a square matrix"
        )
    _, first = np.unique(K[np.ix_(used, used)], axis=1, return_index=True)
    return used[np.sort(first)]


def _draw(rows: NDArray[np.int64], dictionary: str | int, seed: int) -> NDArray[np.int64]:
    """Draw candidates uniformly among the rows, and return them in their order."""
    size = _core.dictionary_size(str(dictionary), len(rows))
    if size == len(rows):
        return rows
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), size, replace=False))]


def _spread(model: _core.Model, name: str, absent: float) -> Float:
    """Return an attribute of the binary models for each of their vectors, (n_members, n_relevance)."""
    out = np.full((len(model.members), len(model.relevance)), absent)
    place = {row: i for i, row in enumerate(model.relevance.tolist())}
    for own, member in zip(out, model.members, strict=True):
        own[[place[row] for row in member.relevance.tolist()]] = getattr(member, name)
    return out


def _add_bound(report: dict[str, Any], model: _core.Model) -> None:
    """Add the entries of the variational scheme to the report of a fit, and to those of its binary models."""
    by_weight, by_data = model.in_use
    report |= {"lower_bound": report["log_evidence"], "in_use": {"by_weight": by_weight, "by_data": by_data}}
    for own, member in zip(report.get("members", []), model.members, strict=True):
        _add_bound(own, member)


def _report(text: str) -> dict[str, Any]:
    """Return the core's report, with its trace by columns."""
    return _by_columns(json.loads(text))


def _by_columns(report: dict[str, Any]) -> dict[str, Any]:
    if "members" in report:
        report["members"] = [_by_columns(member) for member in report["members"]]
    trace = report.pop("trace")
    traces = {
        name: np.array([point[key] for point in trace], dtype=np.float64)
        for name, key in [("log_evidence", "log_evidence"), ("noise_std", "noise_std"), ("elapsed", "seconds")]
    }
    traces["active"] = np.array([point["active"] for point in trace], dtype=np.int64)
    for trial in report.get("kernel_search", {}).get("tried", []):
        trial["parameters"] = dict(trial["parameters"])
    return {"status": report.pop("status"), **traces, **report}


def check_version(name: str, version: str | None) -> None:
    """Warn if a pickle was written by a newer version; `None` is version 0.1.0, which did not store it."""
    if version is not None and _numbers(version) > _numbers(_core.__version__):
        text = f"this pickle of {name} was written by relvec {version}, which is newer than {_core.__version__}"
        text += f": it may fail to load or predict differently. Update relvec to {version}"
        warnings.warn(text, UserWarning, stacklevel=3)


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version, for comparison."""
    return [int(number) for number in re.findall(r"\d+", version)]


def target_names(y: Any) -> list[str]:
    """Return the name of a pandas or polars series, or the column names of a frame; no names for other objects."""
    names = list(getattr(y, "columns", [getattr(y, "name", None)]))
    return names if all(isinstance(name, str) and name for name in names) else []
