"""What the documentation makes of the help of the command, and of the Markdown pages of the repository."""

import json
import re
import sys

from support import ROOT

DOCS = ROOT / "docs" / "python"
sys.path.insert(0, str(DOCS / "_ext"))

import command_reference  # noqa: E402
import gallery_order  # noqa: E402
import repository_pages  # noqa: E402
import versions  # noqa: E402


def test_every_option_of_every_command_is_in_the_reference():
    commands = command_reference.commands()
    assert {"describe", "fit", "predict", "score", "inspect", "compare"} <= set(commands)
    counted = 0
    for command in commands:
        text = command_reference.help_of(command)
        lines = command_reference.lines_of(command, text)
        shown = {line.removeprefix(".. option:: ") for line in lines if line.startswith(".. option:: -")}
        # A line of an example may begin with a hyphen too.
        before = text.split("\nExample")[0]
        options = {line.strip() for line in before.splitlines() if re.match(r" {2,6}-", line)}
        options -= {option for option in options if option.startswith(command_reference.COMMON)}
        assert shown == options, command
        assert f"relvec {command}" in lines
        counted += len(options)
    assert counted > 100


def test_long_examples_are_one_line():
    lines = command_reference.lines_of("fit", command_reference.help_of("fit"))
    examples = [line.strip() for line in lines if line.startswith("    relvec fit ") and "[OPTIONS]" not in line]
    assert len(examples) > 10
    assert all(re.search(r"\.json$| --json$", example) for example in examples), examples


def test_text_of_the_help_is_plain_text_in_the_reference():
    assert command_reference.escaped("a * b_ |c| `fit` d") == r"a \* b\_ \|c\| ``fit`` d"
    assert command_reference.escaped("one ` alone") == r"one \` alone"


def test_links_between_pages_hold_and_others_keep_their_text():
    text = "[a](classes.md#x) [b](../GLOSSARY.md) [c](../crates/x.rs) ![d](figures/e.png) [f](https://example.org)"
    made = repository_pages.copied(text, {"classes.md", "GLOSSARY.md"})
    assert made == "[a](classes.md#x) [b](GLOSSARY.md) c ![d](figures/e.png) [f](https://example.org)"


def test_the_order_names_all_examples_and_tutorials():
    names = {path.stem for folder in ("examples", "tutorials") for path in (ROOT / "python" / folder).glob("*.py")}
    assert names == set(gallery_order.ORDER)
    keys = [gallery_order.SortKey("")(f"{name}.py") for name in ["plot_sinc", "plot_gap", "unknown"]]
    assert keys == sorted(keys)


def test_versions_of_the_site_lie_side_by_side(tmp_path):
    built, pages = tmp_path / "built", tmp_path / "pages"
    built.mkdir()
    pages.mkdir()
    for text, folders in [("old", ["0.9.0", "stable"]), ("new", ["0.10.0", "stable"]), ("next", ["dev"])]:
        (built / "index.html").write_text(text)
        versions.add(built, pages, folders, "https://example.org/site")
    shown = {folder: (pages / folder / "index.html").read_text() for folder in ["0.9.0", "0.10.0", "stable", "dev"]}
    assert shown == {"0.9.0": "old", "0.10.0": "new", "stable": "new", "dev": "next"}
    listed = {one["version"]: one["url"] for one in json.loads((pages / "switcher.json").read_text())}
    root = "https://example.org/site"
    assert list(listed) == ["dev", "0.10.0", "0.9.0"]
    assert listed == {"dev": f"{root}/dev/", "0.10.0": f"{root}/stable/", "0.9.0": f"{root}/0.9.0/"}
    assert "url=stable/" in (pages / "index.html").read_text()
