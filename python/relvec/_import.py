"""Support vector machines of other programs as estimators."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import svm
from sklearn.utils.validation import check_is_fitted

from . import _core, _labels
from ._files import estimator_of
from .svm import SVC, SVR, NuSVC, NuSVR

# LIBSVM's names of scikit-learn's classes, and of kernels.
_MACHINES = {svm.SVC: "c_svc", svm.NuSVC: "nu_svc", svm.SVR: "epsilon_svr", svm.NuSVR: "nu_svr"}
_KERNELS = {"linear": "linear", "poly": "polynomial", "rbf": "rbf", "sigmoid": "sigmoid"}


def from_libsvm(path: str | os.PathLike[str], n_features: int | None = None) -> SVC | NuSVC | SVR | NuSVR:
    """Read a model file of LIBSVM.

    Parameters
    ----------
    path : str or path-like
        Name of the file.
    n_features : int, default=None
        Number of features. None: the largest index in the file, which is too small if the last features are 0 in all
        support vectors.

    Returns
    -------
    SVC, NuSVC, SVR or NuSVR
        A fitted estimator, whose `classes_` are in the order of the file. Parameters that the file does not contain,
        such as ``C``, have their defaults, and `support_` contains the numbers of the vectors in the file.

    Raises
    ------
    ValueError
        If this is not a model file of LIBSVM (the error names the line), or for a one-class model or a precomputed
        kernel.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from relvec import SVC, from_libsvm
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> path = os.path.join(tempfile.mkdtemp(), "half.libsvm")
    >>> text = SVC().fit(X, [0, 0, 1, 1]).to_libsvm(path)
    >>> from_libsvm(path).predict(X)
    array([0, 0, 1, 1])
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        model = _core.Model.from_libsvm(text, n_features)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)!r}: {error}") from None
    estimator: SVC | NuSVC | SVR | NuSVR = estimator_of(model, os.fspath(path))
    if model.classifier:
        estimator.classes_ = np.array(model.classes)
    estimator._adopt(model)
    return estimator


def from_sklearn(estimator: svm.SVC | svm.NuSVC | svm.SVR | svm.NuSVR) -> SVC | NuSVC | SVR | NuSVR:
    """Take over a fitted support vector machine of scikit-learn.

    Parameters
    ----------
    estimator : sklearn.svm.SVC, NuSVC, SVR or NuSVR
        A fitted estimator with the kernel linear, poly, rbf or sigmoid.

    Returns
    -------
    SVC, NuSVC, SVR or NuSVR
        A fitted estimator with the same predictions, and the parameters that both have.

    Raises
    ------
    TypeError
        For another estimator.
    ValueError
        For a kernel function or a precomputed kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from relvec import from_sklearn
    >>> from sklearn.svm import SVR
    >>> X = np.linspace(0.0, 1.0, 10)[:, np.newaxis]
    >>> one = SVR(C=10.0).fit(X, X[:, 0] ** 2)
    >>> bool(np.allclose(from_sklearn(one).predict(X), one.predict(X), rtol=0.0, atol=1e-12))
    True
    """
    name = _MACHINES.get(type(estimator))
    if name is None:
        expected = "SVC, NuSVC, SVR or NuSVR of scikit-learn"
        raise TypeError(f"estimator is of type {type(estimator).__name__}: expected {expected}")
    check_is_fitted(estimator)
    if callable(estimator.kernel) or estimator.kernel not in _KERNELS:
        raise ValueError(f"kernel = {estimator.kernel!r}: expected {', '.join(map(repr, _KERNELS))}")
    model = _core.Model.from_libsvm(_text(estimator, name), estimator.n_features_in_)
    features = list(getattr(estimator, "feature_names_in_", []))
    classes = _labels.for_file(estimator.classes_) if model.classifier else None
    model = model.named(features, [], classes)
    own: SVC | NuSVC | SVR | NuSVR = estimator_of(model, "scikit-learn")
    common = ("C", "nu", "epsilon", "shrinking", "tol")
    given = estimator.get_params()
    own.set_params(**{key: given[key] for key in common if key in given and key in own.get_params()})
    if model.classifier:
        own.classes_ = estimator.classes_
    own._adopt(model)
    return own


def _text(estimator: Any, name: str) -> str:
    """Return the model file that LIBSVM would write."""
    vectors = estimator.support_vectors_
    dense = vectors.toarray() if hasattr(vectors, "toarray") else np.asarray(vectors)
    coefficients = estimator._dual_coef_
    coefficients = coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients)
    lines = [f"svm_type {name}", f"kernel_type {_KERNELS[estimator.kernel]}", f"degree {estimator.degree}"]
    lines += [f"gamma {float(estimator._gamma)!r}", f"coef0 {float(estimator.coef0)!r}"]
    classes = len(estimator.classes_) if hasattr(estimator, "classes_") else 2
    lines += [f"nr_class {classes}", f"total_sv {len(dense)}", _line("rho", -estimator._intercept_)]
    if hasattr(estimator, "classes_"):
        lines.append("label " + " ".join(map(str, range(classes))))
        if len(estimator._probA):
            lines += [_line("probA", estimator._probA), _line("probB", estimator._probB)]
        lines.append("nr_sv " + " ".join(map(str, estimator.n_support_)))
    lines.append("SV")
    for own, row in zip(coefficients.T, dense, strict=True):
        entries = [f"{d + 1}:{float(row[d])!r}" for d in np.flatnonzero(row)]
        lines.append(" ".join([*(repr(float(v)) for v in own), *entries]))
    return "\n".join(lines) + "\n"


def _line(key: str, values: NDArray[np.float64]) -> str:
    return " ".join([key, *(repr(float(v)) for v in values)])
