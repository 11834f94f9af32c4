"""Errors name settings and values as Python does, say what was found, and what to do."""

import numpy as np
import pytest
from relvec import RVC, RVR, SVR, NuSVC, Statistics, learn_kernel
from relvec._errors import translated
from support import papers, sinc, surface, two_classes

X, T = surface(40)
C, Y = two_classes(40)
COUNTS = np.abs(T).round()
GRAM = X @ X.T

CASES = [
    (RVR(keep_statistics=True), X, T, r"^keep_statistics = True: expected False, or a kernel with a dictionary"),
    (RVR(calibrate=True, likelihood="poisson", folds=3), X, COUNTS, r"^calibrate = True: expected False: "),
    (
        RVR(keep_rows=5, likelihood="poisson"),
        X,
        COUNTS,
        r"^keep_rows = a number: expected None, or Gaussian noise and a built-in kernel",
    ),
    (RVR(gamma=[1.0, 2.0, 3.0]), X, T, r"^gamma = 3 values: expected one number, or one per feature \(2\)$"),
    (NuSVC(nu=0.9), C, np.arange(40) < 3, r"^nu = 0.9: expected a number in \("),
    (SVR(C=np.inf, epsilon=0.0), np.vstack([X, X]), np.hstack([T, -T]), r"^C = inf: expected a finite cost"),
    (papers(RVR, kernel="precomputed", gamma="evidence-ard"), GRAM, T, "^gamma = 'evidence-ard' needs a kernel that"),
    (
        RVR(noise_degrees=3.0),
        X,
        T,
        "^noise_degrees = 3.0: expected None, since likelihood='gaussian' has no noise_degrees$",
    ),
    (
        RVR(kernel="precomputed", landmarks=X[:3]),
        GRAM,
        T,
        "cannot be combined with kernel='precomputed': .* training rows. Leave",
    ),
    (
        RVR(basis="given", landmarks=X[:3]),
        X,
        T,
        "cannot be combined with basis='given': the candidates are all columns",
    ),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_errors_of_a_fit_are_in_the_words_of_python(case):
    estimator, rows, target, text = CASES[case]
    with pytest.raises(ValueError, match=text) as told:
        estimator.fit(rows, target)
    words = str(told.value).replace(",", " ").replace(":", " ").split()
    assert not {"true", "false", "null"} & set(words) and "formulation" not in words[0] and "kernel." not in words[0]


def test_errors_of_other_ways_to_fit_are_in_the_words_of_python():
    with pytest.raises(ValueError, match=r"^gamma = 3 values: expected one number"):
        learn_kernel(X, T, gamma=[1.0, 2.0, 3.0])
    sums = Statistics(centres=X[::4], gamma=1.0).update(X, T)
    with pytest.raises(ValueError, match=r"^calibrate = True: expected False"):
        sums.fit(calibrate=True)
    grown = RVR(keep_statistics=True, dictionary=10, gamma=1.0, weight_prior="ard").fit(X, T)
    with pytest.raises(ValueError, match=r"^folds = 2: expected None: ") as told:
        grown.set_params(folds=2).partial_fit(X, T)
    assert told.value.__cause__ is None and told.value.__suppress_context__


def test_texts_that_name_no_setting_stay_as_they_are():
    for text in ("class true: expected false", "a file with null", "y[0] = true", "the class 'true' = x"):
        assert translated(text) == text or text.startswith("y[0]")
    assert translated("fit_intercept = false: expected true") == "fit_intercept = False: expected True"
    assert translated("noise_variance = null: expected a number, or null") == (
        "noise_variance = None: expected a number, or None"
    )


def test_what_several_binary_models_lack_is_said_with_the_setting_that_has_it():
    rows, classes = C, np.arange(40) % 3
    model = papers(RVC, multi_class="one_vs_rest").fit(rows, classes)
    with pytest.raises(AttributeError, match=r"\(multi_class='one_vs_rest'\): multi_class='joint' has one"):
        _ = model.covariance_
    with pytest.raises(ValueError, match=r"\(multi_class='one_vs_rest'\): multi_class='joint' has it"):
        model.leave_one_out(rows, classes)


def test_a_start_that_cannot_be_used_is_said_with_what_to_do():
    rows, t = sinc(40)
    model = papers(RVR, warm_start=True).fit(rows, t)
    with pytest.raises(ValueError, match=r"^warm_start needs one model .* found search = 'em': use warm_start=False"):
        model.set_params(search="em").fit(rows, t)
    model = papers(RVR, warm_start=True, kernel="precomputed").fit(rows @ rows.T, t)
    with pytest.raises(ValueError, match=r"^warm_start needs a kernel that relvec computes.*use warm_start=False"):
        model.fit(rows @ rows.T, t)
