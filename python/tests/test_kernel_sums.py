"""Sums and products of kernels in estimators: text and objects."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR, TableEncoder, learn_kernel, load
from relvec.kernels import RBF, Kernel, Linear, Matern32, Matern52, Periodic
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline


def season(seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.arange(96) / 12.0, rng.standard_normal(96)])
    return X, 0.5 * X[:, 0] + np.sin(2.0 * np.pi * X[:, 0]) + 0.1 * rng.standard_normal(96)


SUM = RBF(columns=[0]) + Periodic(1.0, columns=[0]) * RBF(gamma=0.01) + Linear(columns=[0])


def test_objects_are_the_text():
    assert SUM == "rbf[0] + periodic(period=1.0)[0]*rbf(gamma=0.01) + linear[0]"
    assert 2 * RBF() + Linear() == "2.0*rbf + linear"
    assert (RBF() + Linear()) * Matern32() == "rbf*matern32 + linear*matern32"
    assert 0.5 * (RBF() + Linear()) == "0.5*rbf + 0.5*linear"
    assert Matern52(np.array([1, 2.5]), columns=np.array([0, 2])) == "matern52(gamma=[1.0, 2.5])[0,2]"
    assert Periodic(12, fixed=True) == "periodic(period=12, fixed=true)"
    assert isinstance(RBF() + "poly(degree=2)", Kernel) and repr(RBF()) == "rbf"
    assert Periodic() == "periodic"
    with pytest.raises(TypeError):
        RBF() + 1.0


def test_text_and_objects_fit_the_same_model():
    X, y = season()
    one, other = RVR(SUM).fit(X, y), RVR(str(SUM)).fit(X, y)
    assert_array_equal(one.predict(X), other.predict(X))
    assert one.kernel_ == other.kernel_ and one.kernel_.count("[0]") == 3
    assert "periodic(" in str(one.summary())


def test_summaries_write_sums_in_short_lines(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    X, y = season()
    model = RVR(SUM * RBF(gamma=[0.123456789, 1.0])).fit(X, y)
    text = str(model.summary())
    assert max(map(len, text.splitlines())) <= 80
    assert text.count(" " * 20 + "+ ") == 2
    assert "gamma=[0.1235, 1.0]" in text and "0.123456789" not in text
    assert "0.123456789" in model.kernel_ and "0.123456789" in json.dumps(model.summary().as_dict())


def test_estimators_with_sums_are_cloned_and_pickled():
    X, y = season()
    model = clone(RVR(SUM)).set_params(kernel=SUM + Matern32(columns=[1])).fit(X, y)
    assert clone(model).get_params()["kernel"] == SUM + Matern32(columns=[1])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.kernel == model.kernel and isinstance(again.kernel, Kernel)


def test_a_learned_sum_is_used_again():
    X, y = season()
    learned = learn_kernel(X, y, kernel="rbf[0] + periodic(period=1.0)[0] + linear[0]")
    assert learned.gamma is None and learned.kernel_params == {} and learned.gain > 30.0
    model = RVR(learned.kernel, **learned.kernel_params).fit(X, y)
    assert abs(model.noise_variance_ / 0.01 - 1.0) < 0.6
    assert model.kernel_ == learned.kernel


def test_classes_and_lists():
    X, y = season()
    labels = np.where(np.sin(2.0 * np.pi * X[:, 0]) > 0.0, "up", "down")
    model = RVC("rbf[0] + periodic(period=1.0)[0]").fit(X[:72], labels[:72])
    assert model.score(X[72:], labels[72:]) > 0.85
    chosen = RVR(["rbf", "rbf[0] + periodic(period=1.0)[0] + linear[0]"]).fit(X, y)
    assert chosen.kernel_.count(" + ") == 2
    assert json.loads(json.dumps(chosen.report_["kernel_search"]))["chosen"] == 1


def frame(kind=pd.DataFrame):
    X, y = season()
    return kind({"day": X[:, 0], "net income": X[:, 1]}), y


NAMED = 'rbf[day] + periodic(period=1.0)[day]*rbf(gamma=0.01) + linear["net income"]'


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_of_frames_have_names(kind):
    X, y = frame(kind)
    named = RVR(NAMED).fit(X, y)
    numbered = RVR(NAMED.replace("day", "0").replace('"net income"', "1")).fit(season()[0], y)
    assert_array_equal(named.predict(X), numbered.predict(season()[0]))
    assert named.kernel == NAMED and "[day]" in named.kernel_ and '["net income"]' in named.kernel_
    assert numbered.kernel_ == named.kernel_.replace("[day]", "[0]").replace('["net income"]', "[1]")
    assert "[day]" in str(named.summary()) and '["net income"]' in str(named.summary())
    assert RBF(columns=["day"]) + Linear(columns=["net income", 0]) == 'rbf["day"] + linear["net income",0]'
    assert 2 * (RBF(columns=['a + "b']) + Linear()) == '2.0*rbf["a + \\"b"] + 2.0*linear'


def test_named_kernels_are_cloned_searched_pickled_and_saved(tmp_path):
    X, y = frame()
    search = GridSearchCV(RVR(), {"kernel": [NAMED, "rbf[day] + linear"]}, cv=2).fit(X, y)
    model = clone(RVR(NAMED)).fit(X, y)
    assert (
        search.best_params_["kernel"] in (NAMED, "rbf[day] + linear") and clone(model).get_params()["kernel"] == NAMED
    )
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    model.save(tmp_path / "m.json")
    loaded = load(tmp_path / "m.json")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.kernel_ == model.kernel_ and "[0]" in loaded.kernel and "[day]" not in loaded.kernel
    assert "[day]" in clone(loaded).fit(X, y).kernel_
    assert '"columns":[0]' in (tmp_path / "m.json").read_text().replace(" ", "")
    labels = np.where(y > 2.0, "high", "low")
    assert "[day]" in RVC("rbf[day] + linear").fit(X, labels).kernel_
    learned = learn_kernel(X, y, kernel="rbf[day] + linear")
    assert "[day]" in learned.kernel and RVR(learned.kernel).fit(X, y).kernel_ == learned.kernel
    assert max(map(len, re.findall(r"[\d.]+", repr(learned).splitlines()[0]))) <= 6


def test_names_pass_through_a_pipeline_with_categories():
    X, y = frame()
    X["colour"] = np.resize(["blue", "red", "teal"], len(X))
    steps = make_pipeline(TableEncoder(), RVR("rbf[day] + linear[colour]")).set_output(transform="pandas")
    kernel = steps.fit(X, y)[-1].kernel_
    assert "[day]" in kernel and kernel.endswith("[colour]")
    with pytest.raises(ValueError, match="X has no column names, so that 'day' is unknown"):
        make_pipeline(TableEncoder(), RVR("rbf[day] + linear")).fit(X, y)
    with pytest.raises(ValueError, match="with `dya`: expected a feature, of which the nearest are day"):
        RVR("rbf[dya] + linear").fit(*frame())


def test_many_widths_are_a_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1.0, 1.0, (60, 12)), columns=[f"x{k}" for k in range(12)])
    y = np.sin(3.0 * X["x4"]) + 0.1 * rng.standard_normal(60)
    model = RVR('rbf(gamma="evidence-ard") + linear').fit(X, y)
    text = str(model.summary())
    assert "gamma=[12 values]" in text and "and 2 more with " in text
    assert re.search(r"gamma, term 1 +x4 ", text)
    assert "12 values from " in repr(learn_kernel(X, y)) and len(repr(learn_kernel(X, y))) < 300


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("rbf + gauss", "with `gauss`: expected a number or one of rbf"),
        ("rbf[2] + linear", r"factors\[0\].columns = 2: expected columns from 0 to 1"),
        ("periodic(period=-1)", "kernel.periodic.period = -1: expected a positive"),
        ("gauss", "must be a str among"),
    ],
)
def test_wrong_texts_of_kernels_are_named(kernel, message):
    with pytest.raises(ValueError, match=message):
        RVR(kernel).fit(*season())


@pytest.mark.parametrize("estimator", [SVC, NuSVC, SVR, NuSVR])
def test_support_vector_machines_take_sums_with_names(estimator, tmp_path):
    X, y = frame()
    target = y > 2.0 if "SVC" in estimator.__name__ else y
    text = 'periodic(period=1.0, gamma=0.5)[day] + 0.5*rbf(gamma=0.1)[day]*linear["net income"] + linear[day]'
    model = estimator(kernel=text, tol=1e-8).fit(X, target)

    def values(a, b):
        one, other = a[:, :1], b[:, 0]
        season = np.exp(-2.0 * np.sin(np.pi * (one - other)) ** 2)
        return season + 0.5 * np.exp(-0.1 * (one - other) ** 2) * np.outer(a[:, 1], b[:, 1]) + one * other

    expected = estimator(kernel=values, tol=1e-8).fit(X.to_numpy(), target)
    function = "decision_function" if "SVC" in estimator.__name__ else "predict"
    assert_allclose(getattr(model, function)(X), getattr(expected, function)(X.to_numpy()), atol=1e-6)
    assert_array_equal(model.predict(X), clone(model).set_params(kernel=Kernel(text)).fit(X, target).predict(X))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    model.save(tmp_path / "m.json")
    assert_array_equal(load(tmp_path / "m.json").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            'rbf(gamma="evidence") + linear',
            "gamma = evidence: expected a number, .* a support vector machine has no evidence",
        ),
        ("periodic[0] + linear", "period = none: expected a number: a support vector machine has no evidence"),
        ("rbf[2] + linear", r"columns = 2: expected columns from 0 to 1"),
        ("rbf[day] + linear", "X has no column names, so that 'day' is unknown"),
    ],
)
def test_support_vector_machines_learn_no_parameters_of_sums(kernel, message):
    X, y = season()
    with pytest.raises(ValueError, match=message):
        SVR(kernel=kernel).fit(X, y)
