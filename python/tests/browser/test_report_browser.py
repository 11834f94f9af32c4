"""Reports in a real browser: nothing is asked for, nothing complains, nothing is wider than the window."""

from pathlib import Path

import numpy as np
import pytest
from chromium import Browser
from relvec import RVC, RVR, SVC

pytestmark = pytest.mark.browser

# What is wider than the window, or than the box that it is in, and is not scrolled there.
OVERFLOWING = """
(() => {
  const wide = e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1 && !e.closest('.scroll');
  const cut = e => e.scrollWidth > e.clientWidth + 1 && !['SVG', 'STYLE'].includes(e.tagName.toUpperCase())
    && getComputedStyle(e).display !== 'inline' && !e.closest('.scroll') && !e.closest('svg') && e.clientWidth > 0;
  return [...document.body.querySelectorAll('*')].filter(e => wide(e) || cut(e)).map(e => e.outerHTML.slice(0, 80));
})()
"""
# Texts of figures that leave the drawing, or lie over one another.
TEXTS = """
(() => {
  const bad = [];
  for (const svg of document.querySelectorAll('figure svg:not(.key)')) {
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
    texts.forEach(([name, a], i) => {
      const outside = a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1;
      if (outside) bad.push('outside: ' + name);
      for (const [other, b] of texts.slice(i + 1)) {
        const w = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (w > 1 && h > 4) bad.push('over one another: ' + name + ', ' + other);
      }
    });
  }
  return bad;
})()
"""
# The least contrast of a text with its background (WCAG 2, 1.4.3).
CONTRAST = """
(() => {
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const light = colour => parts(colour).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if ((parts(colour)[3] ?? 1) > 0) return colour;
    }
  };
  let least = 99;
  for (const e of document.body.querySelectorAll('p, dt, dd, h1, h2, h3, th, td, figcaption, strong, li, svg text')) {
    const own = getComputedStyle(e);
    const [a, b] = [light(e.closest('svg') ? own.fill : own.color), light(behind(e))].sort((x, y) => y - x);
    least = Math.min(least, (a + 0.05) / (b + 0.05));
  }
  return least;
})()
"""


def _pages(folder: Path) -> dict[str, Path]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (400, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(400)
    kinds = np.array(["first", "the second of them", "third", "x" * 60])[
        (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] + 0.3 * rng.standard_normal(400) > 0)
    ]
    train, new = slice(0, 100), slice(100, 400)
    paths = {name: folder / f"{name}.html" for name in ("values", "outputs", "large", "classes", "svm", "alone")}
    RVR().fit(X[train], y[train]).report_html(X[new], y[new], paths["values"])
    both = np.column_stack([y, 1e6 * y + 1e9])
    RVR().fit(X[train], both[train]).report_html(X[new], both[new], paths["outputs"])
    RVR(weight_prior="ard").fit(1e9 * X[train], 1e-12 * y[train]).report_html(
        1e9 * X[new], 1e-12 * y[new], paths["large"]
    )
    RVC().fit(X[train], kinds[train]).report_html(X[new], kinds[new], paths["classes"])
    SVC().fit(X[train], kinds[train]).report_html(X[new], kinds[new], paths["svm"])
    RVR(weight_prior="ard").fit(X[train], y[train]).report_html(path=paths["alone"])
    return paths


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    return _pages(tmp_path_factory.mktemp("reports"))


@pytest.fixture(scope="module")
def browser():
    with Browser() as own:
        yield own


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1400, 400])
def test_a_report_fits_its_window_and_can_be_read(browser, pages, width, dark):
    for name, path in pages.items():
        browser.open(path, width, dark)
        assert browser.value("innerWidth") == width
        assert browser.complaints() == [], name
        assert browser.requests() == [path.as_uri()], name
        assert browser.value("document.documentElement.scrollWidth") <= width, name
        assert browser.value(OVERFLOWING) == [], name
        assert browser.value(TEXTS) == [], name
        assert browser.value(CONTRAST) >= 4.5, name
        background = browser.value("getComputedStyle(document.body).backgroundColor")
        assert (background == "rgb(255, 255, 255)") != dark, name
        assert browser.value("document.querySelectorAll('h1').length") == 1
        assert browser.value("[...document.querySelectorAll('svg:not(.key)')].every(s => s.getAttribute('aria-label'))")


def test_figures_have_dots_inside_their_axes(browser, pages):
    browser.open(pages["values"], 1400)
    dots = browser.value("document.querySelectorAll('.p:not(.s) circle').length")
    assert dots == 2 * 300
    inside = "c => +c.getAttribute('cx') >= 74 && +c.getAttribute('cy') <= 254"
    assert browser.value(f"[...document.querySelectorAll('circle')].every({inside})")


def test_a_printed_page_is_light(browser, pages):
    browser.open(pages["values"], 1400, dark=True)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=features)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    browser.call("Emulation.setEmulatedMedia", media="")
