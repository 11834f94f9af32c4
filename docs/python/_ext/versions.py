"""Versions of the site side by side: ``python versions.py BUILT PAGES FOLDER ...`` copies the built site into folders of PAGES.

switcher.json in PAGES lists all of them, the newest first, for the menu of the pages.
"""

import json
import os
import shutil
import sys
from pathlib import Path

ROOT = "https://relvec.github.io/relvec"


def add(built: Path, pages: Path, folders: list[str], root: str) -> None:
    """Put the site into the folders, each in place of what it holds, and list all versions."""
    for folder in folders:
        shutil.rmtree(pages / folder, ignore_errors=True)
        shutil.copytree(built, pages / folder)
    # A branch of pages is shown as it is, with files whose names begin with an underscore.
    (pages / ".nojekyll").touch()
    released = {path.name for path in pages.iterdir() if path.is_dir() and path.name[0].isdigit()}
    newest = sorted(released, key=lambda version: [int(part) for part in version.split(".")], reverse=True)
    front = "stable" if newest else "dev"
    listed = [{"version": "dev", "name": "dev (main)", "url": f"{root}/dev/"}]
    for version in newest:
        folder = "stable" if version == newest[0] and (pages / "stable").is_dir() else version
        listed.append({"version": version, "url": f"{root}/{folder}/", "preferred": version == newest[0]})
    (pages / "switcher.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>relvec</title><meta http-equiv="refresh" content="0; url={front}/">\n',
        encoding="utf-8",
    )


if __name__ == "__main__":
    add(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:], os.environ.get("RELVEC_SITE", ROOT))
