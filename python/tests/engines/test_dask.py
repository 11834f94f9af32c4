"""Fits on a cluster of two workers of Dask."""

import os
import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import relvec
from dask.distributed import Client, LocalCluster
from relvec import _partitions
from relvec.dask import RVC, RVR
from rows import FATAL, FEATURES, OTHERS, SAMPLE, assert_same, deadly, frame, held, parts
from sklearn.exceptions import NotFittedError


@pytest.fixture(scope="module", autouse=True)
def cluster():
    own = {"host": "127.0.0.1", "dashboard_address": None, "memory_limit": "2GB"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **own) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def table():
    return frame()


@pytest.fixture(scope="module")
def lazy(table):
    return dd.concat([dd.from_pandas(part, npartitions=1) for part in parts(table)])


@pytest.fixture(scope="module")
def regression(lazy):
    return RVR().fit(lazy[FEATURES], lazy["y"], sample_weight=lazy["w"], sample=SAMPLE)


@pytest.fixture(scope="module")
def classification(lazy):
    return RVC().fit(lazy[FEATURES], lazy["k"], sample=SAMPLE)


def test_regression_equals_that_of_one_process(table, regression):
    assert_same(regression, held(relvec.RVR(), parts(table), "y", "w"))
    assert list(regression.feature_names_in_) == FEATURES


def test_classes_equal_those_of_one_process(table, classification):
    assert list(classification.classes_) == ["down", "middle", "up"]
    local = held(relvec.RVC(), parts(table), "k")
    np.testing.assert_array_equal(classification.predict_proba(table[FEATURES]), local.predict_proba(table[FEATURES]))


@pytest.mark.parametrize(("settings", "label", "further"), OTHERS)
def test_counts_outliers_and_known_noise_equal_those_of_one_process(table, lazy, settings, label, further):
    own = {name: lazy[column] for name, column in further.items()}
    model = RVR(**settings).fit(lazy[FEATURES], lazy[label], **own, sample=SAMPLE)
    assert_same(model, held(relvec.RVR(**settings), parts(table), label, **further))


def test_arrays_and_frames_give_one_model(table):
    whole = frame().assign(y=table["y"])
    cut = [100, 200, 300]
    x, y = da.from_array(whole[FEATURES].to_numpy(), chunks=(tuple(cut), 2)), da.from_array(whole["y"].to_numpy(), 600)
    own = [whole[a:b] for a, b in [(0, 100), (100, 300), (300, 600)]]
    assert_same(RVR().fit(x, y, sample=SAMPLE), held(relvec.RVR(), own, "y"))


def test_predictions_are_lazy_and_keep_partitions(table, lazy, regression):
    mean, std = regression.predict(lazy[FEATURES], return_std=True)
    assert isinstance(mean, dd.Series) and mean.npartitions == lazy.npartitions
    out = lazy.assign(prediction=mean, std=std).compute()
    expected = regression.to_local().predict(table[FEATURES], return_std=True)
    np.testing.assert_allclose(out[["prediction", "std"]].to_numpy().T, expected, rtol=1e-12)
    assert list(out.index) == list(table.index)
    only = regression.predict(da.from_array(table[FEATURES].to_numpy(), chunks=(250, 2)))
    assert isinstance(only, da.Array)
    np.testing.assert_allclose(only.compute(), expected[0], rtol=1e-12)


def test_classes_and_probabilities_are_lazy(table, lazy, classification):
    local = classification.to_local()
    proba = classification.predict_proba(lazy[FEATURES])
    assert isinstance(proba, dd.DataFrame)
    assert list(proba.columns) == list(local.classes_)
    np.testing.assert_allclose(proba.compute().to_numpy(), local.predict_proba(table[FEATURES]), rtol=1e-12)
    classes = classification.predict(lazy[FEATURES])
    assert isinstance(classes, dd.Series)
    np.testing.assert_array_equal(classes.compute().to_numpy(), local.predict(table[FEATURES]))


def test_tables_in_memory_are_predicted_in_memory(table, regression):
    mean = regression.predict(table[FEATURES])
    assert isinstance(mean, np.ndarray)
    np.testing.assert_array_equal(mean, regression.to_local().predict(table[FEATURES]))


def test_to_local_saves_and_pickles(tmp_path, table, regression):
    local = regression.to_local()
    assert type(local) is relvec.RVR
    local.save(tmp_path / "model.json")
    expected = local.predict(table[FEATURES])
    np.testing.assert_array_equal(relvec.load(tmp_path / "model.json").predict(table[FEATURES]), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(regression)).predict(table[FEATURES]), expected)
    with pytest.raises(NotFittedError):
        RVR().to_local()


def test_a_killed_worker_changes_no_bit(tmp_path, monkeypatch, lazy, regression):
    once, mark = deadly(str(tmp_path))
    monkeypatch.setattr(_partitions, "answer", once)
    model = RVR().fit(lazy[FEATURES], lazy["y"], sample_weight=lazy["w"], sample=SAMPLE)
    assert os.path.exists(mark)
    assert_same(model, regression)


def test_a_bad_cell_is_named_by_partition_and_row(table):
    own = parts(table)
    own[FATAL] = own[FATAL].assign(b=own[FATAL]["b"].where(np.arange(len(own[FATAL])) != 7))
    bad = dd.concat([dd.from_pandas(part, npartitions=1) for part in own])
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: X\[7, 1\] = nan: every value must be a finite number"):
        RVR().fit(bad[FEATURES], bad["y"])
    words = bad.assign(k=bad["k"].mask(bad["b"].isna(), None))
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: y\[7\] = .*every row must have a class"):
        RVC().fit(words[FEATURES], words["k"])
    with pytest.raises(ValueError, match=r"^partition \d: X\[0, 1\] = '\w+': expected a number"):
        RVR().fit(bad[["a", "k"]], bad["y"])


def test_collections_of_other_kinds_are_rejected(table, lazy):
    with pytest.raises(TypeError, match="y is a ndarray: expected X, y to be collections"):
        RVR().fit(lazy[FEATURES], table["y"].to_numpy())
    x = da.from_array(table[FEATURES].to_numpy(), chunks=100)
    with pytest.raises(ValueError, match=r"y has chunks of rows \(50, 50\)"):
        RVR().fit(x, da.from_array(table["y"].to_numpy()[:100], chunks=50))
    with pytest.raises(TypeError, match="no option return_cov"):
        RVR().fit(lazy[FEATURES], lazy["y"]).predict(lazy[FEATURES], return_cov=True)


def test_frames_of_files_are_read_in_each_pass(tmp_path, table, regression):
    for k, part in enumerate(parts(table)):
        part.to_parquet(tmp_path / f"{k}.parquet", index=False)
    files = dd.read_parquet(tmp_path / "*.parquet")
    model = RVR().fit(files[FEATURES], files["y"], sample_weight=files["w"], sample=SAMPLE)
    assert isinstance(pd.read_parquet(tmp_path / "2.parquet"), pd.DataFrame)
    np.testing.assert_allclose(model.log_evidence_, regression.log_evidence_, rtol=1e-9)
