"""The model that a page runs in the browser: the code of the page makes it, the build exports it beside the scripts."""

import contextlib
import doctest
import io
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

#: The page, and where its model is exported to: a folder of static files of the build.
PAGE = "how-to/browser.rst"
TARGET = "generated/browser/sinc.onnx"


def model(source: Path) -> Any:
    """The estimator that the code of the page fits."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(doctest.script_from_examples((source / PAGE).read_text(encoding="utf-8")), names)
    return names["model"]


def export(app: Sphinx, _: object) -> None:
    """Write the model, before static files are looked for."""
    target = Path(app.confdir) / TARGET
    target.parent.mkdir(parents=True, exist_ok=True)
    model(Path(app.confdir)).to_onnx(target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Export the model when the settings are read."""
    app.connect("config-inited", export)
    return {"parallel_read_safe": True}
