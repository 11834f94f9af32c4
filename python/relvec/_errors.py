"""Errors of the core with the names and values of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

# The core names a setting by its path and writes values as JSON: "kernel.rbf.gamma = true: expected false, or null".
PATH = re.compile(r"^(?:kernel|formulation)\.\w+\.(\w+)(?= = )")
VALUES = re.compile(
    r"(?<= = )(true|false|null)(?=[:,;]|$)|(?<=expected )(true|false|null)\b|(?<= or )(true|false|null)\b"
)
PYTHON = {"true": "True", "false": "False", "null": "None"}
# In Python the cost has scikit-learn's name.
NAMES = {"c": "C"}


@contextmanager
def in_words_of_python() -> Iterator[None]:
    """Raise an error of the core about a setting with the name and the values that the setting has in Python."""
    try:
        yield
    except ValueError as error:
        text = translated(str(error))
        # Other errors are not changed, nor those of numpy, which have their own type.
        if type(error) is not ValueError or text == str(error):
            raise
        raise ValueError(text) from None


def translated(text: str) -> str:
    """Return the text of an error; text without a name or value of the core is not changed."""
    head, colon, rest = text.partition(": ")
    if " = " not in head:
        return text
    head = PATH.sub(lambda found: NAMES.get(found[1], found[1]), head)
    return VALUES.sub(lambda found: PYTHON[found[0]], f"{head}{colon}{rest}")
