"""Floating-point operations of a fit to classes and of a regression beside it: prints a line of JSON.

python operations.py ROWS LANDMARKS THREADS [FOLDER]

Each is counted exactly: valgrind's callgrind runs the fit in an emulated processor (with AVX2) and says
how often every instruction was executed, objdump which instruction it is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from cases import Array, skin_data
from classes import simulated
from landmarks import GAMMA

KINDS = ("regression", "classes")
# Arithmetic on double or single precision, one number or as many as fit into a register.
ARITHMETIC = re.compile(
    r"v?(fn?m(?:add|sub|addsub|subadd)\d*|h?add|h?sub|addsub|mul|div|sqrt|min|max|round)([ps])([sd])$"
)
BYTES = {"%zmm": 64, "%ymm": 32, "%xmm": 16}
# A line of costs: an address or its distance from the last, a line of the source, and how often.
COST = re.compile(r"(0x[0-9a-f]+|[+-]\d+|\*) \S+(?: (\d+))?$")
NAMED = re.compile(r"ob=(\(\d+\))(?: (.*))?$")


def main() -> None:
    rows, size, threads, *rest = sys.argv[1:]
    if rest and rest[-1] in KINDS:
        fit(int(rows), int(size), int(threads), rest[0], rest[-1])
        return
    for tool in ("valgrind", "objdump"):
        if shutil.which(tool) is None:
            print(json.dumps({"failed": f"{tool} is not installed"}))
            return
    found = {"friedman": counted([rows, size, threads, "-"])}
    if rest:
        found["skin_nonskin"] = counted([rows, size, threads, rest[0]])
    print(json.dumps(found))


def data(rows: int, folder: str) -> tuple[Array, Array, Array, Any]:
    """Rows, targets, classes and gamma: simulated, or the first of a table in a folder."""
    if folder == "-":
        return *simulated(rows), GAMMA
    skin = skin_data(Path(folder))
    return skin.X[:rows], skin.t[:rows].astype(float), skin.t[:rows], skin.gamma


def fit(rows: int, size: int, threads: int, folder: str, kind: str) -> None:
    """What is counted."""
    from relvec import RVC, RVR
    from relvec.presets import tipping2001

    warnings.simplefilter("ignore")
    X, t, labels, gamma = data(rows, folder)
    if kind == "regression":
        model = RVR(**tipping2001(gamma), dictionary=size, n_jobs=threads).fit(X, t)
    else:
        model = RVC(**tipping2001(gamma, task="classify"), dictionary=size, n_jobs=threads).fit(X, labels)
    print(json.dumps({"kernels": len(model.relevance_), "evidence": model.log_evidence_}))


def counted(settings: list[str]) -> dict[str, Any]:
    """Both fits side by side, and their operations."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as profiles:
        running = []
        for kind in KINDS:
            tool = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={profiles}/{kind}"]
            own = [sys.executable, __file__, *settings, kind]
            running.append(subprocess.Popen([*tool, *own], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        for kind, process in zip(KINDS, running, strict=True):
            said, words = process.communicate()
            if process.returncode != 0:
                raise SystemExit((words.strip() or "nothing said").splitlines()[-1])
            known = json.loads(said.strip().splitlines()[-1])
            out[kind] = {"operations": operations(Path(profiles) / kind), **known}
    return out


def operations(profile: Path) -> int:
    """Floating-point operations that relvec's own code has executed."""
    total, address, called = 0, 0, False
    ours: dict[int, int] = {}
    libraries: dict[str, str] = {}
    known: dict[str, dict[int, int]] = {}
    with profile.open() as lines:
        for line in lines:
            if named := NAMED.match(line):
                libraries[named[1]] = named[2] or libraries[named[1]]
                path = libraries[named[1]]
                if path not in known:
                    known[path] = instructions(path) if Path(path).parent.name == "relvec" else {}
                ours = known[path]
            elif line.startswith("c") and (named := NAMED.match(line[1:])):
                libraries[named[1]] = named[2] or libraries[named[1]]
            elif line.startswith("calls="):
                # The next line has what the function called has cost.
                called = True
            elif cost := COST.match(line.rstrip("\n")):
                place = cost[1]
                address = int(place, 16) if place.startswith("0x") else address + (0 if place == "*" else int(place))
                if not called and cost[2]:
                    total += ours.get(address, 0) * int(cost[2])
                called = False
    return total


def instructions(library: str) -> dict[int, int]:
    """By address, the operations of each instruction that has any."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for line in listing.splitlines():
        place, _, words = line.partition(":")
        name, _, operands = words.strip().partition(" ")
        if many := worth(name, operands):
            found[int(place, 16)] = many
    return found


def worth(name: str, operands: str) -> int:
    """Operations of one instruction."""
    arithmetic = ARITHMETIC.match(name)
    if arithmetic is None:
        return 0
    operation, many, width = arithmetic.groups()
    size = next((size for register, size in BYTES.items() if register in operands), 16)
    numbers = size // (8 if width == "d" else 4) if many == "p" else 1
    return numbers * (2 if operation.startswith("f") else 1)


if __name__ == "__main__":
    main()
