"""The variational scheme: what only it reports."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR
from support import golden, papers, rvc, rvr, sinc


def test_bound_of_the_golden_case():
    """The lower bound of every iteration."""
    X, t, _, record = golden("reg_vb_n30")
    trace = record["vb_trace"]
    start = {"initial_alpha": 1.0, "initial_noise_variance": 1.0}
    model = rvr(
        gamma=record["gamma"][0], search={"scheme": "variational", "tolerance": 1e-300, "max_iterations": 100, **start}
    )
    with pytest.warns(UserWarning, match="max_iterations"):
        model.fit(X, t)
    assert_allclose(model.report_["lower_bound"], trace["elbo"], rtol=1e-11)
    assert_array_equal(model.report_["lower_bound"], model.report_["log_evidence"])
    assert model.log_evidence_ == model.report_["lower_bound"][-1]


@pytest.mark.parametrize("machine", [RVR, RVC])
def test_weights_in_use(machine):
    X, t = sinc(60)
    y = t if machine is RVR else t > 0.2
    full = papers(machine, gamma=0.1, search={"scheme": "variational", "tolerance": 1e-4}).fit(X, y)
    few = papers(machine, gamma=0.1, search={"scheme": "variational", "tolerance": 1e-4, "prune": True}).fit(X, y)
    assert len(full.relevance_) == 60 > 3 * len(few.relevance_)
    for model in (full, few):
        gamma = model.well_determined_
        assert gamma.shape == model.alpha_.shape
        assert model.report_["in_use"]["by_data"] == np.sum(gamma > 0.5)
        assert model.report_["in_use"]["by_weight"] == np.sum(np.abs(model.dual_coef_[0]) > 1e-3)
        skip = int(np.isfinite(model.intercept_alpha_))
        assert_allclose(gamma, 1 - model.alpha_ * np.diag(model.covariance_)[skip:], atol=1e-12)
    assert few.log_evidence_ >= full.log_evidence_ - 60e-4


@pytest.mark.parametrize("rule", ["one_vs_rest", "one_vs_one"])
def test_several_models_of_two_classes(rule):
    """Each member has its own bound; a vector is in use that is in use in one of them."""
    X, t = sinc(60)
    model = rvc(gamma=0.1, search={"scheme": "variational", "tolerance": 1e-2}, multi_class=rule).fit(
        X, np.digitize(t, [0.0, 0.4])
    )
    report, members = model.report_, model.report_["members"]
    assert_array_equal(report["lower_bound"], report["log_evidence"])
    assert_allclose(sum(own["lower_bound"][-1] for own in members), model.log_evidence_)
    gamma = model.well_determined_
    for own, determined in zip(members, gamma, strict=True):
        assert_array_equal(own["lower_bound"], own["log_evidence"])
        assert own["in_use"]["by_data"] == np.sum(determined > 0.5)
    assert report["in_use"]["by_data"] == np.sum(np.any(gamma > 0.5, axis=0)) > 0
    assert report["in_use"]["by_weight"] == np.sum(np.any(np.abs(model.dual_coef_) > 1e-3, axis=0))


def test_progress_is_that_of_a_bound(capsys):
    X, t = sinc(30)
    rvr(gamma=0.1, search={"scheme": "variational", "tolerance": 0.1}, verbose=2).fit(X, t)
    out = capsys.readouterr().out
    assert "iteration 1: lower bound" in out and "log evidence" not in out
    rvr(gamma=0.1, verbose=2).fit(X, t)
    assert "iteration 1: log evidence" in capsys.readouterr().out


def test_other_schemes_have_no_bound():
    X, t = sinc(30)
    assert "lower_bound" not in rvr(gamma=0.1).fit(X, t).report_


def test_improper_hyperpriors_are_refused():
    X, t = sinc(30)
    with pytest.raises(ValueError, match=r"\['hyperpriors'\]\['a'\].*positive"):
        rvr(search={"scheme": "variational", "hyperpriors": {"a": 0.0, "b": 1.0, "c": 1.0, "d": 1.0}}).fit(X, t)


def test_hyperpriors_that_are_not_named_are_the_default():
    X, t = sinc(30)
    bounds = [
        rvr(gamma=0.1, search={"scheme": "variational", "hyperpriors": own, "tolerance": 0.1}).fit(X, t).log_evidence_
        for own in [{"a": 1e-3}, {"a": 1e-3, "b": 1e-6, "c": 1e-6, "d": 1e-6}]
    ]
    assert bounds[0] == bounds[1]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"hyperpriors": {"a": np.inf}}, r"search\['hyperpriors'\]\['a'\] = inf: expected a finite number"),
        (
            {"hyperpriors": {"d": np.float64("nan")}},
            r"search\['hyperpriors'\]\['d'\] = nan: expected a finite",
        ),
        ({"initial_alpha": -np.inf}, r"search\['initial_alpha'\] = -inf: expected a finite number"),
        ({"hyperpriors": {"b": -1.0}}, r"\['b'\].*-1.*positive"),
        ({"hyperpriors": {"c": np.array([1.0, np.nan])}}, r"\['c'\]\[1\] = nan: expected a finite number"),
    ],
)
def test_settings_that_are_no_numbers(given, text):
    X, t = sinc(30)
    with pytest.raises(ValueError, match=text):
        rvr(search={"scheme": "variational", **given}).fit(X, t)


def test_distributions_of_the_precisions():
    X, t = sinc(40)
    model = rvr(gamma=0.1, search={"scheme": "variational", "tolerance": 1e-3}).fit(X, t)
    q = model.report_["precisions"]
    assert_allclose(q["mean"], model.alpha_)
    assert_allclose(q["shape"] / np.array(q["rate"]), model.alpha_)
    shape, rate = q["noise"]
    assert_allclose([shape, rate / shape], [20.0, model.noise_variance_], rtol=1e-5)
    plain = rvr(gamma=0.1).fit(X, t)
    assert "precisions" not in plain.report_
    assert_allclose(model.noise_degrees_, 2.0 * shape)
    assert plain.noise_degrees_ == np.inf
