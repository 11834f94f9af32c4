"""Pages of the folder ``docs`` of the repository, which are Markdown, as pages of the site.

They are copied to ``documents``, with their figures. Links from one to another hold there. Links to other files of the
repository would lead nowhere: their text remains.
"""

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

#: For those who release the package.
NOT_SHOWN = {"releasing.md"}
LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)(#[^)]*)?\)")


def copied(text: str, names: set[str]) -> str:
    """The text of a page, with links that hold beside pages of these names."""

    def link(found: re.Match) -> str:
        name = found[2].rsplit("/", 1)[-1]
        if "://" in found[2] or found[2].startswith("figures/"):
            return found[0]
        return f"[{found[1]}]({name}{found[3] or ''})" if name in names else found[1]

    return LINK.sub(link, text)


def copy(app: Sphinx) -> None:
    """Write each page whose text has changed."""
    docs = Path(app.srcdir).parent
    target = Path(app.srcdir) / "documents"
    pages = [page for page in sorted(docs.glob("*.md")) if page.name not in NOT_SHOWN]
    pages += [docs.parent / "GLOSSARY.md", docs.parent / "CHANGELOG.md"]
    names = {page.name for page in pages}
    target.mkdir(exist_ok=True)
    for page in pages:
        text = copied(page.read_text(encoding="utf-8"), names)
        made = target / page.name
        if not made.exists() or made.read_text(encoding="utf-8") != text:
            made.write_text(text, encoding="utf-8")
    shutil.copytree(docs / "figures", target / "figures", dirs_exist_ok=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Run before the pages are read."""
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True}
