"""The computer, the versions and the commit, in words."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]


def facts(packages: list[str]) -> dict[str, str]:
    """What a reader needs to judge the figures."""
    return {
        "Commit": commit(),
        "Processor": f"{processor()}, {os.cpu_count()} cores, {vector_unit()}",
        "Memory": memory(),
        "System": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "Packages": ", ".join(f"{name} {installed(name)}" for name in packages),
    }


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def commit() -> str:
    """The commit, and whether the sources differ from it."""
    found = git("rev-parse", "--short=12", "HEAD")
    if not found:
        return "unknown"
    # The pages themselves do not count.
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/*.md")
    return found + (", with changes" if changed else "")


def git(*arguments: str) -> str:
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def cpuinfo(*names: str) -> str:
    """A field of /proc/cpuinfo."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""


def processor() -> str:
    return cpuinfo("model name") or platform.processor() or "unknown processor"


def vector_unit() -> str:
    """The widest vector instructions."""
    flags = cpuinfo("flags", "Features").split()
    known = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sse2": "SSE2", "asimd": "NEON"}
    if platform.machine() == "arm64":
        return "NEON"
    return next((name for flag, name in known.items() if flag in flags), "unknown vector unit")


def memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


class Speed:
    """How fast one thread multiplies matrices, asked again and again: how steady the computer is."""

    SIZE = 1000

    def __init__(self) -> None:
        self.figures: list[float] = []
        self.loads: list[float] = []
        self.A = np.random.default_rng(0).standard_normal((self.SIZE, self.SIZE))
        self.out = np.empty_like(self.A)

    def ask(self) -> None:
        """Best of three."""
        seconds = []
        with threadpool_limits(1):
            for _ in range(3):
                start = time.perf_counter()
                np.matmul(self.A, self.A, out=self.out)
                seconds.append(time.perf_counter() - start)
        self.figures.append(2 * self.SIZE**3 / min(seconds) / 1e9)
        if hasattr(os, "getloadavg"):
            self.loads.append(os.getloadavg()[0])

    def text(self) -> str:
        """The figures so far."""
        product = f"{min(self.figures):.0f} to {max(self.figures):.0f} GFLOP/s (median {np.median(self.figures):.0f})"
        load = f"; load average {min(self.loads):.1f} to {max(self.loads):.1f}" if self.loads else ""
        return f"a product of {self.SIZE} x {self.SIZE} by one thread, asked before each case: {product}{load}"
