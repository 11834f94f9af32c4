"""Shell blocks of a page: run in order in one folder with the tables of the documentation.

A block ``.. code-block:: sh`` is a script. A block ``.. code-block:: text`` that follows it is what the script prints. The
build shows the figures that the scripts write.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from sphinx.application import Sphinx

BLOCK = re.compile(r"^( *)\.\. code-block:: (sh|text)\n\n((?:(?:\1    .*)?\n)+)", re.MULTILINE)

#: Tables that the pages offer for download.
TABLES = Path(__file__).parents[1] / "tables"
#: Pages whose scripts write figures, and where the build puts these.
FIGURES = {"tutorials/shell.rst": "generated/shell"}


def pages(source: Path) -> list[str]:
    """All pages with scripts."""
    found = (path for folder in ["tutorials", "how-to"] for path in (source / folder).glob("*.rst"))
    return sorted(path.relative_to(source).as_posix() for path in found if blocks(path))


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of each block, in the order of the page."""
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, textwrap.dedent(text).strip()) for _, language, text in found]


def run(script: str, folder: Path) -> str:
    """What a script prints in `folder`, errors included; the commands ``relvec`` and ``python`` are those of this Python."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script}\nended with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def comparable(text: str) -> str:
    """A report without times and line breaks, which depend on them; long numbers with five digits, since others depend on the
    processor."""
    text = re.sub(r"in (under )?[0-9.]+ (s|ms|min)\b", "in ... s", " ".join(text.split()))
    return re.sub(r"\d+\.\d{7,}", lambda number: f"{float(number[0]):.5g}", text).strip()


def draw(app: Sphinx) -> None:
    """Run the pages with figures and keep these."""
    source = Path(app.srcdir)
    for page, target in FIGURES.items():
        with tempfile.TemporaryDirectory() as folder:
            for language, text in blocks(source / page):
                if language == "sh":
                    run(text, Path(folder))
            (source / target).mkdir(parents=True, exist_ok=True)
            for figure in Path(folder).rglob("*.svg"):
                shutil.copy(figure, source / target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the pages are read."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True}
