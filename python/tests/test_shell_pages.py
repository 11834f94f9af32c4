"""Pages of the documentation with shell blocks: the blocks run, and print what the page shows."""

import sys

import pytest
from support import ROOT

DOCS = ROOT / "docs" / "python"
sys.path.insert(0, str(DOCS / "_ext"))

import shell_blocks  # noqa: E402


def test_every_page_with_shell_blocks_is_run():
    found = {
        path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.rst") if "code-block:: sh\n" in path.read_text()
    }
    assert {page for page in found if not page.startswith("generated/")} == set(shell_blocks.PAGES)


@pytest.mark.parametrize("page", shell_blocks.PAGES)
@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
def test_blocks_print_what_the_page_shows(page, tmp_path):
    printed, compared = None, 0
    for language, text in shell_blocks.blocks(DOCS / page):
        if language == "sh":
            printed = shell_blocks.run(text, tmp_path)
        else:
            assert shell_blocks.comparable(printed) == shell_blocks.comparable(text)
            compared += 1
    assert compared >= 5
