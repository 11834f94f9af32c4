"""Pages of the documentation with shell blocks: the blocks run, and print what the page shows."""

import shutil
import sys

import pytest
from support import ROOT

DOCS = ROOT / "docs" / "python"
sys.path.insert(0, str(DOCS / "_ext"))

import shell_blocks  # noqa: E402


@pytest.mark.parametrize("page", shell_blocks.pages(DOCS))
@pytest.mark.skipif(sys.platform == "win32", reason="the blocks are for a POSIX shell")
def test_blocks_print_what_the_page_shows(page, tmp_path):
    for table in shell_blocks.TABLES.glob("*.csv"):
        shutil.copy(table, tmp_path)
    printed, compared = None, 0
    for language, text in shell_blocks.blocks(DOCS / page):
        if language == "sh":
            printed = shell_blocks.run(text, tmp_path)
        else:
            assert shell_blocks.comparable(printed) == shell_blocks.comparable(text)
            compared += 1
    assert compared > 0
