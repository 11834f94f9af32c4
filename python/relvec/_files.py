"""Model files as estimators."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _core, _labels, _table
from ._base import Kernel
from .rvc import RVC
from .rvr import RVR
from .svm import SVC, SVR, NuSVC, NuSVR


def load(path: str | os.PathLike[str], kernel: Kernel | None = None) -> RVR | RVC | SVC | NuSVC | SVR | NuSVR:
    """Read a model that `save`, the command line or Rust wrote.

    Parameters
    ----------
    path : str or path-like
        Name of the file.
    kernel : callable, optional
        The kernel function of a model that was fitted with one, since a file cannot contain it.

    Returns
    -------
    RVR, RVC, SVR, SVC, NuSVR or NuSVC
        A fitted estimator. Information that the file does not contain is missing: `report_` has only the status and
        the number of iterations, and parameters of the fit have their defaults. A model that standardises (the default
        of the command line) accepts rows in original units, and its `relevance_vectors_` are in original units, but
        `gamma_` refers to standardised units. A model of a table with categories or missing cells accepts frames like
        that table, and its `encoder_` computes their features.

    Raises
    ------
    ValueError
        If this is not a model file, or it was altered or cut off, or comes from a newer version.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from relvec import RVR, load
    >>> X = np.linspace(-10, 10, 50)[:, np.newaxis]
    >>> t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(50)
    >>> model = RVR(gamma=0.1).fit(X, t)
    >>> path = os.path.join(tempfile.mkdtemp(), "sinc.json")
    >>> model.save(path)
    >>> bool(np.all(load(path).predict(X) == model.predict(X)))
    True
    """
    with open(path, "rb") as file:
        data = file.read()
    return read(data, os.fspath(path), kernel)


def read(data: bytes, name: Any, kernel: Kernel | None = None) -> RVR | RVC | SVC | NuSVC | SVR | NuSVR:
    """Return the estimator for the content of a model file; `name` is the name of the file."""
    try:
        model = _core.Model.from_json(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{name!r} is no model file: byte {error.start} is not text") from None
    except ValueError as error:
        raise ValueError(f"{name!r}: {error}") from None

    estimator: RVR | RVC | SVC | NuSVC | SVR | NuSVR = estimator_of(model, name, kernel)
    if model.classifier:
        labels = list(model.classes if model.classes else range(model.n_classes))
        try:
            estimator.classes_ = _labels.read(data.decode("utf-8"), labels)
        except ValueError as error:
            raise ValueError(f"{name!r}: {error}") from None
    estimator._adopt(model)
    return estimator


def estimator_of(model: _core.Model, name: Any, kernel: Kernel | None = None) -> Any:
    """Return an unfitted estimator with the parameters of a model; `name` is the name of the file."""
    parameters: dict[str, Any] = {}
    if model.machine == "rvm":
        parameters["search"] = None if model.inference == "search" else model.inference
        parameters["posterior"] = model.posterior
        process = model.label_regression or model.process is not None
        parameters["weight_prior"] = "process" if process else "ard"
    if model.basis == "given":
        parameters |= {"basis": "given"} if model.machine == "rvm" else {"kernel": "precomputed"}
    elif model.kernel is not None:
        ((kernel_name, own),) = json.loads(model.kernel).items()
        if kernel_name in _table.KERNELS:
            parameters.update(kernel=kernel_name, **own)
        else:
            # Numbers of columns fit frames and arrays.
            parameters["kernel"] = _core.kernel_text(model.kernel, [])
        if isinstance(own.get("gamma"), list):
            parameters["gamma"] = np.array(own["gamma"])
        if model.learned_centres:
            parameters["centres"] = "learned"
    elif model.centres is None:
        parameters["kernel"] = "precomputed"
    elif kernel is None:
        raise ValueError(f"{name!r}: the model was fitted with a kernel function; give it: load(path, kernel=...)")
    else:
        parameters["kernel"] = kernel
    if model.multi_class is not None:
        parameters["multi_class"] = model.multi_class
    if model.classifier and model.formulation is not None:
        parameters["probability"] = len(model.sigmoids) > 0
    if not model.classifier and model.machine == "rvm":
        parameters["noise_variance"] = model.fixed_noise_variance
        if model.likelihood != "gaussian":
            parameters |= {"likelihood": model.likelihood, "noise_degrees": model.fixed_noise_degrees}
    name_of_class = model.formulation or "rvc" if model.classifier else model.formulation or "rvr"
    return _ESTIMATORS[name_of_class](**parameters)


_ESTIMATORS: dict[str, Any] = {
    "rvr": RVR,
    "rvc": RVC,
    "c_svc": SVC,
    "nu_svc": NuSVC,
    "epsilon_svr": SVR,
    "nu_svr": NuSVR,
}
