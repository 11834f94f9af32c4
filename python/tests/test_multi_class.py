"""More than two classes: one model of all, and models of two."""

import pickle
import warnings

import numpy as np
import pytest
import relvec
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags
from support import PINNED, rvc, rvr

RULES = ["joint", "one_vs_rest", "one_vs_one"]
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])


@pytest.fixture(scope="module")
def fitted():
    return {rule: rvc(gamma=0.2, multi_class=rule).fit(X, NAMES[Y]) for rule in RULES}


def test_moved_centres_raise_the_evidence_of_classes(fitted):
    model = rvc(gamma=0.2, dictionary=5, centres="learned").fit(X, NAMES[Y])
    search = model.report_["centre_search"]
    assert search["kept"] and search["moved"] == 5
    assert model.log_evidence_ == search["learned_log_evidence"] > search["fixed_log_evidence"]
    assert not any((centre == X).all(axis=1).any() for centre in model.relevance_vectors_)
    assert model.score(X, NAMES[Y]) > 0.95
    with pytest.raises(ValueError, match="multi_class = joint"):
        rvc(gamma=0.2, multi_class="one_vs_rest", dictionary=5, centres="learned").fit(X, NAMES[Y])


@pytest.mark.parametrize("rule", RULES)
def test_classes_are_told_apart(fitted, rule):
    model = fitted[rule]
    assert_array_equal(model.classes_, NAMES)
    assert model.score(X, NAMES[Y]) > 0.95
    for moderated in (True, False):
        p = model.predict_proba(X, moderated=moderated)
        assert p.shape == (150, 3)
        assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert_allclose(np.exp(model.predict_log_proba(X, moderated=moderated)), p, rtol=1e-14)
    decision = model.decision_function(X)
    assert_allclose(decision, np.log(model.predict_proba(X)) - np.log(model.predict_proba(X)).mean(axis=1)[:, None])
    assert_array_equal(model.predict(X), NAMES[decision.argmax(axis=1)])


@pytest.mark.parametrize("rule", RULES)
def test_attributes_have_a_row_for_each_class(fitted, rule):
    model = fitted[rule]
    m = len(model.relevance_)
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])
    assert model.dual_coef_.shape == (3, m)
    assert model.intercept_.shape == (3,)
    if rule == "joint":
        assert model.alpha_.shape == (m,)
        assert_allclose(model.dual_coef_.sum(axis=0), 0.0, atol=1e-9)
        assert isinstance(model.intercept_alpha_, float)
        assert model.covariance_.shape == (2 * (m + np.isfinite(model.intercept_alpha_)),) * 2
        # The plug-in probabilities are the softmax of the expansion.
        f = rbf_kernel(X, model.relevance_vectors_, gamma=0.2) @ model.dual_coef_.T + model.intercept_
        e = np.exp(f - f.max(axis=1, keepdims=True))
        assert_allclose(model.predict_proba(X, moderated=False), e / e.sum(axis=1, keepdims=True), rtol=1e-9)
        assert "members" not in model.report_
        assert np.all(np.diff(model.report_["log_evidence"]) >= -1e-9)
    else:
        assert model.alpha_.shape == model.well_determined_.shape == (3, m)
        assert_array_equal(np.isinf(model.alpha_), model.dual_coef_ == 0.0)
        assert_array_equal(model.well_determined_ == 0.0, model.dual_coef_ == 0.0)
        assert model.intercept_alpha_.shape == (3,)
        with pytest.raises(AttributeError, match="several binary models"):
            model.covariance_  # noqa: B018
        members = model.report_["members"]
        assert len(members) == 3
        assert sum(len(own["log_evidence"]) for own in members) == model.n_iter_
        assert_allclose(sum(own["log_evidence"][-1] for own in members), model.log_evidence_)


@pytest.mark.parametrize("rule", RULES)
def test_models_survive_their_files(fitted, rule, tmp_path):
    model = fitted[rule]
    model.save(tmp_path / "m.json")
    again = relvec.load(tmp_path / "m.json")
    assert again.multi_class == rule
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.classes_, model.classes_)
        assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        assert_array_equal(other.alpha_, model.alpha_)


@pytest.mark.parametrize("rule", RULES)
def test_kernels_of_the_caller(fitted, rule):
    plain = fitted[rule].predict_proba(X[::3])
    own = rvc(kernel=lambda a, b: rbf_kernel(a, b, gamma=0.2), multi_class=rule).fit(X, NAMES[Y])
    # Another search, since the columns are in another order and sums round otherwise: it may end elsewhere.
    assert np.abs(own.predict_proba(X[::3]) - plain).mean() < 0.03
    matrix = rvc(kernel="precomputed", multi_class=rule).fit(rbf_kernel(X, gamma=0.2), NAMES[Y])
    columns = rbf_kernel(X[::3], X, gamma=0.2)
    assert np.abs(matrix.predict_proba(columns) - own.predict_proba(X[::3])).mean() < 0.03
    assert np.mean(matrix.predict(columns) == own.predict(X[::3])) > 0.95


def test_the_default_is_one_model_of_all_where_the_scheme_has_it():
    assert rvc().fit(X, Y)._model.multi_class == "joint"
    assert (
        rvc(search={"scheme": "variational", "max_iterations": 20, "tolerance": 1.0}).fit(X, Y)._model.multi_class
        == "one_vs_rest"
    )
    with pytest.raises(ValueError, match="one_vs_rest"):
        rvc(search="variational", multi_class="joint").fit(X, Y)
    assert rvc().fit(X[:100], Y[:100])._model.multi_class is None
    assert get_tags(rvc()).classifier_tags.multi_class


@pytest.mark.parametrize("inference", ["mackay", "em"])
def test_other_schemes_fit_several_classes(inference):
    model = rvc(search={"scheme": inference, "tolerance": 0.1}, gamma=0.2).fit(X, Y)
    assert model.score(X, Y) > 0.95
    assert np.all(np.diff(model.report_["log_evidence"]) >= -1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_balanced_weights_equal_given_weights(rule):
    rows = np.r_[0:50, 50:70, 100:140]
    counts = np.bincount(Y[rows])
    weights = (len(rows) / (3 * counts))[Y[rows]]
    one = rvc(gamma=0.2, class_weight="balanced", multi_class=rule).fit(X[rows], Y[rows])
    other = rvc(gamma=0.2, multi_class=rule).fit(X[rows], Y[rows], weights)
    assert_array_equal(one.dual_coef_, other.dual_coef_)


def test_bad_settings_of_classes_are_refused():
    with pytest.raises(ValueError, match=r"The 'multi_class' .* among {'auto', 'joint', .* Got 'ovr'"):
        rvc(multi_class="ovr").fit(X, Y)
    weights = (Y != 2).astype(float)
    with pytest.raises(ValueError, match="no row of positive weight of the class 2"):
        rvc().fit(X, Y, weights)
    # Rows without weight and their class left out.
    assert len(rvc().fit(X[Y != 2], Y[Y != 2]).classes_) == 2


def test_models_with_precisions_of_each_class_are_read():
    """Earlier versions fitted a precision for each class and vector, infinite if the class does not have the vector."""
    model = relvec.load(PINNED / "rvc_class_precisions.json")
    m, new = len(model.relevance_), model.relevance_vectors_ + 0.1
    assert model.alpha_.shape == model.dual_coef_.shape == (3, m)
    assert_array_equal(np.isinf(model.alpha_), model.dual_coef_ == 0.0)
    assert_array_equal(np.isinf(model.intercept_alpha_), model.intercept_ == 0.0)
    assert np.isinf(model.alpha_).any()
    assert model.well_determined_.shape == (m,)
    weights = np.isfinite(model.alpha_).sum() + np.isfinite(model.intercept_alpha_).sum()
    assert model.covariance_.shape == (weights, weights)
    # The moderated probabilities from the covariance of the weights, class after class, each with its constant first.
    K = rbf_kernel(new, model.relevance_vectors_, gamma=model.gamma_)
    design = np.hstack([np.ones((len(new), 1)), K])
    present = np.hstack([np.isfinite(model.intercept_alpha_)[:, None], np.isfinite(model.alpha_)])
    halves = np.zeros((len(new), 3, weights))
    first = np.cumsum([0, *present.sum(axis=1)])
    for k in range(3):
        halves[:, k, first[k] : first[k + 1]] = design[:, present[k]]
    cov = np.einsum("nki,ij,nlj->nkl", halves, model.covariance_, halves)
    f = K @ model.dual_coef_.T + model.intercept_
    v = np.einsum("nkk->nk", cov)
    scale = np.sqrt(1.0 + np.pi / 8.0 * (v[:, :, None] + v[:, None, :] - 2.0 * cov))
    p = 1.0 / np.exp(-(f[:, :, None] - f[:, None, :]) / scale).sum(axis=2)
    assert_allclose(model.predict_proba(new), p / p.sum(axis=1, keepdims=True), rtol=1e-7)
    assert_array_equal(pickle.loads(pickle.dumps(model)).alpha_, model.alpha_)


@pytest.mark.parametrize("own", [{}, {"multi_class": "one_vs_rest"}])
def test_the_averaged_posterior_is_surer_of_separated_classes(own, tmp_path):
    far = X + 3.0 * Y[:, None]
    laplace = rvc(gamma=0.05, posterior="laplace", **own).fit(far, NAMES[Y])
    model = rvc(gamma=0.05, posterior="averaged", **own).fit(far, NAMES[Y])
    # The same model, and surer of it where classes are far apart.
    assert_array_equal(model.dual_coef_, laplace.dual_coef_)
    assert model.log_evidence_ == laplace.log_evidence_
    assert log_loss(NAMES[Y], model.predict_proba(far)) < 0.8 * log_loss(NAMES[Y], laplace.predict_proba(far))
    plug_in = [m.predict_proba(far, moderated=False) for m in (model, laplace)]
    assert_array_equal(*plug_in)
    model.save(tmp_path / "model.json")
    again = relvec.load(tmp_path / "model.json")
    assert again.posterior == "averaged"
    assert_array_equal(again.predict_proba(far), model.predict_proba(far))
    laplace.save(tmp_path / "model.json")
    assert relvec.load(tmp_path / "model.json").posterior == "laplace"
    # What nobody chose.
    usual = laplace if "multi_class" in own else model
    assert_array_equal(rvc(gamma=0.05, **own).fit(far, NAMES[Y]).predict_proba(far), usual.predict_proba(far))


def test_posteriors_that_do_not_suit():
    with pytest.raises(ValueError, match=r"The 'posterior' .* {'auto', 'laplace', 'averaged'}\. Got 'mean'"):
        rvc(posterior="mean").fit(X, Y)
    with pytest.raises(ValueError, match=r"has its own posterior"):
        rvc(posterior="averaged", search="variational").fit(X, Y)
    counts = np.round(np.exp(X[:, 0]))
    models = [rvr(likelihood="poisson", posterior=rule).fit(X, counts) for rule in ("auto", "averaged")]
    assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert not np.array_equal(models[0].covariance_, models[1].covariance_)


def test_a_thousand_classes_of_one_row_each():
    rows = np.random.default_rng(0).standard_normal((1000, 2))
    names = np.array([f"kind {number}" for number in range(1000)])
    model = rvc(gamma=1.0, multi_class="one_vs_rest", dictionary=5, search={"max_iterations": 2})
    with warnings.catch_warnings():
        # So many classes may be a regression; and the iterations do not do.
        warnings.simplefilter("ignore", UserWarning)
        model.fit(rows, names)
    for moderated in (True, False):
        p = model.predict_proba(rows[:50], moderated=moderated)
        assert p.shape == (50, 1000) and np.all(np.isfinite(p)) and np.all(p >= 0)
        assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("names", [["1", "2", "10"], [1, 2, 10], ["007", "07", "7"], [1.0, 2.0, 10.0]])
def test_classes_named_like_numbers(rule, names, tmp_path):
    """They are what they were: words stay words, in the order of words."""
    names = np.array(names)
    y = names[Y]
    model = rvc(gamma=0.2, multi_class=rule).fit(X, y)
    assert_array_equal(model.classes_, np.unique(names))
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.95
    model.save(tmp_path / "model.json")
    again = relvec.load(tmp_path / "model.json")
    assert_array_equal(again.classes_, model.classes_)
    assert again.classes_.dtype.kind == names.dtype.kind
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("rule", RULES)
def test_a_class_that_only_the_test_rows_have(fitted, rule):
    """`predict` knows nothing of it, `score` counts its rows as errors; what needs its probability refuses it."""
    truth = NAMES[Y].copy().astype("<U12")
    truth[:30] = "unheard of"
    model = fitted[rule]
    assert set(model.predict(X)) <= set(NAMES)
    expected = np.mean(model.predict(X) == truth)
    assert model.score(X, truth) == expected <= 0.8
    if rule == "joint":
        with pytest.raises(ValueError, match="classes that the model does not know"):
            model.leave_one_out(X, truth)
