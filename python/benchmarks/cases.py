"""What is compared: data, settings, learners and goals, case by case.

All data are made from a fixed seed, so that every process has the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Data:
    """Training rows, test rows and what is right there."""

    X: Array
    t: Array
    X_test: Array
    # Noise-free values in the target's own units; for classes the probability of class 1, or the labels.
    truth: Array
    gamma: float
    # The target's own units are center + scale * t.
    center: float = 0.0
    scale: float = 1.0


@dataclass(frozen=True)
class Entry:
    """One learner in a case."""

    learner: str
    threads: int = 1
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name in the tables."""
        own = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return f"{self.learner} ({own})" if own else self.learner


@dataclass(frozen=True)
class Case:
    """One data set and those who learn it."""

    name: str
    group: str
    # "regression", or "classes" whose number is in the data.
    kind: str
    make: Callable[[], Data]
    entries: tuple[Entry, ...]
    # Processes per learner; the figures are medians.
    repeats: int = 3
    # Fits in each process, for those of milliseconds.
    inner: int = 1
    # Seconds per process.
    timeout: float = 120.0
    # Least ratio of the peer's time to ours, to reach its evidence and for the whole fit.
    reach: float | None = None
    whole: float | None = None
    # Least ratio of the peer's peak memory to ours.
    lean: float | None = None
    quick: bool = False


def friedman(n: int, rng: np.random.Generator, features: int = 10) -> tuple[Array, Array]:
    """Friedman's first function: rows uniform in the cube, noise-free values."""
    X = rng.uniform(size=(n, features))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f


def standardised(X: Array, t: Array, X_test: Array, truth: Array, gamma: float | Callable[[Array], float]) -> Data:
    """Features and target with mean 0 and variance 1 on the training rows."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    std[std == 0] = 1.0
    center, scale = float(t.mean()), float(t.std())
    X, X_test = (X - mean) / std, (X_test - mean) / std
    return Data(X, (t - center) / scale, X_test, truth, gamma if isinstance(gamma, float) else gamma(X), center, scale)


def friedman_data(n: int, seed: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    X, f = friedman(n, rng)
    X_test, truth = friedman(5000, np.random.default_rng(2))
    return standardised(X, f + rng.standard_normal(n), X_test, truth, 0.03)


def sinc_data(n: int, seed: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n, 1))
    t = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(n)
    X_test = np.linspace(-10, 10, 2001)[:, None]
    return Data(X, t, X_test, np.sinc(X_test[:, 0] / np.pi), 0.1)


# Two Gaussians per class, as in Ripley's synthetic set.
CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
SPREAD = 0.03


def mixture(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Rows and classes 0 and 1."""
    y, part = rng.integers(2, size=n), rng.integers(2, size=n)
    return CENTRES[y, part] + np.sqrt(SPREAD) * rng.standard_normal((n, 2)), y


def mixture_data(n: int, seed: int = 1) -> Data:
    X, y = mixture(n, np.random.default_rng(seed))
    X_test, _ = mixture(20_000, np.random.default_rng(2))
    distances = ((X_test[:, None, None] - CENTRES) ** 2).sum(axis=-1)
    density = np.exp(-distances / (2 * SPREAD)).sum(axis=-1)
    return Data(X, y, X_test, density[:, 1] / density.sum(axis=1), 4.0)


def digits_data() -> Data:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X / 16
    order = np.random.default_rng(1).permutation(len(X))
    train, test = order[:1200], order[1200:]
    return Data(X[train], y[train], X[test], y[test], 0.1)


def table(folder: Path, name: str) -> Array:
    """Rows of a CSV file, the target last."""
    return np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)


def median_gamma(X: Array) -> float:
    """1 / median squared distance of 1,000 rows."""
    Y = X[np.random.default_rng(0).permutation(len(X))[:1000]]
    norms = (Y**2).sum(axis=1)
    distances = norms[:, None] + norms - 2 * Y @ Y.T
    return float(1 / np.median(distances[np.triu_indices(len(Y), 1)]))


def split(rows: Array) -> tuple[Array, Array]:
    """Nine tenths to learn from, one tenth to test, at random."""
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order[len(rows) // 10 :]], rows[order[: len(rows) // 10]]


def regression_file(folder: Path, name: str) -> Data:
    train, test = split(table(folder, name))
    data = standardised(train[:, :-1], train[:, -1], test[:, :-1], test[:, -1], median_gamma)
    # In units of the standard deviation of the target.
    return Data(data.X, data.t, data.X_test, (data.truth - data.center) / data.scale, data.gamma)


def adult_data(folder: Path) -> Data:
    train, test = table(folder, "adult_a9a_train"), table(folder, "adult_a9a_test")
    return Data(train[:, :-1], train[:, -1].astype(int), test[:, :-1], test[:, -1], median_gamma(train[:, :-1]))


def skin_data(folder: Path) -> Data:
    train, test = split(table(folder, "skin_nonskin"))
    train = train[:60_000]
    mean, std = train[:, :-1].mean(axis=0), train[:, :-1].std(axis=0)
    X = (train[:, :-1] - mean) / std
    return Data(X, train[:, -1].astype(int), (test[:, :-1] - mean) / std, test[:, -1], 16 * median_gamma(X))


FASTRVM = "Beside fastrvm"
SMALL = "Small problems"
MEMORY = "Memory at 8,000 rows"
OTHERS = "Beside other learners"
FILES = "Landmarks on real data"

PAIR = (Entry("fastrvm"), Entry("relvec", 1), Entry("relvec", 2))


def all_cases(folder: Path | None) -> list[Case]:
    """Every case; those on files only if there is a folder with them."""
    cases: list[Case] = []
    goals = {1000: (2, None), 2000: (5, None), 5000: (12, 6), 10_000: (25, 12.5)}
    for n, repeats in [(500, 5), (1000, 5), (2000, 3), (5000, 2), (10_000, 1)]:
        reach, whole = goals.get(n, (None, None))
        cases.append(
            Case(
                f"friedman-{n}",
                FASTRVM,
                "regression",
                lambda n=n: friedman_data(n),
                PAIR,
                repeats=repeats,
                timeout=240,
                reach=reach,
                whole=whole,
                quick=n == 500,
            )
        )
    cases.append(Case("sinc-4000", FASTRVM, "regression", lambda: sinc_data(4000), PAIR, reach=5, whole=2.5))
    for n, reach, whole in [(2000, 10, None), (4000, 30, 15)]:
        cases.append(
            Case(
                f"mixture-{n}",
                FASTRVM,
                "classes",
                lambda n=n: mixture_data(n),
                PAIR,
                repeats=3 if n == 2000 else 2,
                reach=reach,
                whole=whole,
            )
        )
    cases.append(Case("digits", FASTRVM, "classes", digits_data, PAIR, repeats=2))
    for n in (100, 200, 500):
        for name, kind, data in [("friedman", "regression", friedman_data), ("mixture", "classes", mixture_data)]:
            cases.append(
                Case(
                    f"small-{name}-{n}",
                    SMALL,
                    kind,
                    lambda n=n, data=data: data(n),
                    PAIR[:2],
                    inner=9,
                    whole=1 / 1.5,
                    quick=n == 200,
                )
            )
    limited = Entry("relvec", 2, {"memory_limit": 200_000_000})
    every_row = Entry("relvec", 2, {"memory_limit": 200_000_000, "dictionary": "all", "time_limit": 60.0})
    cases.append(
        Case(
            "memory-8000",
            MEMORY,
            "regression",
            lambda: friedman_data(8000),
            (Entry("fastrvm"), limited, every_row),
            lean=10,
            repeats=1,
            timeout=240,
        )
    )
    exact = (Entry("SVR"), Entry("GaussianProcessRegressor"), Entry("ARDRegression"))
    for n in (500, 1000, 2000):
        # ARDRegression takes minutes from a thousand columns on.
        entries = (Entry("relvec"), Entry("fastrvm"), Entry("sklearn-rvm"), *(exact if n < 2000 else exact[:-1]))
        cases.append(
            Case(
                f"others-friedman-{n}",
                OTHERS,
                "regression",
                lambda n=n: friedman_data(n),
                entries,
                repeats=1,
                timeout=60,
            )
        )
    cases.append(
        Case(
            "others-mixture-1000",
            OTHERS,
            "classes",
            lambda: mixture_data(1000),
            (Entry("relvec"), Entry("fastrvm"), Entry("sklearn-rvm"), Entry("SVC")),
            repeats=1,
            timeout=60,
        )
    )
    if folder is None:
        return cases
    files: list[tuple[str, str, int, Callable[[], Data]]] = [
        ("kin40k", "regression", 1000, lambda: regression_file(folder, "kin40k")),
        ("protein_casp", "regression", 1000, lambda: regression_file(folder, "protein_casp")),
        ("adult_a9a", "classes", 500, lambda: adult_data(folder)),
        ("skin_nonskin", "classes", 300, lambda: skin_data(folder)),
    ]
    for name, kind, size, make in files:
        entry = Entry("relvec", 2, {"dictionary": size, "time_limit": 120.0})
        cases.append(Case(name, FILES, kind, make, (entry,), repeats=1, timeout=400))
    return cases
