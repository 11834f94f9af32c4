"""Peak memory of a fit: 200,000 x 20 rows, a dictionary of 500 of them.

Each case runs in a process of its own. Its peak resident size, less what the process held before the
rows were there, must stay below the size of the rows plus the memory limit of the fit: a C-contiguous
array of float64 is read in place. One of float32 has to be converted, and costs that copy.

    python python/benchmarks/memory.py
"""

import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

ROWS, FEATURES, DICTIONARY = 200_000, 20, 500
MB = 1e6


def resident() -> float:
    """Present resident size of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MB


def case(machine: str, dtype: str, limit: int) -> None:
    """Fit once and print what it took."""
    import numpy as np
    from relvec import RVC, RVR
    from relvec.presets import tipping2001
    from sklearn.exceptions import ConvergenceWarning

    RVR(**tipping2001(), n_jobs=2).fit(np.arange(20.0)[:, None], np.arange(20.0))  # everything is loaded now
    before = resident()
    rng = np.random.default_rng(0)
    X = np.empty((ROWS, FEATURES), dtype=dtype)
    for row in X:  # no copy of float64 beside it
        row[:] = rng.uniform(-2, 2, FEATURES)
    t = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(ROWS)
    y = t > 0
    options = {"dictionary": DICTIONARY, "memory_limit": limit, "n_jobs": 2}
    # Memory is the question here; a classifier would take many minutes to converge.
    if machine == "RVR":
        model = RVR(**tipping2001(0.05), **options)
    else:
        model = RVC(**tipping2001(0.05, task="classify"), time_limit=20.0, **options)
    warnings.simplefilter("ignore", ConvergenceWarning)
    start = time.perf_counter()
    model.fit(X, t if machine == "RVR" else y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB - before
    rows = X.nbytes / MB
    converted = 0.0 if dtype == "float64" else 8 * X.size / MB
    allowed = rows + converted + limit / MB
    verdict = "ok" if peak < allowed else "TOO MUCH"
    print(
        f"{machine} {dtype}: rows {rows:.0f} MB, limit {limit / MB:.0f} MB, peak {peak:.0f} MB of {allowed:.0f} MB: "
        f"{verdict}; {len(model.relevance_)} vectors, {model.report_['status']}, {seconds:.1f} s"
    )
    sys.exit(verdict != "ok")


def main() -> None:
    """Run all cases, and exit with 1 if one took too much."""
    codes = [
        subprocess.run([sys.executable, __file__, machine, dtype, str(limit)]).returncode
        for machine in ["RVR", "RVC"]
        for dtype, limit in [("float64", 128_000_000), ("float64", 1_000_000_000), ("float32", 128_000_000)]
    ]
    sys.exit(max(codes))


if __name__ == "__main__":
    case(sys.argv[1], sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 1 else main()
