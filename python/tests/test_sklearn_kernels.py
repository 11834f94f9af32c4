"""Kernel objects of scikit-learn's Gaussian processes as the parameter `kernel`."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from relvec import RVC, RVR, SVC, SVR
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.model_selection import GridSearchCV

FIXED = {"length_scale_bounds": "fixed"}


def rows(features, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, features))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, -1] + 0.1 * rng.standard_normal(40)


def simple(features, rng):
    """Each kernel that equals one of relvec's, with random parameters."""
    one, each = rng.uniform(0.3, 3.0), rng.uniform(0.3, 3.0, features)
    found = [RBF(one), RBF(each), RationalQuadratic(one, alpha=rng.uniform(0.3, 4.0))]
    found += [Matern(scale, nu=nu) for scale in (one, each) for nu in (1.5, 2.5, np.inf)]
    found += [DotProduct(one), DotProduct(one) ** 2, DotProduct(one) ** 3.0]
    found += [PairwiseKernel(metric=metric, gamma=one) for metric in ("rbf", "laplacian")] + [PairwiseKernel()]
    if features == 1:
        found += [Matern(one, nu=0.5), Matern(each, nu=0.5), ExpSineSquared(one, rng.uniform(0.5, 4.0))]
    return found


def check_same_kernel(model, kernel, X, features):
    """The fitted function is an expansion in the values of scikit-learn's kernel at the relevance vectors."""
    own = model._model
    new = np.random.default_rng(9).normal(size=(25, features))
    assert own.kernel is not None, "the kernel was called as a function"
    values = kernel(new, own.centres) if len(own.relevance) else np.empty((25, 0))
    weights = own.weights.ravel()
    scale = np.abs(values) @ np.abs(weights) + abs(own.intercept[0])
    assert np.all(np.abs(model.predict(new) - values @ weights - own.intercept[0]) <= 1e-12 * (1.0 + scale))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("features", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_translated_kernels_have_equal_values(features, seed):
    rng = np.random.default_rng(seed)
    X, y = rows(features, seed)
    for kernel in simple(features, rng):
        check_same_kernel(RVR(kernel, weight_prior="ard", variance="posterior").fit(X, y), kernel, X, features)
        check_same_kernel(SVR(kernel=kernel).fit(X, y), kernel, X, features)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("features", [1, 3])
def test_sums_and_products_have_equal_values(features):
    rng = np.random.default_rng(4)
    X, y = rows(features)
    kernels = simple(features, rng)
    for _ in range(12):
        a, b, c, d = rng.choice(np.array(kernels, dtype=object), 4)
        u, v = rng.uniform(0.1, 5.0, 2)
        for kernel in [u * a + b, (u * a + b) * (c + v * d), a * b * ConstantKernel(v) + c]:
            check_same_kernel(
                RVR(kernel + WhiteKernel(), weight_prior="ard", variance="posterior").fit(X, y), kernel, X, features
            )


def test_fixed_kernels_keep_their_values_in_silence():
    X, y = rows(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RVR(ConstantKernel(4.0) * RBF([0.5, 2.0], **FIXED) + WhiteKernel(7.0)).fit(X, y)
        constant = RVR(ConstantKernel(4.0) + RBF([0.5, 2.0], **FIXED)).fit(X, y)
        SVC(kernel=RBF(2.0) + ConstantKernel(3.0)).fit(X, y > 0.0)
    assert (model.kernel_, model.gamma_.tolist()) == ("rbf", [2.0, 0.125])
    assert model.noise_variance_ < 0.25
    given = RVR("rbf", gamma=[2.0, 0.125]).fit(X, y)
    assert_allclose(model.predict(X), given.predict(X), atol=0.0)
    assert_allclose(constant.predict(X), given.predict(X), atol=0.0)


def test_free_parameters_are_named_with_the_text_that_learns_them():
    X, y = rows(1)
    kernel = 2.0 * RBF(0.5) + ExpSineSquared(1.0, 3.0) + WhiteKernel()
    with pytest.warns(UserWarning, match="not optimised: constant_value, length_scale, periodicity") as found:
        model = RVR(kernel).fit(X, y)
    (text,) = model.report_["warnings"]
    assert 'Use kernel="rbf + periodic(period=3.0)" to learn them' in text and len(found) == 1
    assert "warning: parameters of the scikit-learn kernel" in " ".join(str(model.summary()).split())
    assert model.kernel_.startswith("2*rbf(gamma=2.0) + 1*periodic(")
    RVR("rbf + periodic(period=3.0)").fit(X, y)


class Own(RBF):
    """A kernel that scikit-learn does not have."""

    def __call__(self, X, Y=None, eval_gradient=False):
        return 2.0 * super().__call__(X, Y, eval_gradient)


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (Matern(nu=0.7), r"Matern\(length_scale=1, nu=0.7\) cannot be translated: no kernel of relvec equals it"),
        (Matern(nu=0.5), r"nu=0.5\) cannot be translated: of 2 features it depends on their Euclidean distance"),
        (RBF() + ExpSineSquared(), r"ExpSineSquared\(length_scale=1, periodicity=1\) cannot .* Euclidean distance"),
        (RBF() ** 2.0, r"RBF\(length_scale=1\) \*\* 2.0 cannot be translated"),
        (DotProduct() ** 1.5, "cannot be translated"),
        (PairwiseKernel(metric="chi2"), "cannot be translated"),
        (RBF() * WhiteKernel(), "WhiteKernel in a product cannot be translated"),
        (RBF() + WhiteKernel(0.1, "fixed"), r"noise_variance=...\) for a known noise variance"),
        (CompoundKernel([RBF(), RBF(2.0)]), "cannot be translated"),
        (Own(), "Own cannot be translated: it is not a kernel of scikit-learn"),
        (WhiteKernel() + ConstantKernel(), "expected a kernel that depends on the rows"),
        (0.0 * RBF() + RBF(), "an amplitude of 0.0 cannot be translated"),
    ],
)
def test_other_kernels_are_refused_by_the_name_of_the_term(kernel, text):
    X, y = rows(2)
    for model in (RVR(kernel), SVR(kernel=kernel)):
        with pytest.raises(ValueError, match=text):
            model.fit(X, y)


def test_a_function_of_the_kernel_is_used_as_it_is():
    X, y = rows(2)
    own = Own(0.7)
    model = RVR(lambda a, b: own(a, b)).fit(X, y)
    assert model._model.kernel is None


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (RVC(RBF(**FIXED) + WhiteKernel()), "a WhiteKernel is noise that the fit learns"),
        (RVR(RBF(**FIXED) + WhiteKernel(), noise_variance=0.1), "a WhiteKernel is noise that the fit learns"),
        (RVR(RBF(**FIXED) + WhiteKernel(), likelihood="poisson"), "a WhiteKernel is noise that the fit learns"),
        (RVR(RBF(**FIXED) + ConstantKernel(), fit_intercept=False), "which fit_intercept=False excludes"),
        (SVC(kernel=RBF() + WhiteKernel()), "support vector machines lack"),
        (SVC(kernel=2.0 * RBF()), "an amplitude of 2.0 has no effect but that of a factor of C"),
    ],
)
def test_terms_without_a_meaning_in_a_model_are_refused(model, text):
    X, y = rows(2)
    with pytest.raises(ValueError, match=text):
        model.fit(X, (y > 0.0).astype(int))


@pytest.mark.parametrize("kernel", [RBF() + 0.5 * DotProduct(), RBF(2.0) * DotProduct(), ExpSineSquared() + RBF()])
def test_support_vector_machines_take_sums_and_products(kernel):
    X, y = rows(1)
    own = SVR(kernel=kernel, tol=1e-8).fit(X, y)
    expected = SVR(kernel=lambda a, b: kernel(a, b), tol=1e-8).fit(X, y)
    assert_allclose(own.predict(X), expected.predict(X), rtol=1e-6, atol=1e-6)


def test_known_noise_of_rows_excludes_a_white_kernel():
    X, y = rows(2)
    with pytest.raises(ValueError, match="a WhiteKernel is noise that the fit learns"):
        RVR(RBF(**FIXED) + WhiteKernel()).fit(X, y, noise_variance=np.full(len(y), 0.01))


def test_estimators_are_cloned_pickled_and_searched():
    X, y = rows(1)
    model = clone(RVR(RBF(3.0, **FIXED))).set_params(kernel__length_scale=0.5).fit(X, y)
    assert model.get_params()["kernel__length_scale"] == 0.5 and model.gamma_ == 2.0
    again = pickle.loads(pickle.dumps(model))
    assert_allclose(again.predict(X), model.predict(X), atol=0.0)
    assert again.kernel == model.kernel
    kernels = [RBF(30.0, **FIXED), RBF(0.5, **FIXED)]
    search = GridSearchCV(RVR(), {"kernel": kernels}, cv=3).fit(X, y)
    assert search.best_params_["kernel"] == kernels[1]
