"""A headless Chromium, driven over two pipes by the DevTools protocol: nothing but the browser is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The descriptors that a browser with --remote-debugging-pipe reads and writes.
READS, WRITES = 3, 4
# Seconds that an answer may take: a busy machine starts the browser in ten.
PATIENCE = 60.0


class Browser:
    """A browser with one page; a context manager."""

    def __init__(self) -> None:
        # Not on Windows, where the file is read for the names of its tests alone.
        import fcntl

        found = [path for path in map(shutil.which, NAMES) if path]
        if not found:
            raise RuntimeError(
                f"no Chromium: none of {', '.join(NAMES)} is on the path (Debian: apt-get install chromium)"
            )
        self._profile = tempfile.TemporaryDirectory()
        ours, theirs = os.pipe(), os.pipe()
        # Out of the way of the two descriptors.
        reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (ours[0], theirs[1]))
        self._out, self._in = ours[1], theirs[0]

        def place() -> None:
            os.dup2(reads, READS)
            os.dup2(writes, WRITES)

        # Root has no sandbox of its own, and the pages are ours.
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        self._process = subprocess.Popen(
            [found[0], *flags, "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(READS, WRITES),
            preexec_fn=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (ours[0], theirs[1], reads, writes):
            os.close(end)
        self._number, self._buffer, self._session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        # The browser has processes of its own, all in its group.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0.0))
            part = os.read(self._in, 1 << 16) if ready else b""
            if not part:
                raise RuntimeError(f"Chromium gave no answer (exit code {self._process.poll()})")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(text))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            answer = self._next(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            if "method" in answer:
                self.events.append(answer)

    def open(self, path: Path, width: int, dark: bool = False, height: int = 900) -> None:
        """Show a file in a window of that width, by the colours of that scheme."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        until = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next(until))

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(f"{expression}: {found['exceptionDetails']['text']}")
        return found["result"].get("value")

    def picture(self, path: Path) -> None:
        """Save a picture of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def complaints(self) -> list[str]:
        """What the console says, and exceptions."""
        names = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event["method"] in names]

    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        sent = (event for event in self.events if event["method"] == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]
