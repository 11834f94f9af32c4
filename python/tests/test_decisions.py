"""Priors, costs and rejection: what the probabilities of classes are for."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import SVC, NuSVC, load
from sklearn.datasets import load_iris
from sklearn.metrics import RocCurveDisplay, log_loss, roc_auc_score
from support import rvc, rvr

ALIKE = 1.0 - np.eye(2)


def clouds(sizes, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.array(["a", "b", "c"])[: len(sizes)], sizes)
    return rng.normal(np.repeat(np.arange(len(sizes)) * 1.5, sizes)[:, np.newaxis], 1.0, (len(y), 2)), y


@pytest.fixture(scope="module")
def two():
    X, y = clouds([90, 30])
    return rvc(gamma=0.3).fit(X, y), X, y


def machines():
    X, y = clouds([60, 40, 20], 1)
    for own in [
        rvc(gamma=0.3),
        rvc(gamma=0.3, multi_class="one_vs_rest"),
        rvc(gamma=0.3, multi_class="one_vs_one"),
        SVC(gamma=0.3, probability=True),
        NuSVC(nu=0.3, gamma=0.3, probability=True),
        rvc(kernel=lambda A, B: np.exp(-0.3 * ((A[:, np.newaxis] - B) ** 2).sum(axis=2))),
    ]:
        yield own.fit(X, y), X, y


def test_odds_are_shifted_by_the_ratio_of_the_priors():
    for model, X, _ in machines():
        assert_allclose(model.class_prior_, [0.5, 1 / 3, 1 / 6])
        prior = np.array([0.1, 0.2, 0.7])
        expected = model.predict_proba(X) * prior / model.class_prior_
        expected /= expected.sum(axis=1, keepdims=True)
        assert_allclose(model.predict_proba(X, prior=prior), expected, rtol=1e-9)
        assert_allclose(model.predict_log_proba(X, prior=prior), np.log(expected), rtol=1e-9)
        by_name = {"c": 0.7, "a": 0.1, "b": 0.2}
        assert_array_equal(model.predict_proba(X, prior=by_name), model.predict_proba(X, prior=prior))
        decided = model.decide(X, prior=by_name)
        assert_array_equal(decided.probabilities, model.predict_proba(X, prior=prior))
        assert_array_equal(decided.labels, model.classes_[decided.probabilities.argmax(axis=1)])
        assert_array_equal(decided.probability, decided.probabilities.max(axis=1))
        assert not decided.rejected.any() and decided.expected_cost is None


def test_plug_in_probabilities_have_a_prior_too(two):
    model, X, _ = two
    odds = np.diff(model.predict_log_proba(X, moderated=False), axis=1)
    shifted = np.diff(model.predict_log_proba(X, moderated=False, prior=[0.5, 0.5]), axis=1)
    assert_allclose(shifted - odds, np.log(3.0))


def test_a_plain_decision_is_the_prediction(two):
    model, X, _ = two
    assert_array_equal(model.decide(X).labels, model.predict(X))
    assert model.decide(X).labels.dtype == model.classes_.dtype


def test_the_right_prior_helps():
    X, y = clouds([150, 150], 2)
    test, truth = clouds([1800, 200], 3)
    model = rvc(gamma=0.3).fit(X, y)
    prior = {"a": 0.9, "b": 0.1}
    assert log_loss(truth, model.predict_proba(test, prior=prior)) < 0.8 * log_loss(truth, model.predict_proba(test))
    wrong = [np.mean(model.decide(test, prior=p).labels != truth) for p in (prior, None)]
    assert wrong[0] < wrong[1]


def test_priors_of_training_count_weights():
    X, y = clouds([40, 20], 4)
    weights = np.where(y == "a", 1.0, 3.0)
    assert_allclose(rvc(gamma=0.3).fit(X, y, weights).class_prior_, [0.4, 0.6])
    assert_allclose(rvc(gamma=0.3, class_weight="balanced").fit(X, y).class_prior_, [0.5, 0.5])
    # Platt's sigmoids do not know of the weights of classes.
    assert_allclose(SVC(gamma=0.3, class_weight="balanced").fit(X, y).class_prior_, [2 / 3, 1 / 3])
    assert not hasattr(rvr().fit(X, X[:, 0]), "class_prior_")


def test_decisions_have_the_least_expected_cost(two):
    model, X, _ = two
    costs = np.array([[0.0, 1.0], [20.0, 0.5]])
    decided = model.decide(X, costs=costs)
    expected = decided.probabilities @ costs
    assert_array_equal(decided.labels, model.classes_[expected.argmin(axis=1)])
    assert_allclose(decided.expected_cost, expected.min(axis=1))
    assert np.sum(decided.labels == "b") > np.sum(model.predict(X) == "b")
    # A frame is put into the order of the classes, whatever its own.
    frame = pd.DataFrame(costs, index=["a", "b"], columns=["a", "b"]).loc[["b", "a"], ["b", "a"]]
    assert_array_equal(model.decide(X, costs=frame).labels, decided.labels)
    assert_array_equal(model.decide(X, costs=costs.tolist()).labels, decided.labels)
    assert_array_equal(model.decide(X, costs=ALIKE).labels, model.predict(X))


def test_improbable_decisions_are_rejected(two):
    model, X, _ = two
    decided = model.decide(X, reject=0.8)
    assert_array_equal(decided.rejected, decided.probability < 0.8)
    assert 0 < decided.rejected.sum() < len(X) and decided.rejected.dtype == bool
    chow = model.decide(X, costs=ALIKE, reject_cost=0.2)
    assert_array_equal(chow.rejected, decided.rejected)
    assert_allclose(chow.expected_cost, np.minimum(0.2, 1.0 - chow.probability))


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"prior": [0.5, 0.4]}, "sum of 1"),
        ({"prior": [1.5, -0.5]}, r"prior\[1\] = -0.5"),
        ({"prior": [0.5, np.nan]}, r"prior\[1\] = nan"),
        ({"prior": [1.0]}, "1 numbers: expected a probability for each of the 2 classes"),
        ({"prior": [[0.5, 0.5]]}, r"prior has shape \(1, 2\)"),
        ({"prior": ["x", "y"]}, r"prior\[0\] = 'x'"),
        ({"prior": {"a": 0.5, "z": 0.5}}, "prior names the class 'z'"),
        ({"prior": {"a": 1.0}}, "prior leaves out the class 'b'"),
        ({"costs": [[0.0, 1.0]]}, r"costs: expected \[2, 2\].*found \[1, 2\]"),
        ({"costs": [0.0, 1.0]}, r"costs have shape \(2,\)"),
        ({"costs": [[0.0, -1.0], [1.0, 0.0]]}, r"costs\[0, 1\] = -1"),
        ({"costs": [[0.0, np.inf], [1.0, 0.0]]}, r"costs\[0, 1\] = inf"),
        ({"costs": pd.DataFrame(ALIKE, ["a", "b"], ["a", "z"])}, "the columns of costs"),
        ({"costs": pd.DataFrame(ALIKE, ["a", "z"], ["a", "b"])}, "the index of costs"),
        ({"reject": 0.0}, "reject = 0"),
        ({"reject": 1.0}, "reject = 1"),
        ({"reject": "x"}, "reject = 'x'"),
        ({"reject": np.nan}, "reject = nan"),
        ({"reject": 0.5, "costs": ALIKE}, "reject_cost"),
        ({"reject_cost": 0.5}, "reject_cost"),
        ({"reject_cost": -0.5, "costs": ALIKE}, "reject_cost = -0.5"),
    ],
)
def test_bad_priors_costs_and_rejections_are_refused(two, asked, text):
    model, X, _ = two
    with pytest.raises(ValueError, match=text):
        model.decide(X, **asked)
    if list(asked) == ["prior"]:
        with pytest.raises(ValueError, match=text):
            model.predict_proba(X, **asked)


def test_machines_without_probabilities_do_not_decide():
    X, y = clouds([30, 30], 5)
    model = SVC().fit(X, y)
    assert not hasattr(model, "decide") and not hasattr(rvr(), "decide")
    assert hasattr(SVC(probability=True), "decide")


def test_files_keep_the_prior(two, tmp_path):
    model, X, _ = two
    model.save(tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    assert_array_equal(again.class_prior_, model.class_prior_)
    assert_array_equal(again.decide(X, prior=[0.5, 0.5]).labels, model.decide(X, prior=[0.5, 0.5]).labels)


def test_curves_of_scikit_learn_take_our_estimators(two):
    pytest.importorskip("matplotlib").use("Agg")
    model, X, y = two
    display = RocCurveDisplay.from_estimator(model, X, y)
    assert display.roc_auc == pytest.approx(roc_auc_score(y == "b", model.predict_proba(X)[:, 1]))
    display.figure_.clear()


def test_numbers_as_classes():
    X, y = load_iris(return_X_y=True)
    model = rvc(gamma=0.3).fit(X, y)
    by_name = model.decide(X, prior={np.int64(2): 0.5, 0: 0.25, 1.0: 0.25})
    assert_array_equal(by_name.probabilities, model.predict_proba(X, prior=[0.25, 0.25, 0.5]))
