"""Intervals and quantiles of new observations, beside scipy's distributions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, load
from scipy import integrate, stats
from support import sinc, two_classes

X, T = sinc()
NEW = np.array([[-30.0], [0.0], [4.0]])
Q = np.array([0.01, 0.3, 0.5, 0.8, 0.975])
RNG = np.random.default_rng(1)
DAYS = RNG.integers(1, 8, len(X)).astype(float)
COUNTS = RNG.poisson(np.exp(1.0 + np.sin(X[:, 0] / 2)) * DAYS)


def normal(mean, std):
    return stats.norm.ppf(Q, mean[..., np.newaxis], std[..., np.newaxis])


@pytest.mark.parametrize(
    "own",
    [{}, {"variance": "healed"}, {"gamma": 5.0, "calibrate": True}, {"noise_variance": 0.02}, {"sparsity": 1.0}],
    ids=str,
)
def test_gaussian_quantiles_are_normal(own, tmp_path):
    model = RVR(**{"gamma": 0.2, **own}).fit(X, T)
    mean, std = model.predict(NEW, return_std=True)
    found = model.predict_quantiles(NEW, Q)
    assert found.shape == (3, 5)
    assert_allclose(found, normal(mean, std), rtol=1e-12)
    assert_array_equal(found[:, 2], mean)
    # A number for a number.
    assert_array_equal(model.predict_quantiles(NEW, 0.3), found[:, 1])
    lower, upper = model.predict_interval(NEW, 0.9)
    assert_allclose(np.stack([lower, upper], axis=1), model.predict_quantiles(NEW, [0.05, 0.95]), rtol=1e-12)
    assert_allclose(model.predict_interval(NEW)[1], mean + 1.959963984540054 * std, rtol=1e-12)
    model.save(tmp_path / "model.json")
    assert_array_equal(load(tmp_path / "model.json").predict_quantiles(NEW, Q), found)


def test_variance_of_the_caller():
    model = RVR(gamma=0.2, keep_rows=60, variance="posterior").fit(X, T)
    mean, std = model.predict(NEW, return_std=True, variance="healed")
    assert_allclose(model.predict_quantiles(NEW, Q, variance="healed"), normal(mean, std), rtol=1e-12)
    assert model.predict_interval(NEW, variance="healed")[1][0] > model.predict_interval(NEW)[1][0]


def test_student_t_quantiles_are_those_of_noise_and_function_together():
    model = RVR(gamma=0.2, likelihood="student_t", noise_degrees=2.5).fit(X, T)
    mean, model_std, _ = model.predict(NEW, return_parts=True)
    scale = np.sqrt(model.noise_variance_)
    found = model.predict_quantiles(NEW, Q)

    def density(z, at, n):
        """A mixture of Student-t distributions about what the function may be."""
        return stats.norm.pdf(z) * stats.t.cdf((at - mean[n] - model_std[n] * z) / scale, 2.5)

    for (n, k), at in np.ndenumerate(found):
        below, _ = integrate.quad(density, -12, 12, args=(at, n), epsabs=1e-11)
        assert abs(below - Q[k]) < 1e-9
    wild = RVR(gamma=0.2, likelihood="student_t", noise_degrees=1.0).fit(X, T)
    assert np.all(np.isfinite(wild.predict_interval(X)))
    assert np.all(np.isinf(wild.predict(X, return_std=True)[1]))


def test_variational_quantiles_have_its_degrees_of_freedom():
    model = RVR(gamma=0.1, search="variational").fit(X[::6], T[::6])
    mean, std = model.predict(NEW, return_std=True)
    expected = stats.t.ppf(Q, model.noise_degrees_, mean[:, np.newaxis], std[:, np.newaxis])
    assert 9.9 < model.noise_degrees_ < 10.1
    assert_allclose(model.predict_quantiles(NEW, Q), expected, rtol=1e-9)


def test_known_noise_is_added_if_that_of_the_new_rows_is_given():
    variance = np.where(X[:, 0] < 0, 0.01**2, 0.3**2)
    model = RVR(gamma=0.1).fit(X, T, noise_variance=variance)
    own = np.array([0.1, 4.0, 1e-6])
    for noise in (None, own):
        mean, std = model.predict(NEW, return_std=True, noise_variance=noise)
        assert_allclose(model.predict_quantiles(NEW, Q, noise_variance=noise), normal(mean, std), rtol=1e-12)
        lower, _ = model.predict_interval(NEW, noise_variance=noise)
        assert_allclose(lower, mean - 1.959963984540054 * std, rtol=1e-12)


@pytest.mark.parametrize("known", [False, True])
def test_several_outputs_have_an_axis(known):
    both = np.stack([T, 100 * np.cos(X[:, 0] / 2) + RNG.standard_normal(len(X))], axis=1)
    model = RVR(gamma=0.2).fit(X, both, noise_variance=np.full(len(X), 0.01) if known else None)
    own = {"noise_variance": [0.1, 4.0, 1e-6]} if known else {}
    mean, std = model.predict(NEW, return_std=True, **own)
    found = model.predict_quantiles(NEW, Q, **own)
    assert found.shape == (3, 2, 5)
    assert_allclose(found, normal(mean, std), rtol=1e-12)
    assert_array_equal(model.predict_quantiles(NEW, 0.3, **own), found[..., 1])
    lower, upper = model.predict_interval(NEW, 0.95, **own)
    assert lower.shape == upper.shape == (3, 2)
    assert_allclose(upper, found[..., 4], rtol=1e-12)


@pytest.mark.parametrize("exposure", [None, [0.01, 3.0, 2000.0]])
def test_quantiles_of_counts_are_the_least_whole_numbers(exposure):
    model = RVR(gamma=0.05, likelihood="poisson").fit(X, COUNTS, exposure=DAYS)
    found = model.predict_quantiles(NEW, Q, exposure=exposure)
    assert_array_equal(found, np.round(found))
    # Log rate: its mean and variance from those of the count.
    mean, rate_std, _ = model.predict(NEW, return_parts=True)
    variance = np.log1p((rate_std / mean) ** 2)
    log_rate = np.log(mean) - variance / 2
    z = np.linspace(-9.0, 9.0, 20_001)
    weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    for n, row in enumerate(found):
        rate = (1.0 if exposure is None else exposure[n]) * np.exp(log_rate[n] + np.sqrt(variance[n]) * z)
        for q, count in zip(Q, row, strict=True):
            assert weights @ stats.poisson.cdf(count, rate) >= q - 1e-8
            assert weights @ stats.poisson.cdf(count - 1, rate) < q + 1e-8
    lower, upper = model.predict_interval(NEW, 0.95, exposure=exposure)
    assert_array_equal(
        np.stack([lower, upper], axis=1), model.predict_quantiles(NEW, [0.025, 0.975], exposure=exposure)
    )


@pytest.mark.parametrize("likelihood", ["gaussian", "student_t"])
def test_shares_of_draws(likelihood):
    own = {"noise_degrees": 2.0} if likelihood == "student_t" else {}
    model = RVR(gamma=0.2, likelihood=likelihood, **own).fit(X[::3], T[::3])
    draws = model.sample_y(NEW, 40_000, random_state=2)
    below = (draws[:, :, np.newaxis] < model.predict_quantiles(NEW, Q)[:, np.newaxis]).mean(axis=1)
    assert np.all(np.abs(below - Q) < 4 * np.sqrt(Q * (1 - Q) / 40_000))


@pytest.mark.parametrize("likelihood", ["gaussian", "student_t"])
def test_quantiles_follow_units_and_do_not_depend_on_blocks(likelihood):
    many = np.linspace(-12.0, 12.0, 3000)[:, np.newaxis]
    one, other = (RVR(gamma=0.2, likelihood=likelihood).fit(X, by * T) for by in (1.0, 1e6))
    found = one.predict_quantiles(many, Q)
    assert_allclose(other.predict_quantiles(many, Q), 1e6 * found, rtol=1e-6)
    assert np.all(np.diff(found, axis=1) > 0.0)
    # Row by row, and on any number of threads, the same.
    assert_allclose(
        np.vstack([one.predict_quantiles(rows, Q) for rows in np.split(many[:30], 10)]), found[:30], rtol=1e-12
    )
    assert_array_equal(one.set_params(n_jobs=1).predict_quantiles(many, Q), found)


@pytest.mark.parametrize(
    "kernel", ["precomputed", lambda A, B: np.exp(-0.2 * (A - B.T) ** 2)], ids=["matrix", "called"]
)
def test_kernels_of_the_caller(kernel):
    matrix = kernel == "precomputed"
    rows, new = (np.exp(-0.2 * (A - X.T) ** 2) if matrix else A for A in (X, NEW))
    model = RVR(kernel=kernel).fit(rows, T)
    assert_allclose(model.predict_quantiles(new, Q), normal(*model.predict(new, return_std=True)), rtol=1e-12)


def test_no_rows_and_rows_in_frames():
    model = RVR(gamma=0.2).fit(X, T)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict_quantiles(np.empty((0, 1)), Q)
    assert_array_equal(model.predict_interval(NEW.tolist())[0], model.predict_interval(NEW)[0])


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.5, np.nan, np.inf, "wide", None, True, [0.5, 0.9], 1j])
def test_bad_levels_are_refused(level):
    model = RVR(gamma=0.2).fit(X, T)
    with pytest.raises(ValueError, match=r"^level.*between 0 and 1"):
        model.predict_interval(NEW, level)


@pytest.mark.parametrize("q", [0.0, [0.5, 1.0], [0.5, np.nan], "half", [], [[0.5]], None, [0.5, "a"], [True, False]])
def test_bad_probabilities_are_refused(q):
    model = RVR(gamma=0.2).fit(X, T)
    with pytest.raises(ValueError, match=r"^q.*between 0 and 1"):
        model.predict_quantiles(NEW, q)


def test_exposures_and_noise_need_a_model_that_uses_them():
    model = RVR(gamma=0.2, weight_prior="ard", variance="posterior").fit(X, T)
    for predict in (model.predict_interval, lambda rows, **own: model.predict_quantiles(rows, 0.5, **own)):
        with pytest.raises(ValueError, match="exposure is for models of counts"):
            predict(NEW, exposure=[1, 1, 1])
        with pytest.raises(ValueError, match="noise of each row"):
            predict(NEW, noise_variance=[1, 1, 1])
        with pytest.raises(ValueError, match="keep rows"):
            predict(NEW, variance="healed")
        with pytest.raises(ValueError, match="variance = 'wide'"):
            predict(NEW, variance="wide")
    counts = RVR(gamma=0.05, likelihood="poisson").fit(X, COUNTS, exposure=DAYS)
    with pytest.raises(ValueError, match=r"exposure has shape \(2,\)"):
        counts.predict_interval(NEW, exposure=[1, 1])
    with pytest.raises(ValueError, match=r"exposure\[1\] = 0"):
        counts.predict_interval(NEW, exposure=[1, 0, 1])
    with pytest.raises(ValueError, match="a quantile of the count of row 0 leaves the range"):
        counts.predict_interval(NEW, exposure=[1e308, 1, 1])
    assert not hasattr(RVC(gamma=0.2).fit(*two_classes()), "predict_interval")
