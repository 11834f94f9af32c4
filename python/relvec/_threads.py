"""Number of threads of a fit or a prediction."""

from __future__ import annotations

import numbers
import os

import joblib
from joblib.parallel import get_active_backend

# Most threads; starting more would take minutes.
MOST_THREADS = 1024


def threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs` as scikit-learn defines it; None is the number joblib leaves.

    Inside a worker of joblib this is its share of the processors. Otherwise it is all processors, or
    ``OMP_NUM_THREADS`` if that is set (joblib sets it for its processes).
    """
    if n_jobs is not None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral):
            raise ValueError(f"n_jobs = {n_jobs!r}: expected a whole number other than 0, or None")
        if n_jobs > MOST_THREADS:
            raise ValueError(f"n_jobs = {n_jobs!r}: expected at most {MOST_THREADS} threads, or -1 for all processors")
        return int(joblib.effective_n_jobs(n_jobs))
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if limit.isdecimal() and int(limit) >= 1:
        return min(int(limit), int(joblib.cpu_count()))
    backend, _ = get_active_backend()
    if (getattr(backend, "nesting_level", 0) or 0) > 0:
        return 1
    return int(joblib.cpu_count())
