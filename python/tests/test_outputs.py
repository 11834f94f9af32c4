"""Several outputs of one regression."""

import re

import numpy as np
import pytest
from relvec import SVR, load
from relvec.plotting import RegressionDisplay
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import rvr


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = np.sort(random.uniform(-3, 3, (120, 1)), axis=0)
    x = X[:, 0]
    t = np.stack([np.sin(2 * x), 100 * np.cos(1.3 * x) + 5e3, 1e-3 * x], axis=1)
    return X, t + [0.1, 20.0, 2e-4] * random.standard_normal(t.shape)


def test_shapes_and_parts(data):
    X, t = data
    model = rvr(gamma=0.5).fit(X, t)
    kept = len(model.relevance_)
    assert model.n_outputs_ == 3
    assert model.dual_coef_.shape == model.alpha_.shape == (3, kept)
    assert model.intercept_.shape == model.noise_variance_.shape == (3,)
    mean, std, model_std, noise_std = model.predict(X, return_std=True, return_parts=True)
    assert mean.shape == std.shape == (120, 3)
    assert np.allclose(model_std**2 + noise_std**2, std**2)
    assert np.allclose(noise_std, np.sqrt(model.noise_variance_))
    assert np.allclose(model.predict(X), mean, rtol=1e-12)
    assert np.all(np.abs(model.noise_variance_**0.5 / [0.1, 20.0, 2e-4] - 1) < 0.3)
    inside = np.mean(np.abs(t - mean) < 1.96 * std, axis=0)
    assert np.all(inside > 0.88)
    assert model.score(X, t) > 0.9
    # Precisions are relative to those of the noise.
    assert np.allclose(model.alpha_ * model.noise_variance_[:, np.newaxis], model.alpha_[0] * model.noise_variance_[0])
    weights = model.covariance_.shape[1]
    assert model.covariance_.shape == (3, weights, weights)


def test_one_output_alone_is_a_model_like_any(data, tmp_path):
    X, t = data
    model = rvr(gamma=0.5).fit(X, t)
    mean, std = model.predict(X, return_std=True)
    cov = model.predict(X[:7], return_cov=True)[1]
    draws = model.sample_y(X[:7], 400, random_state=1)
    left = model.leave_one_out(X, t)
    assert cov.shape == (7, 7, 3) and draws.shape == (7, 3, 400) and left[0].shape == (120, 3)
    for k in range(3):
        one = model.output(k)
        own = one.predict(X, return_std=True)
        assert np.allclose(own[0], mean[:, k], rtol=1e-12) and np.allclose(own[1], std[:, k], rtol=1e-9)
        assert np.allclose(np.sqrt(np.diag(cov[:, :, k])), std[:7, k], rtol=1e-9)
        assert np.allclose(one.alpha_, model.alpha_[k]) and one.noise_variance_ == pytest.approx(
            model.noise_variance_[k]
        )
        assert np.allclose(one.covariance_, model.covariance_[k])
        assert np.allclose(one.leave_one_out(X, t[:, k])[2], left[2][:, k])
        spread = np.abs(draws[:, k].mean(axis=1) - mean[:7, k]) / std[:7, k]
        assert np.all(spread < 0.3)
        assert RegressionDisplay.from_estimator(one, X, t[:, k]) is not None
    # Draws of outputs are independent.
    residuals = draws[0] - mean[0][:, np.newaxis]
    assert abs(np.corrcoef(residuals[0], residuals[2])[0, 1]) < 0.2
    with pytest.raises(ValueError, match=re.escape("output(k)")):
        RegressionDisplay.from_estimator(model, X, t[:, 0])
    with pytest.raises(ValueError, match="output 3 of a model of 3"):
        model.output(3)
    path = tmp_path / "model.json"
    model.save(path)
    again = load(path)
    assert np.array_equal(again.predict(X), model.predict(X)) and np.array_equal(again.alpha_, model.alpha_)


def test_shared_vectors_are_fewer_than_those_of_each_alone(data):
    X, t = data
    shared = rvr(gamma=0.5).fit(X, t)
    each = MultiOutputRegressor(rvr(gamma=0.5)).fit(X, t)
    assert len(shared.relevance_) < sum(len(one.relevance_) for one in each.estimators_)
    error = np.sqrt(np.mean((shared.predict(X) - each.predict(X)) ** 2, axis=0))
    assert np.all(error < 0.5 * np.sqrt(shared.noise_variance_))


@pytest.mark.parametrize("inference", ["search", "mackay", "em"])
def test_schemes_weights_and_columns(data, inference):
    X, t = data
    weights = np.arange(120) % 2 + 1.0
    model = rvr(gamma=0.5, search={"scheme": inference, "max_iterations": 50_000}).fit(X, t, sample_weight=weights)
    twice = rvr(gamma=0.5, search={"scheme": inference, "max_iterations": 50_000}).fit(
        np.repeat(X, weights.astype(int), axis=0), np.repeat(t, weights.astype(int), axis=0)
    )
    assert model.log_evidence_ == pytest.approx(twice.log_evidence_, rel=1e-6)
    column = rvr(gamma=0.5, search=inference).fit(X, t[:, :1])
    plain = rvr(gamma=0.5, search=inference).fit(X, t[:, 0])
    assert column.n_outputs_ == 1 and np.array_equal(column.predict(X), plain.predict(X))


def test_several_outputs_take_every_source_of_basis_functions(data):
    X, t = data

    def rbf(A, B):
        return np.exp(-0.5 * np.sum((A[:, np.newaxis] - B) ** 2, axis=-1))

    expected = rvr(gamma=0.5).fit(X, t).predict(X)
    size = 0.1 * np.sqrt(rvr(gamma=0.5).fit(X, t).noise_variance_)
    K = rbf(X, X)
    for model, rows in [
        (rvr(kernel=rbf), X),
        (rvr(kernel="precomputed"), K),
        (rvr(basis="given"), K),
        (rvr(gamma=0.5, landmarks=X), X),
    ]:
        mean, std = model.fit(rows, t).predict(rows, return_std=True)
        assert np.all(np.abs(mean - expected) < size) and std.shape == mean.shape
    linear = rvr(kernel="linear").fit(X, t)
    assert linear.coef_.shape == (3, 1)
    assert np.allclose(X @ linear.coef_.T + linear.intercept_, linear.predict(X))
    learnt = make_pipeline(StandardScaler(), rvr(gamma="evidence")).fit(X, t)
    assert learnt[-1].log_evidence_ > rvr().fit(StandardScaler().fit_transform(X), t).log_evidence_ - 1


def test_moved_centres_raise_the_evidence_of_outputs(data):
    X, t = data
    model = rvr(gamma=0.5, dictionary=4, centres="learned")
    assert model.__sklearn_tags__().target_tags.multi_output
    search = model.fit(X, t).report_["centre_search"]
    assert search["kept"] and model.log_evidence_ > search["fixed_log_evidence"]
    assert not np.isin(model.relevance_vectors_, X).any()


def test_noise_of_each_row_and_warm_start(data):
    X, t = data
    own = np.where(X[:, 0] > 0, 0.04, 0.01)
    model = rvr(gamma=0.5).fit(X, t * [1, 1e-2, 1e3], noise_variance=own)
    std, noisy = (model.predict(X, return_std=True, noise_variance=v)[1] for v in [None, own])
    assert np.allclose(noisy**2, std**2 + own[:, np.newaxis])
    warm = rvr(gamma=0.5, warm_start=True).fit(X, t)
    before = warm.log_evidence_
    assert warm.fit(X, t).log_evidence_ == pytest.approx(before, abs=0.05)
    with pytest.raises(ValueError, match="the earlier model has 3 outputs, y has 1"):
        warm.fit(X, t[:, 0])


def test_names_of_frames(data):
    pandas = pytest.importorskip("pandas")
    X, t = data
    frame = pandas.DataFrame(t, columns=["a", "b", "c"])
    model = rvr(gamma=0.5).fit(pandas.DataFrame(X, columns=["x"]), frame)
    assert model._model.targets == ["a", "b", "c"] and model.output(1)._model.target == "b"


def test_reliable_variances_cover_several_outputs(data):
    X, t = data
    model = rvr(gamma=0.5, sparsity=1.0, variance="healed", calibrate=True).fit(X, t)
    mean, std = model.predict(X, return_std=True)
    inside = np.mean(np.abs(t - mean) < 1.96 * std, axis=0)
    assert np.all(inside > 0.9)
    far = model.predict([[40.0]], return_std=True)[1][0]
    ratio = far / (t.std(axis=0) * np.sqrt(model.variance_factor_))
    assert np.all((ratio > 0.98) & (ratio < 1.3))
    assert np.all(model.predict(X, return_std=True, variance="posterior")[1] <= std)
    assert model.report_["validation"]["coverage"] > 0.85
    for k in range(3):
        assert np.allclose(model.output(k).predict(X, return_std=True)[1], std[:, k])


def test_several_outputs_reject_settings_of_one(data):
    X, t = data
    for parameters in [
        {"search": "variational"},
        {"keep_statistics": True, "dictionary": 10},
        {"likelihood": "student_t"},
    ]:
        model = rvr(**parameters)
        assert not model.__sklearn_tags__().target_tags.multi_output
        with pytest.raises(ValueError, match=r"outputs|one output"):
            model.fit(X, t)
    assert rvr().__sklearn_tags__().target_tags.multi_output
    t = t.copy()
    t[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        rvr().fit(X, t)
    with pytest.raises(ValueError):
        SVR().fit(X, data[1])
    model = rvr(gamma=0.5).fit(X, data[1])
    with pytest.raises(ValueError, match="y has 2 columns: expected 3"):
        model.leave_one_out(X, data[1][:, :2])


def test_beside_a_linear_model(data):
    X, t = data
    assert rvr(gamma=0.5).fit(X, t).score(X, t) > Ridge().fit(X, t).score(X, t)
