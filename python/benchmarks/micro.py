"""The pieces of a fit beside numpy and its OpenBLAS, in one run, as a Markdown table.

The Rust bench `passes` and numpy take turns, with as many threads each; the best of the turns counts. The last
column is the speed of this package as a share of numpy's: 1 is as fast, more is faster. Where there are several
threads, the bench is run with one as well, and a column says how many times faster it is with all.

    python python/benchmarks/micro.py --threads 2
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TURNS = 3
Key = tuple[str, str]


def best(work: Callable[[], object], times: int = 7) -> float:
    """Least seconds of one call."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        work()
        seconds.append(perf_counter() - start)
    return min(seconds)


def numpy_pieces(kind: str) -> dict[Key, float]:
    """Seconds of the same work in numpy: of the pieces that run in one thread (`one`), or of those that take all."""
    import numpy as np

    random = np.random.default_rng(0)

    def rows(n: int, m: int) -> np.ndarray:
        return random.uniform(-2, 2, (n, m))

    out: dict[Key, float] = {}
    if kind == "one":
        x = np.full(64_000, -3.0)
        y = np.empty_like(x)
        out["exp, one thread", "64,000"] = best(partial(np.exp, x, out=y))
        for features in (2, 10, 30, 100):
            a, b, c = rows(2048, features), rows(512, features), np.empty((2048, 512))
            key = ("distance product, one thread", f"2,048 x 512 x {features}")
            out[key] = best(partial(np.matmul, a, b.T, out=c))
        return out
    a = rows(2000, 2000)
    out["matrix product", "2,000 x 2,000 x 2,000"] = best(partial(np.matmul, a, a))
    for columns in (250, 500, 1000, 2000):
        k = rows(16_384, columns)
        # numpy calls the symmetric product of BLAS for this.
        out["symmetric product", f"16384 x {columns}"] = best(partial(np.matmul, k.T, k))
    return out


def numpy_process(kind: str, threads: int) -> dict[Key, float]:
    """`numpy_pieces` in a process whose BLAS has that many threads."""
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    command = [sys.executable, __file__, "--numpy", kind]
    text = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {(name, size): seconds for name, size, seconds in json.loads(text)}


def rust_process(threads: int) -> list[dict[str, Any]]:
    """The lines of the bench."""
    command = ["cargo", "bench", "-q", "-p", "relvec", "--bench", "passes", "--"]
    command += ["--json", "--threads", str(threads)]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def faster(kept: dict[Key, dict[str, Any]], lines: list[dict[str, Any]]) -> None:
    """Keep the faster of what there is and these lines."""
    for line in lines:
        key = (line["name"], line["size"])
        if key not in kept or line["seconds"] < kept[key]["seconds"]:
            kept[key] = line


def main() -> None:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--numpy", choices=("one", "all"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.numpy:
        print(json.dumps([[*key, seconds] for key, seconds in numpy_pieces(arguments.numpy).items()]))
        return

    ours: dict[Key, dict[str, Any]] = {}
    alone: dict[Key, dict[str, Any]] = {}
    theirs: dict[Key, float] = {}
    for _ in range(TURNS):
        faster(ours, rust_process(arguments.threads))
        if arguments.threads > 1:
            faster(alone, rust_process(1))
        for kind, threads in (("one", 1), ("all", arguments.threads)):
            for key, seconds in numpy_process(kind, threads).items():
                theirs[key] = min(seconds, theirs.get(key, seconds))

    print(f"{arguments.threads} threads; G/s is 1e9 floating-point operations, or values, a second.\n")
    print("| piece | size | ms | G/s | time / plain products | speed / one thread | speed / numpy |")
    print("|---|---|---|---|---|---|---|")
    for (name, size), line in ours.items():
        seconds = line["seconds"]
        rate = f"{line['work'] / seconds * 1e-9:.2f}" if line["work"] else ""
        plain = f"{seconds / line['plain']:.2f}" if line["plain"] else ""
        peer = f"{theirs[name, size] / seconds:.2f}" if (name, size) in theirs else ""
        scaling = f"{alone[name, size]['seconds'] / seconds:.2f}" if (name, size) in alone else ""
        print(f"| {name} | {size} | {1e3 * seconds:.3g} | {rate} | {plain} | {scaling} | {peer} |")


if __name__ == "__main__":
    main()
