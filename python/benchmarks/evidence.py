"""Log evidence of a sparse Bayesian model with given basis functions, in nats; none of relvec's code.

A design Phi [N, M], weights w with priors N(0, 1 / alpha_i); Gaussian noise of precision beta, or
two classes with Laplace's approximation. An infinite alpha_i leaves its column out.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize
from scipy.special import expit

Array = NDArray[np.float64]

# Bounds of log precisions relative to where they start; wider ones change no evidence by a thousandth of a nat.
REACH = 25.0


def precisions_and_covariance(H: Array, alpha: Array) -> tuple[float, Array]:
    """Log det(H + A) - log det(A), and the inverse of H + A, for H = Phi' B Phi.

    Scaled so that the matrix to factorise is I + A^-1/2 H A^-1/2: no pivot is below 1.
    """
    d = 1 / np.sqrt(alpha)
    factor = cholesky(np.eye(len(d)) + d[:, None] * H * d, lower=True)
    inverse = cho_solve((factor, True), np.eye(len(d)))
    return 2 * np.log(np.diag(factor)).sum(), d[:, None] * inverse * d


class Gaussian:
    """Evidence of a regression; the rows are summed up once."""

    def __init__(self, Phi: Array, t: Array) -> None:
        self.Phi, self.t = Phi, t
        self.G, self.f = Phi.T @ Phi, Phi.T @ t

    def posterior(self, alpha: Array, beta: float) -> tuple[Array, Array, float]:
        """Mean and covariance of the weights, and the log evidence; alpha finite."""
        n = len(self.t)
        log_det, covariance = precisions_and_covariance(beta * self.G, alpha)
        mean = beta * covariance @ self.f
        residual = self.t - self.Phi @ mean
        misfit = beta * residual @ residual + mean @ (alpha * mean)
        return mean, covariance, 0.5 * (n * np.log(beta / (2 * np.pi)) - log_det - misfit)

    def __call__(self, alpha: Array, beta: float) -> float:
        """Log evidence."""
        kept = np.isfinite(alpha)
        return Gaussian(self.Phi[:, kept], self.t).posterior(alpha[kept], beta)[2]

    def optimum(self, alpha: Array, beta: float) -> float:
        """Highest evidence near (alpha, beta), over all precisions and the noise."""

        def negative(logs: Array) -> tuple[float, Array]:
            a, b = np.exp(logs[:-1]), float(np.exp(logs[-1]))
            mean, covariance, value = self.posterior(a, b)
            residual = self.t - self.Phi @ mean
            by_noise = len(self.t) - b * (residual @ residual) - b * np.sum(covariance * self.G)
            by_alpha = 1 - a * (mean**2 + np.diag(covariance))
            return -value, -0.5 * np.append(by_alpha, by_noise)

        return highest(negative, np.log(np.append(alpha, beta)))


class Laplace:
    """Evidence of two classes, labels y in {0, 1}."""

    def __init__(self, Phi: Array, y: Array) -> None:
        self.Phi, self.y = Phi, y
        self.w = np.zeros(Phi.shape[1])

    def posterior(self, alpha: Array) -> tuple[Array, Array, float]:
        """Mode and covariance of the weights, and the log evidence; alpha finite. Starts at the last mode."""
        Phi, y, w = self.Phi, self.y, self.w

        def objective(w: Array) -> float:
            eta = Phi @ w
            return float(y @ eta - np.logaddexp(0, eta).sum() - 0.5 * w @ (alpha * w))

        value, near = objective(w), False
        for _ in range(200):
            p = expit(Phi @ w)
            log_det, covariance = precisions_and_covariance(Phi.T @ ((p * (1 - p))[:, None] * Phi), alpha)
            if near:
                break
            gradient = Phi.T @ (y - p) - alpha * w
            step = covariance @ gradient
            # The curvature changes in proportion to the last step, the objective with its square: one more.
            near = float(gradient @ step) < 1e-10
            length = 1.0
            while not near and (objective(w + length * step) < value and length > 1e-10):
                length /= 2
            w = w + length * step
            value = objective(w)
        self.w = w
        return w, covariance, value - 0.5 * log_det

    def __call__(self, alpha: Array) -> float:
        """Log evidence."""
        kept = np.isfinite(alpha)
        return Laplace(self.Phi[:, kept], self.y).posterior(alpha[kept])[2]

    def optimum(self, alpha: Array) -> float:
        """Highest evidence near alpha, over all precisions."""

        def negative(logs: Array) -> tuple[float, Array]:
            a = np.exp(logs)
            w, covariance, value = self.posterior(a)
            p = expit(self.Phi @ w)
            spread = np.einsum("nm,nm->n", self.Phi @ covariance, self.Phi)
            # The mode moves with alpha, and the curvature with the mode.
            moved = covariance @ (self.Phi.T @ (spread * p * (1 - p) * (1 - 2 * p)))
            return -value, -0.5 * (1 - a * (w**2 + np.diag(covariance)) + a * w * moved)

        return highest(negative, np.log(alpha))


def highest(negative, start: Array) -> float:
    """Highest value found from `start`, itself included."""
    bounds = [(x - REACH, x + REACH) for x in start]
    found = minimize(
        negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500, "maxcor": 30}
    )
    return -float(found.fun)
