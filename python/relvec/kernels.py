"""Kernels as objects, with ``+`` and ``*`` for sums and products.

>>> from relvec.kernels import RBF, Linear, Periodic
>>> 0.5 * RBF(gamma=0.1, columns=[0]) + Periodic(period=12) * Linear(columns=[1])
0.5*rbf(gamma=0.1)[0] + periodic(period=12)*linear[1]

A kernel is a text for the parameter ``kernel`` of `RVR`, `RVC` and `learn_kernel`, so that for example
``Kernel("poly(degree=2)")`` is a kernel as well. Parameters that are not given are learned. Numbers are factors of
terms. Columns are numbers from 0, or names of the columns of a frame:

>>> RBF(columns=["age", "net income"]) + Linear()
rbf["age","net income"] + linear
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["RBF", "Kernel", "Linear", "Matern32", "Matern52", "Periodic"]


# A quoted name, or any character that does not begin " + ".
_TERM = re.compile(r'(?:"(?:\\.|[^"\\])*"|(?! \+ ).)+')


class Kernel(str):
    """A kernel, as text."""

    def __repr__(self) -> str:
        return str(self)

    def __add__(self, other: Any) -> Kernel:
        """Return the sum; each term has an amplitude, which is learned unless a number is given."""
        return Kernel(f"{self} + {other}") if isinstance(other, str) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        """Return the product with a kernel or a number, term by term."""
        if isinstance(other, str):
            return Kernel(" + ".join(f"{one}*{another}" for one in _terms(self) for another in _terms(other)))
        return Kernel(" + ".join(f"{float(other)}*{one}" for one in _terms(self)))

    __rmul__ = __mul__


def _terms(text: str) -> list[str]:
    """Return the terms of a sum; a name in quotation marks may contain a plus sign."""
    return [term.removeprefix("+ ") for term in _TERM.findall(text)]


def _kernel(name: str, columns: Sequence[int | str] | None, **parameters: Any) -> Kernel:
    given = [f"{key}={json.dumps(np.asarray(v).tolist())}" for key, v in parameters.items() if v is not None]
    # A name is written as a JSON string, which no number, bracket or comma in it can change.
    own = [
        json.dumps(str(one) if isinstance(one, str) else int(one), ensure_ascii=False)
        for one in (() if columns is None else columns)
    ]
    listed = "" if columns is None else f"[{','.join(own)}]"
    return Kernel(name + (f"({', '.join(given)})" if given else "") + listed)


def RBF(gamma: Any = None, *, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return exp(-gamma r^2), with r the distance."""
    return _kernel("rbf", columns, gamma=gamma)


def Matern32(gamma: Any = None, *, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the Matern kernel of once differentiable functions."""
    return _kernel("matern32", columns, gamma=gamma)


def Matern52(gamma: Any = None, *, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the Matern kernel of twice differentiable functions."""
    return _kernel("matern52", columns, gamma=gamma)


def Linear(*, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the inner product of the columns; in a learned sum the columns are standardised."""
    return _kernel("linear", columns)


def Periodic(
    period: float | None = None,
    gamma: Any = None,
    *,
    fixed: bool = False,
    columns: Sequence[int | str] | None = None,
) -> Kernel:
    """Return exp(-4 gamma sin^2(pi r / period)).

    If gamma is learned, `period` is the initial value, unless it is `fixed`. A period of None is found.
    """
    return _kernel("periodic", columns, gamma=gamma, period=period, fixed=fixed or None)
