"""A headless browser for tests of pages; these are a part of their own, ``cargo xtask test browser``."""

import shutil

import pytest

PROGRAMS = ["chromium", "chromium-browser", "google-chrome", "chrome"]


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser():
    """Chromium of this computer, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.fail(f"none of the programs {', '.join(PROGRAMS)} is installed; on Debian: apt-get install chromium")
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox.
        driven = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield driven
        driven.close()
