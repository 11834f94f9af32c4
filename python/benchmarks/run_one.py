"""One learner on one case, in a process of its own: prints a line of JSON.

python run_one.py CASE NUMBER-OF-THE-ENTRY [FOLDER]
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from cases import Case, Data, all_cases
from learners import learner
from measure import measured


def main() -> None:
    name, number, *folder = sys.argv[1:]
    case = next(c for c in all_cases(Path(folder[0]) if folder else None) if c.name == name)
    warnings.simplefilter("ignore")
    print(json.dumps(run(case, int(number))))


def run(case: Case, number: int) -> dict[str, Any]:
    """Fit, as often as the case says, and judge the last."""
    data = case.make()
    try:
        one = learner(case.entries[number], case.kind, data)
        warm_up(one.make, case.kind)
    except Exception as error:
        return {"failed": f"not runnable: {type(error).__name__}: {error}"}
    costs = []
    for _ in range(case.inner):
        model = one.make()
        try:
            # A fit may return nothing.
            _, cost = measured(lambda model=model: model.fit(data.X, data.t))
        except Exception as error:
            return {"failed": f"the fit failed: {type(error).__name__}: {error}"}
        costs.append(cost)
    out: dict[str, Any] = {
        "wall": median(c.wall for c in costs),
        "cpu": median(c.cpu for c in costs),
        "kernels": one.kernels(model),
        # Later fits find the memory of earlier ones.
        "peak": costs[0].peak,
        **errors(case.kind, model, data),
        **one.facts(model, data),
    }
    if "fit_seconds" in out:
        # The facts are those of the last fit.
        out["overhead"] = max(0.0, costs[-1].wall - out["fit_seconds"])
    return out


def warm_up(make: Any, kind: str) -> None:
    """A tiny fit, so that libraries are loaded and threads started."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    t = X[:, 0] + 0.1 * X[:, 1] ** 2
    # What cannot learn from so little may say so at the real one.
    try:
        make().fit(X, t if kind == "regression" else (t > 0).astype(int))
    except ValueError:
        return


def errors(kind: str, model: Any, data: Data) -> dict[str, float]:
    """Root mean square error, or the share of errors; log loss where there are probabilities."""
    if kind == "regression":
        mean = np.concatenate([model.predict(rows) for rows in blocks(data.X_test)])
        return {"error": float(np.sqrt(np.mean((data.center + data.scale * mean - data.truth) ** 2)))}
    chosen = np.concatenate([model.predict(rows) for rows in blocks(data.X_test)])
    if len(np.unique(data.t)) > 2:
        return {"error": float(np.mean(chosen != data.truth))}
    # The truth is a probability: its rounding is the error that a row is expected to give.
    out = {"error": float(np.mean(np.where(chosen == 1, 1 - data.truth, data.truth)))}
    if hasattr(model, "predict_proba"):
        p = np.concatenate([model.predict_proba(rows)[:, 1] for rows in blocks(data.X_test)])
        p = np.clip(p, 1e-15, 1 - 1e-15)
        out["log_loss"] = float(-np.mean(data.truth * np.log(p) + (1 - data.truth) * np.log(1 - p)))
    return out


def blocks(X: Any) -> list[Any]:
    """The rows, a few thousand at a time: peers make whole kernel matrices of them."""
    return np.array_split(X, max(1, len(X) // 2000))


if __name__ == "__main__":
    main()
