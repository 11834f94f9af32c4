"""Wall time, CPU time and peak memory of a call (memory on Linux alone)."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MB = 1e6
STATUS = Path("/proc/self/status")


@dataclass
class Cost:
    """What a call took: seconds, CPU seconds of all threads, MB at its peak beyond what was resident before."""

    wall: float
    cpu: float
    peak: float | None


def measured(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """The result of a call, and its cost."""
    before = resident()
    forget_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    result = call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    top = peak()
    return result, Cost(wall, cpu, None if top is None or before is None else max(0.0, top - before))


def resident() -> float | None:
    """Present resident size in MB."""
    return field("VmRSS")


def peak() -> float | None:
    """Largest resident size since `forget_peak`, or since the process began where that is not possible."""
    known = field("VmHWM")
    if known is not None:
        return known
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / MB


def forget_peak() -> None:
    """Let the largest resident size start again from the present one."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        # Then the peak is that of the whole process, import and data included, which is no lower.
        return


def field(name: str) -> float | None:
    """A size of /proc/self/status in MB."""
    if not STATUS.exists():
        return None
    for line in STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / MB
    return None


def with_threads(threads: int) -> dict[str, str]:
    """Environment of a process whose libraries use so many threads."""
    names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"]
    return os.environ | dict.fromkeys(names, str(threads))
