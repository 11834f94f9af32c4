"""What the benchmarks compute themselves."""

import sys
from pathlib import Path

import numpy as np
import pytest
from relvec import RVC, RVR

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
GAMMA = 0.5


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    if not BENCHMARKS.exists():
        pytest.skip("the benchmarks are not there")
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (80, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(80)


def design(model, X):
    """Basis functions of a fitted machine, the constant last, and their precisions."""
    from learners import rbf

    Phi = np.column_stack([rbf(X, model.relevance_vectors_, GAMMA), np.ones(len(X))])
    return Phi, np.append(model.alpha_, model.intercept_alpha_)


def test_evidence_of_a_regression_is_that_of_relvec(rows):
    from evidence import Gaussian

    X, t = rows
    model = RVR(gamma=GAMMA).fit(X, t)
    Phi, alpha = design(model, X)
    own = Gaussian(Phi, t)
    beta = 1 / model.noise_variance_
    assert own(alpha, beta) == pytest.approx(model.log_evidence_, abs=1e-6)
    kept = np.isfinite(alpha)
    best = Gaussian(Phi[:, kept], t).optimum(alpha[kept], beta)
    # The fit has ended where no precision can be improved.
    assert model.log_evidence_ <= best + 1e-9
    assert best < model.log_evidence_ + 0.01


def test_evidence_of_classes_is_that_of_relvec(rows):
    from evidence import Laplace

    X, t = rows
    model = RVC(gamma=GAMMA).fit(X, (t > 0.3 * np.cos(5 * t)).astype(int))
    y = (t > 0.3 * np.cos(5 * t)).astype(float)
    Phi, alpha = design(model, X)
    assert Laplace(Phi, y)(alpha) == pytest.approx(model.log_evidence_, abs=1e-6)
    kept = np.isfinite(alpha)
    assert Laplace(Phi[:, kept], y).optimum(alpha[kept]) >= model.log_evidence_ - 1e-6


@pytest.mark.parametrize("name", ["Gaussian", "Laplace"])
def test_gradients_of_the_evidence(rows, name, monkeypatch):
    import evidence
    from learners import rbf

    X, t = rows
    Phi = rbf(X, X[:4], GAMMA)
    asked = []
    monkeypatch.setattr(evidence, "highest", lambda negative, start: asked.append((negative, start)))
    if name == "Gaussian":
        evidence.Gaussian(Phi, t).optimum(np.array([0.5, 1.0, 2.0, 3.0]), 20.0)
    else:
        evidence.Laplace(Phi, (t > 0).astype(float)).optimum(np.array([0.5, 1.0, 2.0, 3.0]))
    negative, start = asked[0]
    steps = 1e-4 * np.eye(len(start))
    slopes = [(negative(start + step)[0] - negative(start - step)[0]) / 2e-4 for step in steps]
    np.testing.assert_allclose(negative(start)[1], slopes, rtol=1e-5, atol=1e-5)


def test_time_to_an_evidence_is_counted_over_all_traces():
    from report import reached

    record = {"overhead": 0.5, "traces": [[[1.0, 2.0, 3.0], [-9.0, -5.0, -4.0]], [[0.25, 4.0], [-1.0, 0.0]]]}
    assert reached(record, [-5.0, -1.0]) == 0.5 + 2.0 + 0.25
    assert reached(record, [-5.0, 0.5]) is None
    assert reached({"wall": 1.0}, [-5.0]) is None


def test_cases_have_different_names_and_known_learners():
    from cases import all_cases
    from learners import LEARNERS

    cases = all_cases(BENCHMARKS)
    assert len({case.name for case in cases}) == len(cases) > len(all_cases(None))
    assert {entry.learner for case in cases for entry in case.entries} <= set(LEARNERS)


def test_calibration_error_is_that_of_the_display():
    from calibration import calibration_error
    from relvec.plotting import ReliabilityDisplay

    rng = np.random.default_rng(0)
    probability = rng.dirichlet([1.0, 1.0, 1.0], 300)
    truth = np.array(["a", "b", "c"])[rng.integers(3, size=300)]
    classes = np.array(["a", "b", "c"])
    pytest.importorskip("matplotlib").use("Agg")
    display = ReliabilityDisplay.from_predictions(truth, probability, classes=classes)
    assert calibration_error(truth, probability, classes) == pytest.approx(display.calibration_error, rel=1e-12)
    display.figure_.clear()


def test_splits_of_calibration_are_standardised_by_their_training_rows(tmp_path):
    from calibration import splits

    rng = np.random.default_rng(0)
    X = np.column_stack([5.0 + 3.0 * rng.standard_normal(40), np.ones(40)])
    order = np.array([rng.permutation(40) for _ in range(3)])
    np.savez(
        tmp_path / "ida_benchmarks.npz",
        toy__X=X,
        toy__y=np.repeat([-1, 1], 20),
        toy__train_idx=order[:, :30],
        toy__test_idx=order[:, 30:],
    )
    found = list(splits(tmp_path, "toy", 2))
    assert len(found) == 2
    for (own, labels, test, truth), rows in zip(found, order, strict=False):
        assert (own.shape, test.shape, len(labels), len(truth)) == ((30, 2), (10, 2), 30, 10)
        assert own.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
        assert own[:, 0].std() == pytest.approx(1.0) and np.all(test[:, 1] == 0.0)
        assert test[:, 0] == pytest.approx((X[rows[30:], 0] - X[rows[:30], 0].mean()) / X[rows[:30], 0].std())
