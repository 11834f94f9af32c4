"""Rows of all engines, the fit that they are compared with, and a failure in the middle of a pass."""

import os
import signal
from itertools import pairwise

import numpy as np
import pandas as pd
from relvec import _partitions, distributed

FEATURES = ["a", "b", "c"]
PARTS = 6
# Fewer than the rows: the sums then come from passes over all rows, and not from the sample.
SAMPLE = 300
# Partition without rows, and the one whose worker is killed.
EMPTY, FATAL = 2, 3


def frame(rows=600, seed=0):
    """A table with three features, a weight, a real target, and classes as words and as numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    y = np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * rng.normal(size=rows)
    table = pd.DataFrame(x, columns=FEATURES).assign(w=rng.uniform(0.5, 2.0, rows), y=y)
    table = table.assign(k=np.where(y > 0.5, "up", np.where(y < -0.5, "down", "middle")), n=(y > 0.0) * 1.0)
    table["days"] = rng.uniform(0.5, 3.0, rows)
    return table.assign(
        visits=rng.poisson(table["days"] * np.exp(y)).astype(float), known=rng.uniform(0.02, 0.06, rows)
    )


def parts(table):
    """The table in partitions, of which one is empty."""
    cuts = np.linspace(0, len(table), PARTS).astype(int)
    own = [table[a:b] for a, b in pairwise(cuts)]
    return [*own[:EMPTY], table[:0], *own[EMPTY:]]


class Held(_partitions.Partitions):
    """Partitions that this process holds."""

    def __init__(self, parts, label, weight=None, **further):
        self.parts, self.label, self.further = parts, label, {"sample_weight": weight, **further}
        self.n_features, self.feature_names = len(FEATURES), FEATURES

    def each(self, visit, merge):
        def one(k, part):
            further = {own: part[name].to_numpy() for own, name in self.further.items() if name}
            rest = _partitions.in_order(further)
            return visit(k, part[FEATURES].to_numpy(), part[self.label].to_numpy(), *rest)

        return _partitions.tree([one(k, part) for k, part in enumerate(self.parts)], merge)


def held(estimator, parts, label, weight=None, **further):
    """The model of the same partitions in this process."""
    return distributed.fit(estimator, Held(parts, label, weight, **further), sample=SAMPLE)


# Estimators of all likelihoods and priors beside those by default, with target, exposures and noise variances.
OTHERS = [
    ({"likelihood": "poisson"}, "visits", {"exposure": "days"}),
    ({"likelihood": "poisson", "weight_prior": "ard"}, "visits", {"exposure": "days"}),
    ({"likelihood": "student_t", "weight_prior": "ard"}, "y", {}),
    ({}, "y", {"noise_variance": "known"}),
]


def assert_same(model, other):
    """Two models are equal, to the last bit."""
    assert model.log_evidence_ == other.log_evidence_
    for name in ("relevance_vectors_", "dual_coef_", "gamma_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))


def deadly(folder):
    """The function that answers queries, but which kills its own process at one partition, once."""
    mark, answer = os.path.join(folder, "killed"), _partitions.answer

    def once(query, classes, part, x, y, *further):
        if part == FATAL and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return answer(query, classes, part, x, y, *further)

    return once, mark
