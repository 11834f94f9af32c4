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
    """A kernel as text, with ``+`` and ``*``.

    The functions of this module return kernels, and the estimators take them as their parameter `kernel`. A kernel is
    equal to the text that the command line takes.

    ``+`` adds kernels. Each term of a sum has an amplitude, which the fit learns unless the term is multiplied by a
    number; numbers are relative to each other. ``*`` multiplies a kernel by a number or by another kernel.

    Examples
    --------
    >>> from relvec.kernels import RBF, Linear, Periodic
    >>> RBF(columns=["age"]) + 2.0 * Linear() * Periodic(period=12.0)
    rbf["age"] + 2.0*linear*periodic(period=12.0)
    """

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
    """Return the Gaussian kernel exp(-d2), with d2 the sum over columns of gamma (x - x')^2.

    Parameters
    ----------
    gamma : float, array-like of shape (n_columns,), "evidence-one", "evidence-ard" or None, default=None
        Inverse squared width, one number or one for each column. None: the fit learns one for all columns or one for
        each; ``"evidence-one"`` and ``"evidence-ard"`` select one of the two.
    columns : sequence of int or str, default=None
        Columns that the kernel sees, by number from 0 or by name; None for all.

    Returns
    -------
    Kernel
        The kernel as text.
    """
    return _kernel("rbf", columns, gamma=gamma)


def Matern32(gamma: Any = None, *, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the Matern kernel of once differentiable functions: (1 + s) exp(-s).

    Here s^2 is 6 times the sum over columns of gamma (x - x')^2.

    Parameters
    ----------
    gamma : float, array-like of shape (n_columns,), "evidence-one", "evidence-ard" or None, default=None
        Inverse squared width, one number or one for each column. None: the fit learns one for all columns or one for
        each; ``"evidence-one"`` and ``"evidence-ard"`` select one of the two.
    columns : sequence of int or str, default=None
        Columns that the kernel sees, by number from 0 or by name; None for all.

    Returns
    -------
    Kernel
        The kernel as text.
    """
    return _kernel("matern32", columns, gamma=gamma)


def Matern52(gamma: Any = None, *, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the Matern kernel of twice differentiable functions: (1 + s + s^2 / 3) exp(-s).

    Here s^2 is 10 times the sum over columns of gamma (x - x')^2.

    Parameters
    ----------
    gamma : float, array-like of shape (n_columns,), "evidence-one", "evidence-ard" or None, default=None
        Inverse squared width, one number or one for each column. None: the fit learns one for all columns or one for
        each; ``"evidence-one"`` and ``"evidence-ard"`` select one of the two.
    columns : sequence of int or str, default=None
        Columns that the kernel sees, by number from 0 or by name; None for all.

    Returns
    -------
    Kernel
        The kernel as text.
    """
    return _kernel("matern52", columns, gamma=gamma)


def Linear(*, columns: Sequence[int | str] | None = None) -> Kernel:
    """Return the linear kernel, the inner product of the columns.

    In a sum that is learned, the columns are standardised first.

    Parameters
    ----------
    columns : sequence of int or str, default=None
        Columns that the kernel sees, by number from 0 or by name; None for all.

    Returns
    -------
    Kernel
        The kernel as text.
    """
    return _kernel("linear", columns)


def Periodic(
    period: float | None = None,
    gamma: Any = None,
    *,
    fixed: bool = False,
    columns: Sequence[int | str] | None = None,
) -> Kernel:
    """Return the periodic kernel exp(-4 s), with s the sum over columns of gamma sin(pi (x - x') / period)^2.

    Parameters
    ----------
    period : float, default=None
        The period, in units of the columns. If gamma is learned, learning begins there; None: a period is found.
    gamma : float, array-like of shape (n_columns,), "evidence-one", "evidence-ard" or None, default=None
        Inverse squared width, one number or one for each column. None: the fit learns one for all columns or one for
        each; ``"evidence-one"`` and ``"evidence-ard"`` select one of the two.
    fixed : bool, default=False
        True: the period is kept.
    columns : sequence of int or str, default=None
        Columns that the kernel sees, by number from 0 or by name; None for all.

    Returns
    -------
    Kernel
        The kernel as text.
    """
    return _kernel("periodic", columns, gamma=gamma, period=period, fixed=fixed or None)
