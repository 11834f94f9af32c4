"""relvec.compare: the table, what it holds by hand, and what it refuses."""

import sys

import numpy as np
import pandas as pd
import pytest
import relvec
from numpy.testing import assert_allclose
from relvec import SVC, SVR, compare
from relvec import _compare as inner
from scipy import stats
from sklearn import metrics
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_selection import RFE
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import rvc, rvr, surface, two_classes

QUICK = {"gamma": [0.3, 1.0], "c": [1.0, 10.0]}
X, T = surface(80)
U, C = two_classes(90)


def three_classes(n=90, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    centres = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    return centres[kind] + 0.8 * rng.standard_normal((n, 2)), np.array(["a", "b", "c"])[kind]


def timeless(table):
    return table.drop(columns=[name for name in table.columns if "seconds" in name])


def test_the_four_machines_on_values():
    table = compare(X, T, grid=QUICK)
    assert list(table.index) == ["rvm", "rvm evidence", "vrvm", "svm"]
    assert table.index.name == "machine"
    assert list(table.columns[::2]) == inner.OF_VALUES + inner.OF_ALL
    assert list(table.columns[1::2]) == [f"{name}_standard_error" for name in table.columns[::2]]
    # The noise is 0.1, the standard deviation of the target 1.3.
    assert np.all((table["rmse"] > 0.09) & (table["rmse"] < 0.3))
    assert np.all(table["mae"] < table["rmse"])
    assert np.all(table["kernels"] > 1) and table.loc["rvm", "kernels"] < table.loc["svm", "kernels"]
    assert np.all(table[["fit_seconds", "predict_seconds_per_row"]] > 0)
    lacking = table[["negative_log_density", "coverage_95"]].isna().all(axis=1)
    assert list(lacking) == [False, False, False, True]
    assert (table.loc[["rvm", "svm"], "choice_seconds"] > 0).all() and table.loc["rvm evidence", "choice_seconds"] == 0


@pytest.mark.parametrize("data", [(U, C), three_classes()], ids=["two", "three"])
def test_the_four_machines_on_classes(data):
    table = compare(*data, task="classify", grid=QUICK, cv=3)
    assert list(table.columns[::2]) == inner.OF_CLASSES + inner.OF_ALL
    assert not table.isna().any(axis=None)
    assert np.all((table["error_rate"] > 0.0) & (table["error_rate"] < 0.3))
    assert np.all((table["log_loss"] > 0.1) & (table["log_loss"] < 0.7))
    assert np.all((table["brier"] > 0.05) & (table["brier"] < 0.45))
    assert np.all((table["calibration_error"] > 0.0) & (table["calibration_error"] < 0.35))
    assert table.loc["rvm", "kernels"] < table.loc["svm", "kernels"]


def test_a_gaussian_process_by_hand():
    process = GaussianProcessRegressor(RBF() + WhiteKernel(), normalize_y=True)
    splits = list(KFold(3).split(X))
    row = compare(X, T, {"process": process}, cv=splits).loc["process"]
    by_hand = []
    for train, test in splits:
        mean, std = process.fit(X[train], T[train]).predict(X[test], return_std=True)
        inside = np.abs(T[test] - mean) <= stats.norm.ppf(0.975) * std
        density = -stats.norm.logpdf(T[test], mean, std).mean()
        by_hand.append([np.sqrt(np.mean((T[test] - mean) ** 2)), np.abs(T[test] - mean).mean(), density, inside.mean()])
    assert_allclose(row[inner.OF_VALUES].astype(float), np.mean(by_hand, axis=0), rtol=1e-10)
    errors = [f"{name}_standard_error" for name in inner.OF_VALUES]
    assert_allclose(row[errors].astype(float), np.std(by_hand, axis=0, ddof=1) / np.sqrt(3), rtol=1e-10)
    assert np.isnan(row["kernels"])


def test_student_t_noise_is_measured_by_its_own_density_and_intervals():
    t = T + 0.1 * np.random.default_rng(5).standard_t(1.5, len(T))
    splits = list(KFold(3).split(X))
    model = make_pipeline(StandardScaler(), rvr(gamma=1.0, likelihood="student_t"))
    row = compare(X, t, {"heavy": model}, cv=splits).loc["heavy"]
    by_hand = []
    for train, test in splits:
        fitted = clone(model).fit(X[train], t[train])
        own, rows = fitted[-1], fitted[:-1].transform(X[test])
        lower, upper = own.predict_interval(rows)
        # By the integral over the function.
        _, model_std, _ = own.predict(rows, return_parts=True)
        nodes, weights = np.polynomial.hermite_e.hermegauss(60)
        at = own.predict(rows)[:, np.newaxis] + model_std[:, np.newaxis] * nodes
        each = stats.t.pdf(t[test][:, np.newaxis], own.noise_degrees_, at, np.sqrt(own.noise_variance_))
        density = -np.log(each @ weights / weights.sum()).mean()
        by_hand.append([density, np.mean((lower <= t[test]) & (t[test] <= upper))])
    found = row[["negative_log_density", "coverage_95"]].astype(float)
    assert_allclose(found, np.mean(by_hand, axis=0), rtol=1e-6)


def test_a_classifier_by_hand():
    rows, kind = three_classes()
    machine = make_pipeline(StandardScaler(), LogisticRegression())
    splits = list(StratifiedKFold(4).split(rows, kind))
    row = compare(rows, kind, {"logistic": machine}, cv=splits).loc["logistic"]
    by_hand = []
    for train, test in splits:
        p = machine.fit(rows[train], kind[train]).predict_proba(rows[test])
        truth = (kind[test][:, np.newaxis] == machine.classes_).astype(float)
        wrong = np.mean(machine.predict(rows[test]) != kind[test])
        by_hand.append([wrong, metrics.log_loss(kind[test], p), np.mean(np.sum((p - truth) ** 2, axis=1))])
    assert_allclose(row[inner.OF_CLASSES[:3]].astype(float), np.mean(by_hand, axis=0), rtol=1e-10)


def test_calibration_by_hand():
    # Three in the bin around 0.9, of which two are right, and one in that around 0.6, wrong.
    p = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.6, 0.4]])
    assert_allclose(inner._calibration(np.array([0, 1, 1, 1]), p, np.array([0, 1])), (0.7 + 0.6) / 4)
    assert_allclose(inner._brier(np.array(["a", "b"]), np.array([[0.5, 0.5], [0.0, 1.0]]), np.array(["a", "b"])), 0.25)


def test_equal_seeds_give_equal_tables():
    first = timeless(compare(X, T, ["rvm", "svm"], grid=QUICK, cv=3))
    pd.testing.assert_frame_equal(first, timeless(compare(X, T, ["rvm", "svm"], grid=QUICK, cv=3, n_jobs=2)))
    assert not first.equals(timeless(compare(X, T, ["rvm", "svm"], grid=QUICK, cv=3, random_state=1)))
    assert compare(X, T, "rvm", grid={"gamma": [1]}, cv=2, random_state=None).shape == (1, 16)


def test_the_target_is_in_any_units():
    grid = {"gamma": [0.3], "c": [1.0, 10.0], "epsilon": [0.1]}
    one, large = (timeless(compare(X, unit * T, ["rvm", "svm"], grid=grid, cv=3)) for unit in (1.0, 1024.0))
    assert_allclose(large["rmse"] / 1024.0, one["rmse"], rtol=1e-6)
    assert_allclose(large["kernels"], one["kernels"])


def test_any_estimator_of_scikit_learn_is_compared():
    frame = pd.DataFrame(X, columns=["a", "b"])
    search = GridSearchCV(make_pipeline(StandardScaler(), rvr()), {"rvr__gamma": [0.3, 1.0]}, cv=3)
    target = TransformedTargetRegressor(SVR(C=10.0), transformer=StandardScaler())
    select = RFE(LinearRegression(), n_features_to_select=1)
    machines = {"search": search, "target": target, "select": select, "ridge": BayesianRidge(), "own": "rvm"}
    table = compare(frame, pd.Series(T), machines, cv=3, grid={"gamma": [1.0]}, inner_cv=2)
    assert list(table.index) == list(machines)
    assert list(table["negative_log_density"].isna()) == [False, True, True, False, False]
    assert list(table["kernels"].isna()) == [False, False, True, True, False]
    assert (table.loc["search", "choice_seconds"] > 0) and np.all(table.loc["target":"own", "choice_seconds"] == 0)
    assert not hasattr(search, "best_estimator_")
    # The same rows, and so the same errors.
    assert_allclose(compare(X, T, {"r": BayesianRidge()}, cv=3)["rmse"], table.loc["ridge", "rmse"])


def test_classifiers_without_probabilities_have_errors_only():
    table = compare(U, C, [RidgeClassifier(), SVC(), GaussianProcessClassifier(), rvc(), DummyClassifier()], cv=3)
    assert list(table.index) == ["RidgeClassifier", "SVC", "GaussianProcessClassifier", "RVC", "DummyClassifier"]
    assert list(table["log_loss"].isna()) == [True, True, False, False, False]
    assert list(table["kernels"].isna()) == [True, False, True, False, True]
    assert_allclose(table.loc["DummyClassifier", ["error_rate", "brier"]].astype(float), 0.5, atol=0.51)


def test_a_class_that_a_fold_has_not_seen():
    rows, kind = three_classes(30)
    order = np.argsort(kind)
    table = compare(rows[order], kind[order], [DummyClassifier(strategy="prior")], cv=KFold(3))
    assert table.loc["DummyClassifier", "error_rate"] == 1.0 and table.loc["DummyClassifier", "brier"] == 1.5


def test_the_task_follows_from_targets_and_estimators():
    whole = (T > 2).astype(int) + (T > 4)
    assert "rmse" in compare(X, whole, ["rvm"], cv=2, grid={"gamma": [1]})
    assert "log_loss" in compare(X, whole, ["rvm"], task="classify", cv=2, grid={"gamma": [1]})
    assert "log_loss" in compare(X, whole, [DummyClassifier()], cv=2)
    assert "log_loss" in compare(X, T > 2, ["rvm"], cv=2, grid={"gamma": [1]})
    assert "rmse" in compare(U, C, ["rvm"], task="regress", cv=2, grid={"gamma": [1]})
    assert "rmse" in compare(U, C, [DummyRegressor()], cv=ShuffleSplit(2, random_state=0))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"machines": ["tree"]}, "unknown machine 'tree'; known: 'rvm', 'rvm evidence', 'vrvm', 'svm'"),
        ({"machines": []}, "no machine"),
        ({"machines": [rvr(), rvr(gamma=1.0)]}, "two machines are called 'RVR': give a dict"),
        ({"machines": [rvr(), rvc()]}, "'RVC' is a classifier and 'RVR' a regressor"),
        ({"machines": [rvr()], "task": "classify"}, "'RVR' is for the other task"),
        ({"task": "cluster"}, "task='cluster'"),
        ({"cv": 1}, "cv=1"),
        ({"cv": 81}, "there are 80 rows only"),
        ({"cv": ShuffleSplit(1)}, "two or more"),
        ({"inner_cv": 1}, "inner_cv=1"),
        ({"grid": {"nu": [1]}}, "unknown setting 'nu'; known: 'gamma', 'c', 'epsilon'"),
        ({"grid": {"c": [0, 1]}}, "'c' needs positive numbers"),
        ({"grid": {"gamma": []}}, "'gamma' needs positive numbers"),
        ({"grid": {"c": [1]}, "machines": ["rvm"]}, "no machine chooses 'c'"),
        ({"grid": {"epsilon": [0.1]}, "task": "classify", "y": (T > 2)}, "'epsilon' is for regression"),
        ({"y": T[1:]}, "inconsistent numbers"),
        ({"y": np.array(["a"] * 77 + ["b"] * 3)}, "the smallest class has 3 rows only"),
    ],
)
def test_bad_input_of_a_comparison_is_refused(own, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        compare(X, **{"y": T, **own})


def test_objects_without_fit_are_refused():
    with pytest.raises(TypeError, match="'k' is neither a name nor an estimator"):
        compare(X, T, {"k": 3})


def test_a_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        relvec.compare(X, T)
