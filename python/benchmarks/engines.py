"""Fits on Dask, Spark and Ray beside processes without an engine; writes docs/engines.md.

Each fit has a process of its own, which starts the engine: engines cannot be started twice, and keep what they took.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import computer
import numpy as np
import pandas as pd
import psutil
from relvec import RVR, _partitions, distributed

PAGE = computer.ROOT / "docs" / "engines.md"
FEATURES = [f"x{k}" for k in range(10)]
PARTS = 16
# A kernel that is given, and as many centres as 1 s of the driver allows: passes are what is measured.
ESTIMATOR = {"gamma": 0.1, "dictionary": 500}
INTRODUCTION = f"""\
Written by `cargo xtask bench engines`. Regression on ten features with one kernel (`gamma=0.1`, 500 centres), in
{PARTS} partitions that the workers hold in memory, one thread a worker.

"No engine" is one process, or two that do nothing but their half of the partitions. "Rows/s" counts a row once a pass.
"CPU" is the processor time of all processes in the passes. The whole fit contains the choice of the centres on a
sample, by one thread of the process that calls `fit`. "Answers" are the bytes of all answers.

"Speed-up" is that of the passes from one worker to two, over that of two processes without an engine. On a computer
that others use it says little. "Work" is the processor time of two processes without an engine, over the engine's.
"""
PASSES: list[dict[str, float]] = []


def write(folder: Path, rows: int) -> None:
    """Files of one partition each; the same rows every time."""
    for part in range(PARTS):
        rng = np.random.default_rng([7, part])
        x = rng.standard_normal((rows // PARTS, len(FEATURES)))
        y = np.sin(2.0 * x[:, 0]) + x[:, 1] * np.cos(x[:, 2]) + 0.5 * x[:, 3] + 0.3 * rng.standard_normal(len(x))
        table = pd.DataFrame(x, columns=FEATURES).assign(y=y)
        table.to_parquet(folder / f"part-{part:03d}.parquet", index=False)


class Processes(_partitions.Partitions):
    """Partitions in this process, or in two processes that do nothing else: what an engine could reach."""

    def __init__(self, folder: str, workers: int) -> None:
        self.n_features, self.feature_names, self.workers = len(FEATURES), FEATURES, workers
        self.files = sorted(str(path) for path in Path(folder).glob("*.parquet"))
        self.pool = ProcessPoolExecutor(workers) if workers > 1 else None

    def each(self, visit: Any, merge: Any) -> bytes:
        """Contiguous halves, each by one process, which keeps its rows."""
        numbered = list(enumerate(self.files))
        halves = [numbered[k * PARTS // self.workers : (k + 1) * PARTS // self.workers] for k in range(self.workers)]
        if self.pool is None:
            return _partitions.tree(visited(visit, halves[0]), merge)
        answers = [self.pool.submit(visited, visit, half) for half in halves]
        return _partitions.tree([one for answer in answers for one in answer.result()], merge)


KEPT: dict[str, Any] = {}


def visited(visit: Any, files: list[tuple[int, str]]) -> list[bytes]:
    """Answers of partitions in this process, whose rows stay in memory."""
    out = []
    for part, path in files:
        if path not in KEPT:
            table = pd.read_parquet(path)
            KEPT[path] = table[FEATURES].to_numpy(), table["y"].to_numpy()
        out.append(visit(part, *KEPT[path], None))
    return out


def nothing(part: int, x: Any, y: Any, *further: Any) -> bytes:
    """The answer of an empty pass."""
    return b"0"


def first(a: bytes, b: bytes) -> bytes:
    """The merge of an empty pass."""
    return a


def processor_time() -> float:
    """Seconds of this process and of all that it has started."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def timed(rows: Any) -> Any:
    """The rows, whose passes are timed and counted into `PASSES`."""
    each = rows.each

    def counted(visit: Any, merge: Any) -> bytes:
        began, busy = time.perf_counter(), processor_time()
        answer = each(visit, merge)
        own = {"seconds": time.perf_counter() - began, "cpu": processor_time() - busy, "bytes": len(answer)}
        PASSES.append(own)
        return answer

    rows.each = counted
    return rows


def on_processes(folder: str, workers: int) -> Any:
    """Partitions without an engine."""
    return Processes(folder, workers), lambda: None


def on_dask(folder: str, workers: int) -> Any:
    """Partitions of Dask, held by its workers."""
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster, wait
    from relvec._dask_rows import Collections

    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    client = Client(cluster)
    frame = dd.read_parquet(f"{folder}/*.parquet", split_row_groups=False).persist()
    wait(frame)
    return Collections(frame[FEATURES], frame["y"]), lambda: (client.close(), cluster.close())


def on_spark(folder: str, workers: int) -> Any:
    """Partitions of Spark, cached."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from relvec.spark import RelevanceVectorRegressor

    own = {"spark.ui.enabled": "false", "spark.log.level": "ERROR", "spark.driver.host": "127.0.0.1"}
    # One partition for each file.
    own |= {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.files.openCostInBytes": "1g",
        "spark.driver.memory": "2g",
    }
    own |= {"spark.sql.files.maxPartitionBytes": "1g", "spark.sql.shuffle.partitions": "4"}
    builder = SparkSession.builder.master(f"local[{workers},4]")
    for name, value in own.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    frame = session.read.parquet(folder).cache()
    frame.count()
    return RelevanceVectorRegressor(featuresCol=FEATURES, labelCol="y")._rows(frame, real=True), session.stop


def on_ray(folder: str, workers: int) -> Any:
    """Blocks of Ray, in its object store."""
    import ray
    from relvec._ray_rows import Blocks

    ray.init(num_cpus=workers, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    tables = [pd.read_parquet(path) for path in sorted(Path(folder).glob("*.parquet"))]
    return Blocks(ray.data.from_pandas(tables), FEATURES, "y", {}), ray.shutdown


ENGINES = {"no engine": on_processes, "Dask": on_dask, "Spark": on_spark, "Ray": on_ray}


def child(engine: str, workers: int, folder: str) -> None:
    """One fit, in this process; prints what it took."""
    rows, stop = ENGINES[engine](folder, workers)
    rows.each(nothing, first)
    empty = []
    for _ in range(3):
        began = time.perf_counter()
        rows.each(nothing, first)
        empty.append(time.perf_counter() - began)
    began = time.perf_counter()
    model = distributed.fit(RVR(**ESTIMATOR, n_jobs=1), timed(rows))
    whole = time.perf_counter() - began
    stop()
    load = os.getloadavg()[0]
    own = {"evidence": model.log_evidence_, "centres": len(model.centres_), "load": load, "whole": whole}
    print(json.dumps({**own, "empty": min(empty), "passes": PASSES}))


def measured(engine: str, workers: int, folder: str) -> dict[str, Any]:
    """What `child` prints, in a process of its own."""
    command = [sys.executable, __file__, "--child", engine, str(workers), folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{engine}, {workers} workers: {done.stderr[-2000:]}")
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    for name in ("seconds", "cpu", "bytes"):
        result[name] = sum(one[name] for one in result["passes"])
    print(engine, workers, {k: v for k, v in result.items() if k != "passes"}, result["passes"], flush=True)
    return result


def table(rows: int, results: dict[tuple[str, int], dict[str, Any]]) -> list[str]:
    """The lines of one size."""
    columns = [
        "engine",
        "workers",
        "passes",
        "seconds",
        "CPU",
        "rows/s",
        "whole fit, s",
        "empty pass, s",
        "answers, MB",
    ]
    columns += ["speed-up", "work"]
    lines = [f"## {rows:,} rows", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    one, two = (results["no engine", workers] for workers in (1, 2))
    for (engine, workers), own in results.items():
        passes, seconds = len(own["passes"]), own["seconds"]
        cells = [
            engine,
            f"{workers}",
            f"{passes}",
            f"{seconds:.2f}",
            f"{own['cpu']:.2f}",
            f"{passes * rows / seconds:,.0f}",
        ]
        cells += [f"{own['whole']:.2f}", f"{own['empty']:.3f}", f"{own['bytes'] * PARTS / 1e6:.1f}"]
        cells += ["", ""]
        if engine != "no engine" and workers == 2:
            speed = results[engine, 1]["seconds"] / seconds
            cells[-2:] = [f"{speed / (one['seconds'] / two['seconds']):.2f}", f"{two['cpu'] / own['cpu']:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    evidence = [own["evidence"] for own in results.values()]
    loads = [own["load"] for own in results.values()]
    spread = (max(evidence) - min(evidence)) / abs(evidence[0])
    lines += ["", f"Log evidence {evidence[0]:.6f} nats, relative spread {spread:.1e}; load average during the runs "]
    lines[-1] += f"{min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} processors."
    return [*lines, ""]


def main() -> None:
    """Run all fits and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[200_000, 2_000_000])
    parser.add_argument("--engines", nargs="+", default=["Dask", "Spark", "Ray"], choices=list(ENGINES)[1:])
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child is not None:
        child(given.child[0], int(given.child[1]), given.child[2])
        return
    own = computer.facts(["relvec", "dask", "distributed", "pyspark", "ray", "pyarrow", "pandas", "numpy"])
    lines = [
        "# Fits on Dask, Spark and Ray",
        "",
        INTRODUCTION,
        *(f"- {name}: {value}" for name, value in own.items()),
        f"- Run: {time.strftime('%Y-%m-%d')}",
        "",
    ]
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), rows)
            cases = [(engine, workers) for engine in ["no engine", *given.engines] for workers in (1, 2)]
            lines += table(rows, {case: measured(*case, folder) for case in cases})
    PAGE.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()
