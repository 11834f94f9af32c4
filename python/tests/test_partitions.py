"""What all engines share, without one: partitions of this process."""

import itertools
import pickle

import numpy as np
import pytest
from relvec import RVC, RVR, _partitions, distributed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.2 * RNG.normal(size=len(X))
WORDS = np.where(Y > 0.0, "up", "down")


class Held(_partitions.Partitions):
    """Partitions of rows, targets and weights."""

    def __init__(self, *parts):
        self.parts, self.n_features = parts, 2

    def each(self, visit, merge):
        return _partitions.tree([visit(k, *part) for k, part in enumerate(self.parts)], merge)


def cut(y, cuts, x=X):
    edges = [0, *cuts, len(X)]
    return Held(*((x[a:b], y[a:b], None) for a, b in itertools.pairwise(edges)))


def test_a_tree_of_groups_is_the_tree_of_all():
    def joined(a, b):
        return f"({a}{b})"

    for count in range(1, 70):
        items = [chr(65 + k) for k in range(count)]
        groups = [_partitions.tree(items[k : k + 8], joined) for k in range(0, count, 8)]
        assert _partitions.tree(groups, joined) == _partitions.tree(items, joined)
    with pytest.raises(ValueError, match="there is no partition"):
        _partitions.tree([], joined)


def test_classes_are_united_over_partitions_that_miss_some():
    rows = cut(WORDS[np.argsort(WORDS)], [100, 100], X[np.argsort(WORDS)])
    assert list(rows.classes()) == ["down", "up"]
    model = distributed.fit(RVC(), rows, sample=200)
    assert list(model.classes_) == ["down", "up"]
    assert np.mean(model.predict(X) == WORDS) > 0.85


def test_an_empty_partition_does_not_change_the_type_of_labels():
    empty = pickle.dumps(np.empty(0))
    words = _partitions.labels(0, None, WORDS, None)
    for pair in [(empty, words), (words, empty)]:
        np.testing.assert_array_equal(pickle.loads(_partitions.union(*pair)), ["down", "up"])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(400, "up"), "y has only these classes: 'up'; two classes are needed"),
        (np.array([1, "a"] * 200, dtype=object), "partition 0: y holds labels that cannot be sorted"),
        (np.array([1] * 150 + ["a"] * 250, dtype=object), "y holds labels that cannot be sorted"),
        (
            np.array(["a"] * 200 + [None] * 200, dtype=object),
            r"^partition 1: y\[50\] = None: every row must have a class",
        ),
    ],
)
def test_labels_that_are_no_classes_are_rejected(y, message):
    with pytest.raises(ValueError, match=message):
        distributed.fit(RVC(), cut(y, [150]))


def test_a_label_that_the_first_pass_did_not_meet_is_named():
    classes = np.array(["down", "up"])
    np.testing.assert_array_equal(_partitions.places(0, ["up", "down"], classes), [1, 0])
    with pytest.raises(ValueError, match=r"^partition 1: y\[2\] = .*'new'.*did not meet it"):
        _partitions.places(1, ["up", "down", "new"], classes)


def test_cells_that_are_no_numbers_are_named():
    x = X.astype(object)
    x[153, 1] = "high"
    with pytest.raises(ValueError, match=r"^partition 1: X\[3, 1\] = 'high': expected a number"):
        distributed.fit(RVR(), cut(Y, [150], x))


def test_a_model_for_tasks_has_one_thread_and_the_model_stays():
    model = RVR(n_jobs=2, gamma=0.5).fit(X, Y)
    own = _partitions.for_task(model)
    assert (own.n_jobs, model.n_jobs) == (1, 2)
    np.testing.assert_array_equal(own.predict(X), model.predict(X))
