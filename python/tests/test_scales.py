"""Kernels and centres learnt from the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, Statistics, load
from sklearn.base import clone
from support import papers, rvr


@pytest.fixture(scope="module")
def rows():
    """Two features that matter, two that do not."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (150, 4))
    f = np.sin(1.5 * X[:, 0]) + np.cos(3.0 * X[:, 1])
    return X, f + 0.2 * rng.standard_normal(150), f > 0


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_gamma_per_feature(cls, rows, tmp_path):
    X, t, kind = rows
    y = t if cls is RVR else kind
    model = papers(cls, gamma="evidence-ard").fit(X, y)
    assert model.gamma_.shape == (4,)
    assert model.gamma_[2:].max() < 5e-2 * model.gamma_[:2].min()
    assert_allclose(model.feature_relevance_, model.gamma_ * X.var(axis=0) / (model.gamma_ @ X.var(axis=0)), rtol=1e-9)
    search = model.report_["kernel_search"]
    (trial,) = search["tried"]
    assert (search["chosen"], trial["kernel"], search["rows"]) == (0, "rbf", 150)
    assert_array_equal(list(trial["parameters"].values()), model.gamma_)
    assert trial["process"]["gain"] > 10.0 and trial["process"]["rows"] == 150
    assert model.log_evidence_ > papers(cls).fit(X, y).log_evidence_
    assert clone(model).get_params() == model.get_params()
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.feature_relevance_, model.feature_relevance_)
    assert_array_equal(again.gamma, model.gamma_)


@pytest.mark.filterwarnings("ignore::relvec.InterpolationWarning")
def test_one_gamma_is_in_units_of_each_spread(rows):
    X, t, _ = rows
    model = rvr(gamma="evidence-one").fit(X, t)
    # One width, in units of the spread of each feature.
    assert_allclose(model.gamma_ * X.var(axis=0), model.gamma_[0] * X[:, 0].var(), rtol=1e-9)
    assert_allclose(model.feature_relevance_, 0.25, rtol=1e-9)


def test_several_kernels_are_tried_in_order(rows):
    X, t, _ = rows
    X = X[:, :2]
    model = rvr(["linear", "poly", "rbf"], degree=[1, 2], coef0=1.0, gamma=0.5).fit(X, t)
    tried = model.report_["kernel_search"]["tried"]
    assert [trial["kernel"] for trial in tried] == ["linear", "poly", "poly", "rbf"]
    assert [trial.get("degree") for trial in tried] == [None, 1, 2, None]
    assert model.report_["kernel_search"]["chosen"] == 3
    assert (model.kernel_, model.gamma_) == ("rbf", 0.5)
    assert not hasattr(model, "degree_")
    assert all(trial["process"]["log_posterior"] <= tried[3]["process"]["log_posterior"] for trial in tried)
    assert_array_equal(model.predict(X), rvr(["rbf"], gamma=0.5).fit(X, t).predict(X))
    auto = rvr("auto").fit(X, t)
    tried = auto.report_["kernel_search"]["tried"]
    assert [trial["kernel"] for trial in tried] == ["rbf", "matern52", "matern32"]
    assert auto.kernel_ == tried[auto.report_["kernel_search"]["chosen"]]["kernel"]


def test_moved_centres_raise_the_evidence(rows, tmp_path):
    X, t, _ = rows
    fixed = rvr(gamma=0.7, dictionary=10).fit(X[:, :2], t)
    model = rvr(gamma=0.7, dictionary=10, centres="learned").fit(X[:, :2], t)
    search = model.report_["centre_search"]
    assert search["kept"]
    assert search["moved"] == 10
    assert search["fixed_log_evidence"] == fixed.log_evidence_ < model.log_evidence_
    assert model.relevance_.max() < 10
    assert not any(np.any(np.all(X[:, :2] == centre, axis=1)) for centre in model.relevance_vectors_)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.centres == "learned"
    assert_array_equal(again.predict(X[:, :2]), model.predict(X[:, :2]))


def test_the_degree_that_was_chosen(tmp_path):
    x = np.linspace(-1.5, 1.5, 60)[:, np.newaxis]
    t = 1.0 + x[:, 0] - 2.0 * x[:, 0] ** 2 + 0.1 * np.random.default_rng(0).standard_normal(60)
    model = rvr(["poly", "linear"], degree=[5, 2], coef0=1.0, gamma=1.0).fit(x, t)
    assert (model.kernel_, model.degree_, model.gamma_, model.coef0_) == ("poly", 2, 1.0, 1.0)
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.kernel_, again.degree_) == (again.kernel, again.degree) == ("poly", 2)
    learnt = rvr("rational_quadratic", gamma="evidence").fit(x, t)
    assert learnt.shape_ != 1.0
    (trial,) = learnt.report_["kernel_search"]["tried"]
    assert learnt.shape_ == trial["parameters"]["shape"]
    assert not hasattr(rvr(lambda a, b: a @ b.T).fit(x, t), "kernel_")


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_constant_and_repeated_features(cls, rows):
    """A constant is of no account; twins share what one of them would have."""
    X, t, kind = rows
    y = t if cls is RVR else kind
    more = np.column_stack([X[:, :2], np.full(len(X), 7.0), X[:, 1]])
    model = papers(cls, gamma="evidence-ard").fit(more, y)
    assert np.all(np.isfinite(model.gamma_)) and np.all(model.gamma_ > 0.0)
    assert model.feature_relevance_[2] == 0.0
    assert_allclose(model.feature_relevance_.sum(), 1.0)
    once = papers(cls, gamma="evidence-ard").fit(X[:, :2], y)
    assert abs(np.log((model.gamma_[1] + model.gamma_[3]) / once.gamma_[1])) < 0.5
    assert model.report_["adjustments"]["constant_features"] == [2]
    assert model.score(more, y) > 0.9


def test_learned_centres_are_none_to_go_on_from(rows):
    X, t, _ = rows
    model = rvr(gamma=0.7, dictionary=10, centres="learned", warm_start=True).fit(X[:, :2], t)
    assert model.report_["centre_search"]["kept"]
    with pytest.raises(ValueError, match="warm_start: the centres of the earlier model are learned"):
        model.fit(X[:, :2], t)


def test_a_dictionary_larger_than_the_table(rows):
    X, t, _ = rows
    with pytest.warns(UserWarning, match="only 40 different rows"):
        model = rvr(gamma=0.7, dictionary=60, centres="learned").fit(X[:40, :2], t[:40])
    assert model.report_["centre_search"]["moved"] == 40


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"gamma": "evidence_ard"}, "'scale', 'auto', 'evidence', 'evidence-ard'"),
        ({"kernel": "linear", "gamma": "evidence-ard"}, "the kernel linear has no continuous parameters"),
        ({"kernel": ["linear", "linear_spline"], "gamma": "evidence-ard"}, "these kernels have no continuous"),
        ({"kernel": []}, "at least one kernel"),
        ({"kernel": ["rbf", "precomputed"]}, r"kernel\[1\] = 'precomputed'"),
        ({"kernel": "precomputed", "gamma": "evidence-ard"}, "gamma = .* needs a kernel that relvec computes"),
        ({"kernel": lambda a, b: a @ b.T, "gamma": "evidence-one"}, "gamma = .* needs a kernel that relvec computes"),
        (
            {"kernel": "precomputed", "centres": "learned"},
            "centres = 'learned' needs a kernel that relvec computes",
        ),
        ({"basis": "given", "centres": "learned"}, "centres = learned: expected fixed: the columns of a design matrix"),
        ({"centres": "moved"}, "'fixed', 'learned'"),
        ({"kernel": "linear_spline", "centres": "learned"}, "linear_spline has no gradient"),
        ({"landmarks": [[0.0] * 4], "centres": "learned"}, "landmarks that are not given"),
        ({"kernel": "poly", "degree": [1, 2]}, "degree"),
        ({"kernel": ["rbf", "poly"], "degree": []}, r"degree = \[\]: expected at least one degree"),
        ({"kernel": ["poly"], "degree": [2, 0]}, "degree = 0"),
    ],
)
def test_kernels_without_widths_reject_learned_widths(rows, parameters, text):
    X, t, _ = rows
    with pytest.raises(ValueError, match=text):
        rvr(**parameters).fit(X if parameters.get("kernel") != "precomputed" else X @ X.T, t)


def test_sums_cannot_teach():
    with pytest.raises(ValueError, match="evidence"):
        Statistics(gamma="evidence", centres=[[0.0]])
