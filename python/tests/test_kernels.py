"""Kernels from outside (precomputed, a function), a given design matrix, and the kernels' parameters."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR
from relvec._table import KERNELS
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from support import FORMULAS, PARAMETERS, papers, rvr, sinc, surface, two_classes

BOTH = pytest.mark.parametrize("cls", [RVR, RVC])
SCHEMES = pytest.mark.parametrize("inference", ["search", "mackay"])
GAMMA = np.array([0.8, 0.3])


def data(cls, n=60):
    """Rows, a target, and new rows."""
    if cls is RVC:
        return *two_classes(n), two_classes(30, seed=3)[0]
    return *surface(n), surface(30, seed=3)[0]


def outputs(model, X):
    """All that a model says of rows."""
    return model.predict(X, return_std=True) if isinstance(model, RVR) else model.predict_proba(X)


def check_same(one, other, rtol=1e-8):
    assert_array_equal(one.relevance_, other.relevance_)
    assert_allclose(one.dual_coef_, other.dual_coef_, rtol=1e-6, atol=1e-8 * np.abs(other.dual_coef_).max())
    assert_allclose(one.log_evidence_, other.log_evidence_, rtol=rtol)
    assert one.n_features_in_ > 0


@SCHEMES
@BOTH
def test_precomputed_is_the_built_in_kernel(cls, inference):
    X, y, new = data(cls)
    built_in = papers(cls, gamma=0.5, search=inference).fit(X, y)
    model = papers(cls, kernel="precomputed", search=inference).fit(rbf_kernel(X, gamma=0.5), y)
    assert len(model.relevance_) > 0
    check_same(model, built_in)
    assert_allclose(outputs(model, rbf_kernel(new, X, gamma=0.5)), outputs(built_in, new), atol=1e-8)
    assert model.n_features_in_ == 60
    assert model.relevance_vectors_.size == 0
    assert not hasattr(model, "gamma_")


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_from_outside_agree_with_built_in_ones(kernel):
    """Also those that are not positive definite, as a matrix and as a function."""
    X, t, new = data(RVR)

    def function(a, b):
        return FORMULAS[kernel](a, b, GAMMA)

    built_in = rvr(kernel=kernel, gamma=GAMMA, search="mackay", **PARAMETERS).fit(X, t)
    matrix = rvr(kernel="precomputed", search="mackay").fit(function(X, X), t)
    called = rvr(kernel=function, search="mackay").fit(X, t)
    expected = np.array(outputs(built_in, new))
    assert_allclose(outputs(matrix, function(new, X)), expected, atol=1e-5)
    assert_allclose(outputs(called, new), expected, atol=1e-5)


@BOTH
def test_only_active_columns_of_a_precomputed_kernel_are_read(cls):
    X, y, new = data(cls)
    model = papers(cls, kernel="precomputed").fit(rbf_kernel(X, gamma=0.5), y)
    K = rbf_kernel(new, X, gamma=0.5)
    holes = np.full_like(K, np.nan)
    holes[:, model.relevance_] = K[:, model.relevance_]
    assert_array_equal(outputs(model, holes), outputs(model, K))
    with np.errstate(invalid="ignore"):
        assert_array_equal(outputs(model, holes.astype(np.float32)), outputs(model, K.astype(np.float32)))


def test_a_precomputed_kernel_need_not_be_symmetric():
    """The columns are the basis functions: element (i, j) is row i at centre j."""
    X, t, new = data(RVR)

    def kernel(a, b):
        return np.exp(-0.5 * (a[:, :1] - b[:, 0]) ** 2) * (1.0 + b[:, 1])

    matrix = rvr(kernel="precomputed").fit(kernel(X, X), t)
    called = rvr(kernel=kernel).fit(X, t)
    assert_array_equal(matrix.relevance_, called.relevance_)
    assert_allclose(matrix.predict(kernel(new, X)), called.predict(new), atol=1e-8)


@SCHEMES
@BOTH
def test_weights_of_zero_remove_rows_and_columns_of_a_precomputed_kernel(cls, inference):
    X, y, new = data(cls)
    weight = np.ones(60)
    weight[5::7] = 0.0
    kept = np.flatnonzero(weight)
    K, knew = rbf_kernel(X, gamma=0.5), rbf_kernel(new, X, gamma=0.5)
    whole = papers(cls, kernel="precomputed", search=inference).fit(K, y, weight)
    part = papers(cls, kernel="precomputed", search=inference).fit(K[np.ix_(kept, kept)], y[kept])
    assert_array_equal(whole.relevance_, kept[part.relevance_])
    assert_array_equal(whole.dual_coef_, part.dual_coef_)
    assert_array_equal(outputs(whole, knew), outputs(part, knew[:, kept]))
    # The same for a function and a built-in kernel.
    for kernel in (lambda a, b: rbf_kernel(a, b, gamma=0.5), "rbf"):
        own = {"kernel": kernel, "gamma": 0.5, "search": inference}
        whole, part = papers(cls, **own).fit(X, y, weight), papers(cls, **own).fit(X[kept], y[kept])
        assert_array_equal(whole.relevance_, kept[part.relevance_])
        assert_array_equal(outputs(whole, new), outputs(part, new))


@BOTH
def test_duplicates_in_a_precomputed_kernel(cls):
    X, y, new = data(cls)
    # One matrix for both: another last digit may lead to another optimum.
    kernel, outer = rbf_kernel(X, gamma=0.5), rbf_kernel(new, X, gamma=0.5)
    model = papers(cls, kernel="precomputed").fit(np.tile(kernel, (2, 2)), np.append(y, y))
    weighted = papers(cls, kernel="precomputed").fit(kernel, y, np.full(60, 2.0))
    # A relevance vector that is there twice is named by its first row.
    assert_array_equal(model.relevance_, weighted.relevance_)
    assert_allclose(outputs(model, np.tile(outer, 2)), outputs(weighted, outer), atol=1e-8)


@SCHEMES
@BOTH
def test_a_function_is_the_built_in_kernel(cls, inference):
    X, y, new = data(cls)
    built_in = papers(cls, gamma=0.5, search=inference).fit(X, y)
    model = papers(cls, kernel=lambda a, b: rbf_kernel(a, b, gamma=0.5), search=inference).fit(X, y)
    assert_array_equal(np.sort(model.relevance_), built_in.relevance_)
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])
    assert_allclose(outputs(model, new), outputs(built_in, new), atol=1e-7)
    assert_allclose(model.log_evidence_, built_in.log_evidence_, rtol=1e-8)


def test_a_function_of_scikit_learn():
    X, t, new = data(RVR)
    model = rvr(kernel=laplacian_kernel).fit(X, t)
    assert_allclose(model.predict(new), rvr(kernel="laplacian", gamma=0.5).fit(X, t).predict(new), atol=1e-7)


def test_a_function_sees_the_rows_as_they_are():
    seen = []

    def kernel(a, b):
        seen.append((a.shape, b.shape, a.dtype))
        return a @ b.T

    X, t, new = data(RVR)
    model = rvr(kernel=kernel).fit(X, t)
    model.predict(new)
    assert seen == [((60, 2), (60, 2), np.float64), ((30, 2), (len(model.relevance_), 2), np.float64)]


@SCHEMES
@BOTH
def test_a_given_design_matrix_is_the_same_columns(cls, inference):
    X, y, new = data(cls)
    Phi, new_phi = rbf_kernel(X, gamma=0.5), rbf_kernel(new, X, gamma=0.5)
    built_in = papers(cls, gamma=0.5, search=inference).fit(X, y)
    given = papers(cls, basis="given", search=inference).fit(Phi, y)
    check_same(given, built_in)
    assert_allclose(outputs(given, new_phi), outputs(built_in, new), atol=1e-8)
    assert given.relevance_vectors_.size == 0
    assert given.n_features_in_ == 60


def test_a_given_design_matrix_of_few_columns():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((200, 30))
    t = 3.0 * Phi[:, 4] - 2.0 * Phi[:, 17] + 0.1 * rng.standard_normal(200)
    model = rvr(basis="given", kernel="sigmoid").fit(Phi, t)
    assert set(model.relevance_) >= {4, 17}
    assert len(model.relevance_) < 10
    weights = dict(zip(model.relevance_.tolist(), model.dual_coef_[0], strict=True))
    assert weights[4] == pytest.approx(3.0, abs=0.05)
    assert weights[17] == pytest.approx(-2.0, abs=0.05)
    assert_allclose(model.predict(Phi), Phi[:, model.relevance_] @ model.dual_coef_[0] + model.intercept_, rtol=1e-10)


@BOTH
def test_values_of_gamma(cls):
    X, y, _ = data(cls)
    by_rule = {"scale": 1.0 / (2 * X.var()), "auto": 0.5}
    for rule, value in by_rule.items():
        model = papers(cls, gamma=rule).fit(X, y)
        assert model.gamma_ == pytest.approx(value, rel=1e-12)
        check_same(model, papers(cls, gamma=value).fit(X, y))
    assert cls().gamma == "evidence"
    # Given as they are, they are used as they are.
    assert papers(cls, gamma=0.3).fit(X, y).gamma_ == 0.3
    assert papers(cls, gamma=np.float32(0.5)).fit(X, y).gamma_ == 0.5
    assert papers(cls, gamma=1).fit(X, y).gamma_ == 1.0
    for array in ([0.8, 0.3], (0.8, 0.3), np.array([0.8, 0.3])):
        assert_array_equal(papers(cls, gamma=array).fit(X, y).gamma_, [0.8, 0.3])


@pytest.mark.parametrize("kernel", [name for name in KERNELS if "gamma" in KERNELS[name]])
def test_gamma_per_feature(kernel):
    X, t, new = data(RVR)
    # Distances and inner products both scale by the square of a factor, absolute distances by the factor.
    factor = GAMMA if kernel == "laplacian" else np.sqrt(GAMMA)
    per_feature = rvr(kernel=kernel, gamma=GAMMA, **PARAMETERS).fit(X, t)
    scaled = rvr(kernel=kernel, gamma=1.0, **PARAMETERS).fit(X * factor, t)
    equal = rvr(kernel=kernel, gamma=[0.4, 0.4], **PARAMETERS).fit(X, t)
    assert_allclose(per_feature.predict(new), scaled.predict(new * factor), atol=1e-6)
    assert_allclose(equal.predict(new), rvr(kernel=kernel, gamma=0.4, **PARAMETERS).fit(X, t).predict(new), atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "one", "other"),
    [
        ("poly", {"degree": 2}, {"degree": 4}),
        ("poly", {"coef0": 0.0}, {"coef0": 1.0}),
        ("sigmoid", {"coef0": 0.0}, {"coef0": 1.0}),
        ("rational_quadratic", {"shape": 0.5}, {"shape": 5.0}),
    ],
)
def test_parameters_of_kernels_have_an_effect(kernel, one, other):
    X, t, new = data(RVR)
    first, second = (rvr(kernel=kernel, gamma=0.5, **own).fit(X, t).predict(new) for own in (one, other))
    assert np.abs(first - second).max() > 1e-4


def test_the_intercept_can_be_left_out_for_every_kind_of_basis():
    X, t = sinc()
    K = rbf_kernel(X, gamma=0.1)
    for model, rows in [
        (rvr(gamma=0.1, fit_intercept=False), X),
        (rvr(kernel="precomputed", fit_intercept=False), K),
        (rvr(basis="given", fit_intercept=False), K),
    ]:
        model.fit(rows, t + 3.0)
        assert model.intercept_ == 0.0
        assert np.isinf(model.intercept_alpha_)
        assert_allclose(model.predict(rows), t + 3.0, atol=0.5)


@BOTH
def test_every_parameter_is_switched_on_in_some_test(cls):
    own = "\n".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    for name in inspect.signature(cls.__init__).parameters:
        if name != "self":
            used = re.search(rf"\b{name}=|[\"']{name}[\"']: ", own)
            assert used, f"no test sets {name}"


@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_a_dictionary_of_the_callers_kernel(kernel):
    X, t = sinc()
    gamma = 0.1

    def rbf(a, b):
        return np.exp(-gamma * ((a[:, None] - b[None]) ** 2).sum(-1))

    table = rbf(X, X) if kernel == "precomputed" else X
    own = "precomputed" if kernel == "precomputed" else rbf
    few = rvr(own, dictionary=7).fit(table, t)
    assert 0 < len(few.relevance_) <= 7
    again = rvr(own, dictionary=7).fit(table, t)
    np.testing.assert_array_equal(again.relevance_, few.relevance_)
    others = [rvr(own, dictionary=7, random_state=seed).fit(table, t).relevance_ for seed in range(1, 4)]
    assert any(not np.array_equal(other, few.relevance_) for other in others)
    if kernel == "callable":
        np.testing.assert_array_equal(few.relevance_vectors_, X[few.relevance_])
    everything = rvr(own, dictionary=len(X)).fit(table, t)
    np.testing.assert_array_equal(everything.predict(table), rvr(own).fit(table, t).predict(table))


def test_many_rows_have_a_thousand_candidates():
    """Many rows: 1,000 of them are candidates, spread over the inputs, unless all are asked for."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, size=(10_001, 1))
    t = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(10_001)
    auto = rvr(gamma=1.0).fit(X, t)
    assert auto.report_["candidates"] == 1000
    assert rvr(gamma=1.0).fit(X[:10_000], t[:10_000]).report_["candidates"] == 10_000
    assert abs(auto.noise_variance_**0.5 - 0.1) < 0.005
    few = {way: rvr(gamma=1.0, dictionary=40, landmarks=way).fit(X, t) for way in ("kmedoids", "uniform")}
    assert all(model.report_["candidates"] == 40 for model in few.values())
    assert not np.array_equal(few["kmedoids"].relevance_, few["uniform"].relevance_)
    for model in few.values():
        assert_array_equal(model.relevance_vectors_, X[model.relevance_])
        assert np.max(np.abs(model.predict(X) - np.sin(2 * X[:, 0]))) < 0.05
