"""The page that predicts in the browser shows what Python predicts."""

import sys

import numpy as np
import pytest
from support import ROOT
from test_docs_browser import SITE, server  # noqa: F401

DOCS = ROOT / "docs" / "python"
PAGE = "how-to/browser.html"
#: Rows of the table as text: x, mean and std with all digits.
ROWS = """[...document.querySelectorAll("#browser-rows tr")].map((row) => [
  row.querySelector("input").value, row.cells[1].title, row.cells[2].title])"""


@pytest.fixture(scope="module")
def model():
    """The model that the code of the page fits."""
    sys.path.insert(0, str(DOCS / "_ext"))
    import browser_model

    return browser_model.model(DOCS)


@pytest.fixture
def page(browser, server):  # noqa: F811
    if not (SITE / "_static" / "onnxruntime").is_dir():
        pytest.skip("the site is built without onnxruntime-web, which `cargo xtask vendor` downloads")
    page = browser.new_page()
    page.goto(server + PAGE)
    page.wait_for_function("document.querySelector('#browser-message').textContent.includes('predicts in this')")
    yield page
    page.close()


def compared(page, model):
    """How many rows the table has; each shows what Python predicts."""
    x, mean, std = np.array(page.evaluate(ROWS), dtype=float).T
    expected = model.predict(x[:, np.newaxis], return_std=True)
    np.testing.assert_allclose([mean, std], expected, rtol=0, atol=1e-12)
    return len(x)


def test_the_table_has_the_predictions_of_python(page, model):
    assert compared(page, model) == 5
    page.fill("#browser-rows tr:nth-child(2) input", "2.25")
    page.wait_for_function(f"({ROWS})[1][0] === '2.25'")
    # The next prediction has taken its turn when that of the slider is shown.
    page.locator("#browser-x").fill("-3")
    page.wait_for_function("document.querySelector('#browser-prediction').textContent.startsWith('-3.0')")
    assert compared(page, model) == 5


def test_the_slider_shows_the_prediction_of_python(page, model):
    for x in [-15.0, 0.0, 7.5]:
        page.locator("#browser-x").fill(str(x))
        page.wait_for_function(f"document.querySelector('#browser-prediction').textContent.startsWith('{x:.1f}:')")
        mean, std = model.predict([[x]], return_std=True)
        assert page.inner_text("#browser-prediction") == f"{x:.1f}: {mean[0]:.3f} ± {std[0]:.3f}"


def test_a_cell_without_a_number_keeps_the_others(page, model):
    page.fill("#browser-rows tr:nth-child(1) input", "")
    page.fill("#browser-rows tr:nth-child(3) input", "6")
    page.locator("#browser-x").fill("1")
    page.wait_for_function("document.querySelector('#browser-prediction').textContent.startsWith('1.0')")
    rows = page.evaluate(ROWS)
    assert rows[0] == ["", "", ""]
    mean, std = model.predict([[6.0]], return_std=True)
    np.testing.assert_allclose([float(rows[2][1]), float(rows[2][2])], [mean[0], std[0]], rtol=0, atol=1e-12)
