"""Every warning after a fit names a consequence and ends in what to do, with the names that Python has."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from relvec import RVR, SVC, SVR, NuSVC, _checks, _interpolation, _warnings
from sklearn.gaussian_process.kernels import RBF
from support import rvr, sinc, two_classes

X, T = sinc(60)
QUIET = {"left_out_rows": 0, "zero_columns": 0}
ACTION = r"(Try|Use|Raise|Give|Multiply|Add|Standardise|If y is|Update|Check) [^.]*[^.]*|.* allows more"


def rvm(status="converged", **own):
    """A fit that ended in that way, as far as warnings look at it."""
    adjustments = QUIET | own.pop("adjustments", {})
    model = SimpleNamespace(
        status=status, relevance=np.arange(own.pop("vectors", 3)), classifier=False, likelihood="gaussian"
    )
    report = {"adjustments": adjustments, "nothing_found": False, "candidates": 60, **own.pop("report", {})}
    known = {
        "time_limit": 2.0,
        "n_iter_": 30,
        "_scheme": "search",
        "dictionary": "auto",
        "sparsity": 0.0,
        "kernel": "rbf",
    }
    return SimpleNamespace(_model=model, report_=report, weight_prior="ard", gamma_=1.0, **{**known, **own})


def svm(status="converged", **own):
    model = SimpleNamespace(status=status)
    functions = [{"status": status, "iterations": 5, **own.pop("function", {})}]
    known = {"max_iter": 5, "time_limit": 2.0, "kernel": "rbf", "support_vectors_": -np.ones((2, 1))}
    return SimpleNamespace(_model=model, report_={"functions": functions, **own.pop("report", {})}, **{**known, **own})


small = {"small_weights": {"rows": 60, "total": 1.0}}
CASES = {
    "iterations": (_warnings.of_rvm(rvm("iteration_limit"), True), "search={'max_iterations': 300}"),
    "iterations of a scheme": (_warnings.of_rvm(rvm("iteration_limit", _scheme="em"), True), "'scheme': 'em'"),
    "time": (_warnings.of_rvm(rvm("time_limit"), True), "best so far. Raise time_limit"),
    "rows left out": (
        _warnings.of_rvm(rvm("time_limit", adjustments={"left_out_rows": 9}), True),
        "9 of them were left out",
    ),
    "memory": (_warnings.of_rvm(rvm("memory_limit"), True), "Raise memory_limit"),
    "singular": (_warnings.of_rvm(rvm("singular"), True), "larger gamma"),
    "zero columns": (_warnings.of_rvm(rvm(adjustments={"zero_columns": 9}, vectors=0), True), "predicts a constant"),
    "nothing": (_warnings.of_rvm(rvm(report={"nothing_found": True}, vectors=0), True), 'gamma="evidence"'),
    "little": (
        _warnings.of_rvm(rvm(report={"nothing_found": True}, vectors=1), True),
        "1 relevance vector explains no",
    ),
    "weights": (_warnings.of_rvm(rvm(adjustments=small), True), "Multiply the weights by 60"),
    "noise": (_warnings.of_rvm(rvm(adjustments={"residual_over_noise": 4.0}), True), "4 times it"),
    "much noise": (_warnings.of_rvm(rvm(adjustments={"noise_over_process": 3.0}), True), 'Use weight_prior="process"'),
    "much noise of few candidates": (
        _warnings.of_rvm(rvm(adjustments={"noise_over_process": 3.0}, dictionary=5), True),
        "Raise dictionary",
    ),
    "much noise of a scheme": (
        _warnings.of_rvm(rvm(adjustments={"noise_over_process": 3.0}, _scheme="sequential"), True),
        'Use search="search"',
    ),
    "kernel of scikit-learn": (
        _warnings.of_rvm(rvm(kernel=RBF(2.0), basis="kernel", n_features_in_=1), True),
        "not optimised: length_scale",
    ),
    "dictionary": (_warnings.of_rvm(rvm(dictionary=100), True), 'dictionary="all"'),
    "steps": (_warnings.of_svm(svm("iteration_limit")), "max_iter=5 steps"),
    "all steps": (_warnings.of_svm(svm("iteration_limit", max_iter=-1)), "Raise tol"),
    "time of an svm": (_warnings.of_svm(svm("time_limit")), "Raise time_limit"),
    "digits": (_warnings.of_svm(svm("singular")), "Raise tol"),
    "sigmoid": (_warnings.of_svm(svm(kernel="sigmoid")), "not positive definite"),
    "spline": (_warnings.of_svm(svm(kernel="linear_spline")), "not positive definite"),
    "margin": (_warnings.of_svm(svm(function={"no_margin": True}, nu=0.1)), "nu=0.1 leaves no margin"),
    "few rows": (_warnings.of_svm(svm(function={"probabilities": "training_rows"})), "Add rows of the small classes"),
    "frequencies": (_warnings.of_svm(svm(function={"probabilities": "class_frequencies"})), "gamma or C"),
    "frequencies of nu": (
        _warnings.of_svm(svm(function={"probabilities": "class_frequencies"}, nu=0.1)),
        "gamma or nu",
    ),
    "weights of an svm": (_warnings.of_svm(svm(report=small)), "Multiply the weights by 60"),
}


@pytest.mark.parametrize("name", CASES)
def test_warnings_end_in_an_action(name):
    ((kind, text),), part = CASES[name]
    assert issubclass(kind, UserWarning) and part in text
    assert re.search(rf"(\. |: |\. [^.]*, ){ACTION}", text) and text.endswith(".")
    assert "(s)" not in text


@pytest.mark.parametrize(("many", "least"), [(True, True), (True, False), (False, True)])
def test_interpolation_says_no_more_than_the_signs_do(many, least):
    found = {"many_vectors": many, "least_noise": least, "vectors": 40, "rows": 60}
    text = _interpolation.text(found, rvm(), False, True)
    assert ("more than a third" in text) == many and ("noise variance is at its lower limit" in text) == least
    assert ("interpolates" in text) == (many and least) and "free of noise" not in text
    assert ("as if the target had no noise. If it has, intervals are far too narrow" in text) == (not many)
    assert re.search(rf"\. {ACTION}\.$", text)


def test_defaults_are_not_advised():
    found = {"many_vectors": True, "least_noise": True, "vectors": 40, "rows": 60}
    usual = rvm(sparsity=RVR().sparsity, report={"kernel_search": {}})
    usual.weight_prior = RVR().weight_prior
    text = _interpolation.text(found, usual, False, True)
    assert text.endswith(". Try folds=5 (measures predictions of held-out rows).")


def test_a_model_without_candidates_is_not_warned_of_their_number():
    assert _warnings.of_rvm(rvm(dictionary=100, report={"candidates": 0}), True) == []


def test_warnings_are_kept_in_the_report():
    with pytest.warns(UserWarning) as told:
        model = rvr(gamma=0.1, dictionary=100).fit(X, T)
    assert [f"RVR: {text}" for text in model.report_["warnings"]] == [str(one.message) for one in told]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RVR().fit(X, T).report_["warnings"] == [] == SVR().fit(X, T).report_["warnings"]


@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_a_support_vector_machine_warns_at_the_line_of_the_user(cls):
    C, y = two_classes(60)
    with pytest.warns(UserWarning, match="not positive definite") as told:
        cls(kernel="sigmoid").fit(C, y)
    assert told[0].filename == __file__


def test_few_rows_of_a_class():
    assert _checks.few_rows_of_classes(4, 20) is None
    assert _checks.few_rows_of_classes(5, 20).endswith("If y is a quantity, use a regressor.")
