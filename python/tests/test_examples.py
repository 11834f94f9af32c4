"""Every example and every tutorial runs without a warning and makes a figure."""

import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

# The documentation runs them as well.
pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[1]
EXAMPLES = [*sorted((FOLDER / "examples").glob("plot_*.py")), *sorted((FOLDER / "tutorials").glob("*.py"))]

# Wider lines would be cut off beside the page's list of sections.
WIDEST = 110


def test_there_are_examples():
    assert len(EXAMPLES) >= 18


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_each_example_runs(example, monkeypatch, capsys):
    plt.switch_backend("Agg")
    plt.close("all")
    # The Agg backend warns that it has no window.
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        runpy.run_path(str(example), run_name="__main__")
        figures = [plt.figure(number) for number in plt.get_fignums()]
        assert figures
        for figure in figures:
            assert figure.axes
            figure.canvas.draw()
    finally:
        plt.close("all")
    table = capsys.readouterr().out
    assert len(table.splitlines()) >= 3
    assert all(line.isprintable() and len(line) <= WIDEST for line in table.splitlines())
