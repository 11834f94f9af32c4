"""The learners behind one face: make, fit, predict, and what the fitted model is made of.

Each is imported where it is made, so that a package that is missing is missed by its own rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from cases import Data, Entry
from evidence import Gaussian, Laplace
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class Learner:
    """Something with `fit`, and how to read it afterwards."""

    make: Callable[[], Any]
    # Number of basis functions at rows, all machines of a one-versus-rest together.
    kernels: Callable[[Any], int]
    # Figures about the evidence of the fitted model: `evidence`, and whatever else the learner has.
    facts: Callable[[Any, Data], dict[str, Any]] = lambda model, data: {}


def learner(entry: Entry, kind: str, data: Data) -> Learner:
    """The learner of an entry, with this case's kernel."""
    several = kind == "classes" and len(np.unique(data.t)) > 2
    return LEARNERS[entry.learner](kind, entry, data.gamma, several)


def relvec(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    from relvec import RVC, RVR
    from relvec.presets import tipping2001
    from sklearn.multiclass import OneVsRestClassifier

    def make() -> Any:
        machine = RVR if kind == "regression" else RVC
        settings = tipping2001(gamma, task="regress" if kind == "regression" else "classify")
        model = machine(**{**settings, "n_jobs": entry.threads, **entry.parameters})
        return OneVsRestClassifier(model) if several else model

    def parts(model: Any) -> list[Any]:
        return model.estimators_ if several else [model]

    def facts(model: Any, data: Data) -> dict[str, Any]:
        reports = [part.report_ for part in parts(model)]
        return {
            "evidence": sum(part.log_evidence_ for part in parts(model)),
            "status": ", ".join(sorted({report["status"] for report in reports})),
            "fit_seconds": sum(report["seconds"] for report in reports),
            "traces": [[report["elapsed"].tolist(), report["log_evidence"].tolist()] for report in reports],
        }

    return Learner(make, lambda model: sum(len(part.relevance_) for part in parts(model)), facts)


def fastrvm(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    from fastrvm import RVC, RVR

    machine = RVR if kind == "regression" else RVC

    def facts(model: Any, data: Data) -> dict[str, Any]:
        parts = model._estimators if several else [model]
        targets = [data.t == label for label in np.unique(data.t)] if several else [data.t]
        figures = [fastrvm_evidence(part, data, kind, t) for part, t in zip(parts, targets, strict=True)]
        return {
            "evidence": sum(f["evidence"] for f in figures),
            "best_evidence": sum(f["best_evidence"] for f in figures),
            # Of one-versus-rest each machine has a target of its own.
            "targets": [f["evidence"] for f in figures],
            "best_targets": [f["best_evidence"] for f in figures],
            "weights_off": max(f["weights_off"] for f in figures),
        }

    return Learner(
        lambda: machine(gamma=gamma, fit_intercept=True, n_jobs=1, **entry.parameters),
        lambda model: int(np.sum(model.n_relevance_)),
        facts,
    )


def fastrvm_evidence(model: Any, data: Data, kind: str, t: Array) -> dict[str, float]:
    """Evidence of a model of fastrvm, from its own precisions and from the best ones for its basis functions.

    It works on columns of unit length and turns the precisions back with the wrong sign of the power:
    `alpha_` times the fourth power of a column's length is the precision that its weights were made with.
    The constant has none (it is not penalised): for the evidence it gets its best value.
    """
    Phi = np.column_stack([rbf(data.X, data.X[model.relevance_], data.gamma), np.ones(len(data.X))])
    alpha = np.array(precisions(model, data)["alpha"])
    weights = np.append(model.dual_coef_.ravel(), model.intercept_)
    # So small that it penalises nothing.
    free = np.append(alpha, 1e-9 * len(t))
    if kind == "regression":
        beta = float(model.beta_)
        design = Gaussian(Phi, t)
        mean = design.posterior(free, beta)[0]
        evidence, best = best_constant(lambda a: design(a, beta), alpha), design.optimum(np.append(alpha, 1.0), beta)
    else:
        classes = Laplace(Phi, t.astype(float))
        mean = classes.posterior(free)[0]
        evidence, best = best_constant(classes, alpha), classes.optimum(np.append(alpha, 1.0))
    # What the weights do, not what they are: they may cancel.
    off = np.abs(Phi @ (mean - weights)).max() / np.abs(Phi @ weights).max()
    return {"evidence": evidence, "best_evidence": best, "weights_off": float(off)}


def precisions(model: Any, data: Data) -> dict[str, Any]:
    """What a regression of fastrvm has learned, in relvec's terms, without the constant; see `fastrvm_evidence`."""
    lengths = (rbf(data.X, data.X[model.relevance_], data.gamma) ** 2).sum(axis=0)
    return {
        "relevance": [int(row) for row in model.relevance_],
        "alpha": [float(alpha) for alpha in model.alpha_.ravel() * lengths**2],
        "intercept_alpha": None,
        "noise_variance": float(1 / np.ravel(getattr(model, "beta_", 1.0))[0]),
    }


def best_constant(evidence: Callable[[Array], float], alpha: Array) -> float:
    """Highest evidence over the precision of the constant, its absence included."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(lambda log: -evidence(np.append(alpha, np.exp(log))), bounds=(-20, 20), method="bounded")
    return max(-float(found.fun), evidence(np.append(alpha, np.inf)))


def rbf(A: Array, B: Array, gamma: float) -> Array:
    """The Gaussian kernel between rows."""
    distances = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2 * A @ B.T
    return np.exp(-gamma * np.maximum(distances, 0))


def sklearn_rvm(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    from sklearn_rvm import EMRVC, EMRVR

    machine = EMRVR if kind == "regression" else EMRVC

    def facts(model: Any, data: Data) -> dict[str, Any]:
        if kind == "regression":
            return {"evidence": Gaussian(model.Phi_, data.t)(model.alpha_, float(model.beta_))}
        return {}

    return Learner(
        lambda: machine(kernel="rbf", gamma=gamma, **entry.parameters), lambda model: len(model.relevance_), facts
    )


def svr(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    from sklearn.svm import SVC, SVR

    if kind == "regression":
        return Learner(lambda: SVR(gamma=gamma, C=10.0, epsilon=0.1), lambda model: len(model.support_))
    return Learner(lambda: SVC(gamma=gamma, C=10.0), lambda model: len(model.support_))


def gaussian_process(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    length = (2 * gamma) ** -0.5
    kernel = ConstantKernel(1.0) * RBF(length, length_scale_bounds="fixed") + WhiteKernel(0.1)
    return Learner(
        lambda: GaussianProcessRegressor(kernel),
        lambda model: len(model.X_train_),
        lambda model, data: {"evidence": float(model.log_marginal_likelihood_value_)},
    )


class KernelARD:
    """ARDRegression on the columns of the kernel matrix."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def fit(self, X: Array, t: Array) -> KernelARD:
        """Fit to all columns."""
        from sklearn.linear_model import ARDRegression

        self.X = X
        self.model = ARDRegression().fit(rbf(X, X, self.gamma), t)
        return self

    def predict(self, X: Array) -> Array:
        """The mean."""
        return self.model.predict(rbf(X, self.X, self.gamma))


def ard(kind: str, entry: Entry, gamma: float, several: bool) -> Learner:
    return Learner(lambda: KernelARD(gamma), lambda model: int(np.count_nonzero(model.model.coef_)))


LEARNERS: dict[str, Callable[[str, Entry, float, bool], Learner]] = {
    "relvec": relvec,
    "fastrvm": fastrvm,
    "sklearn-rvm": sklearn_rvm,
    "SVR": svr,
    "SVC": svr,
    "GaussianProcessRegressor": gaussian_process,
    "ARDRegression": ard,
}
