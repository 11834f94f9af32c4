"""The recipes of the documentation run as they stand there; each needs the section of the model file alone."""

import doctest
import sys

import pytest
from support import ROOT

PAGE = ROOT / "docs" / "python" / "how-to" / "recipes.rst"
SETUP = "The model file"

#: Recipes whose programs are large: a part of their own, ``cargo xtask test recipes``.
LARGE = ["A web service", "Spark", "MLflow"]


def sections():
    """Text of each section of the page by its title."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    starts = [i for i, line in enumerate(lines) if i and line and set(line) == {"-"} and len(line) == len(lines[i - 1])]
    ends = [*(start - 1 for start in starts[1:]), len(lines)]
    return {lines[start - 1]: "\n".join(lines[start + 1 : end]) for start, end in zip(starts, ends, strict=True)}


SECTIONS = sections()


def test_the_page_has_the_recipes():
    assert [SETUP, "pandas, in chunks", "Polars", *LARGE] == list(SECTIONS)


@pytest.mark.parametrize(
    "title",
    [pytest.param(title, marks=pytest.mark.recipes if title in LARGE else ()) for title in SECTIONS if title != SETUP],
)
# What other programs warn of their own code is not the concern of this one.
@pytest.mark.filterwarnings("default")
def test_each_recipe_prints_what_the_page_shows(title, monkeypatch):
    # Workers of Spark are processes of this Python.
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    text = "\n".join([SECTIONS[SETUP], "", ">>> model = relvec.load(path)", "", SECTIONS[title]])
    test = doctest.DocTestParser().get_doctest(text, {}, title, str(PAGE), 0)
    printed = []
    runner = doctest.DocTestRunner()
    runner.run(test, out=printed.append)
    assert len(test.examples) > 15
    assert runner.failures == 0, "".join(printed)
