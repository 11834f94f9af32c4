"""Input that is wrong gives an exception that says what and where; input that is odd gives a defined result."""

import math
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, SVC, SVR, InterpolationWarning, NuSVC, Statistics, Survey, learn_kernel, load
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from support import papers, put, rvc, rvr, sinc, surface, two_classes

X, T = sinc()
C, Y = two_classes()
ONES = np.ones(60)
K = np.exp(-0.1 * (X - X.T) ** 2)


def refused(error, match, model, *data):
    """The fit fails as expected, and leaves nothing fitted, also where something was."""
    before = type(model)(gamma=0.3).fit(C, Y)
    fitted = set(vars(before)) - set(vars(type(model)()))
    assert "_model" in fitted
    before.set_params(**model.get_params(deep=False))
    for estimator in (model, before):
        with pytest.raises(error, match=match):
            estimator.fit(*data)
        # What scikit-learn's own validation sets (n_features_in_) is no fit.
        left = fitted & set(vars(estimator)) - {"n_features_in_", "feature_names_in_", "classes_"}
        assert not left
        with pytest.raises(NotFittedError):
            estimator.predict(C)


@pytest.mark.parametrize(
    ("error", "match", "rows"),
    [
        (ValueError, "Input X contains NaN", put(X, (3, 0), np.nan)),
        (ValueError, "Input X contains infinity", put(X, (3, 0), np.inf)),
        (ValueError, "Input X contains infinity", put(X, (3, 0), -np.inf)),
        (ValueError, "Expected 2D array, got 1D array", X[:, 0]),
        (ValueError, "Found array with dim 3", X[np.newaxis]),
        (ValueError, r"Found array with 0 sample\(s\)", X[:0]),
        (ValueError, r"Found array with 0 feature\(s\)", X[:, :0]),
        (ValueError, "inhomogeneous shape", [[1.0, 2.0]] * 59 + [[3.0]]),
        (ValueError, "could not convert string to float: 'a'", [["a"]] * 60),
        (ValueError, "Complex data not supported", X + 1j),
        (TypeError, "must be a string or a real number, not 'object'", np.array([[object()]] * 60)),
        (ValueError, "inconsistent numbers of samples", X[:50]),
        (ValueError, "Expected 2D array, got scalar array", None),
    ],
)
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_bad_rows_are_refused(cls, error, match, rows):
    refused(error, match, papers(cls), rows, T if cls is RVR else T > 0.0)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_one_row_is_too_few(cls):
    refused(ValueError, r"1 sample\(s\).*minimum of 2", papers(cls), X[:1], [1])


@pytest.mark.parametrize(
    ("match", "target"),
    [
        ("Input y contains NaN", put(T, 3, np.nan)),
        ("Input y contains infinity", put(T, 3, np.inf)),
        ("inconsistent numbers of samples", T[:50]),
        ("Found array with dim 3", np.zeros((60, 2, 2))),
        ("could not convert string to float", ["a"] * 60),
        ("Complex data not supported", T + 1j),
        (r"y should be a 1d array, got an array of shape \(\)", 3.0),
        ("requires y to be passed", None),
    ],
)
def test_bad_targets_are_refused(match, target):
    refused(ValueError, match, rvr(), X, target)


@pytest.mark.parametrize(
    ("match", "target"),
    [
        (r"y has only one class \(1\)", np.ones(80, dtype=int)),
        (r"y has only one class \('a'\)", ["a"] * 80),
        ("Unknown label type: continuous", np.linspace(0.0, 1.0, 80)),
        ("Input y contains NaN", put(Y, 3, np.nan)),
        (r"y should be a 1d array, got an array of shape \(80, 2\)", np.column_stack([Y, Y])),
        ("inconsistent numbers of samples", Y[:50]),
    ],
)
def test_bad_classes_are_refused(match, target):
    refused(ValueError, match, rvc(), C, target)


@pytest.mark.parametrize(
    ("match", "weight"),
    [
        (r"sample_weight\[5\] = -1.0: weights must be zero or positive", put(ONES, 5, -1.0)),
        (r"sample_weight\[5\] = nan", put(ONES, 5, np.nan)),
        (r"sample_weight\[5\] = inf", put(ONES, 5, np.inf)),
        ("Every sample weight is zero", 0.0 * ONES),
        ("Every sample weight is zero", 0.0),
        (r"sample_weight.shape == \(50,\), expected \(60,\)", ONES[:50]),
        ("Sample weights must be 1D array or scalar, got 2D", ONES[:, np.newaxis]),
        ("sample_weight contains values that are not numbers", ["a"] * 60),
        ("sample_weight contains values that are not numbers: complex", ONES * 1j),
        (r"training rows of positive weight: found 1", put(0.0 * ONES, 5, 1.0)),
    ],
)
def test_bad_weights_are_refused(match, weight):
    refused(ValueError, match, rvr(), X, T, weight)


def test_weights_that_leave_one_class():
    refused(ValueError, r"only one class \(0\) among the rows of positive weight", rvc(), C, Y, 1.0 - Y)


# Values that a parameter of both estimators cannot have, whatever the others are.
BAD_VALUES = {
    "kernel": ["gauss", None, 3],
    "gamma": ["wide", np.nan, np.inf, 1j, None, True, 0, -1, 0.0, -0.5],
    "degree": [0, -1, 1.5, True, None, "3"],
    "coef0": [np.nan, np.inf, "a", None],
    "shape": [0, -1.0, np.nan, "a"],
    "basis": ["columns"],
    "dictionary": [0, -3, 1.5, None, "a"],
    "landmarks": ["a"],
    "search": ["newton", [1], 3],
    "time_limit": [0, -1.0, np.nan, np.inf, "a"],
    "memory_limit": [0, -1, 1.5, "a"],
    "n_jobs": [1.5, "all"],
    "verbose": [-1, 0.5, "a", None],
    "random_state": [-1, "a"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_VALUES.items() for value in values])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_values_out_of_range_are_refused(cls, name, value):
    match = f"The {name!r} parameter of {cls.__name__} must be .* Got {re.escape(repr(value))} instead"
    refused(ValueError, match, papers(cls, **{name: value}), C, Y)


# What is wrong with parameters beside each other or the rows, or within one, and what the message must say.
BAD = [
    ({"gamma": [1.0, 2.0, 3.0]}, "gamma = 3 values: expected one number, or one per feature (2)"),
    ({"gamma": [1.0, -2.0]}, "gamma[1] = -2.0: expected a positive number"),
    ({"gamma": np.array([np.nan, 1.0])}, "gamma[0] = nan: expected a finite number"),
    ({"gamma": [[1.0]]}, "gamma has 2 dimensions"),
    ({"gamma": []}, "gamma"),
    (
        {"basis": "given", "dictionary": 3},
        "dictionary = 3: expected all or auto: every column of a given design matrix",
    ),
    ({"search": {"scheme": "newton"}}, "search['scheme'] = 'newton': expected one of 'search', 'sequential', 'mackay'"),
    ({"search": {"scheme": None}}, "search['scheme'] = None: expected one of 'search'"),
    ({"search": {"steps": 1}}, "search['steps']: expected a setting of the scheme 'search', one of hyperpriors"),
    ({"search": {"scheme": "em", "restarts": 1}}, "search['restarts']: expected a setting of the scheme 'em'"),
    ({"search": {1: 1}}, "search[1]: expected a setting of the scheme 'search'"),
    ({"search": {"policy": {"batch": 0}}}, "search['policy']['batch'] = 0: expected a whole number of at least 1"),
    ({"search": {"policy": {"best": 0}}}, "search['policy']['best']: unknown field `best`, expected one of `batch`"),
    ({"search": {"tolerance": -1.0}}, "search['tolerance'] = -1: expected a positive number"),
    ({"search": {"tolerance": np.nan}}, "search['tolerance'] = nan: expected a finite number"),
    (
        {"search": {"restarts": print}},
        "search = {'restarts': <built-in function print>}: builtin_function_or_method",
    ),
    ({"search": {"restarts": 1.5}}, "search['restarts']: invalid type: floating point `1.5`"),
    ({"search": {"restarts": "many"}}, "search['restarts']: invalid type: string \"many\""),
    ({"search": {"hyperpriors": {"a": -1.0}}}, "search['hyperpriors']['a'] = -1: expected zero or a positive number"),
    *[({"search": {"max_iterations": v}}, "search['max_iterations']") for v in (0, -1, 1.5, None, "a", True)],
    ({"n_jobs": 0}, "n_jobs == 0"),
    *[({"n_jobs": v}, f"n_jobs = {v}: expected at most 1024 threads") for v in (1025, 10**6)],
]


@pytest.mark.parametrize(("own", "message"), BAD, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_parameters_that_exclude_each_other_are_refused(cls, own, message):
    refused(ValueError, re.escape(message), papers(cls, **own), C, Y)


@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "a"])
def test_bad_noise_variances_are_refused(value):
    refused(ValueError, f"The 'noise_variance' .* Got {value!r}", rvr(noise_variance=value), X, T)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("equal", "a str among {'balanced'} or None. Got 'equal' instead"),
        (2.0, "a str among {'balanced'} or None. Got 2.0 instead"),
        ({2: 1.0}, "class_weight names [2], but the classes are [0, 1]"),
        ({0: -1.0}, "class_weight[0] = -1.0: expected a positive number"),
        ({0: np.nan}, "class_weight[0] = nan: expected a finite number"),
        ({1: "a"}, "class_weight[1] = 'a': expected a finite number"),
    ],
)
def test_bad_class_weights_are_refused(value, message):
    refused(ValueError, re.escape(message), rvc(class_weight=value), C, Y)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_too_little_memory_is_refused_in_bytes(cls):
    # The user gave bytes; "0 MB" of both would tell nothing.
    refused(ValueError, r"[1-9]\d* .*memory limit is 1000\b", papers(cls, memory_limit=1000), C, Y)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_a_parameter_that_the_kernel_does_not_have_changes_nothing(cls):
    expected = papers(cls, kernel="linear").fit(C, Y).predict(C)
    assert_array_equal(papers(cls, kernel="linear", gamma=7.0, degree=9, shape=0.1).fit(C, Y).predict(C), expected)


@pytest.mark.parametrize("settings", [{}, {"kernel": "precomputed"}, {"basis": "given"}])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_bad_rows_to_predict_are_refused(cls, settings):
    rows = {"precomputed": C @ C.T}.get(settings.get("kernel"), C)
    model = papers(cls, **settings).fit(rows, Y)
    n = rows.shape[1]
    cases = [
        (rows[:, :-1], f"X has {n - 1} features, but {cls.__name__} is expecting {n} features"),
        (rows[0], "Expected 2D array, got 1D array"),
        (rows[:0], r"Found array with 0 sample\(s\)"),
        (np.array([["a"] * n]), "could not convert string to float"),
        (rows + 1j, "Complex data not supported"),
    ]
    active = model.relevance_[0] if settings else 1
    where = rf"X\[3, {active}\] = nan" if "kernel" in settings else "Input X contains NaN"
    cases.append((put(rows, (3, active), np.nan), where))
    for bad, match in cases:
        for method in ["predict"] if cls is RVR else ["predict", "predict_proba", "decision_function"]:
            with pytest.raises(ValueError, match=match):
                getattr(model, method)(bad)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_methods_before_a_fit_raise_an_error(cls, tmp_path):
    model = papers(cls, kernel="linear")
    calls = [lambda: model.predict(C), lambda: model.score(C, Y), lambda: model.save(tmp_path / "model.json")]
    calls += [lambda: model.covariance_, lambda: model.coef_, lambda: model.weight_precision_]
    if cls is RVC:
        calls += [lambda: model.predict_proba(C), lambda: model.decision_function(C)]
    for call in calls:
        with pytest.raises(NotFittedError, match=f"This {cls.__name__} instance is not fitted yet"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("match", "matrix"),
    [
        (r"found \(60, 59\)", K[:, 1:]),
        ("Input X contains NaN", put(K, (2, 2), np.nan)),
        ("Input X contains infinity", put(K, (2, 2), np.inf)),
    ],
)
def test_bad_kernel_matrices_are_refused(match, matrix):
    refused(ValueError, match, rvr(kernel="precomputed"), matrix, T)


@pytest.mark.parametrize(
    ("error", "match", "kernel"),
    [
        (ValueError, r"the kernel function returned shape \(3, 3\): expected \(60, 60\)", lambda a, b: np.ones((3, 3))),
        (ValueError, "the kernel function returned shape", lambda a, b: None),
        (ValueError, "values that are not finite", lambda a, b: np.full((len(a), len(b)), np.nan)),
        (ValueError, "values that are not finite", lambda a, b: np.full((len(a), len(b)), 1j)),
        (ValueError, "values that are not finite", lambda a, b: np.full((len(a), len(b)), "x")),
        (ZeroDivisionError, "division by zero", lambda a, b: 1 / 0),
    ],
)
def test_bad_kernel_functions_are_refused(error, match, kernel):
    refused(error, match, rvr(kernel=kernel), X, T)


def test_a_kernel_function_that_fails_in_predict():
    good = True

    def kernel(a, b):
        return np.exp(-0.1 * (a - b.T) ** 2) * (1.0 if good else np.nan)

    model = rvr(kernel=kernel).fit(X, T)
    good = False
    with pytest.raises(ValueError, match="values that are not finite"):
        model.predict(X)


def test_errors_of_the_callback_are_raised():
    def callback(record):
        raise KeyError("mine")

    refused(KeyError, "mine", rvr(callback=callback), X, T)
    refused(TypeError, "The 'callback' parameter of RVR must be a callable or None. Got 3", rvr(callback=3), X, T)


# Odd data with a defined result.

SCHEMES = pytest.mark.parametrize("inference", ["search", "mackay", "em"])


def check_alive(model, rows, tmp_path):
    """It predicts finite numbers, and comes back from a pickle and from a file."""
    file = tmp_path / "model.json"
    model.save(file)
    for again in (model, pickle.loads(pickle.dumps(model)), load(file)):
        if isinstance(model, RVR):
            mean, std = again.predict(rows, return_std=True)
            assert np.all(np.isfinite(mean)) and np.all(std > 0.0) and np.all(np.isfinite(std))
            assert_array_equal(mean, model.predict(rows))
        else:
            probability = again.predict_proba(rows)
            assert np.all((probability >= 0.0) & (probability <= 1.0))
            assert_array_equal(probability, model.predict_proba(rows))
    assert math.isfinite(model.log_evidence_)


@SCHEMES
@pytest.mark.parametrize("value", [0.0, 1.0, -7.0, 1e6, 1e-6])
def test_a_constant_target_gives_the_intercept_alone(inference, value, tmp_path):
    model = rvr(gamma=0.1, search=inference).fit(X, np.full(60, value))
    assert len(model.relevance_) == 0
    assert model.relevance_vectors_.shape == (0, 1)
    assert model.dual_coef_.shape == (1, 0)
    assert model.report_["adjustments"]["constant_target"]
    assert_allclose(model.predict(X), value, rtol=1e-6)
    check_alive(model, X, tmp_path)


@SCHEMES
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_constant_target_without_intercept(inference, value, tmp_path):
    model = rvr(gamma=0.1, search=inference, fit_intercept=False).fit(X, np.full(60, value))
    assert_allclose(model.predict(X), value, atol=0.01)
    check_alive(model, X, tmp_path)


@pytest.mark.filterwarnings("ignore:.*carry information")
@pytest.mark.parametrize("external", [False, True])
def test_pure_noise_gives_the_intercept_alone(external, tmp_path):
    rows, _ = surface(200)
    target = 5.0 + np.random.default_rng(1).standard_normal(200)
    model = rvr(kernel="precomputed").fit(rows @ rows.T, target) if external else rvr(kernel="linear").fit(rows, target)
    assert len(model.relevance_) == 0
    assert model.intercept_ == pytest.approx(target.mean(), rel=1e-2)
    assert model.noise_variance_ == pytest.approx(target.var(), rel=1e-2)
    check_alive(model, rows @ rows.T if external else rows, tmp_path)


def test_a_kernel_function_and_no_relevance_vector():
    def kernel(a, b):
        # As those of scikit-learn.
        assert len(a) > 0 and len(b) > 0
        return a @ b.T

    model = rvr(kernel=kernel).fit(X, np.full(60, 2.0))
    assert len(model.relevance_) == 0
    assert_allclose(model.predict(X), 2.0, rtol=1e-6)


@SCHEMES
def test_pure_noise_classes(inference, tmp_path):
    rows, _ = surface(60)
    model = rvc(search=inference).fit(rows, np.random.default_rng(1).integers(0, 2, 60))
    check_alive(model, rows, tmp_path)


@SCHEMES
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_constant_features_have_no_effect(cls, inference, tmp_path):
    rows = np.column_stack([C, np.full(80, 3.0)])
    model = papers(cls, gamma=0.3, search=inference).fit(rows, Y)
    assert model.report_["adjustments"]["constant_features"] == [2]
    assert_array_equal(model.relevance_, papers(cls, gamma=0.3, search=inference).fit(C, Y).relevance_)
    check_alive(model, rows, tmp_path)


@SCHEMES
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_all_rows_equal(cls, inference, tmp_path):
    model = papers(cls, search=inference).fit(np.ones((80, 2)), Y)
    assert len(model.relevance_) <= 1
    out = model.predict(np.ones((3, 2))) if cls is RVR else model.predict_proba(np.ones((3, 2)))
    # The prior of the intercept draws the mean a little towards zero.
    assert_allclose(out, 0.5, rtol=0.02)
    check_alive(model, np.ones((3, 2)), tmp_path)


@SCHEMES
def test_rows_in_both_classes_have_even_probabilities(inference, tmp_path):
    model = rvc(search=inference).fit(np.vstack([C, C]), np.append(Y, 1 - Y))
    assert_allclose(model.predict_proba(C), 0.5, atol=1e-6)
    check_alive(model, C, tmp_path)


@SCHEMES
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_every_row_twice_is_a_weight_of_two(cls, inference):
    target = T if cls is RVR else Y
    rows = X if cls is RVR else C
    own = {"gamma": 0.2, "search": inference}
    twice = papers(cls, **own).fit(np.vstack([rows, rows]), np.append(target, target))
    weight = papers(cls, **own).fit(rows, target, np.full(len(rows), 2.0))
    assert_array_equal(twice.relevance_, weight.relevance_)
    assert_array_equal(twice.dual_coef_, weight.dual_coef_)
    assert_array_equal(twice.alpha_, weight.alpha_)
    assert_array_equal(twice.covariance_, weight.covariance_)
    assert_array_equal(twice.predict(rows), weight.predict(rows))
    assert twice.report_["adjustments"]["merged_rows"] == len(rows)
    assert papers(cls, **own).fit(rows, target).log_evidence_ != weight.log_evidence_


@SCHEMES
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_separable_classes_have_finite_probabilities(kernel, inference, tmp_path):
    rows = 0.1 * C + 3.0 * (2.0 * Y[:, np.newaxis] - 1.0)
    model = rvc(kernel=kernel, search=inference).fit(rows, Y)
    assert model.score(rows, Y) == 1.0
    assert np.all(np.isfinite(model.predict_log_proba(rows * 100.0)))
    check_alive(model, rows, tmp_path)


@SCHEMES
@pytest.mark.parametrize("target", [np.sinc(X[:, 0] / np.pi), K[:, 30]], ids=["sinc", "one kernel"])
def test_targets_free_of_noise(inference, target, tmp_path):
    with pytest.warns(InterpolationWarning, match="RVR: .*noise variance is at its lower limit"):
        model = rvr(gamma=0.1, search=inference).fit(X, target)
    # The noise precision has a cap of 1e6 over the variance of the target.
    assert model.report_["adjustments"]["noise_capped"]
    assert model.noise_variance_ >= 0.99e-6 * target.var()
    assert_allclose(model.predict(X), target, atol=2e-3)
    check_alive(model, X, tmp_path)


@SCHEMES
def test_an_outlier_of_a_hundred_million(inference, tmp_path):
    model = rvr(gamma=0.1, search=inference).fit(X, put(T, 7, 1e8))
    # It is noise, or a kernel at it: the other rows are not explained any better.
    assert 1e-3 * 1e16 / 60 < model.noise_variance_ < 1e16 / 30
    check_alive(model, X, tmp_path)
    check_alive(rvr(search=inference).fit(put(X, (7, 0), 1e8), T), X, tmp_path)


@SCHEMES
@pytest.mark.parametrize("unit", [1e-150, 1e-6, 1e6, 1e9])
def test_units_of_the_target(inference, unit, tmp_path):
    plain = rvr(gamma=0.1, search=inference).fit(X, T)
    model = rvr(gamma=0.1, search=inference).fit(X, T * unit)
    assert_array_equal(model.relevance_, plain.relevance_)
    mean, std = model.predict(X, return_std=True)
    expected_mean, expected_std = plain.predict(X, return_std=True)
    assert_allclose(mean / unit, expected_mean, rtol=1e-8, atol=1e-10)
    assert_allclose(std / unit, expected_std, rtol=1e-8)
    check_alive(model, X, tmp_path)


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_units_beyond_64_bits_are_refused(unit):
    refused(ValueError, "leaves the range of 64-bit numbers; rescale the data", rvr(gamma=0.1), X, T * unit)


def test_a_level_of_a_million(tmp_path):
    """The intercept takes it up; only its own prior sees how large it is."""
    plain, model = rvr(gamma=0.1).fit(X, T), rvr(gamma=0.1).fit(X, T + 1e6)
    assert model.intercept_ == pytest.approx(1e6, rel=1e-5)
    assert_allclose(model.predict(X) - 1e6, plain.predict(X), atol=0.1)
    assert model.noise_variance_ == pytest.approx(plain.noise_variance_, rel=0.2)
    check_alive(model, X, tmp_path)


@SCHEMES
@pytest.mark.parametrize("cls", [RVR, RVC])
@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_units_of_the_features(cls, inference, unit):
    rows, target = (X, T) if cls is RVR else (C, Y)
    plain = papers(cls, gamma=0.1, search=inference).fit(rows, target)
    model = papers(cls, gamma=0.1 / unit**2, search=inference).fit(rows * unit, target)
    assert_array_equal(model.relevance_, plain.relevance_)
    assert_allclose(model.dual_coef_, plain.dual_coef_, rtol=1e-6, atol=1e-8 * np.abs(plain.dual_coef_).max())
    # gamma="scale" follows by itself.
    scaled = papers(cls, search=inference).fit(rows * unit, target)
    assert_array_equal(scaled.relevance_, papers(cls, search=inference).fit(rows, target).relevance_)


@pytest.mark.parametrize("kernel", ["poly", "linear", "linear_spline"])
def test_features_beyond_64_bits_are_refused(kernel):
    match = "leaves the range of 64-bit numbers; rescale the data"
    refused(ValueError, match, rvr(kernel=kernel, gamma=1.0), X * 1e160, T)


@pytest.mark.parametrize("cls", [RVR, RVC])
@pytest.mark.parametrize("weight", [1e-12, 1e6])
def test_weights_in_any_unit_give_a_model(cls, weight, tmp_path):
    rows, target = (X, T) if cls is RVR else (C, Y)
    weights = np.full(len(rows), weight)
    if weight < 1:
        with pytest.warns(UserWarning, match="learns almost nothing"):
            model = papers(cls, gamma=0.1).fit(rows, target, weights)
    else:
        model = papers(cls, gamma=0.1).fit(rows, target, weights)
    check_alive(model, rows, tmp_path)


def test_one_row_of_large_weight(tmp_path):
    model = rvr(gamma=0.1).fit(X, T, put(ONES, 3, 1e6))
    check_alive(model, X, tmp_path)


@pytest.mark.filterwarnings("ignore:RVC. y has 2 classes in 2 rows:UserWarning")
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_two_rows_are_enough_to_fit(cls, tmp_path):
    check_alive(papers(cls).fit([[0.0], [1.0]], [0, 1]), [[0.5]], tmp_path)


@pytest.mark.parametrize("cls", [RVC, SVC, NuSVC])
def test_more_classes_than_a_fifth_of_the_rows_are_warned_of(cls):
    rows, y = C[:30], np.arange(30)
    with pytest.warns(UserWarning, match=rf"{cls.__name__}: y has 7 classes in 30 rows.* use a regressor") as caught:
        papers(cls).fit(rows, y % 7)
    # The warning points at the call of fit.
    assert all(str(w.filename).endswith("test_bad_input.py") for w in caught)
    # Six of them are not too many: any warning is an error here.
    papers(cls).fit(rows, y % 6)


def test_whole_numbers_beyond_two_to_the_53_are_labels_of_their_own(tmp_path):
    for first in [7, 2**53, -(2**53) - 1]:
        y = first + (C[:, 0] > 0)
        model = rvc().fit(C, y)
        assert model.classes_.tolist() == [first, first + 1]
        model.save(tmp_path / "m.json")
        assert np.mean(load(tmp_path / "m.json").predict(C) == y) > 0.9
    codes = np.where(C[:, 0] > 0, "007", "7")
    assert rvc().fit(C, codes).classes_.tolist() == ["007", "7"]


def test_one_row_against_all_others(tmp_path):
    model = rvc().fit(C, np.arange(80) == 0)
    check_alive(model, C, tmp_path)


def test_the_mean_of_the_targets_survives_a_pruned_intercept():
    v = np.random.default_rng(3).uniform(size=2000)[:500]
    for variance in ["posterior", "healed"]:
        with pytest.warns(InterpolationWarning, match="noise variance is at its lower limit"):
            model = rvr(variance=variance).fit(v[:, np.newaxis], v)
        assert model.intercept_ == 0.0
        kernel = rbf_kernel(v[:, np.newaxis], model.relevance_vectors_, gamma=model.gamma_)
        stacked = np.vstack([kernel / np.sqrt(model.noise_variance_), np.diag(np.sqrt(model.alpha_))])
        q, r = np.linalg.qr(stacked)
        target = np.concatenate([v / np.sqrt(model.noise_variance_), np.zeros(len(model.alpha_))])
        expected = kernel @ np.linalg.solve(r, q.T @ target)
        # A healed variance moves the mean by what one more basis function at the row does.
        atol = 1e-8 if variance == "posterior" else 1e-4
        assert_allclose(model.predict(v[:, np.newaxis]), expected, rtol=0, atol=atol * v.std())


def test_nothing_found_is_warned_of_and_says_what_to_try():
    for estimator, target in [(rvr(gamma=1e-18), X[:, 0]), (rvc(gamma=1e-18), Y)]:
        with pytest.warns(ConvergenceWarning, match="constant.*Standardise the features") as told:
            model = estimator.fit(X, target) if target is not Y else estimator.fit(C, Y)
        assert len(told) == 1 and 'gamma="evidence"' in str(told[0].message)
        assert model.report_["nothing_found"]


def test_nothing_found_with_a_learned_kernel_does_not_advise_to_learn_it():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning, match="predicts a constant. The kernel was learned from the data") as told:
        model = RVR().fit(rng.uniform(size=(60, 2)), rng.standard_normal(60))
    assert len(told) == 1 and "gamma" not in str(told[0].message)
    assert model.report_["nothing_found"] and len(model.centres_) == 0


def test_numbers_that_begin_at_any_byte():
    # Arrays over the bytes of a message, as engines pass them on.
    def moved(values):
        found = np.frombuffer(b"0" + values.astype(float).tobytes(), offset=1).reshape(values.shape)
        assert not found.flags.aligned
        return found

    weights, labels = np.linspace(1.0, 2.0, len(X)), np.where(np.median(T) < T, 1, 0)
    for machine in (rvr(gamma=0.1), SVR(gamma=0.1)):
        expected = clone(machine).fit(X, T, sample_weight=weights)
        found = machine.fit(moved(X), moved(T), sample_weight=moved(weights))
        assert_allclose(found.predict(moved(X)), expected.predict(X), rtol=0, atol=0)
    for machine in (rvc(gamma=0.1), SVC(gamma=0.1)):
        expected = clone(machine).fit(X, labels)
        assert_allclose(
            machine.fit(moved(X), labels).decision_function(moved(X)), expected.decision_function(X), rtol=0, atol=0
        )
    known = RVR(gamma=0.1).fit(moved(X), moved(T), noise_variance=moved(weights))
    assert_allclose(known.predict(X), RVR(gamma=0.1).fit(X, T, noise_variance=weights).predict(X), rtol=0, atol=0)
    sums = [Statistics(gamma=0.1, centres=X[:5]).update(x, t) for x, t in ((X, T), (moved(X), moved(T)))]
    assert sums[0].to_bytes() == sums[1].to_bytes()
    kernels = [learn_kernel(x, t) for x, t in ((X, T), (moved(X), moved(T)))]
    assert kernels[0].gamma == kernels[1].gamma
    surveys = [Survey().update(x) for x in (X, moved(X))]
    assert_allclose(surveys[0].mean_, surveys[1].mean_, rtol=0, atol=0)
    model = clone(known).fit(X, T)
    assert model.report_html(X, T) == model.report_html(moved(X), moved(T))
