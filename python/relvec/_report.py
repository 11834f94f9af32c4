"""The report of a fit: a dictionary that prints in a few lines."""

from __future__ import annotations

import numbers
import textwrap
from typing import Any

import numpy as np

from ._text import plain, significant

# Most lines of a report, and most characters of a line.
LINES = 10
WIDTH = 100
# Most values of a list that are printed.
FEW = 3
# Adjustments of the data, and counts of search actions; those that did not occur are not printed.
EVENTS = ("adjustments", "actions")


class Report(dict[str, Any]):
    """Report of a fit.

    A dictionary whose printed form has numbers and shapes of arrays, in at most ten lines.
    """

    def __repr__(self) -> str:
        values = {name: value for name, value in self.items() if not isinstance(value, np.ndarray | dict | list)}
        arrays = {name: value for name, value in self.items() if isinstance(value, np.ndarray)}
        inner = {name: value for name, value in self.items() if isinstance(value, dict | list)}
        lines = _wrapped([_pair(name, value) for name, value in values.items()])
        if arrays:
            lines += _wrapped([_pair(name, value) for name, value in arrays.items()], "arrays: ")
        room = LINES - len(lines)
        # The last line names the entries without a line.
        named = list(inner) if len(inner) <= room else list(inner)[: room - 1]
        lines += [_cut(f"{name}: {_inside(name, inner[name])}") for name in named]
        if len(named) < len(inner):
            lines.append(_cut(f"and: {', '.join(name for name in inner if name not in named)}"))
        return "\n".join(lines)


def _pair(name: str, value: Any) -> str:
    return f"{name} {_value(value)}"


def _value(value: Any) -> str:
    """Return a value in a few characters: the shape of an array, or the number of elements of a container."""
    if isinstance(value, np.ndarray):
        return str(value.shape)
    if isinstance(value, dict):
        return f"{{{len(value)} values}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]" if len(value) <= FEW else f"[{len(value)} values]"
    if isinstance(value, numbers.Real) and not isinstance(value, bool | numbers.Integral):
        return significant(float(value), 4)
    return plain(str(value))


def _inside(name: str, value: dict[str, Any] | list[Any]) -> str:
    """Return the content of a dictionary or a list in one line."""
    if isinstance(value, list):
        if not value or isinstance(value[0], str):
            return "; ".join(map(plain, value)) or "none"
        more = f", each with {', '.join(value[0])}" if isinstance(value[0], dict) else " values"
        return f"{len(value)}{more}"
    # Texts come first, since a line that is too long is cut.
    order = sorted(value, key=lambda key: not isinstance(value[key], str))
    return ", ".join(_pair(key, value[key]) for key in order if name not in EVENTS or value[key]) or "none"


def _wrapped(pairs: list[str], label: str = "") -> list[str]:
    """Return the pairs in as few lines as possible; the first line begins with the label."""
    # A line does not break inside a pair.
    text = label + ", ".join(pair.replace(" ", "\xa0") for pair in pairs)
    lines = textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [_cut(line.replace("\xa0", " ")) for line in lines]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 4]} ..."
