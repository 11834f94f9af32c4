"""Sparsity, cross-validation, calibration, the healed variance, draws and rows left out, from Python."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, load
from support import papers, rvc, rvr, sinc, two_classes

X, T = sinc()
C, Y = two_classes()
NEW = np.array([[-30.0], [0.0], [4.0]])


def test_scores_of_rows_left_out():
    model = rvr(gamma=0.2, folds=4).fit(X, T)
    validation = model.report_["validation"]
    assert validation["folds"] == 4
    assert validation["rows"] == len(X)
    assert 0.5 < validation["rmse"] / np.sqrt(model.noise_variance_) < 2.0
    assert 0.8 < validation["coverage"] <= 1.0
    assert validation["nlpd"] < 0.5 * np.log(2 * np.pi * np.e * T.var())
    assert_array_equal(model.dual_coef_, rvr(gamma=0.2).fit(X, T).dual_coef_)
    scores = rvc(gamma=0.2, folds=3).fit(C, Y).report_["validation"]
    assert 0.0 <= scores["error_rate"] < 0.5
    assert 0.0 < scores["log_loss"] < np.log(2.0)
    assert "validation" not in rvc(gamma=0.2).fit(C, Y).report_


def test_sparsity_prunes_relevance_vectors():
    fits = [rvr(gamma=5.0, sparsity=nats).fit(X, T) for nats in (0.0, 3.0, 1e9)]
    assert len(fits[0].relevance_) > len(fits[1].relevance_) > len(fits[2].relevance_) == 0
    assert fits[0].log_evidence_ > fits[1].log_evidence_
    chosen = rvr(gamma=5.0, sparsity="cv").fit(X, T).report_["validation"]
    tried = [trial["sparsity"] for trial in chosen["tried"]]
    assert tried[0] == 0.0
    assert chosen["sparsity"] in tried
    assert tried == sorted(tried)


def test_calibration_multiplies_standard_deviations():
    plain, model = (rvr(gamma=5.0, calibrate=flag).fit(X, T) for flag in (False, True))
    assert plain.variance_factor_ == 1.0
    assert model.variance_factor_ == model.report_["validation"]["variance_factor"] >= 1.0
    for with_parts in (False, True):
        (mean, *stds), (mean_, *stds_) = (m.predict(X, True, with_parts) for m in (plain, model))
        assert_array_equal(mean, mean_)
        for std, std_ in zip(stds, stds_, strict=True):
            assert_allclose(std_, std * np.sqrt(model.variance_factor_), rtol=1e-12)


def test_healed_variances_grow_away_from_the_rows(tmp_path):
    model = rvr(gamma=0.2, variance="healed").fit(X, T)
    plain = rvr(gamma=0.2).fit(X, T)
    mean, std = model.predict(NEW, return_std=True)
    # And what is not known of the intercept.
    assert_allclose(std[0], T.std(), rtol=0.02)
    assert_array_equal(model.predict(NEW), mean)
    assert_array_equal(model.predict(NEW, True, variance="posterior")[1], plain.predict(NEW, True)[1])
    kept = rvr(gamma=0.2, keep_rows=20).fit(X, T)
    assert_array_equal(kept.predict(NEW, True)[1], plain.predict(NEW, True)[1])
    assert kept.predict(NEW, True, variance="healed")[1][0] > 2.0 * plain.predict(NEW, True)[1][0]
    model.save(tmp_path / "healed.json")
    assert_array_equal(load(tmp_path / "healed.json").predict(NEW, return_std=True)[1], std)
    _, model_std, noise_std = model.predict(NEW, return_parts=True)
    assert_allclose(model_std**2 + noise_std**2, std**2, rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", lambda A, B: np.exp(-0.2 * (A[:, None, 0] - B[None, :, 0]) ** 2)])
def test_covariance_and_draws(kernel):
    model = rvr(kernel, gamma=0.2).fit(X, T)
    mean, cov = model.predict(NEW, return_cov=True)
    assert_array_equal(mean, model.predict(NEW))
    assert_array_equal(np.sqrt(np.diag(cov)), model.predict(NEW, return_std=True)[1])
    assert_allclose(cov, cov.T)
    draws = model.sample_y(NEW, 50_000, random_state=1)
    assert draws.shape == (3, 50_000)
    assert_allclose(np.cov(draws), cov, atol=0.03 * np.max(np.diag(cov)))
    assert_allclose(draws.mean(axis=1), mean, atol=0.02 * T.std())
    functions = model.sample_y(NEW, 50_000, random_state=1, noise=False)
    assert_allclose(np.cov(functions), cov - model.noise_variance_ * np.eye(3), atol=0.03 * np.max(np.diag(cov)))
    assert_array_equal(model.sample_y(NEW, 2, random_state=3), model.sample_y(NEW, 2, random_state=3))
    assert model.sample_y(NEW).shape == (3, 1)


def test_rows_left_out():
    model = rvr("linear", landmarks=X[::20], gamma=0.2).fit(X, T)
    mean, std, log_density = model.leave_one_out(X, T)
    # Ridge regression with these precisions, each row left out in turn.
    columns = np.hstack([np.ones((len(X), 1)), X @ model.relevance_vectors_.T])
    alpha = np.append(model.intercept_alpha_, model.alpha_)
    keep = np.isfinite(alpha)
    columns, alpha = columns[:, keep], alpha[keep]
    for n in range(0, len(X), 7):
        rest = np.delete(np.arange(len(X)), n)
        sigma = np.linalg.inv(np.diag(alpha) + columns[rest].T @ columns[rest] / model.noise_variance_)
        expected = columns[n] @ sigma @ columns[rest].T @ T[rest] / model.noise_variance_
        variance = columns[n] @ sigma @ columns[n] + model.noise_variance_
        assert_allclose(mean[n], expected, rtol=1e-6, atol=1e-9)
        assert_allclose(std[n], np.sqrt(variance), rtol=1e-9)
        assert_allclose(log_density[n], -0.5 * np.log(2 * np.pi * variance) - 0.5 * (T[n] - expected) ** 2 / variance)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"sparsity": -1.0}, "The 'sparsity' .* Got -1.0"),
        ({"sparsity": "some"}, "The 'sparsity' .* Got 'some'"),
        ({"sparsity": float("nan")}, "The 'sparsity' .* Got nan"),
        ({"sparsity": 1.0, "search": "em"}, "sparsity = 1.0"),
        ({"folds": 1}, "The 'folds' .* Got 1"),
        ({"folds": 2.5}, "The 'folds' .* Got 2.5"),
        ({"folds": 10_000}, "at most as many folds"),
        ({"variance": "wide"}, "The 'variance' .* Got 'wide'"),
        ({"keep_rows": 0}, "The 'keep_rows' .* Got 0"),
        ({"variance": "healed", "kernel": lambda A, B: A @ B.T}, "a built-in kernel"),
        ({"folds": 3, "centres": "learned"}, "centres = learned"),
    ],
)
def test_bad_parameters_of_error_bars_are_refused(own, words):
    with pytest.raises(ValueError, match=words):
        rvr(**own).fit(X, T)


def test_predictions_reject_variances_that_are_missing():
    model = rvr(gamma=0.2).fit(X, T)
    with pytest.raises(ValueError, match="keep rows"):
        model.predict(X, return_std=True, variance="healed")
    with pytest.raises(ValueError, match=r"cannot be combined with return_cov.*variance='posterior'"):
        model.predict(X, return_cov=True, variance="healed")
    with pytest.raises(RuntimeError, match="cannot be combined with return_cov"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="n_samples = 0"):
        model.sample_y(X, 0)
    with pytest.raises(ValueError, match="needed for the covariance of 100 rows"):
        model.set_params(memory_limit=50_000).predict(np.resize(X, (100, 1)), return_cov=True)
    with pytest.raises(ValueError, match="at most as many folds"):
        rvc(folds=40).fit(C[:50], Y[:50])


@pytest.mark.parametrize(("cls", "rows", "target"), [(RVR, X, T), (RVC, C, Y)])
def test_a_warm_start_continues_from_the_last_model(cls, rows, target):
    n = len(rows) - 5
    model = papers(cls, gamma=0.2, warm_start=True).fit(rows[:n], target[:n])
    cold = papers(cls, gamma=0.2).fit(rows[:n], target[:n])
    # On from the end of the same search nothing is left to do.
    model.fit(rows[:n], target[:n])
    assert_array_equal(model.relevance_, cold.relevance_)
    assert_allclose(model.log_evidence_, cold.log_evidence_, rtol=1e-6)
    # With rows more, on from the model of the first.
    begin = len(cold.relevance_) + np.isfinite(cold.intercept_alpha_)
    further = model.fit(rows, target)
    assert abs(int(further.report_["active"][0]) - int(begin)) <= 5
    assert abs(further.log_evidence_ - papers(cls, gamma=0.2).fit(rows, target).log_evidence_) < 2.0


def test_warm_start_from_something_else():
    model = rvr(gamma=0.2, warm_start=True).fit(X, T)
    with pytest.raises(ValueError, match="has the kernel 'rbf'"):
        model.set_params(kernel="laplacian").fit(X, T)
    model = rvr(gamma=0.2, warm_start=True).fit(X, T)
    with pytest.raises(ValueError, match="has 1 features, X has 2"):
        model.fit(np.hstack([X, X]), T)
    model = rvr(gamma=0.2, warm_start=True).fit(X, T)
    with pytest.raises(ValueError, match="relevance"):
        model.fit(X[:3], T[:3])
    model = rvr(gamma=0.2, warm_start=True).fit(X, T)
    with pytest.raises(ValueError, match="one model and the scheme 'search'"):
        model.set_params(search="mackay").fit(X, T)


def test_classes_of_rows_left_out():
    model = rvc(gamma=0.5).fit(C, Y)
    left, seen = model.leave_one_out(C, Y), model.predict_proba(C)
    assert left.shape == seen.shape and np.allclose(left.sum(axis=1), 1.0)
    own = np.arange(len(Y)), (model.classes_[1] == Y).astype(int)
    # Without the row itself its class is less certain, on the whole.
    assert -np.log(left[own]).mean() > -np.log(seen[own]).mean()
    assert np.abs(left - seen).max() < 0.5
    with pytest.raises(ValueError, match="classes that the model does not know"):
        model.leave_one_out(C, np.full(len(Y), 77))
    labels = np.where(C[:, 0] > 1.0, 2, Y[0] == Y)
    three = rvc(gamma=0.5).fit(C, labels)
    left, seen = three.leave_one_out(C, labels), three.predict_proba(C)
    assert left.shape == seen.shape == (len(labels), 3) and np.allclose(left.sum(axis=1), 1.0)
    own = np.arange(len(labels)), labels
    assert -np.log(left[own]).mean() > -np.log(seen[own]).mean()
    with pytest.raises(ValueError, match="several binary models"):
        rvc(gamma=0.5, multi_class="one_vs_rest").fit(C, labels).leave_one_out(C, labels)


def test_values_of_rows_left_out():
    exposure = 1.0 + np.arange(len(X)) % 3
    counts = np.round(exposure * np.exp(1.0 + T))
    model = rvr(gamma=0.3, likelihood="poisson").fit(X, counts, exposure=exposure)
    mean, std, log_probability = model.leave_one_out(X, counts, exposure=exposure)
    seen, _ = model.predict(X, return_std=True, exposure=exposure)
    assert np.square(mean - counts).mean() > np.square(seen - counts).mean()
    assert np.all(std > np.sqrt(mean)) and np.all(log_probability < 0.0)
    heavy = rvr(gamma=0.3, likelihood="student_t").fit(X, T)
    assert np.square(heavy.leave_one_out(X, T)[0] - T).mean() > np.square(heavy.predict(X) - T).mean()
    noise = np.full(len(X), 0.01)
    known = rvr(gamma=0.3).fit(X, T, noise_variance=noise)
    mean, std, _ = known.leave_one_out(X, T, noise_variance=noise)
    assert np.all(std > 0.1) and np.square(mean - T).mean() > np.square(known.predict(X) - T).mean()
    with pytest.raises(ValueError, match="noise variance for each row"):
        known.leave_one_out(X, T)
    with pytest.raises(ValueError, match="exposure per row is for the poisson likelihood"):
        heavy.leave_one_out(X, T, exposure=exposure)


def test_errors_of_cross_validation_name_folds():
    for model in [rvr(folds=len(X) + 1), rvc(multi_class="one_vs_rest", folds=3)]:
        y = np.arange(len(X)) % 3
        with pytest.raises(ValueError, match=r"^folds = "):
            model.fit(X, y)


def test_rows_left_out_of_known_and_student_t_noise():
    noise = np.where(X[:, 0] > 0, 0.01, 0.1)
    known = rvr(gamma=0.2, folds=4).fit(X, T, noise_variance=noise).report_["validation"]
    assert known["nlpd"] < 1.0 and 0.8 < known["coverage"] <= 1.0
    spoilt = T.copy()
    spoilt[::9] += 5.0
    heavy, normal = (
        rvr(gamma=0.2, folds=4, likelihood=likelihood).fit(X, spoilt).report_["validation"]
        for likelihood in ["student_t", "gaussian"]
    )
    assert heavy["nlpd"] < normal["nlpd"] and 0.85 < heavy["coverage"] <= 1.0
