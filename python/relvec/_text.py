"""Numbers, counts and lists as people read them, as ``relvec inspect`` writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

# Significant digits of measured values, of weights and evidences, and of evidences from 100,000 nats on, where models
# differ by a few nats as elsewhere.
DIGITS = 3
WEIGHT_DIGITS = 4
NATS_DIGITS = 7
# Names of a list that are shown.
SHOWN = 12
# Characters of a name that are shown: those in use are shorter, and one of a million must not fill the screen.
LONGEST = 200


def significant(value: float, digits: int = DIGITS) -> str:
    """`value` with that many significant digits, in exponent form where that is shorter to read."""
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    if not -4 <= int(exponent) <= 6:
        return f"{mantissa}e{int(exponent)}"
    plain = f"{value:.{max(digits - 1 - int(exponent), 0)}f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def count(n: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{thousands(n)} {noun}{'' if n == 1 else 's'}"


def thousands(n: int) -> str:
    """A whole number, from 10,000 on with commas between groups of three digits."""
    return f"{n:,}" if n >= 10_000 else str(n)


def share(part: int, total: int, noun: str) -> str:
    """``5 of 100 rows (5 %)``; no share where a count says as much: none, all, or of fewer than ten."""
    counts = f"{thousands(part)} of {count(total, noun)}"
    percent = 100.0 * part / total if total else 0.0
    if part == 0 or part >= total or total < 10:
        return counts
    return f"{counts} ({significant(percent, 1) if percent < 1.0 else f'{percent:.0f}'} %)"


def plain(text: str) -> str:
    """Text that cannot break its line or command a terminal: what is not printable is spelt as in Python."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def listed(names: Iterable[object], most: int = SHOWN) -> str:
    """Names, separated by commas; of more than `most` their number."""
    words: Sequence[str] = [plain(str(name)) for name in names]
    shown = ", ".join(word if len(word) <= LONGEST else f"{word[:LONGEST]}..." for word in words[:most])
    return shown if len(words) <= most else f"{shown}, ... ({len(words)} in all)"


def nats(value: float) -> str:
    """A log evidence."""
    return f"{significant(value, WEIGHT_DIGITS if abs(value) < 1e5 else NATS_DIGITS)} nats"


def seconds(value: float) -> str:
    """The seconds that something took."""
    if value < 0.01:
        return "under 0.01 s"
    return f"{value:.2f} s" if value < 10.0 else f"{thousands(round(value))} s"
