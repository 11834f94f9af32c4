"""Error, evidence and time compared with fastrvm's over several draws of rows and noise: prints a line of JSON.

On a single draw it is chance which of two models of the same evidence has the lower error, and when a search reaches an
evidence. For regressions a third fit starts from fastrvm's model. Its evidence and error show the effect of a longer
search.

python draws.py DRAWS THREADS
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from cases import Data, Entry, friedman_data, mixture_data, sinc_data
from learners import learner, precisions
from report import reached
from run_one import errors

PROBLEMS: dict[str, tuple[str, Callable[[int], Data]]] = {
    "friedman-2000": ("regression", lambda seed: friedman_data(2000, seed)),
    "sinc-4000": ("regression", lambda seed: sinc_data(4000, seed)),
    "mixture-2000": ("classes", lambda seed: mixture_data(2000, seed)),
    "small-friedman-100": ("regression", lambda seed: friedman_data(100, seed)),
    "small-mixture-200": ("classes", lambda seed: mixture_data(200, seed)),
}


def main() -> None:
    draws, threads = map(int, sys.argv[1:])
    warnings.simplefilter("ignore")
    pair = (Entry("fastrvm"), Entry("relvec", threads))
    # Libraries are loaded by a fit that is not timed.
    compare("regression", friedman_data(50), pair)
    found = {
        name: [compare(kind, make(10 + draw), pair) for draw in range(draws)] for name, (kind, make) in PROBLEMS.items()
    }
    print(json.dumps(found))


def compare(kind: str, data: Data, pair: tuple[Entry, ...]) -> dict[str, Any]:
    """Error and evidence of each on the same data, and the time of the first to that of the second at its evidence."""
    out: dict[str, Any] = {"kind": kind}
    theirs: dict[str, Any] = {}
    for entry in pair:
        one = learner(entry, kind, data)
        model = one.make()
        start = time.perf_counter()
        model.fit(data.X, data.t)
        wall = time.perf_counter() - start
        facts = one.facts(model, data)
        out[entry.learner] = [errors(kind, model, data)["error"], facts["evidence"]]
        if entry.learner == "fastrvm":
            theirs = facts | {"wall": wall}
        elif theirs:
            seconds = reached(facts | {"overhead": wall - facts["fit_seconds"]}, theirs["targets"])
            out["ratios"] = [theirs["wall"] / seconds if seconds else None, theirs["wall"] / wall]
        if entry.learner == "fastrvm" and kind == "regression":
            out["on"] = on_from(precisions(model, data), pair[-1], data)
    return out


def on_from(start: dict[str, Any], entry: Entry, data: Data) -> list[float]:
    """Error and evidence of relvec where it goes on from those precisions."""
    own = Entry("relvec", entry.threads, {"search": {"start": {"given": start}}})
    one = learner(own, "regression", data)
    model = one.make()
    model.fit(data.X, data.t)
    return [errors("regression", model, data)["error"], one.facts(model, data)["evidence"]]


if __name__ == "__main__":
    main()
