"""Kernels learned without a fit: what comes back, in which shapes and units, and what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from relvec import RVR, LearnedKernel, learn_kernel
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel


def table(rows=80, features=2, seed=0):
    """A sine of the first feature with noise of variance 0.01."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (rows, features))
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(rows)


def test_the_answer_has_the_kernel_and_the_process():
    X, y = table()
    learned = learn_kernel(X, y)
    assert isinstance(learned, LearnedKernel)
    assert learned.kernel == "rbf" and learned.gamma.shape == (2,)
    assert learned.gamma[0] > 10.0 * learned.gamma[1]
    assert learned.has_structure and learned.per_feature and learned.gain > 30.0
    assert 0.005 < learned.noise_variance < 0.02 and isinstance(learned.amplitude, float)
    assert learned.n_rows == 80
    with pytest.raises(dataclasses.FrozenInstanceError):
        learned.gamma = 1.0


def test_the_repr_is_a_few_lines():
    text = repr(learn_kernel(*table()))
    assert text.startswith("LearnedKernel('rbf', gamma=[") and len(text.splitlines()) == 3
    assert "noise_variance=0.0" in text and "gain=" in text and "n_rows=80" in text


@pytest.mark.parametrize("rule", ["evidence", "evidence-one", "evidence-ard"])
def test_a_regressor_learns_the_same_kernel(rule):
    X, y = table()
    learned = learn_kernel(X, y, gamma=rule)
    model = RVR(gamma=rule, weight_prior="process").fit(X, y)
    np.testing.assert_array_equal(learned.gamma, model.gamma_)
    given = RVR(learned.kernel, **learned.kernel_params, weight_prior="process").fit(X, y)
    np.testing.assert_array_equal(given.gamma_, learned.gamma)


def test_the_process_is_that_of_scikit_learn():
    X, y = table(60)
    # With so many digits of the mean removed, what the constant takes up is next to nothing.
    y = y - y.mean()
    learned = learn_kernel(X, y, gamma="evidence-ard")
    kernel = ConstantKernel(learned.amplitude) * RBF((2.0 * learned.gamma) ** -0.5)
    other = GaussianProcessRegressor(kernel + WhiteKernel(learned.noise_variance), optimizer=None).fit(X, y)
    assert abs(other.log_marginal_likelihood_value_ - learned.log_evidence) < 3.0


def test_units_of_features_and_targets():
    X, y = table()
    plain, scaled = learn_kernel(X, y), learn_kernel(X * [1e3, 1.0], 1e3 * y)
    np.testing.assert_allclose(scaled.gamma, plain.gamma * [1e-6, 1.0], rtol=1e-5)
    np.testing.assert_allclose(scaled.amplitude, 1e6 * plain.amplitude, rtol=1e-5)
    np.testing.assert_allclose(scaled.noise_variance, 1e6 * plain.noise_variance, rtol=1e-5)
    assert abs(scaled.gain - plain.gain) < 1e-5


def test_a_weight_of_two_is_a_row_twice():
    X, y = table(60)
    weights = np.where(np.arange(60) % 2 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(60), weights.astype(int))
    weighted, repeated = learn_kernel(X, y, sample_weight=weights), learn_kernel(X[twice], y[twice])
    np.testing.assert_allclose(weighted.gamma, repeated.gamma, rtol=1e-5)
    assert abs(weighted.gain - repeated.gain) < 1e-6


def test_noise_has_no_structure():
    rng = np.random.default_rng(1)
    learned = learn_kernel(rng.standard_normal((100, 3)), rng.standard_normal(100))
    assert not learned.has_structure and learned.gain < 0.5


def test_features_that_do_not_vary_have_no_gain():
    assert learn_kernel(np.ones((20, 2)), np.arange(20.0)).gain == -np.inf


def test_names_are_classes_and_numbers_are_when_asked():
    X, y = table(120)
    names = np.where(y > 0.0, "up", "down")
    learned = learn_kernel(X, names)
    assert learned.has_structure and learned.gamma[1] < 1e-2 * learned.gamma[0]
    for same in [names.astype(object), pd.Series(names, dtype="category"), y > 0.0]:
        assert learn_kernel(X, same).gain == learned.gain
    numbers = (y > 0.0).astype(int)
    assert learn_kernel(X, numbers, classes=True).gain == learned.gain
    # As values they may have one width per feature.
    assert learn_kernel(X, numbers).gain != learned.gain
    three = learn_kernel(X, np.digitize(y, [-0.5, 0.5]), classes=True)
    # Of regression on labels there is the ratio of the two alone.
    assert isinstance(three.amplitude, float) and three.noise_variance == 1.0


def test_several_outputs_share_a_kernel():
    X, y = table()
    learned = learn_kernel(X, np.column_stack([y, 10.0 * y]))
    np.testing.assert_allclose(learned.noise_variance[1], 100.0 * learned.noise_variance[0], rtol=1e-6)


def test_counts_and_known_noise():
    X, y = table(150)
    counts = np.random.default_rng(2).poisson(4.0 * np.exp(y))
    one = learn_kernel(X, counts, likelihood="poisson")
    other = learn_kernel(X, counts, likelihood="poisson", exposure=np.full(150, 3.0))
    np.testing.assert_allclose(one.gamma, other.gamma, rtol=1e-5)
    known = learn_kernel(X, y, noise_variance=np.full(150, 0.01))
    np.testing.assert_allclose(known.noise_variance, 0.01, rtol=1e-9)


def test_of_a_list_the_best_kernel_is_taken():
    X, y = table(100, 1)
    kink = np.abs(X[:, 0]) + 0.02 * y
    alone = {name: learn_kernel(X, kink, kernel=name).gain for name in ["rbf", "matern32"]}
    best = learn_kernel(X, kink, kernel=["rbf", "matern32"])
    assert best.kernel == max(alone, key=alone.get) and best.gain == max(alone.values())
    assert learn_kernel(X, kink, kernel="auto").kernel in ("rbf", "matern52", "matern32")


def test_a_given_gamma_and_kernels_without_one():
    X, y = table()
    assert learn_kernel(X, y, gamma=0.7).gamma == 0.7
    linear = learn_kernel(X, X[:, 0], kernel="linear")
    assert linear.gamma is None and linear.kernel_params == {} and linear.gain > 50.0
    curved = learn_kernel(X, y, kernel="rational_quadratic")
    assert set(curved.kernel_params) == {"gamma", "shape"} and curved.kernel_params["shape"] > 0.0


def test_more_than_1000_rows_are_sampled_by_the_seed():
    X, y = table(1200, 1)
    first, again = learn_kernel(X, y), learn_kernel(X, y, random_state=0, n_jobs=1)
    assert first.n_rows == 1000 and first.gamma == again.gamma
    assert learn_kernel(X, y, random_state=1).gamma != first.gamma


@pytest.mark.parametrize(
    ("settings", "fragment"),
    [
        ({"kernel": "sigmoid", "gamma": "scale"}, "sigmoid"),
        ({"kernel": "precomputed"}, "precomputed"),
        ({"kernel": len}, "relvec computes"),
        ({"kernel": "gauss"}, "matern52"),
        ({"gamma": "wide"}, "evidence-ard"),
        ({"gamma": -1.0}, "The 'gamma' parameter of learn_kernel must be .* Got -1.0"),
        ({"likelihood": "softmax"}, "student_t"),
        ({"likelihood": "poisson", "classes": True}, "names classes"),
        ({"likelihood": "poisson"}, "count"),
        ({"exposure": np.ones(80)}, "poisson"),
        ({"noise_variance": np.zeros(80)}, "positive"),
        ({"sample_weight": np.zeros(80)}, "Every sample weight is zero"),
        ({"sample_weight": np.ones(3)}, "sample_weight"),
    ],
)
def test_settings_out_of_range_are_named(settings, fragment):
    X, y = table()
    with pytest.raises(ValueError, match=fragment):
        learn_kernel(X, y, **settings)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.ones((3, 2)), np.ones(4)),
        (np.ones((3, 2)), [1.0, np.nan, 2.0]),
        ([[1.0], [np.inf], [2.0]], np.arange(3.0)),
        (np.ones((3, 2)), ["a", "a", "a"]),
        (np.ones(3), np.ones(3)),
        (np.ones((3, 2)), None),
        (np.ones((1, 2)), np.ones(1)),
    ],
)
def test_data_that_do_not_fit_are_refused(X, y):
    with pytest.raises(ValueError):
        learn_kernel(X, y)
