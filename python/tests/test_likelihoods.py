"""Counts, outliers, and noise that is known of each row."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import Statistics, load
from scipy.optimize import minimize
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import cross_val_score
from support import put, rvc, rvr, sinc

X, T = sinc()
RNG = np.random.default_rng(1)
V = np.where(X[:, 0] < 0, 0.01**2, 0.3**2)
UNEVEN = np.sinc(X[:, 0] / np.pi) + np.sqrt(V) * RNG.standard_normal(len(X))
DAYS = RNG.integers(1, 8, len(X)).astype(float)
RATE = np.exp(1.0 + np.sin(X[:, 0] / 2))
COUNTS = RNG.poisson(RATE * DAYS)


def test_known_noise_is_a_gaussian_process_of_the_same_kernel():
    model = rvr(gamma=0.1).fit(X, UNEVEN, noise_variance=V)
    columns = np.exp(-0.1 * (X - model.relevance_vectors_[:, 0]) ** 2)
    precisions = model.alpha_
    if np.isfinite(model.intercept_alpha_):
        columns, precisions = np.c_[np.ones(len(X)), columns], np.r_[model.intercept_alpha_, precisions]
    covariance = columns / precisions @ columns.T
    whole = covariance + np.diag(V)
    evidence = -0.5 * (UNEVEN @ np.linalg.solve(whole, UNEVEN) + np.linalg.slogdet(2 * np.pi * whole)[1])
    assert_allclose(model.log_evidence_, evidence, rtol=1e-8)
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, covariance @ np.linalg.solve(whole, UNEVEN), atol=1e-6)
    assert_allclose(std**2, np.diag(covariance - covariance @ np.linalg.solve(whole, covariance)), rtol=1e-4, atol=1e-9)
    assert model.noise_variance_ == 0.0


def test_known_noise_does_as_well_as_a_dense_process():
    truth = np.sinc(X[:, 0] / np.pi)
    dense = GaussianProcessRegressor(ConstantKernel() * RBF(), alpha=V, random_state=0).fit(X, UNEVEN)
    ours = rvr(gamma="evidence").fit(X, UNEVEN, noise_variance=V).predict(X)
    assert np.std(ours - truth) < 2.5 * np.std(dense.predict(X) - truth)


def test_noise_of_new_rows():
    model = rvr(gamma=0.1).fit(X, UNEVEN, noise_variance=V)
    mean, std, model_std, noise_std = model.predict(X, return_std=True, return_parts=True, noise_variance=V)
    assert_allclose(std**2, model_std**2 + V)
    assert_allclose(noise_std**2, V)
    bare = model.predict(X, return_std=True)
    assert_array_equal(bare[0], mean)
    assert_array_equal(bare[1], model_std)


def test_known_noise_in_parts():
    whole = Statistics(gamma=0.1, centres=X[::4]).update(X, UNEVEN, noise_variance=V)
    parts = [
        Statistics(gamma=0.1, centres=X[::4]).update(X[i::3], UNEVEN[i::3], noise_variance=V[i::3]) for i in range(3)
    ]
    one, other = whole.fit(sparsity=0.0), sum(parts).fit(sparsity=0.0)
    assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-9)
    rows = rvr(gamma=0.1, landmarks=X[::4]).fit(X, UNEVEN, noise_variance=V)
    assert_allclose(one.log_evidence_, rows.log_evidence_, rtol=1e-8)
    with pytest.raises(ValueError, match="known of some rows and not of others"):
        whole.update(X, UNEVEN)


def test_counts_are_the_mode_of_the_posterior():
    model = rvr(gamma=0.05, likelihood="poisson").fit(X, COUNTS, exposure=DAYS)
    columns = np.exp(-0.05 * (X - model.relevance_vectors_[:, 0]) ** 2)
    weights, precisions = model.dual_coef_[0], model.alpha_
    # The prior of the intercept is about a rate of one count for the mean exposure.
    middle = -np.log(DAYS.mean())
    if np.isfinite(model.intercept_alpha_):
        columns, weights = np.c_[np.ones(len(X)), columns], np.r_[model.intercept_ - middle, weights]
        precisions = np.r_[model.intercept_alpha_, precisions]
    else:
        assert_allclose(model.intercept_, middle)

    def loss(w):
        f = columns @ w + middle + np.log(DAYS)
        value = np.sum(np.exp(f) - COUNTS * f + gammaln(COUNTS + 1)) + 0.5 * np.sum(precisions * w**2)
        return value, columns.T @ (np.exp(f) - COUNTS) + precisions * w

    best = minimize(loss, weights, jac=True, method="BFGS", options={"gtol": 1e-8})
    assert_allclose(loss(weights)[0], best.fun, rtol=1e-9)
    rate = np.exp(columns @ weights + middle)
    hessian = np.diag(precisions) + (columns.T * (rate * DAYS)) @ columns
    evidence = -best.fun + 0.5 * np.sum(np.log(precisions)) - 0.5 * np.linalg.slogdet(hessian)[1]
    assert_allclose(model.log_evidence_, evidence, rtol=1e-7)
    variance = np.einsum("ni,ij,nj->n", columns, np.linalg.inv(hessian), columns)
    mean, std, model_std, noise_std = model.predict(X, return_std=True, return_parts=True)
    assert_allclose(mean, rate * np.exp(variance / 2), rtol=1e-5)
    assert_allclose(std**2, mean + mean**2 * np.expm1(variance), rtol=1e-4)
    assert_allclose(std**2, model_std**2 + noise_std**2)
    assert_array_equal(model.predict(X), mean)
    assert_allclose(model.predict(X, exposure=DAYS), mean * DAYS)
    assert not hasattr(model, "noise_variance_")


def test_counts_beside_another_poisson_regression():
    waves = np.c_[np.sin(X[:, 0] / 2), np.cos(X[:, 0] / 2)]
    model = rvr(basis="given", likelihood="poisson").fit(waves, COUNTS, exposure=DAYS)
    other = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=10_000).fit(waves, COUNTS / DAYS, sample_weight=DAYS)
    assert_allclose(model.predict(waves), other.predict(waves), rtol=0.05)
    assert np.mean(np.abs(model.predict(waves) / RATE - 1)) < 0.1


def test_student_t_noise_resists_outliers():
    spoilt = T.copy()
    spoilt[::7] += 4.0
    truth = np.sinc(X[:, 0] / np.pi)
    model = rvr(gamma=0.1, likelihood="student_t").fit(X, spoilt)
    assert np.std(model.predict(X) - truth) < 0.1 < np.std(rvr(gamma=0.1).fit(X, spoilt).predict(X) - truth)
    weights = np.array(model.report_["row_weights"])
    assert weights[::7].max() < 0.1 < np.median(weights)
    assert np.all(np.diff(model.report_["log_evidence"]) >= 0)
    four = rvr(gamma=0.1, likelihood="student_t", noise_degrees=4).fit(X, spoilt)
    assert four.noise_degrees_ == 4
    _, std, model_std, noise_std = four.predict(X, return_std=True, return_parts=True)
    assert_allclose(noise_std**2, 2 * four.noise_variance_)
    assert_allclose(std**2, model_std**2 + noise_std**2)
    wild = rvr(gamma=0.1, likelihood="student_t", noise_degrees=1).fit(X, spoilt)
    assert np.all(np.isinf(wild.predict(X, return_std=True)[1]))


@pytest.mark.parametrize(
    "model",
    [
        rvr(gamma=0.1).fit(X, UNEVEN, noise_variance=V),
        rvr(gamma=0.05, likelihood="poisson").fit(X, COUNTS),
        rvr(gamma=0.1, likelihood="student_t", noise_degrees=3.0).fit(X, T),
    ],
    ids=["known", "poisson", "student_t"],
)
def test_likelihoods_are_saved_and_loaded(model, tmp_path):
    path = tmp_path / "m.json"
    model.save(path)
    again = load(path)
    assert (again.likelihood, again.noise_degrees) == (model.likelihood, model.noise_degrees)
    for one, other in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        assert_array_equal(one, other)


def test_as_any_estimator():
    for own in ({"likelihood": "poisson"}, {"likelihood": "student_t"}):
        model = clone(rvr(gamma=0.05, **own))
        scores = cross_val_score(model, X, COUNTS, cv=3, params={"sample_weight": np.ones(len(X))})
        assert np.all(np.isfinite(scores))
    scores = cross_val_score(rvr(gamma=0.1), X, UNEVEN, cv=3, params={"noise_variance": V})
    assert np.all(np.isfinite(scores))
    frame = pd.DataFrame({"x": X[:, 0], "v": V})
    model = rvr(gamma=0.1).fit(frame[["x"]], UNEVEN, noise_variance=frame["v"])
    assert_array_equal(model.predict(frame[["x"]]), rvr(gamma=0.1).fit(X, UNEVEN, noise_variance=V).predict(X))


def test_own_kernels_fit_other_likelihoods():
    def kernel(A, B):
        return np.exp(-0.05 * (A[:, :1] - B[:, 0]) ** 2)

    plain = rvr(gamma=0.05, likelihood="poisson").fit(X, COUNTS, exposure=DAYS)
    for model, rows in (
        (rvr(kernel, likelihood="poisson"), X),
        (rvr("precomputed", likelihood="poisson"), kernel(X, X)),
    ):
        assert_allclose(model.fit(rows, COUNTS, exposure=DAYS).predict(rows), plain.predict(X), rtol=1e-3)


@pytest.mark.parametrize(
    ("own", "data", "message"),
    [
        ({"likelihood": "normal"}, {}, "The 'likelihood' parameter .* Got 'normal'"),
        ({"likelihood": "poisson", "noise_variance": 1.0}, {}, "noise_variance = 1.0: expected None"),
        ({"noise_degrees": 3.0}, {}, "noise_degrees = 3.0: expected None"),
        ({"likelihood": "student_t", "noise_degrees": 0.0}, {}, "The 'noise_degrees' .* Got 0.0"),
        ({"likelihood": "student_t", "noise_degrees": -1}, {}, "The 'noise_degrees' .* Got -1"),
        ({"likelihood": "student_t", "noise_degrees": np.nan}, {}, "The 'noise_degrees' .* Got nan"),
        ({"likelihood": "student_t", "search": "variational"}, {}, "search = variational"),
        ({"likelihood": "poisson", "search": "variational"}, {}, "search = variational"),
        ({"likelihood": "student_t", "centres": "learned"}, {}, "centres"),
        ({}, {"noise_variance": put(V, 3, 0.0)}, r"noise_variance\[3\] = 0.0"),
        ({}, {"noise_variance": put(V, 3, -1.0)}, r"noise_variance\[3\] = -1.0"),
        ({}, {"noise_variance": put(V, 3, np.nan)}, r"noise_variance\[3\] = nan"),
        ({}, {"noise_variance": V[:-1]}, "one value per row"),
        ({}, {"noise_variance": 0.1}, "one value per row"),
        ({}, {"noise_variance": ["a"] * len(X)}, "not numbers"),
        ({"noise_variance": 0.1}, {"noise_variance": V}, "own noise_variance is not given"),
        ({"likelihood": "poisson"}, {"noise_variance": V}, "gaussian"),
        ({}, {"exposure": DAYS}, "poisson"),
        ({"likelihood": "poisson"}, {"exposure": put(DAYS, 0, 0.0)}, r"exposure\[0\] = 0.0"),
        ({"likelihood": "poisson"}, {"y": put(COUNTS, 2, -1)}, "row 2 has the target -1"),
        ({"likelihood": "poisson"}, {"y": put(COUNTS, 2, 0.5)}, "row 2 has the target 0.5"),
    ],
)
def test_bad_counts_exposures_and_settings_are_refused(own, data, message):
    with pytest.raises(ValueError, match=message):
        rvr(**own).fit(X, **{"y": COUNTS, **data})


def test_predictions_reject_arguments_of_other_likelihoods():
    model = rvr(gamma=0.1).fit(X, T)
    with pytest.raises(ValueError, match="exposure is for models of counts"):
        model.predict(X, exposure=DAYS)
    with pytest.raises(ValueError, match="noise_variance is for models that were fitted"):
        model.predict(X, noise_variance=V)
    with pytest.raises(TypeError):
        rvc().fit(X, T > 0.3, noise_variance=V)
    known = rvr(gamma=0.1).fit(X, UNEVEN, noise_variance=V)
    with pytest.raises(ValueError, match="one value per row"):
        known.predict(X, return_std=True, noise_variance=V[:3])


@pytest.mark.parametrize(
    ("parameters", "degrees"),
    [
        ({"likelihood": "student_t", "noise_degrees": 7.0}, 7.0),
        ({"likelihood": "student_t", "noise_degrees": 1e9}, 1e9),
        ({"search": "variational"}, None),
    ],
)
def test_covariances_and_draws_agree_with_the_standard_deviation(parameters, degrees):
    rows = np.linspace(-3, 3, 10)[:, np.newaxis]
    model = rvr(gamma=0.3, **parameters).fit(rows, np.sin(rows[:, 0]) + 0.1 * np.cos(9 * rows[:, 0]))
    mean, cov = model.predict(rows[:3], return_cov=True)
    assert_allclose(np.sqrt(np.diag(cov)), model.predict(rows[:3], return_std=True)[1])
    draws = model.sample_y(rows[:3], 50_000, random_state=1)
    assert_allclose(draws.mean(axis=1), mean, atol=0.05 * np.sqrt(cov.max()))
    assert_allclose(np.cov(draws), cov, atol=0.05 * cov.max())
    if degrees is not None:
        assert model.noise_degrees_ == degrees


def test_no_covariance_with_two_degrees_of_freedom():
    rows = np.linspace(-3, 3, 20)[:, np.newaxis]
    model = rvr(likelihood="student_t", noise_degrees=2.0).fit(rows, np.sin(rows[:, 0]))
    with pytest.raises(ValueError, match="2 degrees of freedom is infinite"):
        model.predict(rows, return_cov=True)


def test_noise_that_is_too_small_to_be_reached_warns():
    rows = np.sort(np.random.default_rng(0).uniform(-3, 3, size=(30, 1)), axis=0)
    target = np.sin(rows[:, 0])
    with pytest.warns(ConvergenceWarning, match="noise is too small to be reached: residuals are"):
        model = rvr(gamma=0.5, noise_variance=1e-18).fit(rows, target)
    times = np.sqrt(np.mean((model.predict(rows) - target) ** 2)) / 1e-9
    assert_allclose(model.report_["adjustments"]["residual_over_noise"], times, rtol=1e-6)
    assert "residual_over_noise" not in rvr(gamma=0.5, noise_variance=1e-2).fit(rows, target).report_["adjustments"]
