"""Every page of the built site in a browser, wide and narrow: links, images, width, messages of the console."""

import functools
import http.server
import threading
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from support import ROOT

SITE = ROOT / "target" / "site"
WIDTHS = [1400, 400]

# Pages of the theme without text of ours, and the pages of rustdoc, which has tests of its own.
NOT_OURS = ("rust/", "genindex", "search.html", "_static/", "py-modindex")

FACTS = """() => {
  const article = document.querySelector("article") || document.body;
  const scrolls = (element) => {
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX)) return true;
    }
    return false;
  };
  const name = (e) => `${e.tagName.toLowerCase()}.${e.className}: ${e.textContent.slice(0, 50)}`;
  const wide = [...article.querySelectorAll("*")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > document.documentElement.clientWidth + 1 && !scrolls(e);
  });
  return {
    links: [...document.querySelectorAll("a[href]")].map((a) => a.href),
    ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
    images: [...article.querySelectorAll("img")].map((i) => ({
      source: i.src,
      width: i.naturalWidth,
      // A thumbnail has its title below it.
      described: i.alt !== "" || i.closest(".sphx-glr-thumbcontainer") !== null,
    })),
    page_width: document.documentElement.scrollWidth,
    window_width: document.documentElement.clientWidth,
    wide: wide.map(name),
    text: article.innerText.length,
  };
}"""

LOADED = """() => Promise.all([...document.images].map((image) => {
  image.loading = "eager";
  return image.decode().catch(() => 0);
}))"""

CONTRAST = """() => {
  const channels = (text) => text.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255);
  const luminance = (text) => {
    const [r, g, b] = channels(text).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!colour.endsWith(", 0)") && colour !== "transparent") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelector("article").querySelectorAll("p, li, td, h1, h2, pre, pre span")];
  return texts.filter((e) => e.textContent.trim()).map((e) => {
    const [low, high] = [luminance(getComputedStyle(e).color), luminance(ground(e))].sort((a, b) => a - b);
    return {ratio: (high + 0.05) / (low + 0.05), text: e.tagName + ": " + e.textContent.trim().slice(0, 60)};
  }).filter((e) => e.ratio < 4.5);
}"""


def pages():
    """Addresses of our pages below the site."""
    found = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
    return [page for page in found if not page.startswith(NOT_OURS)]


@pytest.fixture(scope="module")
def server():
    """The site as a server of static files shows it; its address."""
    if not (SITE / "index.html").exists():
        pytest.fail(f"{SITE} has no pages: `cargo xtask doc` builds them")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(SITE)))
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/"
    served.shutdown()
    served.server_close()


def failed(request):
    """Whether a request has failed, and was not ended by going to the next page."""
    return "ERR_ABORTED" not in (request.failure or "")


@pytest.fixture(scope="module")
def visited(browser, server):
    """What the browser finds on each page at each width, and what it complains of."""
    found = {}
    for width in WIDTHS:
        context = browser.new_context(viewport={"width": width, "height": 900})
        page = context.new_page()
        complaints, requests = [], []
        page.on("console", lambda message, to=complaints: message.type == "error" and to.append(message.text))
        page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
        page.on("requestfailed", lambda request, to=complaints: failed(request) and to.append(f"failed: {request.url}"))
        page.on(
            "response",
            lambda answer, to=complaints: answer.status >= 400 and to.append(f"{answer.status}: {answer.url}"),
        )
        page.on("request", lambda request, to=requests: to.append(request.url))
        for name in pages():
            complaints.clear()
            requests.clear()
            page.goto(server + name)
            page.evaluate(LOADED)
            facts = page.evaluate(FACTS)
            elsewhere = [url for url in requests if not url.startswith((server, "data:", "blob:"))]
            found[name, width] = {**facts, "complaints": list(complaints), "elsewhere": elsewhere}
        context.close()
    return found


def test_all_pages_are_visited(visited):
    assert len(visited) >= 2 * 70
    for needed in ["index.html", "how-to/choose-settings.html", "tutorials/shell.html", "reference/command.html"]:
        assert (needed, 400) in visited
    assert all(facts["text"] > 100 for facts in visited.values())


def test_no_page_complains(visited):
    assert {key: facts["complaints"] for key, facts in visited.items() if facts["complaints"]} == {}


def test_pages_load_nothing_from_elsewhere(visited):
    assert {key: facts["elsewhere"] for key, facts in visited.items() if facts["elsewhere"]} == {}


def test_images_are_there_and_described(visited):
    images = [(key, image) for key, facts in visited.items() for image in facts["images"]]
    assert len(images) > 100
    assert [(key, image["source"]) for key, image in images if image["width"] == 0 or not image["described"]] == []


def test_no_page_is_wider_than_its_window(visited):
    wide = {key: (f["page_width"], f["wide"][:3]) for key, f in visited.items() if f["page_width"] > f["window_width"]}
    assert wide == {}


def test_no_block_leaves_its_page(visited):
    assert {key: facts["wide"][:3] for key, facts in visited.items() if facts["wide"]} == {}


def test_links_lead_somewhere(visited, server):
    ids = {name: set(facts["ids"]) for (name, width), facts in visited.items() if width == WIDTHS[0]}
    dead = set()
    checked = 0
    for (name, width), facts in visited.items():
        for link in facts["links"] if width == WIDTHS[0] else []:
            address, anchor = urldefrag(link)
            if not address.startswith(server):
                assert urlparse(link).scheme in {"https", "http", "mailto"}, (name, link)
                continue
            checked += 1
            target = unquote(urlparse(address).path).lstrip("/") or "index.html"
            path = SITE / target
            if path.is_dir():
                path = path / "index.html"
            there = path.is_file()
            key = path.relative_to(SITE).as_posix() if there else target
            if not there or (anchor and key in ids and unquote(anchor) not in ids[key]):
                dead.add((name, link.removeprefix(server)))
    assert checked > 1000
    assert sorted(dead) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser, server, scheme):
    page = browser.new_page(color_scheme=scheme)
    for name in ["index.html", "how-to/choose-settings.html", "how-to/intervals.html", "reference/glossary.html"]:
        page.goto(server + name)
        # The theme reads the scheme of the system in its mode `auto`.
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert page.evaluate(CONTRAST) == [], name
    page.close()


def test_the_search_finds_a_name(browser, server):
    page = browser.new_page()
    page.goto(server + "search.html?q=predict_interval")
    page.wait_for_selector("#search-results li a", timeout=20_000)
    assert "predict_interval" in page.inner_text("#search-results")
    page.close()


def test_a_missing_page_is_found(browser, server):
    """The check itself: what is wrong on purpose is reported."""
    page = browser.new_page(viewport={"width": 400, "height": 900})
    wrong = Path(SITE) / "wrong-on-purpose.html"
    wrong.write_text(
        '<article><img src="none.png" alt="x"><pre style="width: 900px">x</pre></article>', encoding="utf-8"
    )
    try:
        complaints = []
        page.on("console", lambda message: complaints.append(message.type))
        page.goto(server + wrong.name)
        page.evaluate(LOADED)
        facts = page.evaluate(FACTS)
    finally:
        wrong.unlink()
        page.close()
    assert "error" in complaints
    assert facts["images"][0]["width"] == 0 and facts["page_width"] > facts["window_width"] and facts["wide"]
