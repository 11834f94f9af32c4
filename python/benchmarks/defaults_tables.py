"""The tables of the benchmark of defaults: where their rows come from, and draws of them.

A draw is fixed by the table, the number of training rows and its own number. Features are standardised by the training
rows, and so are the targets of a regression.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from cases import friedman
from numpy.typing import NDArray
from sklearn import datasets

Array = NDArray[np.float64]
Rows = tuple[Array, Array]

SIZES = (25, 50, 100, 200, 400, 1000)
BIG = 10_000
TEST_ROWS = 2000
# Fewer test rows do not tell 95 % from 90 %.
LEAST_TEST_ROWS = 100


@dataclass(frozen=True)
class Table:
    """Rows from a formula, `make(rows, rng)`, or from a pool, `read(folder)`."""

    name: str
    about: str
    make: Callable[[int, np.random.Generator], Rows] | None = None
    read: Callable[[Path], Rows] | None = None
    # Training rows, if the table does not come in all sizes.
    sizes: tuple[int, ...] = SIZES
    classes: bool = False
    # Hardly any noise: a search that stops early has lost nats there.
    low_noise: bool = False
    # An exact line: there is no noise variance to predict, only R2 counts.
    exact: bool = False
    # No structure.
    noise: bool = False
    # Has a draw of 10,000 rows as well.
    big: bool = False


@dataclass(frozen=True)
class Draw:
    """Standardised rows to learn from, and rows to predict."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    @cached_property
    def digest(self) -> str:
        """Tells draws apart: a result belongs to the rows that it was made from."""
        found = hashlib.sha256()
        for part in (self.X, self.y, self.X_test, self.y_test):
            found.update(np.ascontiguousarray(part).tobytes())
        return found.hexdigest()[:12]


def sinc(rows: int, rng: np.random.Generator) -> Rows:
    X = rng.uniform(-10.0, 10.0, (rows, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(rows)


def friedman1(rows: int, rng: np.random.Generator) -> Rows:
    X, f = friedman(rows, rng)
    return X, f + rng.standard_normal(rows)


def pure_noise(rows: int, rng: np.random.Generator) -> Rows:
    return rng.standard_normal((rows, 5)), rng.standard_normal(rows)


def smooth(X: Array) -> Array:
    return np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]


def low_noise(rows: int, rng: np.random.Generator) -> Rows:
    X = rng.uniform(-1.0, 1.0, (rows, 5))
    f = smooth(X)
    return X, f + 0.005 * f.std() * rng.standard_normal(rows)


def outliers(rows: int, rng: np.random.Generator) -> Rows:
    X = rng.uniform(-1.0, 1.0, (rows, 5))
    wrong = rng.random(rows) < 0.03
    # Of the rows to learn from alone: normal densities of the others would be a lottery.
    wrong[rows - TEST_ROWS :] = False
    return X, smooth(X) + np.where(wrong, 4.0, 0.1) * rng.standard_normal(rows)


def linear20(rows: int, rng: np.random.Generator) -> Rows:
    X = rng.standard_normal((rows, 20))
    return X, X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(rows)


def spectra(rows: int, rng: np.random.Generator) -> Rows:
    """700 columns, each a sum of six broad bands whose heights vary from row to row."""
    at = np.linspace(0.0, 1.0, 700)
    bands = np.exp(-0.5 * ((at - np.linspace(0.05, 0.95, 6)[:, None]) / 0.12) ** 2)
    heights = rng.uniform(size=(rows, 6))
    X = heights @ bands + 0.002 * rng.standard_normal((rows, 700))
    return X, heights[:, 1] - 0.5 * heights[:, 3] + heights[:, 4] ** 2 + 0.05 * rng.standard_normal(rows)


def grid(rows: int, rng: np.random.Generator) -> Rows:
    """64 different rows, each met again and again."""
    X = rng.integers(4, size=(rows, 3)).astype(float)
    return X, np.sin(X[:, 0]) + 0.2 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(rows)


def line(features: int) -> Callable[[int, np.random.Generator], Rows]:
    def make(rows: int, rng: np.random.Generator) -> Rows:
        X = rng.standard_normal((rows, features))
        return X, X @ np.arange(1.0, features + 1.0)

    return make


def csv(*files: str) -> Callable[[Path], Rows]:
    """Files with a header, the target last or called `target`; several are one pool."""

    def read(folder: Path) -> Rows:
        frame = pd.concat([pd.read_csv(folder / file) for file in files])
        target = "target" if "target" in frame.columns else frame.columns[-1]
        return frame.drop(columns=target).to_numpy(float), frame[target].to_numpy(float)

    return read


def ida(name: str) -> Callable[[Path], Rows]:
    def read(folder: Path) -> Rows:
        with np.load(folder / "ida_benchmarks.npz") as file:
            return file[f"{name}__X"], file[f"{name}__y"].astype(float)

    return read


def bundled(name: str) -> Callable[[Path], Rows]:
    """A table that comes with scikit-learn."""

    def read(folder: Path) -> Rows:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return X, y.astype(float)

    return read


def regressions() -> list[Table]:
    lines = [
        Table(f"line{D}", f"exact line, {D} {'features' if D > 1 else 'feature'}", line(D), sizes=(20, 50), exact=True)
        for D in (1, 2, 3)
    ]
    return [
        Table("sinc", "sin(x) / x, noise sd 0.1", sinc),
        Table("friedman1", "Friedman 1, 10 features, noise sd 1", friedman1),
        Table("noise", "5 features, independent of the target", pure_noise, noise=True),
        Table("diabetes", "scikit-learn's", read=bundled("diabetes")),
        Table("boston", "boston_housing.csv", read=csv("boston_housing.csv")),
        Table("kin40k", "kin40k.csv.gz", read=csv("kin40k.csv.gz"), big=True),
        Table("california", "california_housing.csv.gz", read=csv("california_housing.csv.gz"), big=True),
        Table("protein", "protein_casp.csv.gz", read=csv("protein_casp.csv.gz"), big=True),
        Table("elevators", "elevators.csv.gz", read=csv("elevators.csv.gz")),
        Table("pumadyn32nm", "pumadyn32nm.csv.gz", read=csv("pumadyn32nm.csv.gz")),
        Table("low-noise", "sin(3 x0) + x1 x2 + x3 / 2, 5 features, 0.5 % noise", low_noise, low_noise=True),
        Table("linear20", "sum of 5 of 20 features, noise sd 0.5", linear20),
        Table("outliers", "the function of low-noise, noise sd 0.1; sd 4 in 3 % of the training rows", outliers),
        Table("grid", "64 different rows repeated, noise sd 0.3", grid),
        Table("spectra", "700 smooth correlated columns", spectra, sizes=(80,)),
        *lines,
    ]


def classes(name: str, about: str, read: Callable[[Path], Rows], sizes: tuple[int, ...] = (300,)) -> Table:
    return Table(name, about, read=read, sizes=sizes, classes=True)


def classifications() -> list[Table]:
    return [
        classes("ripley", "two Gaussians for each class", csv("ripley_synth_train.csv", "ripley_synth_test.csv")),
        classes("pima", "diabetes, 7 features", csv("pima_train.csv", "pima_test.csv")),
        *(
            classes(name, "ida_benchmarks.npz", ida(name))
            for name in ("breast_cancer", "banana", "german", "image", "titanic", "waveform")
        ),
        classes("digits", "scikit-learn's, 10 classes", bundled("digits"), sizes=(300, 1200)),
        classes("wine", "scikit-learn's, 3 classes", bundled("wine")),
        classes("iris", "scikit-learn's, 3 classes", bundled("iris")),
    ]


TABLES = {table.name: table for table in regressions() + classifications()}


@cache
def pool(table: Table, folder: Path) -> Rows:
    assert table.read is not None
    return table.read(folder)


def draw(table: Table, size: int, number: int, folder: Path) -> Draw | None:
    """Rows of a draw, or None if the table has too few. Of small tables of classes 70 % are learned from."""
    rng = np.random.default_rng([zlib.crc32(table.name.encode()), size, number])
    if table.make is not None:
        X, y = table.make(size + TEST_ROWS, rng)
    else:
        X, y = pool(table, folder)
        if table.classes:
            size = min(size, 7 * len(X) // 10)
        elif len(X) < size + LEAST_TEST_ROWS:
            return None
        order = rng.permutation(len(X))[: size + TEST_ROWS]
        X, y = X[order], y[order]
    # Columns that are the same everywhere stay as they are.
    spread = X[:size].std(axis=0)
    X = (X - X[:size].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    if not table.classes:
        y = (y - y[:size].mean()) / y[:size].std()
    return Draw(X[:size], y[:size], X[size:], y[size:])
