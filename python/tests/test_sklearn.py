"""The estimators among scikit-learn's tools."""

import copy
import io
import pickle
import warnings
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import relvec
import sklearn
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR, Statistics
from relvec._table import KERNELS, NAMES, SCHEMES
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
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
        slow = {"em": 0.1, "variational": 1.0} if cls is RVC else {}
        for scheme in SCHEMES:
            if scheme != "search":
                yield cls(search={"scheme": scheme, "tolerance": slow.get(scheme, 0.01)})
        yield cls(dictionary=50, random_state=1)
        yield cls(fit_intercept=False, gamma=0.3)
        yield cls(search={"policy": {"batch": 1}, "restarts": 0, "tolerance": 1e-3})
    yield RVR(noise_variance=0.1)
    yield RVR(dictionary=20, keep_statistics=True)
    yield RVC(class_weight="balanced")
    yield from (RVC(multi_class=rule) for rule in NAMES["multi_class"] if rule not in ("auto", "joint"))
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
@pytest.mark.filterwarnings("ignore::relvec.InterpolationWarning")
@pytest.mark.filterwarnings("ignore:.*carry information")
# Twenty landmarks are too few for one of the checks.
@pytest.mark.filterwarnings("ignore:.*misses structure:sklearn.exceptions.ConvergenceWarning")
# Sparse rows of the checks have rows of zeros, at which inner products are zero.
@pytest.mark.filterwarnings("ignore:.*candidates are zero on every row:UserWarning")
@parametrize_with_checks(list(settings()))
def test_estimators_pass_the_checks_of_scikit_learn(estimator, check):
    run(check, estimator)


# This check hands 80 x 2 rows to any classifier, also to one that asks for a square matrix by its tags.
# `test_probabilities_agree_with_the_decision_for_a_precomputed_kernel` holds the same law.
NOT_SQUARE = "check_decision_proba_consistency"
GENERATED = [check for _, check in estimator_checks_generator(RVC(kernel="precomputed"))]
CHECKS = [check for check in GENERATED if check.func.__name__ != NOT_SQUARE]


# Some of the checks make up a class for every row or two.
@pytest.mark.filterwarnings("ignore:.* classes in .* rows:UserWarning")
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


def test_tags_describe_the_estimators():
    assert is_regressor(RVR()) and is_classifier(RVC())
    assert get_tags(RVC()).classifier_tags.multi_class
    assert get_tags(RVR()).target_tags.multi_output
    assert not get_tags(RVR(likelihood="poisson")).target_tags.multi_output
    assert get_tags(RVR(likelihood="poisson")).target_tags.positive_only
    assert not get_tags(RVR()).target_tags.positive_only
    assert get_tags(RVR()).input_tags.sparse
    assert not get_tags(RVR(kernel="precomputed")).input_tags.sparse
    assert get_tags(RVR(kernel="precomputed")).input_tags.pairwise
    assert not get_tags(RVR()).input_tags.pairwise
    assert not get_tags(RVR(kernel="precomputed", basis="given")).input_tags.pairwise


def test_clone_keeps_every_parameter():
    own = {"kernel": "poly", "gamma": np.array([0.1, 0.2]), "degree": 2, "coef0": 1.0, "callback": print}
    for model in (RVR(noise_variance=0.1, **own), RVC(class_weight={0: 2.0}, **own)):
        again = clone(model)
        assert repr(again.get_params()) == repr(model.get_params())
        assert not hasattr(again, "_model")


def by_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return joblib.load(file)


def by_skops(model):
    data = skops.io.dumps(model)
    # Nothing but the estimators themselves has to be trusted.
    assert all(
        name.startswith(("relvec.rv", "relvec.svm.", "support.")) for name in skops.io.get_untrusted_types(data=data)
    )
    return skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": by_joblib,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "oldest pickle": lambda model: pickle.loads(pickle.dumps(model, protocol=0)),
    "skops": by_skops,
}
MACHINES = [
    RVR(),
    RVR(likelihood="poisson"),
    RVR(variance="healed", folds=3),
    RVR(keep_statistics=True, dictionary=20),
    RVR(kernel=Called()),
    RVR(kernel="precomputed"),
    RVC(),
    RVC(multi_class="one_vs_rest"),
    RVC(kernel=Called()),
    SVC(probability=True),
    SVC(kernel=Called()),
    SVC(kernel="precomputed"),
    NuSVC(nu=0.3),
    SVR(),
    NuSVR(),
]


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("model", MACHINES, ids=repr)
def test_every_machine_comes_back_from_every_way_to_keep_it(model, way):
    X, y = two_classes(60)
    if is_regressor(model):
        y = np.round(2.0 * np.exp(0.5 * X[:, 0]))
    elif "multi_class" in model.get_params() and model.multi_class == "one_vs_rest":
        y = y + (X[:, 0] > X[:, 1])
    X = rbf_kernel(X) if model.kernel == "precomputed" else X
    fitted = clone(model).fit(X, y)
    methods = [name for name in ("predict", "decision_function", "predict_proba", "sample_y") if hasattr(fitted, name)]
    if isinstance(fitted, RVR) and fitted.likelihood == "poisson":
        methods.remove("sample_y")
    again = WAYS[way](fitted)
    for name in methods:
        assert_array_equal(getattr(again, name)(X), getattr(fitted, name)(X), err_msg=name)
    assert {name for name in vars(again)} == {name for name in vars(fitted)}
    # What came back can be fitted again, and what never was fitted comes back as well.
    assert_array_equal(again.fit(X, y).predict(X), fitted.predict(X))
    assert_array_equal(WAYS[way](clone(model)).fit(X, y).predict(X), fitted.predict(X))


@pytest.mark.parametrize("way", list(WAYS))
def test_statistics_come_back_from_every_way_to_keep_them(way):
    X, t = sinc()
    sums = Statistics(gamma=0.1, centres=X[::6]).update(X, t)
    if way == "skops":
        data = skops.io.dumps(sums)
        again = skops.io.loads(data, trusted=skops.io.get_untrusted_types(data=data))
    else:
        again = WAYS[way](sums)
    assert again == sums


@pytest.mark.parametrize("cls", [RVR, RVC, SVC, SVR, NuSVC, NuSVR])
def test_pickles_carry_the_version_and_a_newer_one_is_a_warning(cls):
    X, y = two_classes()
    model = cls().fit(X, y)
    state = model.__getstate__()
    assert state["_relvec_version"] == relvec.__version__
    assert not hasattr(model, "_relvec_version")
    for version in ("0.0.9", relvec.__version__, None):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            same = cls.__new__(cls)
            same.__setstate__({**state, "_relvec_version": version})
            assert_array_equal(same.predict(X), model.predict(X))
    newer = cls.__new__(cls)
    with pytest.warns(UserWarning, match=rf"pickle of {cls.__name__} was written by relvec 10\.2\.0.*Update relvec"):
        newer.__setstate__({**state, "_relvec_version": "10.2.0"})
    assert_array_equal(newer.predict(X), model.predict(X))


def test_the_pickle_of_newer_statistics_is_a_warning():
    X, t = sinc()
    state = Statistics(gamma=0.1, centres=X[::6]).update(X, t).__getstate__()
    assert state["version"] == relvec.__version__
    with pytest.warns(UserWarning, match="pickle of Statistics was written by relvec 99.0"):
        Statistics.__new__(Statistics).__setstate__({**state, "version": "99.0"})


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
    built_in = cross_val_score(RVR(gamma=0.1, weight_prior="ard", variance="posterior"), X, t, cv=cv)
    assert_allclose(given, built_in, rtol=1e-8)


def test_classifiers_work_in_calibration():
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
def test_frames_give_names_and_equal_predictions(cls, frames):
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


@pytest.mark.filterwarnings("ignore:.*leaves no margin:UserWarning")
@pytest.mark.parametrize("cls", [RVR, RVC, SVR, NuSVR, SVC, NuSVC])
def test_tools_that_wrap_estimators(cls):
    X, y = surface()
    if is_classifier(cls()):
        y = np.where(y > np.median(y), "high", "low")
        wrapped = [
            BaggingClassifier(cls(), n_estimators=2, random_state=0),
            StackingClassifier([("one", cls())], cv=3),
            VotingClassifier([("one", cls()), ("two", cls(kernel="linear"))]),
            CalibratedClassifierCV(FrozenEstimator(cls().fit(X, y))),
            OneVsRestClassifier(cls()),
        ]
    else:
        wrapped = [
            BaggingRegressor(cls(), n_estimators=2, random_state=0),
            StackingRegressor([("one", cls())], cv=3),
            VotingRegressor([("one", cls()), ("two", cls(kernel="linear"))]),
            TransformedTargetRegressor(cls(), transformer=StandardScaler()),
            FrozenEstimator(cls().fit(X, y)),
        ]
    for tool in [
        *wrapped,
        RFE(cls(kernel="linear"), n_features_to_select=1),
        HalvingGridSearchCV(cls(), {"gamma": [0.1, 1.0]}, cv=2, min_resources=30, error_score="raise", random_state=0),
    ]:
        fitted = tool.fit(X, y)
        assert fitted.score(X, y) > (0.5 if not isinstance(tool, RFE) else 0.1), tool
        assert_array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    fitted = cls().fit(X, y)
    assert permutation_importance(fitted, X, y, n_repeats=2, random_state=0).importances_mean.min() > 0.0
    learning_curve(cls(), X, y, cv=2, train_sizes=[0.5, 1.0], shuffle=True, random_state=0, error_score="raise")
    assert partial_dependence(fitted, X, [0], kind="average", grid_resolution=5)["average"].shape[-1] == 5
    assert cross_val_predict(cls(), X, y, cv=3).shape == y.shape
    weight = np.linspace(0.5, 1.5, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        asked = cls().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        cross_validate(asked, X, y, params={"sample_weight": weight}, cv=2, error_score="raise")


def test_a_failing_parameter_is_reported_by_grid_search():
    X, t = sinc()
    with pytest.raises(ValueError, match=r"The 'gamma' parameter of RVR must be .* Got -1\.0 instead"):
        GridSearchCV(RVR(), {"gamma": [-1.0]}, cv=3, error_score="raise").fit(X, t)
