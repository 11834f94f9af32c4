"""Data and predictions that exported models are compared with."""

import numpy as np
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR
from support import rvc, surface, two_classes

S, T = surface(80)
NEW = surface(50, seed=4)[0]
C, Y = two_classes()
CLASS_ROWS = two_classes(60, seed=3)[0]


def several_classes(n=120, classes=4, seed=0):
    """Rows of overlapping clouds on a circle."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    angle = 2.0 * np.pi * y / classes
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.45 * rng.standard_normal((n, 2)), y


M, K = several_classes()
M_NEW = several_classes(60, seed=1)[0]


# Columns in any order and in units, factors, amplitudes; a kernel that is 1 for a row and itself; the kernel alone.
SUMS = [
    "rbf(gamma=0.6)[1] + 0.5*periodic(period=1.3, gamma=0.8)[0]*matern52(gamma=0.3)"
    " + 0.2*linear(units=[[1.0, 0.7], [0.5, 2.0]]) + poly(degree=2, coef0=0.5, gamma=0.4)[1,0]",
    "rbf(gamma=0.6)[1] + 0.5*periodic(period=1.3, gamma=[0.8, 0.2])*laplacian(gamma=0.4)[0]",
    "periodic(period=1.3, gamma=0.7)",
]


def with_kernel(kernel):
    """Models of all kinds with a kernel, rows, and the factor of the limits of standard deviations."""
    both = np.column_stack([T, 100.0 * np.cos(S[:, 0])])
    counts = np.random.default_rng(0).poisson(np.exp(T - 0.5))
    for prior, of_std in [("ard", 1.0), ("process", 10.0)]:
        own = {"kernel": kernel, "weight_prior": prior, "variance": "posterior"}
        yield RVR(**own).fit(S, T), NEW, of_std
        yield RVR(**own).fit(S, both), NEW, of_std
        yield RVR(likelihood="student_t", noise_degrees=4.0, **own).fit(S, T), NEW, of_std
        yield RVR(likelihood="poisson", **own).fit(S, counts), NEW, of_std
    yield rvc(kernel=kernel).fit(C, Y), CLASS_ROWS, 1.0
    yield RVC(kernel=kernel).fit(M, K), M_NEW, 1.0
    yield rvc(kernel=kernel, multi_class="one_vs_rest").fit(M, K), M_NEW, 1.0


def forecast():
    """A model of monthly values over 40 years, whose four digits take most of single precision, and later rows."""
    year = 1980.0 + np.arange(480)[:, np.newaxis] / 12.0
    noise = 0.4 * np.random.default_rng(1).standard_normal(480)
    sales = 0.2 * (year[:, 0] - 1980.0) + 3.0 * np.sin(2.0 * np.pi * year[:, 0] / 0.99987654321) + noise
    kernel = "rbf(gamma=0.02) + 2*periodic(period=0.99987654321, gamma=0.6)*rbf(gamma=0.001) + linear"
    return RVR(kernel, weight_prior="ard", variance="posterior").fit(year, sales), year[::5] + 5.03


def expected(model, rows):
    """What relvec predicts, by the names of the outputs."""
    if isinstance(model, RVR):
        mean, std = model.predict(rows, return_std=True)
        return {"mean": mean.reshape(len(rows), -1), "std": std.reshape(len(rows), -1)}
    if isinstance(model, (SVR, NuSVR)):
        return {"mean": model.predict(rows)[:, np.newaxis]}
    out = {"label": model.predict(rows)}
    if isinstance(model, (SVC, NuSVC)):
        out["decision"] = model._functions(rows)
    if isinstance(model, RVC) or model.probability:
        out["probabilities"] = model.predict_proba(rows)
    return out


def off(found, wanted):
    """Largest difference, relative to the largest value."""
    assert found.shape == wanted.shape
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def limits(kernel):
    """Single precision has few digits of products and of tanh; polynomials of them fewer."""
    return (1e-12, 2e-7, {"sigmoid": 5e-4, "poly": 2e-4, "linear_spline": 2e-4}.get(kernel, 1e-4))
