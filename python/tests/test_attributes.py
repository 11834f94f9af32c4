"""Fitted attributes: names, shapes, units, and the formulas that tie them together."""

import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR
from relvec._table import KERNELS
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from support import FORMULAS, PARAMETERS, golden, papers, rvc, rvr, sinc, surface, two_classes


def design(model, X, kernel="rbf"):
    """Phi at rows `X`, the intercept first if it is in the model, by the kernel's formula."""
    Phi = FORMULAS[kernel](X, model.relevance_vectors_, getattr(model, "gamma_", None))
    return np.column_stack([np.ones(len(X)), Phi]) if np.isfinite(model.intercept_alpha_) else Phi


def precisions(model):
    own = [model.intercept_alpha_] if np.isfinite(model.intercept_alpha_) else []
    return np.concatenate([own, model.alpha_])


def weights(model):
    own = np.ravel(model.intercept_) if np.isfinite(model.intercept_alpha_) else []
    return np.concatenate([own, model.dual_coef_[0]])


def check_regression(model, X, t, new, weight=None, kernel="rbf"):
    """Everything that alpha and the noise variance determine, from the textbook."""
    Phi, weight = design(model, X, kernel), np.ones(len(X)) if weight is None else weight
    precision = (Phi.T * weight) @ Phi / model.noise_variance_ + np.diag(precisions(model))
    # Units differ between the weights: an inverse of the matrix scaled to a unit diagonal is exact enough.
    s = 1.0 / np.sqrt(np.diag(precision))
    covariance = np.linalg.inv(precision * np.outer(s, s)) * np.outer(s, s)
    mu = covariance @ (Phi.T * weight) @ t / model.noise_variance_
    assert_allclose(weights(model), mu, rtol=1e-6, atol=1e-6 * np.abs(mu).max())
    assert_allclose(model.covariance_ / np.outer(s, s), covariance / np.outer(s, s), atol=1e-6)

    phi = design(model, new, kernel)
    variance = ((phi @ covariance) * phi).sum(axis=1)
    mean, std, model_std, noise_std = model.predict(new, return_std=True, return_parts=True)
    assert_allclose(mean, phi @ mu, rtol=1e-6, atol=1e-6 * np.abs(mean).max())
    assert_allclose(std, np.sqrt(model.noise_variance_ + variance), rtol=1e-6)
    assert_allclose(model_std, np.sqrt(variance), rtol=1e-5, atol=1e-6 * std.max())
    assert_allclose(noise_std, np.full(len(new), math.sqrt(model.noise_variance_)), rtol=1e-14)

    if np.all(weight == 1.0):
        C = model.noise_variance_ * np.eye(len(t)) + (Phi / precisions(model)) @ Phi.T
        # Units of the target apart, so that no determinant overflows.
        u = t.std()
        log_det = np.linalg.slogdet(C / u**2)[1] + 2.0 * len(t) * math.log(u)
        evidence = -0.5 * (len(t) * math.log(2.0 * math.pi) + log_det + t @ np.linalg.solve(C, t))
        assert_allclose(model.log_evidence_, evidence, rtol=1e-7, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_by_its_formula(kernel):
    X, t = surface()
    new, _ = surface(25, seed=1)
    gamma = np.array([0.8, 0.3])
    model = rvr(kernel=kernel, gamma=gamma, **PARAMETERS).fit(X, t)
    assert len(model.relevance_) > 0
    check_regression(model, X, t, new, kernel=kernel)
    if "gamma" in KERNELS[kernel]:
        assert_array_equal(model.gamma_, gamma)
    else:
        assert not hasattr(model, "gamma_")


@pytest.mark.parametrize("inference", ["search", "mackay", "em"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_scheme_has_the_attributes_of_its_model(inference, fit_intercept):
    X, t = sinc()
    t = t + 0.5
    model = rvr(gamma=0.1, search=inference, fit_intercept=fit_intercept).fit(X, t)
    check_regression(model, X, t, np.linspace(-12.0, 12.0, 40)[:, np.newaxis])
    if not fit_intercept:
        assert model.intercept_ == 0.0
        assert model.intercept_alpha_ == math.inf


def test_a_pruned_intercept_is_zero_with_infinite_precision():
    X, t = sinc()
    model = rvr(gamma=0.5).fit(X, t)
    assert model.intercept_ == 0.0
    assert model.intercept_alpha_ == math.inf
    assert len(model.covariance_) == len(model.relevance_)


def test_an_intercept_in_the_model():
    X, t = surface()
    model = rvr(gamma=2.0).fit(X, t + 100.0)
    assert abs(model.intercept_) > 50.0
    assert 0.0 < model.intercept_alpha_ < 1.0
    assert len(model.covariance_) == len(model.relevance_) + 1
    check_regression(model, X, t + 100.0, X)


def test_sample_weights_scale_the_noise_of_their_rows():
    X, t = sinc()
    weight = np.random.default_rng(1).uniform(0.0, 3.0, 60)
    weight[::7] = 0.0
    check_regression(rvr(gamma=0.1).fit(X, t, weight), X, t, X, weight)


@pytest.mark.parametrize("noise_variance", [0.001, 0.01, 0.3])
def test_a_noise_variance_that_was_given(noise_variance):
    X, t = sinc()
    model = rvr(gamma=0.1, noise_variance=noise_variance).fit(X, t)
    assert model.noise_variance_ == pytest.approx(noise_variance, rel=1e-12)
    check_regression(model, X, t, X)


def test_raw_data_in_odd_units():
    X, t = sinc()
    plain, odd = rvr(gamma=0.1).fit(X, t), rvr(gamma=1e5).fit(X * 1e-3, t * 1e6)
    check_regression(odd, X * 1e-3, t * 1e6, X * 1e-3)
    assert_array_equal(odd.relevance_, plain.relevance_)
    # The units of each attribute.
    assert_allclose(odd.dual_coef_, plain.dual_coef_ * 1e6, rtol=1e-6)
    assert_allclose(odd.alpha_, plain.alpha_ * 1e-12, rtol=1e-6)
    assert_allclose(odd.noise_variance_, plain.noise_variance_ * 1e12, rtol=1e-8)
    assert_allclose(odd.covariance_, plain.covariance_ * 1e12, rtol=1e-5)
    assert_allclose(odd.relevance_vectors_, plain.relevance_vectors_ * 1e-3, rtol=1e-15)
    assert_allclose(odd.log_evidence_, plain.log_evidence_ - 60 * math.log(1e6), rtol=1e-9)


def test_shapes_and_kinds_of_a_regression():
    X, t = surface()
    model = rvr().fit(X, t)
    m = len(model.relevance_)
    assert 0 < m < 60
    assert model.relevance_.dtype.kind == "i"
    assert np.all(np.diff(model.relevance_) > 0)
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])
    assert model.dual_coef_.shape == (1, m)
    assert model.alpha_.shape == (m,)
    assert np.all(model.alpha_ > 0.0)
    assert_array_equal(model.weight_precision_, model.alpha_)
    for name in ("intercept_", "intercept_alpha_", "noise_variance_", "log_evidence_", "gamma_"):
        assert isinstance(getattr(model, name), float), name
    assert isinstance(model.n_iter_, int)
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "classes_")
    assert_array_equal(model.covariance_, model.covariance_.T)


def test_shapes_and_kinds_of_a_classification():
    X, y = two_classes()
    model = rvc().fit(X, y)
    m = len(model.relevance_)
    assert m > 0
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])
    assert model.dual_coef_.shape == (1, m)
    assert model.intercept_.shape == (1,)
    assert model.alpha_.shape == model.weight_precision_.shape == (m,)
    assert_array_equal(model.classes_, [0, 1])
    assert model.decision_function(X).shape == (80,)
    assert model.predict_proba(X).shape == model.predict_log_proba(X).shape == (80, 2)
    assert not hasattr(model, "noise_variance_")


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_classification_by_laplace_at_the_mode(fit_intercept, weighted):
    X, y = two_classes()
    X = X + 2.0
    weight = np.random.default_rng(1).uniform(0.2, 3.0, 80) if weighted else np.ones(80)
    model = rvc(gamma=0.3, fit_intercept=fit_intercept).fit(X, y, weight if weighted else None)
    Phi, w = design(model, X), weights(model)
    p = 1.0 / (1.0 + np.exp(-(Phi @ w)))
    # The mode: prior and data pull equally.
    pull = Phi.T @ (weight * (y - p))
    assert_allclose(pull, precisions(model) * w, rtol=1e-6, atol=1e-6)
    covariance = np.linalg.inv((Phi.T * (weight * p * (1.0 - p))) @ Phi + np.diag(precisions(model)))
    assert_allclose(model.covariance_, covariance, rtol=1e-6, atol=1e-6 * np.abs(covariance).max())

    new, _ = two_classes(30, seed=5)
    phi = design(model, new + 2.0)
    mean, variance = phi @ w, ((phi @ covariance) * phi).sum(axis=1)
    moderated = mean / np.sqrt(1.0 + math.pi * variance / 8.0)
    assert_allclose(model.decision_function(new + 2.0), moderated, rtol=1e-6, atol=1e-8)
    second = 1.0 / (1.0 + np.exp(-moderated))
    assert_allclose(model.predict_proba(new + 2.0), np.column_stack([1.0 - second, second]), rtol=1e-6, atol=1e-9)
    plug_in = 1.0 / (1.0 + np.exp(-mean))
    assert_allclose(model.predict_proba(new + 2.0, moderated=False)[:, 1], plug_in, rtol=1e-6)
    log_proba = model.predict_log_proba(new + 2.0, moderated=False)
    assert_allclose(log_proba[:, 0], -np.logaddexp(0.0, mean), rtol=1e-6)
    assert_array_equal(model.predict(new + 2.0), (mean > 0.0).astype(int))

    if not weighted:
        log_likelihood = (y * (Phi @ w) - np.logaddexp(0.0, Phi @ w)).sum()
        log_det = np.linalg.slogdet(covariance)[1] + np.log(precisions(model)).sum()
        evidence = log_likelihood - 0.5 * (precisions(model) * w) @ w + 0.5 * log_det
        assert_allclose(model.log_evidence_, evidence, rtol=1e-7)


def test_predict_returns_the_parts_that_were_asked_for():
    X, t = sinc()
    model = rvr(gamma=0.1).fit(X, t)
    mean, std, model_std, noise_std = model.predict(X, return_std=True, return_parts=True)
    assert_array_equal(model.predict(X), mean)
    assert_array_equal(model.predict(X, return_std=True), [mean, std])
    assert_array_equal(model.predict(X, return_parts=True), [mean, model_std, noise_std])
    assert_allclose(model_std**2 + noise_std**2, std**2, rtol=1e-12)


def test_log_probabilities_far_out_are_finite():
    # sigmoid(-800) is 0 in 64 bits; its logarithm is not.
    X, y = two_classes(spread=0.3)
    model = rvc(kernel="linear").fit(X, y)
    log_proba = model.predict_log_proba(X * 1e6, moderated=False)
    assert np.all(np.isfinite(log_proba))
    assert log_proba.min() < -800.0
    assert_allclose(model.predict_proba(X * 1e6, moderated=False).sum(axis=1), 1.0)


@pytest.mark.parametrize("cls", [RVR, RVC, SVC, NuSVC, SVR, NuSVR])
def test_coef_can_be_read_but_not_changed(cls):
    X, y = two_classes(spread=0.5)
    model = papers(cls, kernel="linear").fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[...] = 0.0
    with pytest.raises(AttributeError):
        model.coef_ = before
    assert_array_equal(model.coef_, before)


def test_coef_of_a_linear_kernel():
    X, t = surface()
    model = rvr(kernel="linear").fit(X, t)
    assert model.coef_.shape == (2,)
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-10)
    C, y = two_classes()
    classifier = rvc(kernel="linear").fit(C, y)
    assert classifier.coef_.shape == (1, 2)
    log_odds = C @ classifier.coef_[0] + classifier.intercept_
    assert_allclose(classifier.predict_proba(C, moderated=False)[:, 1], 1.0 / (1.0 + np.exp(-log_odds)), rtol=1e-8)


@pytest.mark.parametrize("settings", [{}, {"kernel": "poly"}, {"basis": "given", "kernel": "linear"}])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_no_coef_of_other_kernels(cls, settings):
    X, y = two_classes()
    model = papers(cls, **settings).fit(X, y)
    with pytest.raises(AttributeError, match="only available when using a linear kernel"):
        model.coef_  # noqa: B018
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize(
    "labels",
    [[3, 7], [-1, 1], [0, 1], [-2.5, 0.5], [False, True], ["no", "yes"], ["ä", "β"], [2**40, 2**41]],
    ids=str,
)
def test_classes_keep_their_kind(labels):
    X, y = two_classes()
    names = np.array(labels)[y]
    # Floats that are no whole numbers are no classes to scikit-learn.
    if isinstance(labels[0], float):
        names = np.array([str(n) for n in names], dtype=object)
    model = rvc().fit(X, names)
    assert model.classes_.dtype == np.unique(names).dtype
    assert_array_equal(model.classes_, np.unique(names))
    assert set(model.predict(X).tolist()) == set(np.unique(names).tolist())
    assert_array_equal(model.predict(X) == model.classes_[1], rvc().fit(X, y).predict(X) == 1)


def test_whole_floats_are_classes():
    X, y = two_classes()
    model = rvc().fit(X, y * 2.0 - 1.0)
    assert model.classes_.dtype == np.float64
    assert_array_equal(model.classes_, [-1.0, 1.0])
    assert set(model.predict(X).tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize("other", ["precomputed", "linear", "poly"])
def test_a_fitted_model_does_not_follow_its_parameters(other):
    """They are those of the next fit."""
    X, t = surface()
    model = rvr().fit(X, t)
    before = model.predict(X)
    model.set_params(kernel=other, gamma=5.0)
    assert_array_equal(model.predict(X), before)
    assert not hasattr(model, "coef_")


def test_scores_are_r2_and_accuracy_with_weights():
    X, t = sinc()
    weight = np.linspace(0.1, 1.0, 60)
    model = rvr(gamma=0.1).fit(X, t)
    assert model.score(X, t, weight) == r2_score(t, model.predict(X), sample_weight=weight)
    C, y = two_classes()
    classifier = rvc().fit(C, y)
    assert classifier.score(C, y) == accuracy_score(y, classifier.predict(C))


@pytest.mark.parametrize("inference", ["search", "mackay", "em"])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_the_report_has_a_value_for_each_iteration(cls, inference):
    X, y = two_classes()
    model = papers(cls, gamma=0.3, search=inference).fit(X, y)
    report = model.report_
    assert report["status"] == "converged"
    assert report["iterations"] == model.n_iter_ >= 1
    assert isinstance(report["seconds"], float)
    for name in ("log_evidence", "noise_std", "active", "elapsed"):
        assert report[name].shape == (model.n_iter_,), name
    # The best so far never falls, but for the rounding of the search's last polish.
    assert np.all(np.diff(report["log_evidence"]) >= -1e-10 * abs(model.log_evidence_))
    assert np.all(np.diff(report["elapsed"]) >= 0.0)
    assert 0.0 <= report["elapsed"][0] <= report["elapsed"][-1] <= report["seconds"]
    assert report["log_evidence"][-1] == pytest.approx(model.log_evidence_, abs=1e-3)
    assert report["active"].dtype.kind == "i"
    assert report["active"][-1] == len(model.covariance_)
    if cls is RVR:
        assert report["noise_std"][-1] ** 2 == pytest.approx(model.noise_variance_, rel=1e-3)
    else:
        assert np.all(np.isnan(report["noise_std"]))
    certificate = report["certificate"]
    assert set(certificate) == {"largest_gain", "largest_gradient", "reason"}
    assert certificate["reason"]
    if inference == "search":
        # Gains of classes are predicted for a fixed curvature. An action that is undone ends the search.
        undone = certificate["reason"].startswith("the action of the largest predicted gain")
        assert 0.0 <= certificate["largest_gain"] < 1e-3 or (cls is RVC and undone)
        # Where the curvature moves precisions rest by what they gain. A step along the gradient was then undone.
        assert certificate["largest_gradient"] < (1e-3 if cls is RVR else 0.1 if undone else 2e-2)
    assert report["adjustments"]["merged_rows"] == 0
    assert set(report["actions"]) >= {"added", "deleted", "reestimated"}


def test_repairs_are_reported():
    X, t = sinc()
    model = rvr(gamma=0.1).fit(np.column_stack([np.vstack([X, X[:5]]), np.ones(65)]), np.append(t, t[:5]))
    assert model.report_["adjustments"]["merged_rows"] == 5
    assert model.report_["adjustments"]["constant_features"] == [1]


@pytest.mark.parametrize("cls", [RVR, RVC])
@pytest.mark.parametrize(
    ("limit", "status"),
    [
        ({"search": {"scheme": "mackay", "max_iterations": 1}}, "iteration_limit"),
        ({"search": "mackay", "time_limit": 1e-9}, "time_limit"),
    ],
)
def test_a_limit_that_was_reached_is_a_warning_that_names_it(cls, limit, status):
    X, y = two_classes(200)
    said = {
        "iteration_limit": r"in 1 iteration: .*'scheme': 'mackay', 'max_iterations': 10} allows more",
        "time_limit": "time_limit=1e-09",
    }[status]
    with pytest.warns(ConvergenceWarning, match=f"{cls.__name__}: .*{said}") as caught:
        model = papers(cls, gamma=3.0, **limit).fit(X, y)
    # Before anything is pruned a fit may look as if it interpolates.
    caught = [one for one in caught if one.category is ConvergenceWarning]
    assert len(caught) == 1
    # It points at the line of the user's program.
    assert caught[0].filename == __file__
    assert model.report_["status"] == status
    assert model.n_iter_ == 1
    assert np.all(np.isfinite(model.predict(X)))


def test_the_memory_limit_is_a_warning_that_names_it():
    X, t = sinc(400, noise=0.001)
    X = X / 10.0
    limit = least_memory(X, t)
    with pytest.warns(ConvergenceWarning, match="RVR: the memory limit .* Raise memory_limit"):
        model = rvr(gamma=300.0, memory_limit=limit).fit(X, t)
    assert model.report_["status"] == "memory_limit"
    assert np.all(np.isfinite(model.predict(X)))


def least_memory(X, t):
    """The least limit, to 2 %, that a fit does not refuse at once."""
    low, high = 1, 10**8
    while high - low > low / 50:
        middle = (low + high) // 2
        try:
            with warnings.catch_warnings(action="ignore"):
                rvr(gamma=300.0, memory_limit=middle, search={"max_iterations": 1}).fit(X, t)
            high = middle
        except ValueError:
            low = middle
    return high


@pytest.mark.parametrize("raises", [False, True])
def test_stopping_by_the_callback_is_no_warning(raises):
    X, t = sinc(200)
    seen = []

    def callback(record):
        seen.append(record)
        if raises and len(seen) == 3:
            raise StopIteration
        return len(seen) == 3

    model = rvr(gamma=0.1, search="mackay", callback=callback).fit(X, t)
    assert model.report_["status"] == "stopped"
    assert model.n_iter_ == 3
    assert [record["iteration"] for record in seen] == [1, 2, 3]
    assert_array_equal([record["log_evidence"] for record in seen], model.report_["log_evidence"])
    assert np.all(np.isfinite(model.predict(X)))


def test_verbose_prints_progress(capsys):
    X, t = sinc()
    rvr(gamma=0.1, verbose=0).fit(X, t)
    assert capsys.readouterr().out == ""
    model = rvr(gamma=0.1, verbose=2).fit(X, t)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_ + 1
    assert lines[0].startswith("iteration 1: log evidence ")
    assert lines[-1].startswith(f"converged after {model.n_iter_} iterations, ")
    rvr(gamma=0.1, verbose=1).fit(X, t)
    assert 2 <= len(capsys.readouterr().out.splitlines()) <= len(lines)


def test_a_random_dictionary():
    X, t = sinc(300)
    models = [rvr(gamma=0.1, dictionary=20, random_state=s).fit(X, t) for s in (None, 0, 1, np.random.RandomState(5))]
    assert all(0 < len(model.relevance_) <= 20 for model in models)
    assert_array_equal(models[0].relevance_, models[1].relevance_)
    assert set(models[1].relevance_) != set(models[2].relevance_)
    assert set(models[1].relevance_) != set(models[3].relevance_)
    for model in models:
        assert_array_equal(model.relevance_vectors_, X[model.relevance_])
        check_regression(model, X, t, X)
    # As large as the table, it is the table.
    whole = rvr(gamma=0.1, dictionary=300).fit(X, t)
    assert_array_equal(whole.dual_coef_, rvr(gamma=0.1).fit(X, t).dual_coef_)


def test_settings_of_the_scheme():
    X, t = sinc(100)
    plain = rvr(gamma=0.1, search="mackay").fit(X, t)
    coarse = rvr(gamma=0.1, search={"scheme": "mackay", "tolerance": 1.0}).fit(X, t)
    assert coarse.n_iter_ < plain.n_iter_
    own = rvr(gamma=0.1, search={"scheme": "mackay", "tolerance": np.float64(1.0)}).fit(X, t)
    assert own.n_iter_ == coarse.n_iter_
    whole = rvr(gamma=0.1, search={"scheme": "mackay", "prune": False}).fit(X, t)
    assert len(whole.relevance_) > len(plain.relevance_)
    single = rvr(gamma=0.1, search={"policy": {"batch": 1}}).fit(X, t)
    assert single.report_["status"] == "converged"


@pytest.mark.parametrize("name", ["reg_sinc_gauss_n40", "reg_2d_gauss_n50"])
def test_evidence_of_regression_is_that_of_the_reference_or_next_to_it(name):
    X, t, _, values = golden(name)
    model = rvr(gamma=values["gamma"]).fit(X, t)
    known = [values[record]["L"] for record in ("stationary_mackay", "stationary_fast")]
    assert model.log_evidence_ > max(known) - 1.0


@pytest.mark.parametrize("record", ["stationary_mackay", "stationary_fast"])
@pytest.mark.parametrize("name", ["reg_sinc_gauss_n40", "reg_2d_gauss_n50"])
def test_beside_an_optimum_the_search_ends_in_it(name, record):
    X, t, new, values = golden(name)
    known = values[record]
    active, alpha = np.array(known["active"]), np.array(known["alpha"])
    # Column 0 of the reference is the intercept.
    kernels = active > 0
    start = {
        "relevance": active[kernels] - 1,
        "alpha": alpha[kernels] * 1.05,
        "intercept_alpha": None if kernels.all() else alpha[~kernels][0] * 1.05,
        "noise_variance": known["sigma2"] / 1.03,
    }
    # An restart might find a better one.
    own = {"start": {"given": start}, "restarts": 0}
    model = rvr(gamma=values["gamma"], search=own).fit(X, t)
    assert_array_equal(model.relevance_, active[kernels] - 1)
    assert np.isfinite(model.intercept_alpha_) != kernels.all()
    assert model.log_evidence_ == pytest.approx(known["L"], abs=1e-9)
    assert_allclose(precisions(model), alpha, rtol=1e-5)
    assert_allclose(weights(model), known["mu"], rtol=1e-6)
    assert_allclose(np.diag(model.covariance_), known["Sigma_diag"], rtol=1e-5)
    assert model.noise_variance_ == pytest.approx(known["sigma2"], rel=1e-6)
    mean, std = model.predict(new, return_std=True)
    assert_allclose(mean, known["pred_mean"], rtol=1e-6, atol=1e-7)
    assert_allclose(std**2, known["pred_var"], rtol=1e-6)


@pytest.mark.parametrize("scheme", ["mackay", "em"])
@pytest.mark.parametrize("name", ["reg_sinc_gauss_n40", "reg_2d_gauss_n50", "cls_1d_gauss_n36", "cls_2d_gauss_n50"])
def test_the_first_steps_of_the_fixed_points_are_the_reference(name, scheme):
    X, t, _, values = golden(name)
    trace = values[f"{scheme}_trace"]
    own = {"scheme": scheme, "prune": False, "initial_alpha": trace["alpha0"], "max_iterations": len(trace["L"])}
    regression = name.startswith("reg")
    if regression:
        own["initial_noise_variance"] = 1.0 / trace["beta0"]
    model = (rvr if regression else rvc)(gamma=values["gamma"], search=own)
    with pytest.warns(ConvergenceWarning, match="max_iterations"):
        model.fit(X, t if regression else t.astype(int))
    # The report tells the best so far.
    assert_allclose(model.report_["log_evidence"], np.maximum.accumulate(trace["L"]), atol=1e-8)
