"""Export of models for other programs."""

from __future__ import annotations

import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from . import _core

ONNX_PRECISIONS = ("float64", "mixed", "float32")
C_PRECISIONS = ("float", "double", "int16")


class Exports:
    """Methods that write a fitted model for programs without this package."""

    _model: _core.Model

    def to_onnx(
        self, path: str | os.PathLike[str] | None = None, *, precision: str = "float64", std: bool = True
    ) -> bytes:
        """Write the model as an ONNX graph, for any ONNX runtime.

        The input is ``X``. Regression has the outputs ``mean`` and ``std`` (of a new observation) of shape
        (n_samples, n_outputs). Classifiers have ``label`` of shape (n_samples,) and ``probabilities`` of shape
        (n_samples, n_classes). Support vector machines for classes have ``label``, ``decision`` and, with
        ``probability=True``, ``probabilities``. The metadata contain names, classes, kernel and ten rows with their
        predictions. The graph does not check rows: for NaN or infinite features predictions have no meaning.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the result is also written.
        precision : {"float64", "mixed", "float32"}, default="float64"
            ``"mixed"`` has rows and predictions in single precision and everything between in double precision.
            ``"float32"`` is single precision throughout.
        std : bool, default=True
            Whether regression has the output ``std``, whose triangular factors are most of the file.

        Returns
        -------
        bytes
            The ONNX file.

        Raises
        ------
        ValueError
            For a kernel function or precomputed kernel, a healed variance, centres of sparse rows with more than
            10^8 numbers (zeros included), and for single precision that would change predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import RVR
        >>> X = np.linspace(-10, 10, 50)[:, np.newaxis]
        >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(50)
        >>> len(RVR().fit(X, t).to_onnx()) > 1000
        True
        """
        _check("precision", precision, ONNX_PRECISIONS)
        check_is_fitted(self)
        data = self._model.to_onnx(precision, bool(std))
        if path is not None:
            _core.save(os.fsdecode(path), data)
        return data

    def to_c(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        name: str = "model",
        precision: str = "float",
        std: bool = True,
    ) -> str:
        """Write the model as one header in C99 and C++11, which needs only ``<math.h>``.

        With the name ``model``, regression has ``model_predict(x, mean, std)``. Classifiers have ``model_class(x)``,
        ``model_probabilities(x, p)`` and ``model_label(k)``. Support vector machines for classes also have
        ``model_decision(x, f)``. ``x`` is one row. If ``MODEL_SELF_TEST`` is defined, ``model_self_test()`` predicts
        ten rows and returns 0 if the predictions are correct. The header states the memory that it takes. On AVR the
        tables remain in flash memory.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the result is also written.
        name : str, default="model"
            Prefix of all names in the header.
        precision : {"float", "double", "int16"}, default="float"
            Precision of tables and sums. ``"int16"`` stores centres as 16-bit whole numbers, and also the triangular
            factors of standard deviations if that is accurate enough. Other numbers are in single precision. The
            header states how far predictions differ from those of the model.
        std : bool, default=True
            Whether regression has standard deviations, whose triangular factors are most of the tables.

        Returns
        -------
        str
            The text of the header.

        Raises
        ------
        ValueError
            For a kernel function or precomputed kernel, a healed variance, centres of sparse rows with more than
            10^8 numbers (zeros included), a name that C does not allow, and for single precision that would change
            predictions.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import SVC
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> text = SVC().fit(X, [0, 0, 1, 1]).to_c(name="half")
        >>> "int half_class(const half_real *x)" in text
        True
        """
        _check("precision", precision, C_PRECISIONS)
        check_is_fitted(self)
        text = self._model.to_c(name, precision, bool(std))
        if path is not None:
            _core.save(os.fsdecode(path), text.encode())
        return text

    def to_libsvm(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write a support vector machine as a model file of LIBSVM.

        Classes that are not whole numbers are numbered from 0, in the order of `classes_`. LIBSVM stops its coupling
        of three or more classes early, so that its probabilities differ from those of this package by up to 2e-3.

        Parameters
        ----------
        path : str or path-like, default=None
            File to which the result is also written. Ten rows with their predictions are written beside it, with the
            ending ``.test``, for LIBSVM's program svm-predict.

        Returns
        -------
        str
            The text of the file.

        Raises
        ------
        ValueError
            For a relevance vector machine, one-versus-rest of several classes, a kernel that LIBSVM does not have,
            or a gamma for each feature.

        Examples
        --------
        >>> import numpy as np
        >>> from relvec import SVC
        >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> SVC().fit(X, [0, 0, 1, 1]).to_libsvm().splitlines()[0]
        'svm_type c_svc'
        """
        check_is_fitted(self)
        text = self._model.to_libsvm()
        if path is not None:
            _core.save(os.fsdecode(path), text.encode())
            _core.save(os.fsdecode(path) + ".test", self._model.libsvm_self_test().encode())
        return text


def _check(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{name} = {value!r}: expected {', '.join(map(repr, known))}")
