"""A dense Gaussian process that learns its kernel: what the fits without settings are measured against.

The function is constant + f with f ~ GP(0, a k), k(x, z) = exp(-sum_d gamma_d (x_d - z_d)^2), and the noise is normal:

    C = a K + 1 1' + s2 I,    log p(t) = -1/2 (t' inv(C) t + log|C| + N log 2 pi)

Amplitude a, widths gamma and noise variance s2 maximise log p(t) plus log-normal priors on the length scales
l = (2 gamma)^(-1/2) and on s2; that on l is centred at sqrt(2) + log(D) / 2 (Hvarfner, Hellsten and Nardi, Vanilla
Bayesian optimization performs great in high dimensions, ICML 2024). Several targets share the matrix C. Features and
targets are standardised by the caller. All rows are kept, a prediction costs O(N^2): a yardstick, not a product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

Array = NDArray[np.float64]

# Rows that the kernel is learned from, drawn at random: an evaluation costs O(N^3).
MOST_ROWS = 1000
# Bounds of the logarithms of amplitude, gamma and noise variance: beyond them the matrix C is singular in double
# precision, or a feature has no effect.
BOUNDS = {"amplitude": (-6.0, 8.0), "gamma": (-18.0, 6.0), "noise": (-14.0, 2.0)}
# Evaluations at most, and the relative change at which the ascent stops: more lowered no held-out loss.
EVALUATIONS = {"one": 30, "each": 40}
TOLERANCE = 1e-4
# With fewer rows the priors are narrower, and no margin is asked of one width per feature.
FEW_ROWS = 60
# Nats of evidence below which the rows are said to hold nothing but a constant and noise.
LEAST_GAIN = 0.5


@dataclass(frozen=True)
class Priors:
    """Standard deviations of the logarithms, and the mean of that of the noise variance."""

    length: float
    noise_mean: float
    noise: float
    # None: flat.
    amplitude: float | None


PRIORS_FEW = Priors(0.75, -1.0, 1.0, 1.0)
PRIORS = Priors(np.sqrt(3.0), -2.0, 1.5, None)


def kernel(A: Array, B: Array, gamma: Array) -> Array:
    """K: [len(A), len(B)]."""
    A, B = A * np.sqrt(gamma), B * np.sqrt(gamma)
    distances = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
    return np.exp(-np.maximum(distances, 0.0))


def inverse(C: Array) -> tuple[Array, Array] | None:
    """The lower Cholesky factor and the inverse, or None for a matrix that is not positive definite."""
    L, failed = dpotrf(C, lower=1, clean=1)
    if failed:
        return None
    half, failed = dpotri(L, lower=1)
    return None if failed else (L, np.tril(half) + np.tril(half, -1).T)


class Objective:
    """Minus the log of evidence and priors, and its gradient, over log amplitude, log gamma and log noise variance."""

    def __init__(self, X: Array, T: Array, priors: Priors, each: bool) -> None:
        """X: [N, D], T: [N, C]; `each`: one width per feature."""
        self.X, self.T, self.priors = X, T, priors
        self.widths = X.shape[1] if each else 1

    def start(self) -> Array:
        """Length scales of sqrt(D), as the features are standardised; a tenth of the variance is noise."""
        return np.concatenate([[0.0], np.full(self.widths, -np.log(2.0 * self.X.shape[1])), [np.log(0.1)]])

    def bounds(self) -> list[tuple[float, float]]:
        """Of the logarithms."""
        return [BOUNDS["amplitude"], *[BOUNDS["gamma"]] * self.widths, BOUNDS["noise"]]

    def parameters(self, theta: Array) -> tuple[float, Array, float]:
        """Amplitude, gamma: [D], noise variance."""
        a, *gamma, s2 = np.exp(theta)
        return float(a), np.ones(self.X.shape[1]) * gamma, float(s2)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """theta: [2 + D], or [3] for one width."""
        X, T = self.X, self.T
        (N, outputs), (a, gamma, s2) = T.shape, self.parameters(theta)
        K = a * kernel(X, X, gamma)
        found = inverse(K + 1.0 + s2 * np.eye(N))
        if found is None:
            # So high that the line search turns back.
            return 1e10, np.zeros(len(theta))
        L, inverse_C = found
        weights = inverse_C @ T
        value = 0.5 * np.vdot(T, weights) + outputs * np.log(np.diag(L)).sum() + 0.5 * N * outputs * np.log(2.0 * np.pi)
        # d log p = tr(W dC) / 2
        W = weights @ weights.T - outputs * inverse_C
        H = W * K
        # sum_ij H_ij (x_id - x_jd)^2 for every feature d
        squares = 2.0 * (H.sum(axis=1) @ X**2 - (X * (H @ X)).sum(axis=0))
        width = 0.5 * gamma * squares
        gradient = np.concatenate(
            [[-0.5 * H.sum()], width if self.widths > 1 else [width.sum()], [-0.5 * s2 * np.trace(W)]]
        )
        penalty, slope = self.penalty(theta)
        return value + penalty, gradient + slope

    def penalty(self, theta: Array) -> tuple[float, Array]:
        """Minus the log priors without their constants, and its gradient."""
        own, D = self.priors, self.X.shape[1]
        slope = np.zeros(len(theta))
        # log l = -(log gamma + log 2) / 2
        length = (-0.5 * (theta[1:-1] + np.log(2.0)) - np.sqrt(2.0) - 0.5 * np.log(D)) / own.length
        noise = (theta[-1] - own.noise_mean) / own.noise
        slope[1:-1], slope[-1] = -0.5 * length / own.length, noise / own.noise
        value = 0.5 * (length @ length + noise**2)
        if own.amplitude is not None:
            value, slope[0] = value + 0.5 * (theta[0] / own.amplitude) ** 2, theta[0] / own.amplitude**2
        return value, slope

    def highest(self) -> tuple[float, Array]:
        """Evidence with priors at the maximum, and where it is."""
        most = EVALUATIONS["each" if self.widths > 1 else "one"]
        options = {"maxfun": most, "maxiter": most, "ftol": TOLERANCE, "gtol": 1e-3, "maxcor": 12}
        start = self.start()
        found = minimize(self, start, jac=True, method="L-BFGS-B", bounds=self.bounds(), options=options)
        return -float(found.fun), found.x


def constant_evidence(T: Array) -> float:
    """Log evidence of a constant and noise, the noise variance at its maximum."""
    variance = max(float(np.mean(T**2)), 1e-6)
    return -0.5 * T.size * (np.log(2.0 * np.pi * variance) + float(np.mean(T**2)) / variance)


class DenseProcess:
    """Regression on standardised rows; every row is a centre.

    Attributes: `gamma_`: [D], `amplitude_`, `noise_variance_`, `gain_` (nats above a constant), `structure_` (whether
    that is enough for a kernel) and `each_` (one width per feature).
    """

    def __init__(self, widths: str = "auto", seed: int = 0) -> None:
        """`widths`: "one", or "auto" for one per feature if the evidence gains enough by it."""
        self.widths, self.seed = widths, seed

    def fit(self, X: Array, T: Array) -> DenseProcess:
        """X: [N, D], T: [N] or [N, C]; both standardised."""
        T = T[:, None] if T.ndim == 1 else T
        rows = np.random.default_rng(self.seed).permutation(len(X))[:MOST_ROWS]
        self.varying = X[rows].std(axis=0) > 1e-9
        X, T = X[rows][:, self.varying], T[rows]
        few = len(X) < FEW_ROWS
        priors = PRIORS_FEW if few else PRIORS
        shared = Objective(X, T, priors, each=False)
        value, theta = shared.highest()
        chosen, self.each_ = shared, False
        if self.widths == "auto" and X.shape[1] > 1:
            own = Objective(X, T, priors, each=True)
            own_value, own_theta = own.highest()
            # Each width is fitted to the rows: it has to gain something by it.
            if own_value > value + (0.0 if few else 1.0 + 0.3 * X.shape[1]):
                value, theta, chosen, self.each_ = own_value, own_theta, own, True
        self.gain_ = value - constant_evidence(T)
        self.structure_ = self.gain_ > LEAST_GAIN
        self.amplitude_, self.gamma_, self.noise_variance_ = chosen.parameters(theta)
        self.X, self.T, self.rows = X, T, rows
        if self.structure_:
            C = self.amplitude_ * kernel(X, X, self.gamma_) + 1.0 + self.noise_variance_ * np.eye(len(X))
            found = inverse(C)
            if found is None:
                raise ArithmeticError("the covariance at the learned kernel is not positive definite")
            self.L, self.inverse_C = found
            self.weights = self.inverse_C @ T
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Mean: [N, C], standard deviation of a target: [N]."""
        if not self.structure_:
            # The variance of a new target about a mean of N.
            N = len(self.T)
            variance = self.T.var(axis=0, ddof=1).mean() * (1.0 + 1.0 / N)
            return np.tile(self.T.mean(axis=0), (len(X), 1)), np.full(len(X), np.sqrt(variance))
        K = self.amplitude_ * kernel(self.X, X[:, self.varying], self.gamma_) + 1.0
        half = solve_triangular(self.L, K, lower=True)
        variance = np.maximum(self.amplitude_ + 1.0 - (half**2).sum(axis=0), 0.0) + self.noise_variance_
        return K.T @ self.weights, np.sqrt(variance)

    def left_out(self) -> Array:
        """The mean at each row from the others, the kernel held: [N, C]."""
        if not self.structure_:
            N = len(self.T)
            return (self.T.sum(axis=0) - self.T) / (N - 1)
        return self.T - self.weights / np.diag(self.inverse_C)[:, None]


class DenseClasses:
    """Classes by regression on standardised labels, one width; a temperature fitted to leave-one-out scores."""

    def fit(self, X: Array, y: Array) -> DenseClasses:
        """X: [N, D] standardised, y: [N] labels."""
        self.classes_, index = np.unique(y, return_inverse=True)
        labels = np.eye(len(self.classes_))[index]
        self.mean, self.spread = labels.mean(axis=0), labels.std(axis=0)
        self.process = DenseProcess(widths="one").fit(X, (labels - self.mean) / self.spread)
        scores, index = self.mean + self.spread * self.process.left_out(), index[self.process.rows]

        def loss(log_temperature: float) -> float:
            return -float(log_softmax(scores / np.exp(log_temperature), axis=1)[np.arange(len(index)), index].mean())

        # From labels taken for certain to probabilities that are all but equal.
        self.temperature = np.exp(minimize_scalar(loss, bounds=(-5.0, 5.0), method="bounded").x)
        return self

    def predict_proba(self, X: Array) -> Array:
        """Probabilities: [N, C]."""
        mean, _ = self.process.predict(X)
        return softmax((self.mean + self.spread * mean) / self.temperature, axis=1)
