"""Progress of a fit: lines of text, and calls of the user's callback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._text import count, seconds

Callback = Callable[[dict[str, Any]], Any]

# Initial seconds between two lines, and the factor of elapsed time between later lines.
PAUSE = 2.0
GROWTH = 1.1


def line(record: dict[str, Any], evidence: str = "log evidence") -> str:
    """Return a record as a line of text; `evidence`: the name of the log evidence."""
    noise = "" if record["noise_std"] is None else f", noise std {record['noise_std']:.4g}"
    return (
        f"iteration {record['iteration']}: {evidence} {record['log_evidence']:.3f} nats, "
        f"{record['active']} basis functions{noise}, {record['seconds']:.1f} s"
    )


def bound_line(record: dict[str, Any]) -> str:
    """Return a record of a variational fit as a line of text."""
    return line(record, "lower bound")


def svm_line(record: dict[str, Any]) -> str:
    """Return a record of a support vector machine as a line of text."""
    function, functions = record["function"]
    which = f"function {function + 1} of {functions}, " if functions > 1 else ""
    return f"{which}iteration {record['iteration']}: gap {record['gap']:.3g}, {record['seconds']:.1f} s"


def end_line(status: str, iterations: int, took: float) -> str:
    """Return the end of a fit as a line of text; `took`: seconds."""
    return f"{status.replace('_', ' ')} after {count(iterations, 'iteration')}, {seconds(took)}"


def observer(verbose: int, callback: Callback | None, text: Callable[[dict[str, Any]], str]) -> Callback | None:
    """Return a function that prints the `text` of a record by `verbose` and calls `callback`, or None for neither."""
    if not verbose and callback is None:
        return None
    due = 0.0

    def observe(record: dict[str, Any]) -> bool:
        nonlocal due
        if verbose > 1 or (verbose and record["seconds"] >= due):
            print(text(record), flush=True)
            due = max(record["seconds"] + PAUSE, record["seconds"] * GROWTH)
        if callback is None:
            return False
        try:
            return bool(callback(record))
        except StopIteration:
            return True

    return observe
