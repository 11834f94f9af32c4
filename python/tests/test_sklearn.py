"""The estimators among scikit-learn's tools."""

import copy
import pickle
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR
from relvec._parameters import KERNELS, RULES, SCHEMES
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from support import Called, sinc, surface, two_classes

BOTH = [RVR, RVC]
# What a series calls its values.
DATA = {pd: "data", pl: "values"}


def settings():
    """Estimators with every kernel, every scheme, and each further setting that changes the fit."""
    for cls in BOTH:
        yield cls()
        yield from (cls(kernel=kernel) for kernel in KERNELS if kernel != "rbf")
        yield cls(kernel=Called())
        yield cls(basis="given")
        # The schemes of slow convergence need not go to the end to be checked.
        slow = {"em": 0.1} if cls is RVC else {}
        yield from (cls(inference=scheme, tol=slow.get(scheme, 0.01)) for scheme in SCHEMES if scheme != "sequential")
        yield cls(dictionary=50, random_state=1)
        yield cls(dictionary=20, refresh=2)
        yield cls(fit_intercept=False, gamma=0.3)
        yield cls(inference_params={"batch": 1, "reheats": 0}, tol=1e-3)
    yield RVR(noise_variance=0.1)
    yield RVR(dictionary=20, keep_statistics=True)
    yield RVC(class_weight="balanced")
    yield from (RVC(multi_class=rule) for rule in RULES if rule not in ("auto", "joint"))
    yield RVC(class_precisions="per_class")
    yield RVC(posterior="averaged")
    yield RVR(kernel="precomputed")


def run(check, estimator):
    """A check that skips itself has checked nothing."""
    try:
        check(estimator)
    except SkipTest as reason:
        pytest.fail(f"skipped: {reason}")


# Some of the checks have fewer rows than one of the dictionaries.
@pytest.mark.filterwarnings("ignore:.* different rows:UserWarning")
@pytest.mark.filterwarnings("ignore:.*free of noise")
@pytest.mark.filterwarnings("ignore:.*carry information")
@parametrize_with_checks(list(settings()))
def test_checks(estimator, check):
    run(check, estimator)


# This check hands 80 x 2 rows to any classifier, also to one that asks for a square matrix by its tags.
# `test_probabilities_agree_with_the_decision_for_a_precomputed_kernel` holds the same law.
NOT_SQUARE = "check_decision_proba_consistency"
GENERATED = [check for _, check in estimator_checks_generator(RVC(kernel="precomputed"))]
CHECKS = [check for check in GENERATED if check.func.__name__ != NOT_SQUARE]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.func.__name__)
def test_checks_of_a_precomputed_classifier(check):
    run(check, RVC(kernel="precomputed"))


def test_probabilities_agree_with_the_decision_for_a_precomputed_kernel():
    X, y = two_classes()
    new, _ = two_classes(seed=1)
    model = RVC(kernel="precomputed").fit(rbf_kernel(X), y)
    K = rbf_kernel(new, X)
    decision, probability = model.decision_function(K), model.predict_proba(K)[:, 1]
    assert_array_equal(np.argsort(decision), np.argsort(probability))
    assert_allclose(probability, 1.0 / (1.0 + np.exp(-decision)), rtol=1e-12)


def test_tags():
    assert is_regressor(RVR()) and is_classifier(RVC())
    assert get_tags(RVC()).classifier_tags.multi_class
    assert get_tags(RVR()).target_tags.multi_output
    assert not get_tags(RVR(likelihood="poisson")).target_tags.multi_output
    assert not get_tags(RVR()).input_tags.sparse
    assert get_tags(RVR(kernel="precomputed")).input_tags.pairwise
    assert not get_tags(RVR()).input_tags.pairwise
    assert not get_tags(RVR(kernel="precomputed", basis="given")).input_tags.pairwise


def test_clone_keeps_every_parameter():
    own = {"kernel": "poly", "gamma": np.array([0.1, 0.2]), "degree": 2, "coef0": 1.0, "callback": print}
    for model in (RVR(noise_variance=0.1, **own), RVC(class_weight={0: 2.0}, **own)):
        again = clone(model)
        assert repr(again.get_params()) == repr(model.get_params())
        assert not hasattr(again, "_model")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_predict_the_same(copied):
    X, t = sinc()
    model = RVR(gamma=0.1).fit(X, t)
    again = copied(model)
    assert again is not model
    assert_array_equal(again.predict(X, return_std=True), model.predict(X, return_std=True))
    C, y = two_classes()
    classifier = RVC().fit(C, y)
    assert_array_equal(copied(classifier).predict_proba(C), classifier.predict_proba(C))


def test_grid_search_over_kernel_and_gamma_in_a_pipeline():
    X, t = sinc()
    X = np.column_stack([X, X**2 * 1e3])
    pipe = make_pipeline(StandardScaler(), RVR())
    grid = {"rvr__kernel": ["rbf", "linear"], "rvr__gamma": ["scale", 3.0, [5.0, 0.1]]}
    search = GridSearchCV(pipe, grid, cv=3).fit(X, t)
    assert search.best_params_["rvr__kernel"] == "rbf"
    assert search.score(X, t) > 0.8
    assert len(search.best_estimator_[-1].relevance_) < 30


def test_grid_search_slices_a_precomputed_kernel_both_ways():
    X, t = sinc()
    K = rbf_kernel(X, gamma=0.1)
    # cross_val_score cuts square training matrices and rectangular test ones by the pairwise tag.
    cv = [(np.arange(0, 60, 2), np.arange(1, 60, 2)), (np.arange(1, 60, 2), np.arange(0, 60, 2))]
    given = cross_val_score(RVR(kernel="precomputed"), K, t, cv=cv)
    built_in = cross_val_score(RVR(gamma=0.1), X, t, cv=cv)
    assert_allclose(given, built_in, rtol=1e-8)


def test_calibrated():
    X, y = two_classes(120)
    calibrated = CalibratedClassifierCV(RVC(), cv=3).fit(X, y)
    assert calibrated.score(X, y) > 0.8
    assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_inside_a_pipeline(library):
    X, t = surface()
    frame = {"pandas": pd, "polars": pl}[library].DataFrame({"width": X[:, 0], "height": X[:, 1]})
    pipe = make_pipeline(StandardScaler().set_output(transform=library), RVR())
    pipe.fit(frame, t)
    assert pipe[-1].feature_names_in_.tolist() == ["width", "height"]
    plain = make_pipeline(StandardScaler(), RVR()).fit(X, t)
    # The scaler adds up the columns of a frame in another order.
    assert_allclose(pipe.predict(frame), plain.predict(X), rtol=1e-8)


@pytest.mark.parametrize("frames", [pd, pl])
@pytest.mark.parametrize("cls", BOTH)
def test_frames_in(cls, frames):
    X, y = two_classes()
    frame, target = frames.DataFrame({"a": X[:, 0], "b": X[:, 1]}), frames.Series(name="label", **{DATA[frames]: y})
    model = cls().fit(frame, target)
    assert_array_equal(model.predict(frame), cls().fit(X, y).predict(X))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename({"a": "c"}) if frames is pl else frame.rename(columns={"a": "c"}))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        cls().fit(X, y).predict(frame)


@pytest.mark.parametrize("cls", BOTH)
def test_names_of_an_earlier_fit_are_gone(cls):
    X, y = two_classes()
    model = cls().fit(pd.DataFrame(X, columns=["a", "b"]), y)
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (80,)


@pytest.mark.parametrize("cls", BOTH)
def test_sparse_rows_are_refused(cls):
    X, y = two_classes()
    with pytest.raises(TypeError, match="dense data is required"):
        cls().fit(sparse.csr_matrix(X), y)
    with pytest.raises(TypeError, match="dense data is required"):
        cls().fit(X, y).predict(sparse.csr_array(X))


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool])
def test_other_numbers_are_taken_as_float64(cls, dtype):
    X, y = two_classes()
    X = (X * 3.0).astype(dtype) if dtype not in (np.uint8, bool) else (X > 0.0).astype(dtype)
    model, double = cls().fit(X, y), cls().fit(X.astype(np.float64), y)
    assert_array_equal(model.dual_coef_, double.dual_coef_)
    assert_array_equal(model.predict(X), double.predict(X.astype(np.float64)))
    assert model.relevance_vectors_.dtype == np.float64


@pytest.mark.parametrize("cls", BOTH)
def test_layout_of_the_rows_changes_nothing(cls):
    X, y = two_classes()
    wide = np.zeros((80, 4))
    wide[:, ::2] = X
    model = cls().fit(X, y)
    for same in (np.asfortranarray(X), wide[:, ::2], X.tolist(), X.astype(">f8")):
        assert_array_equal(cls().fit(same, y).dual_coef_, model.dual_coef_)
        assert_array_equal(model.predict(same), model.predict(X))
    backwards = X[::-1]
    assert_array_equal(model.predict(backwards), model.predict(X)[::-1])


@pytest.mark.parametrize("cls", BOTH)
def test_rows_are_neither_changed_nor_needed_writable(cls):
    X, y = two_classes()
    before = X.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    weight = np.ones(80)
    weight.setflags(write=False)
    cls().fit(X, y, weight).predict(X)
    assert_array_equal(X, before)


def test_sample_weight_is_routed():
    X, t = sinc()
    weight = np.where(X[:, 0] > 0.0, 1.0, 0.01)
    expected = RVR(gamma=0.1).fit(X, t, weight).predict(X)
    assert np.abs(expected - RVR(gamma=0.1).fit(X, t).predict(X)).max() > 1e-3
    with sklearn.config_context(enable_metadata_routing=True):
        asked = RVR(gamma=0.1).set_fit_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler(with_mean=False, with_std=False), asked)
        # The scaler must say too that it does not want them.
        pipe[0].set_fit_request(sample_weight=False)
        assert_array_equal(pipe.fit(X, t, sample_weight=weight).predict(X), expected)
        # A scorer asks for itself; the default one goes by the estimator's own request.
        asked.set_score_request(sample_weight=True)
        search = GridSearchCV(asked, {"gamma": [0.1]}, cv=3).fit(X, t, sample_weight=weight)
        assert_array_equal(search.predict(X), expected)
        with pytest.raises(ValueError, match="sample_weight"):
            make_pipeline(RVR()).fit(X, t, sample_weight=weight)


@pytest.mark.parametrize("cls", BOTH)
def test_set_output_is_not_offered(cls):
    # Only transformers have it; a pipeline that ends in an estimator must not think otherwise.
    assert not hasattr(cls(), "transform")


def test_a_failing_parameter_is_reported_by_grid_search():
    X, t = sinc()
    with pytest.raises(ValueError, match=r"gamma = -1\.0: expected a positive number"):
        GridSearchCV(RVR(), {"gamma": [-1.0]}, cv=3, error_score="raise").fit(X, t)
