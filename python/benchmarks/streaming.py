"""Peak memory of `relvec fit` on tables of more and more rows, read in blocks; it must not grow with them.

Friedman 1 with noise 1: 10 features, 500 landmarks; or whether that is above its middle, as classes. The tables
are written to a folder of their own, in pieces, by processes of their own: what a process held before it became
the command counts as its peak.

    cargo build --release -p relvec-cli
    python python/benchmarks/streaming.py target/release/relvec
    python python/benchmarks/streaming.py target/release/relvec --rows 20000 60000 --formats npy csv
    python python/benchmarks/streaming.py target/release/relvec --classes --landmarks 100 --formats npy
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

FEATURES, LANDMARKS = 10, 500
MB = 1e6
#: About the middle of the targets.
MIDDLE = 14.4
#: Rows made at a time.
PIECE = 50_000
#: Most that the peak may differ between the smallest and the largest table, in MB: threads take their
#: pieces of memory in another order every time.
SPREAD = 24.0


def pieces(rows: int, classes: bool) -> Any:
    """Arrays [B, 11] of the table, the target last."""
    import numpy as np

    rng = np.random.default_rng(0)
    for start in range(0, rows, PIECE):
        X = rng.uniform(size=(min(PIECE, rows - start), FEATURES))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        y += rng.standard_normal(len(X))
        yield np.column_stack([X, (y > MIDDLE).astype(float) if classes else y])


def write(path: Path, rows: int, classes: bool) -> None:
    """Write the table; the name's end is its format."""
    import numpy as np

    if path.suffix == ".npy":
        with path.open("wb") as file:
            shape = {"descr": "<f8", "fortran_order": False, "shape": (rows, FEATURES + 1)}
            np.lib.format.write_array_header_1_0(file, shape)
            for piece in pieces(rows, classes):
                file.write(piece.tobytes())
    elif path.suffix == ".csv":
        with path.open("w") as text:
            text.write(",".join(map(str, range(FEATURES + 1))) + "\n")
            for piece in pieces(rows, classes):
                text.writelines(",".join(map(repr, row)) + "\n" for row in piece.tolist())
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        schema = pa.schema([(str(k), pa.float64()) for k in range(FEATURES + 1)])
        with pq.ParquetWriter(path, schema) as writer:
            for piece in pieces(rows, classes):
                writer.write_table(pa.table([pa.array(column) for column in piece.T], schema=schema))


class Run(NamedTuple):
    """What a command took."""

    seconds: float
    peak: float
    output: str


def run(command: list[str]) -> Run:
    """Run a command; its peak resident size is in MB."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Run(time.perf_counter() - start, usage.ru_maxrss * unit / MB, output)


def measure(relvec: str, format: str, rows: int, landmarks: int, classes: bool, folder: Path) -> tuple[Run, Run]:
    """Write a table, fit it and predict it."""
    table, model = folder / f"table.{format}", folder / "model.json"
    kind = ["--classes"] if classes else []
    subprocess.run([sys.executable, __file__, "--write", str(table), "--rows", str(rows), *kind], check=True)
    size = table.stat().st_size / MB
    options = ["--target", str(FEATURES), "--dictionary", str(landmarks), "--stream", "--json", "-o", str(model)]
    options += ["--preset", "tipping2001", "--task", "classify" if classes else "regress"]
    fit = run([relvec, "fit", str(table), *options])
    predict = run([relvec, "predict", str(model), str(table), "-o", str(folder / "predictions.csv")])
    vectors = json.loads(fit.output)["n_vectors"]
    print(
        f"| {format} | {rows:,} | {size:,.0f} | {fit.seconds:.1f} | {fit.peak:.0f} | {vectors} "
        f"| {predict.seconds:.1f} | {predict.peak:.0f} |",
        flush=True,
    )
    table.unlink()
    return fit, predict


def main() -> None:
    """Print the table, and exit with 1 if memory grows with the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("relvec", nargs="?", help="the command, such as target/release/relvec")
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000, 4_000_000])
    parser.add_argument("--landmarks", type=int, default=LANDMARKS)
    parser.add_argument("--formats", nargs="+", choices=["npy", "parquet", "csv"])
    parser.add_argument("--classes", action="store_true", help="two classes instead of real targets")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write(args.write, args.rows[0], args.classes)
        return
    if args.relvec is None:
        parser.error("name the command, such as target/release/relvec")
    formats = args.formats or ["npy", *(["parquet"] if importlib.util.find_spec("pyarrow") else []), "csv"]
    print("| format | rows | file MB | fit s | fit peak MB | vectors | predict s | predict peak MB |")
    print("|---|---|---|---|---|---|---|---|")
    grown = []
    for format in formats:
        with tempfile.TemporaryDirectory() as folder:
            sizes = (args.landmarks, args.classes, Path(folder))
            runs = [measure(args.relvec, format, rows, *sizes) for rows in sorted(args.rows)]
        for k, name in enumerate(["fit", "predict"]):
            growth = runs[-1][k].peak - runs[0][k].peak
            if growth > SPREAD:
                grown.append(f"{format}: the peak of {name} grew by {growth:.0f} MB")
    print("\n".join(grown) or f"memory does not grow with the rows (by at most {SPREAD:.0f} MB)")
    sys.exit(bool(grown))


if __name__ == "__main__":
    main()
