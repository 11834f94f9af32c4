"""Pickles and model files made by commit 0d1570f, which every later version must read."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import relvec
from numpy.testing import assert_allclose
from relvec import RVC, RVR
from sklearn.base import clone
from support import PINNED, two_classes

EXPECTED = json.loads((PINNED / "predictions.json").read_text())
ROWS, KERNEL_ROWS = (np.array(EXPECTED.pop(name)) for name in ("rows", "kernel_rows"))
PICKLES = pickle.loads((PINNED / "models.pickle").read_bytes())


def check(name, model):
    """Compare predictions with those of the version that made the model."""
    rows = KERNEL_ROWS if name == "rvr_precomputed" else ROWS
    if hasattr(model, "feature_names_in_"):
        rows = pd.DataFrame(rows, columns=model.feature_names_in_)
    expected = EXPECTED[name]
    found = {}
    if isinstance(model, RVR):
        found["mean"], found["std"] = model.predict(rows, return_std=True)
    else:
        found["prediction"] = model.predict(rows)
    if hasattr(model, "decision_function"):
        found["decision"] = model.decision_function(rows)
    if isinstance(model, RVC):
        found["plug_in"] = model.predict_proba(rows, moderated=False)
    if hasattr(model, "predict_proba"):
        found["probability"] = model.predict_proba(rows)
    assert found.keys() == expected.keys()
    for key, values in found.items():
        if values.dtype.kind == "f":
            size = np.abs(expected[key]).max()
            assert_allclose(values, expected[key], rtol=0.0, atol=1e-11 * size, err_msg=key)
        else:
            assert values.tolist() == expected[key], key


@pytest.mark.parametrize("name", EXPECTED)
def test_model_files_load(name):
    kernel = "precomputed" if name == "rvr_precomputed" else None
    check(name, relvec.load(PINNED / f"{name}.json", kernel))


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - {"command_scaled"}))
def test_pickles_of_earlier_versions_load(name):
    check(name, PICKLES[name])
    # What is pickled again is the same model.
    check(name, pickle.loads(pickle.dumps(PICKLES[name])))


@pytest.mark.parametrize("name", sorted(EXPECTED.keys() - {"command_scaled"}))
def test_parameters_that_old_pickles_lack_take_their_defaults(name):
    model = PICKLES[name]
    new = type(model)().get_params()
    assert model.get_params().keys() == new.keys()
    for parameter in ("weight_prior", "residual"):
        assert model.get_params().get(parameter) == new.get(parameter)
    assert repr(model).startswith(f"{type(model).__name__}(") and str(model).startswith(repr(model))
    assert clone(model).get_params().keys() == new.keys()
    assert str(model.summary()).startswith(f"{type(model).__name__}: ") and "relvec" in model.summary()._repr_html_()


def test_old_pickles_are_fitted_again():
    X, y = two_classes(60)
    for model in (PICKLES["rvr_rbf"], PICKLES["rvc_two"]):
        again = copy.deepcopy(model).fit(X, y)
        assert again.weight_prior == "auto" and again.predict(X).shape == (60,)


def test_old_pickles_have_newer_attributes():
    for name in ("rvr_rbf", "rvr_outputs"):
        model = PICKLES[name]
        assert model.centres_.tolist() == model.relevance_.tolist()


def test_settings_of_the_search_in_old_pickles_are_kept():
    search = {"scheme": "mackay", "tolerance": 0.01, "max_iterations": 10_000}
    assert PICKLES["rvr_mackay"].search == search


def test_pickled_statistics_load():
    sums = PICKLES["statistics"]
    assert sums.to_bytes() == (PINNED / "statistics.bin").read_bytes()
    assert sums.n_rows == 24
    sums.fit()
