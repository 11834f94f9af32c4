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


def test_rows_are_left_out_as_a_fit_without_them_predicts():
    X, y = rows(60)
    model = RVR(gamma=0.5, weight_prior="process", residual=0.01).fit(X, y)
    mean, std, log_density = model.leave_one_out(X, y)
    assert np.allclose(log_density, -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((y - mean) / std) ** 2)
    for k in (0, 17, 42):
        without = np.delete(np.arange(60), k)
        other = RVR(gamma=0.5, weight_prior="process", residual=0.01).fit(X[without], y[without])
        # Amplitude, noise and centres are others.
        found, own = other.predict(X[k : k + 1], return_std=True)
        assert abs(mean[k] - found[0]) < 0.2 * own[0] and 0.8 < std[k] / own[0] < 1.25


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
        ({"weight_prior": "ridge"}, "The 'weight_prior' .* {'ard', 'process', 'auto'}. Got 'ridge'"),
        ({"weight_prior": "process", "kernel": "sigmoid"}, "kernel = sigmoid"),
        ({"weight_prior": "process", "variance": "healed"}, "variance = healed"),
        ({"weight_prior": "process", "basis": "given"}, "basis = given"),
        ({"residual": 0.0}, "residual"),
    ],
)
def test_settings_without_a_process_are_refused(parameters, message):
    X, y = rows(20)
    with pytest.raises(ValueError, match=message):
        RVR(**parameters).fit(X, y)


def test_a_warm_start_at_a_process_prior_is_refused():
    X, y = rows(30)
    model = RVR(gamma=0.5, weight_prior="process", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="process prior and no precisions to start from"):
        model.fit(X, y)
    classifier = RVC(weight_prior="process", warm_start=True).fit(X, y > 0.0)
    with pytest.raises(ValueError, match="process prior and no precisions to start from"):
        classifier.fit(X, y > 0.0)


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


@pytest.mark.parametrize("classes", [2, 3])
def test_regression_on_labels_says_why_it_has_no_posterior_of_the_weights(classes, tmp_path):
    X, y = rows()
    model = RVC(weight_prior="process").fit(X, np.digitize(y, [0.0, 0.7][: classes - 1]))
    model.save(tmp_path / "model.json")
    for one in (model, load(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        for name in ("alpha_", "weight_precision_", "covariance_", "well_determined_"):
            assert not hasattr(one, name)
        for name in ("alpha_", "covariance_", "well_determined_"):
            with pytest.raises(AttributeError, match=f"{name}: .*regression on their labels.*weight_prior='ard'"):
                getattr(one, name)
    again = model.set_params(weight_prior="ard").fit(X, y > 0.0)
    assert again.alpha_.shape == again.well_determined_.shape == again.relevance_.shape
    assert not hasattr(again.set_params(weight_prior="process").fit(X, y > 0.0), "alpha_")
    assert not any(hasattr(RVC(), name) for name in ("alpha_", "weight_precision_"))
