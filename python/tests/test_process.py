"""The process prior of the weights from Python: names, shapes, files, what is refused."""

import pickle

import numpy as np
import pytest
from relvec import RVC, RVR, load


def rows(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.standard_normal(n)


def test_attributes_of_a_process_prior():
    X, y = rows()
    model = RVR(gamma=0.5, weight_prior="process").fit(X, y)
    assert set(model.relevance_) <= set(model.centres_)
    assert len(model.relevance_) < len(model.centres_) < 80
    assert np.array_equal(model.relevance_vectors_, X[model.relevance_])
    assert model.dual_coef_.shape == (1, len(model.centres_))
    assert model.covariance_.shape == (1 + len(model.centres_),) * 2
    assert model.well_determined_.shape == model.centres_.shape
    assert model.intercept_alpha_ == 0.0
    assert model.report_["process"]["reached"]
    assert model.report_["process"]["centres"] == len(model.centres_)
    with pytest.raises(AttributeError, match="process prior, and no precisions"):
        _ = model.alpha_
    with pytest.raises(AttributeError, match="has no attribute 'betas_'"):
        _ = model.betas_
    plain = RVR(gamma=0.5, weight_prior="ard").fit(X, y)
    assert np.array_equal(plain.centres_, plain.relevance_)
    assert not hasattr(RVR(), "alpha_")


def test_predictions_covariances_draws_and_files_agree(tmp_path):
    X, y = rows()
    model = RVR(gamma=0.5, weight_prior="process").fit(X, y)
    new = np.vstack([X[:5], [[50.0, 50.0]]])
    mean, std = model.predict(new, return_std=True)
    _, covariance = model.predict(new, return_cov=True)
    assert np.allclose(np.diag(covariance), std**2)
    assert std[-1] > 2.0 * std[0] and np.isclose(mean[-1], model.intercept_)
    draws = model.sample_y(new, n_samples=4000, random_state=0)
    assert np.allclose(np.cov(draws), covariance, atol=0.1 * covariance.max())
    model.save(tmp_path / "model.json")
    for other in (load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert all(map(np.array_equal, other.predict(new, return_std=True), (mean, std)))
        assert np.array_equal(other.relevance_, model.relevance_) and not hasattr(other, "alpha_")


def test_several_outputs_and_a_linear_kernel():
    X, y = rows()
    both = RVR(gamma=0.5, weight_prior="process", residual=0.1).fit(X, np.column_stack([y, 1e3 * y[::-1]]))
    mean, std = both.predict(X, return_std=True)
    assert mean.shape == std.shape == (80, 2) and not hasattr(both, "alpha_")
    assert both.covariance_.shape[0] == 2
    straight = X @ [3.0, -1.0] + 7.0 + 0.1 * np.random.default_rng(1).standard_normal(80)
    line = RVR(kernel="linear", weight_prior="process").fit(X, straight)
    assert np.allclose(line.coef_, [3.0, -1.0], atol=0.05)
    assert np.allclose(line.predict(X), X @ line.coef_ + line.intercept_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight_prior": "ridge"}, "weight_prior = 'ridge': expected one of 'ard', 'process', 'auto'"),
        ({"weight_prior": "process", "kernel": "sigmoid"}, "kernel = sigmoid"),
        ({"weight_prior": "process", "variance": "healed"}, "variance = healed"),
        ({"weight_prior": "process", "basis": "given"}, "basis = given"),
        ({"weight_prior": "process", "likelihood": "student_t"}, "likelihood = student_t"),
        ({"residual": 0.0}, "residual"),
    ],
)
def test_what_has_no_process_is_refused(parameters, message):
    X, y = rows(20)
    with pytest.raises(ValueError, match=message):
        RVR(**parameters).fit(X, y)


def test_a_warm_start_at_a_process_prior_is_refused():
    X, y = rows(30)
    model = RVR(gamma=0.5, weight_prior="process", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="process prior, and no precisions to go on from"):
        model.fit(X, y)


def test_auto_is_the_process_where_there_is_one():
    X, y = rows(40)
    auto = RVR(gamma=0.5, weight_prior="auto").fit(X, y)
    assert np.array_equal(auto.predict(X), RVR(gamma=0.5, weight_prior="process").fit(X, y).predict(X))
    sigmoid = RVR(kernel="sigmoid", weight_prior="auto").fit(X, y)
    assert hasattr(sigmoid, "alpha_")


def test_log_odds_of_classes_under_a_process_prior_are_those_of_the_probabilities():
    X, y = rows()
    for classes in (y > 0.0, np.digitize(y, [-0.5, 0.5])):
        model = RVC(weight_prior="process").fit(X, classes)
        odds, probability = model.decision_function(X), model.predict_proba(X)
        if odds.ndim == 1:
            odds = np.column_stack([np.zeros(len(X)), odds])
        power = np.exp(odds - odds.max(axis=1, keepdims=True))
        assert np.allclose(power / power.sum(axis=1, keepdims=True), probability)
        assert np.array_equal(probability, model.predict_proba(X, moderated=False))
