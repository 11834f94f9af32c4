"""Data, kernels in plain numpy, and reference values, for several test files."""

import json
from pathlib import Path

import numpy as np
from relvec import RVC, RVR
from relvec.presets import tipping2001
from sklearn.metrics.pairwise import rbf_kernel

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "crates" / "relvec" / "tests" / "golden"
PINNED = ROOT / "crates" / "relvec" / "tests" / "pinned"


def papers(cls, *args, **own):
    """A machine whose settings do not depend on the defaults: those of the papers, but for the ones given."""
    settings = {RVR: tipping2001(), RVC: tipping2001(task="classify")}.get(cls, {})
    return cls(*args, **{**settings, **own})


def rvr(*args, **own):
    """Regression with the settings of the papers, but for the ones given."""
    return papers(RVR, *args, **own)


def rvc(*args, **own):
    """Classification with the settings of the papers, but for the ones given."""
    return papers(RVC, *args, **own)


class Called:
    """A kernel that is called, shown without an address: tests are known by the same name in every process."""

    def __call__(self, X, Y):
        return rbf_kernel(X, Y)

    def __repr__(self):
        return "rbf_kernel"


def sinc(n=60, noise=0.1, seed=0):
    """Rows and targets of a noisy sinc."""
    rng = np.random.default_rng(seed)
    X = np.linspace(-10.0, 10.0, n)[:, np.newaxis]
    return X, np.sinc(X[:, 0] / np.pi) + noise * rng.standard_normal(n)


def surface(n=60, noise=0.1, seed=0):
    """Rows with two features, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.standard_normal(n)


def two_classes(n=80, spread=0.9, seed=0):
    """Rows of two overlapping clouds, and classes 0 and 1."""
    rng = np.random.default_rng(seed)
    half = n // 2
    X = np.vstack([rng.normal(-1.0, spread, (half, 2)), rng.normal(1.0, spread, (n - half, 2))])
    return X, np.repeat([0, 1], [half, n - half])


def put(array, index, value):
    """The array with one value changed."""
    out = np.array(array, dtype=np.float64)
    out[index] = value
    return out


def squared_distances(A, B, gamma):
    return ((np.asarray(A)[:, np.newaxis] - np.asarray(B)[np.newaxis]) ** 2 * gamma).sum(axis=2)


def linear_spline(A, B):
    a, b = np.asarray(A)[:, np.newaxis], np.asarray(B)[np.newaxis]
    m = np.minimum(a, b)
    return (1.0 + a * b + a * b * m - (a + b) / 2.0 * m**2 + m**3 / 3.0).prod(axis=2)


# The kernels by their formulas: k(A, B, gamma), with the other parameters fixed below.
PARAMETERS = {"degree": 2, "coef0": 0.5, "shape": 1.5}
FORMULAS = {
    "rbf": lambda A, B, g: np.exp(-squared_distances(A, B, g)),
    "laplacian": lambda A, B, g: np.exp(-(np.abs(A[:, np.newaxis] - B[np.newaxis]) * g).sum(axis=2)),
    "matern32": lambda A, B, g: matern(np.sqrt(6.0 * squared_distances(A, B, g)), [1.0, 1.0]),
    "matern52": lambda A, B, g: matern(np.sqrt(10.0 * squared_distances(A, B, g)), [1.0, 1.0, 1.0 / 3.0]),
    "rational_quadratic": lambda A, B, g: (1.0 + squared_distances(A, B, g) / 1.5) ** -1.5,
    "linear": lambda A, B, g: A @ B.T,
    "poly": lambda A, B, g: ((A * g) @ B.T + 0.5) ** 2,
    "sigmoid": lambda A, B, g: np.tanh((A * g) @ B.T + 0.5),
    "linear_spline": lambda A, B, g: linear_spline(A, B),
}


def matern(r, polynomial):
    return np.polynomial.polynomial.polyval(r, polynomial) * np.exp(-r)


def golden(name):
    """Rows, targets, test rows and values of a reference case."""
    table = np.loadtxt(GOLDEN / f"{name}.csv", delimiter=",", skiprows=1, ndmin=2)
    test = np.loadtxt(GOLDEN / f"{name}_test.csv", delimiter=",", skiprows=1, ndmin=2)
    return table[:, :-1], table[:, -1], test, json.loads((GOLDEN / f"{name}.json").read_text())
