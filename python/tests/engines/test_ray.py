"""Fits on two processors of Ray."""

import os

import numpy as np
import pytest
import ray
import relvec
import relvec.ray
from relvec import RVC, RVR, _partitions
from rows import FATAL, FEATURES, OTHERS, SAMPLE, assert_same, deadly, frame, held, parts


@pytest.fixture(scope="module", autouse=True)
def engine():
    own = {"object_store_memory": 400_000_000, "_node_ip_address": "127.0.0.1"}
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False, **own)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def table():
    return frame()


def filled(table):
    """The partitions that Ray keeps: it drops blocks without rows."""
    return [part for part in parts(table) if len(part) > 0]


@pytest.fixture(scope="module")
def blocks(table):
    return ray.data.from_pandas(parts(table))


@pytest.fixture(scope="module")
def regression(blocks):
    return relvec.ray.fit(blocks, "y", features=FEATURES, weight="w", sample=SAMPLE)


@pytest.fixture(scope="module")
def classification(blocks):
    return relvec.ray.fit(blocks, "k", estimator=RVC(), features=FEATURES, sample=SAMPLE)


def test_regression_equals_that_of_one_process(table, regression):
    assert type(regression) is RVR
    assert_same(regression, held(RVR(), filled(table), "y", "w"))
    assert list(regression.feature_names_in_) == FEATURES


def test_classes_equal_those_of_one_process(table, classification):
    assert list(classification.classes_) == ["down", "middle", "up"]
    local = held(RVC(), filled(table), "k")
    np.testing.assert_array_equal(classification.predict_proba(table[FEATURES]), local.predict_proba(table[FEATURES]))


@pytest.mark.parametrize(("settings", "label", "further"), OTHERS)
def test_counts_outliers_and_known_noise_equal_those_of_one_process(table, blocks, settings, label, further):
    own = {"estimator": RVR(**settings), "features": FEATURES, "sample": SAMPLE}
    model = relvec.ray.fit(blocks, label, **own, **further)
    assert_same(model, held(RVR(**settings), filled(table), label, **further))


def test_features_are_all_other_columns(table):
    few = table[[*FEATURES, "y"]]
    model = relvec.ray.fit(ray.data.from_pandas([few[:300], few[300:]]), "y", sample=SAMPLE)
    assert_same(model, held(RVR(), [few[:300], few[300:]], "y"))


def test_predictions_come_as_columns(table, blocks, regression, classification):
    out = relvec.ray.predict(blocks, regression, return_std=True)
    assert isinstance(out, ray.data.Dataset)
    frame = out.to_pandas().sort_values(["a", "b"])
    expected = regression.predict(frame[FEATURES], return_std=True)
    np.testing.assert_allclose(frame[["prediction", "std"]].to_numpy(dtype=float).T, expected, rtol=1e-9)
    assert len(frame) == len(table)
    out = relvec.ray.predict(blocks, classification, return_proba=True).to_pandas()
    proba = classification.predict_proba(out[FEATURES])
    np.testing.assert_allclose(np.stack(out["probability"]), proba, rtol=1e-9)
    assert list(out["prediction"]) == list(classification.predict(out[FEATURES]))


def test_a_killed_worker_changes_no_bit(tmp_path, monkeypatch, blocks, regression):
    once, mark = deadly(str(tmp_path))
    monkeypatch.setattr(_partitions, "answer", once)
    model = relvec.ray.fit(blocks, "y", features=FEATURES, weight="w", sample=SAMPLE)
    assert os.path.exists(mark)
    assert_same(model, regression)


def test_files_give_the_same_bits_again(tmp_path, table):
    for k, part in enumerate(parts(table)):
        part.to_parquet(tmp_path / f"{k}.parquet", index=False)
    files = sorted(str(path) for path in tmp_path.glob("*.parquet"))
    first, again = (
        relvec.ray.fit(ray.data.read_parquet(files), "y", features=FEATURES, sample=SAMPLE) for _ in range(2)
    )
    assert_same(first, again)


def test_a_bad_cell_is_named_by_block_and_row(table, blocks):
    own = filled(table)
    own[FATAL] = own[FATAL].assign(b=own[FATAL]["b"].where(np.arange(len(own[FATAL])) != 7))
    with pytest.raises(ValueError, match=rf"^partition {FATAL}: X\[7, 1\] = nan: every value must be a finite number"):
        relvec.ray.fit(ray.data.from_pandas(own), "y", features=FEATURES)
    with pytest.raises(ValueError, match=r"^partition \d: X\[0, 1\] = '\w+': expected a number"):
        relvec.ray.fit(blocks, "y", features=["a", "k"])


def test_missing_columns_and_methods_are_named(blocks, regression):
    with pytest.raises(ValueError, match="no column 'z': expected some of a, b, c"):
        relvec.ray.fit(blocks, "z")
    with pytest.raises(ValueError, match="return_proba for RVC"):
        relvec.ray.predict(blocks, regression, return_proba=True)
    plain = RVR().fit(np.arange(20.0).reshape(-1, 1), np.arange(20.0))
    with pytest.raises(ValueError, match="give features"):
        relvec.ray.predict(blocks, plain)


def test_the_model_saves(tmp_path, table, regression):
    regression.save(tmp_path / "model.json")
    loaded = relvec.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(table[FEATURES]), regression.predict(table[FEATURES]))
