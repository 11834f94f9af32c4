"""Numbers, counts and lists as text, in the form of ``relvec inspect``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

# Significant digits of measured values, of weights and evidences, and of evidences from 100,000 nats on, where models
# differ by a few nats as elsewhere.
DIGITS = 3
WEIGHT_DIGITS = 4
NATS_DIGITS = 7
# Most names of a list that are shown.
SHOWN = 12
# Most characters of a name. Usual names are shorter, but a name of a million characters must not fill the screen.
LONGEST = 200


def significant(value: float, digits: int = DIGITS) -> str:
    """Return `value` with `digits` significant digits, with an exponent if that is shorter to read."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if not -4 <= int(exponent) <= 6:
        return f"{mantissa}e{int(exponent)}"
    plain = f"{value:.{max(digits - 1 - int(exponent), 0)}f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def count(n: int, noun: str) -> str:
    """Return a text such as ``1 row`` or ``2 rows``."""
    return f"{thousands(n)} {noun}{'' if n == 1 else 's'}"


def thousands(n: int) -> str:
    """Return a whole number, with commas between groups of three digits from 10,000 on."""
    return f"{n:,}" if n >= 10_000 else str(n)


def share(part: int, total: int, noun: str) -> str:
    """Return a text such as ``5 of 100 rows (5 %)``, without a share for none, all, or out of fewer than ten."""
    counts = f"{thousands(part)} of {count(total, noun)}"
    percent = 100.0 * part / total if total else 0.0
    if part == 0 or part >= total or total < 10:
        return counts
    return f"{counts} ({significant(percent, 1) if percent < 1.0 else f'{percent:.0f}'} %)"


def plain(text: str) -> str:
    """Return text with unprintable characters escaped, so that it cannot break its line or control a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def listed(names: Iterable[object], most: int = SHOWN) -> str:
    """Return names separated by commas; if there are more than `most`, with their number."""
    words: Sequence[str] = [plain(str(name)) for name in names]
    shown = ", ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]}..." for word in words[:most])
    return shown if len(words) <= most else f"{shown}, ... ({len(words)} in all)"


def nats(value: float) -> str:
    """Return a log evidence as text."""
    return f"{significant(value, WEIGHT_DIGITS if abs(value) < 1e5 else NATS_DIGITS)} nats"


def seconds(value: float) -> str:
    """Return a duration in seconds as text."""
    if value < 0.01:
        return "under 0.01 s"
    return f"{value:.2f} s" if value < 10.0 else f"{thousands(round(value))} s"
