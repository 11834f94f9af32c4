"""More than two classes: one model of all beside models of two, ours and fastrvm's.

    cargo xtask bench classes [--data FOLDER] [--limit SECONDS] [--sets SET ...]

Iris, wine and digits come with scikit-learn: five folds, standardised, rbf with gamma "scale". With --data also the
digits of the USPS (usps_train.csv.gz, usps_test.csv.gz in FOLDER): its split, as it is. Writes docs/classes.md if all
sets are run. A fit that takes longer than the limit is ended: ours with the best model so far, fastrvm's without one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from computer import ROOT, facts
from numpy.typing import NDArray
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

Array = NDArray[Any]
Split = tuple[Array, Array, Array, Array]

FOLDS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
LEARNERS = ["joint", "laplace", "one_vs_rest", "one_vs_one", "fastrvm"]
HEAD = """# More than two classes

Made by `cargo xtask bench classes --data FOLDER` ({made}). Figures are means over the test folds. relvec has the
settings of the papers (`relvec.presets.tipping2001`), which are not the defaults, except for what is named. The two
log losses of relvec are those of moderated probabilities and of probabilities at the mean of the weights
(`moderated=False`). fastrvm has a softmax of one-vs-rest models. Vectors: distinct training rows that the models
need, and their sum over the binary models. `laplace` is `joint` with `posterior="laplace"`. A fit that ran out of time
has that posterior too. Times are those of fits.

{facts}

| set | rows | features | classes | learner | error in % | log loss | vectors | seconds |
|---|---|---|---|---|---|---|---|---|
"""


def splits(name: str, folder: Path | None) -> Iterator[Split]:
    """Training rows and classes, test rows and classes."""
    if name == "usps":
        assert folder is not None
        both = [np.loadtxt(folder / f"usps_{part}.csv.gz", delimiter=",", skiprows=1) for part in ("train", "test")]
        (train, test) = both
        yield train[:, :-1], train[:, -1].astype(int), test[:, :-1], test[:, -1].astype(int)
        return
    X, y = FOLDS[name](return_X_y=True)
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def fit(learner: str, split: Split, limit: float, answer: Any) -> None:
    """Fit, predict, and put the figures where they are waited for."""
    X, y, test, truth = split
    gamma = 1.0 / (X.shape[1] * X.var())
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    if learner == "fastrvm":
        import fastrvm

        model = fastrvm.RVC(kernel="rbf", gamma=gamma).fit(X, y)
        seconds = time.perf_counter() - start
        losses = [log_loss(truth, model.predict_proba(test))]
        vectors = [len(model.relevance_vectors_)]
        ended = ""
    else:
        from relvec import RVC
        from relvec.presets import tipping2001

        own = {"multi_class": "joint", "posterior": "laplace"} if learner == "laplace" else {"multi_class": learner}
        model = RVC(**tipping2001(gamma, task="classify"), time_limit=limit, **own).fit(X, y)
        seconds = time.perf_counter() - start
        losses = [log_loss(truth, model.predict_proba(test, moderated=moderated)) for moderated in (True, False)]
        vectors = [len(model.relevance_), int(np.sum(model.dual_coef_ != 0.0))][
            : 1 if learner in ("joint", "laplace") else 2
        ]
        ended = "" if model.report_["status"] == "converged" else model.report_["status"].replace("_", " ")
    error = 100.0 * float(np.mean(model.predict(test) != truth))
    answer.put({"error": error, "losses": losses, "vectors": vectors, "seconds": seconds, "ended": ended})


def figures(learner: str, split: Split, limit: float) -> dict[str, Any] | None:
    """The figures of one fit in a process of its own; nothing if it took too long or there is no such package."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=fit, args=(learner, split, limit, answer))
    process.start()
    # Beyond the limit a fit of ours has its prediction to make.
    end = time.monotonic() + 2.0 * limit + 30.0 if learner != "fastrvm" else time.monotonic() + limit + 10.0
    while process.is_alive() and time.monotonic() < end and answer.empty():
        process.join(0.2)
    found: dict[str, Any] | None = None if answer.empty() else answer.get()
    process.kill()
    process.join()
    return found


def line(name: str, learner: str, folder: Path | None, limit: float) -> str:
    """A row of the table."""
    runs = []
    for split in splits(name, folder):
        one = figures(learner, split, limit)
        shape = f"| {name} | {len(split[0])} | {split[0].shape[1]} | {len(np.unique(split[1]))} | {learner} |"
        if one is None:
            return f"{shape} none within {limit:.0f} s, or not installed | | | |"
        runs.append(one)
    mean = {key: np.mean([run[key] for run in runs], axis=0) for key in ("error", "losses", "vectors", "seconds")}
    ended = {run["ended"] for run in runs} - {""}
    losses = " / ".join(f"{loss:.4f}" for loss in mean["losses"])
    vectors = ", ".join(f"{count:.1f}" for count in mean["vectors"])
    remark = f" ({', '.join(sorted(ended))})" if ended else ""
    return f"{shape} {mean['error']:.2f} | {losses} | {vectors} | {mean['seconds']:.2f}{remark} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="cargo xtask bench classes", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="where the tables of the USPS are")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds that one fit may take")
    parser.add_argument("--sets", nargs="*", default=[*FOLDS, "usps"], help="default: all")
    options = parser.parse_args()
    sets = [name for name in options.sets if name != "usps" or options.data]
    lines = []
    for name in sets:
        for learner in LEARNERS:
            lines.append(line(name, learner, options.data, options.limit))
            print(lines[-1], flush=True)
    made = f"{time.strftime('%Y-%m-%d')}, at most {options.limit:.0f} s a fit"
    known = "\n".join(
        f"- {key}: {value}" for key, value in facts(["relvec", "fastrvm", "scikit-learn", "numpy"]).items()
    )
    whole = set(sets) == {*FOLDS, "usps"}
    out = ROOT / "docs" / "classes.md" if whole else ROOT / "target" / "classes.md"
    out.write_text(HEAD.format(made=made, facts=known) + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"written to {out}")


if __name__ == "__main__":
    main()
