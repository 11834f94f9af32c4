"""Tables as they are: `TableEncoder` follows the rules of the command line, and both write one model file."""

from __future__ import annotations

import datetime
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from relvec import RVC, RVR, TableEncoder, load
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support import rvr

ROWS = 120


def table(gaps: bool = False) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Rows with numbers, booleans and two columns of texts, and a target that depends on them."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, ROWS).round(2),
            "paid": rng.random(ROWS) < 0.4,
            "garden": rng.choice(["yes", "no"], ROWS),
            "zone": rng.choice(["west", "north", "south"], ROWS),
        }
    )
    effect = frame["zone"].map({"west": 0.0, "north": 2.0, "south": -2.0})
    y = 0.05 * frame["age"] + frame["paid"] + effect + 0.2 * rng.standard_normal(ROWS)
    if gaps:
        frame.loc[5::20, "age"] = np.nan
        frame.loc[7::30, "zone"] = None
    return frame, y.to_numpy().round(4)


def command(folder: Path, *words: str) -> str:
    """Run the command in `folder`; what it prints on stderr."""
    run = subprocess.run(
        [sys.executable, "-m", "relvec", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stderr


def of_polars(frame: pd.DataFrame) -> pl.DataFrame:
    """Returns the table as a polars frame, made without pyarrow."""
    cells = {name: [None if pd.isna(cell) else cell for cell in frame[name].tolist()] for name in frame}
    return pl.DataFrame(cells)


def stored(path: Path) -> Any:
    return json.loads(path.read_text())["model"]["encoding"]


def close(a: Any, b: Any) -> bool:
    """Whether two encodings are equal, their means within rounding."""
    means = [np.concatenate([column["means"] for column in own["columns"]]) for own in (a, b)]
    plain = [[{**column, "means": 0} for column in own["columns"]] for own in (a, b)]
    return plain[0] == plain[1] and a.get("missing") == b.get("missing") and np.allclose(*means, rtol=1e-13)


def test_categories_and_numbers_become_features_in_the_order_of_the_columns() -> None:
    frame, _ = table()
    encoder = TableEncoder().fit(frame)
    names = ["age", "paid=true", "garden=yes", "zone=north", "zone=south", "zone=west"]
    assert encoder.get_feature_names_out().tolist() == names
    features = encoder.transform(frame)
    assert np.array_equal(features[:, 0], frame["age"])
    assert np.array_equal(features[:, 1], frame["paid"])
    assert np.array_equal(features[:, 3:], pd.get_dummies(frame["zone"]).to_numpy(dtype=float))


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_a_pipeline_and_the_command_write_the_same_model(tmp_path: Path, missing: str) -> None:
    frame, y = table(gaps=True)
    frame.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    command(tmp_path, "fit", "d.csv", "--target", "y", "--missing", missing, "--no-standardize", "-o", "m.json")
    pipeline = make_pipeline(TableEncoder(missing=missing), RVR()).fit(frame, y)
    # A CSV file writes booleans as True and False; the categories of a frame are true and false.
    own = json.loads(json.dumps(pipeline[0].encoding_).replace('"true"', '"True"').replace('"false"', '"False"'))
    assert close(own, stored(tmp_path / "m.json"))
    loaded = load(tmp_path / "m.json")
    assert np.allclose(loaded.predict(frame), pipeline.predict(frame), rtol=1e-6)
    pipeline[-1].save(tmp_path / "own.json", encoder=pipeline[0])
    assert np.array_equal(load(tmp_path / "own.json").predict(frame), pipeline.predict(frame))
    command(tmp_path, "predict", "own.json", "d.csv", "-o", "p.csv")
    assert np.allclose(pd.read_csv(tmp_path / "p.csv")["prediction"], pipeline.predict(frame), rtol=1e-12)


def test_a_standardised_model_of_the_command_takes_raw_frames(tmp_path: Path) -> None:
    frame, y = table(gaps=True)
    frame.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    command(tmp_path, "fit", "d.csv", "--target", "y", "--missing", "mean", "-o", "m.json")
    loaded = load(tmp_path / "m.json")
    pipeline = make_pipeline(TableEncoder(missing="mean"), StandardScaler(), RVR()).fit(frame, y)
    assert np.allclose(loaded.predict(frame), pipeline.predict(frame), rtol=1e-5)
    command(tmp_path, "predict", "m.json", "d.csv", "-o", "p.csv")
    predicted = pd.read_csv(tmp_path / "p.csv")["prediction"].to_numpy()
    assert np.allclose(loaded.predict(frame), predicted, rtol=1e-13)
    # Columns in another order and beside others, of polars, and an array with the same columns.
    other = frame.assign(more="x")[["zone", "more", "garden", "age", "paid"]]
    for rows in (other, of_polars(other), frame.to_numpy(dtype=object)):
        assert np.array_equal(loaded.predict(rows), loaded.predict(frame))
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(pickle.loads(pickle.dumps(loaded)).predict(other), loaded.predict(frame))
    with pytest.raises(ValueError, match="X has no column garden"):
        loaded.predict(frame.drop(columns="garden"))
    with pytest.raises(
        ValueError, match=r"row 0, column 'zone': 'east' is none of the categories that the model knows: north"
    ):
        loaded.predict(frame.assign(zone="east"))


def test_more_rows_of_a_model_with_categories_are_added_by_the_command(tmp_path: Path) -> None:
    frame, y = table()
    frame.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    command(tmp_path, "fit", "d.csv", "--target", "y", "--dictionary", "20", "--keep-statistics", "-o", "m.json")
    loaded = load(tmp_path / "m.json").set_params(keep_statistics=True)
    with pytest.raises(ValueError, match="relvec fit --add-to"):
        loaded.partial_fit(frame, y)


def test_a_model_of_complete_rows_refuses_missing_cells(tmp_path: Path) -> None:
    frame, y = table(gaps=True)
    frame.assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    command(tmp_path, "fit", "d.csv", "--target", "y", "--missing", "drop", "-o", "m.json")
    with pytest.raises(
        ValueError, match=r"row 5, column 'age' is missing or NaN \(6 of 120 cells\): .* leave such rows out"
    ):
        load(tmp_path / "m.json").predict(frame)
    assert len(load(tmp_path / "m.json").predict(frame.dropna())) == len(frame.dropna())


def test_classes_of_raw_frames(tmp_path: Path) -> None:
    frame, y = table(gaps=True)
    frame["kind"] = np.where(y > np.median(y), "dear", "cheap")
    frame.to_csv(tmp_path / "d.csv", index=False)
    command(tmp_path, "fit", "d.csv", "--target", "kind", "--missing", "indicator", "-o", "m.json")
    loaded = load(tmp_path / "m.json")
    assert isinstance(loaded, RVC)
    assert loaded.score(frame, frame["kind"]) > 0.9
    assert loaded.predict_proba(frame).shape == (ROWS, 2)


def test_frames_of_pandas_and_polars_are_read_alike() -> None:
    frame, _ = table(gaps=True)
    expected = TableEncoder(missing="indicator").fit(frame)
    kinds = {
        "categorical": frame.astype({"zone": "category"}),
        "string": frame.astype({"zone": "string", "paid": "boolean", "age": "Float64"}),
        "polars": of_polars(frame),
        "polars categorical": of_polars(frame).with_columns(pl.col("zone").cast(pl.Categorical)),
        "polars enum": of_polars(frame).with_columns(pl.col("zone").cast(pl.Enum(["west", "south", "north"]))),
    }
    for name, own in kinds.items():
        encoder = TableEncoder(missing="indicator").fit(own)
        assert encoder.encoding_ == expected.encoding_, name
        assert np.array_equal(encoder.transform(own), expected.transform(frame)), name


def test_missing_cells_of_every_kind() -> None:
    cells = ["a", None, np.nan, pd.NA, pd.NaT, "", " NA", "n/a", "null", "?", "b"]
    frame = pd.DataFrame({"k": np.array(cells, dtype=object), "v": [1.0, *[np.nan] * 9, 3.0]})
    with pytest.raises(ValueError, match=r"row 1, column 'k' is missing or NaN \(9 of 11 cells\): missing='mean'"):
        TableEncoder().fit(frame)
    encoder = TableEncoder(missing="indicator").fit(frame)
    assert encoder.get_feature_names_out().tolist() == ["k=b", "k is missing", "v", "v is missing"]
    assert encoder.transform(frame)[1].tolist() == [0.5, 1.0, 2.0, 1.0]
    with pytest.raises(ValueError, match="column 'k' has no value in any row"):
        TableEncoder(missing="mean").fit(frame.iloc[1:10])
    weighted = TableEncoder(missing="mean").fit(frame, sample_weight=np.r_[3.0, np.ones(10)])
    assert weighted.transform(frame)[1].tolist() == [0.25, 1.5]


def test_unknown_categories_say_nothing_if_they_may() -> None:
    frame, _ = table()
    strange = frame.assign(zone="east")
    with pytest.raises(ValueError, match="unknown='ignore'"):
        TableEncoder().fit(frame).transform(strange)
    encoder = TableEncoder(unknown="ignore").fit(frame)
    shares = [np.mean(frame["zone"] == zone) for zone in ("north", "south", "west")]
    assert np.allclose(encoder.transform(strange)[0, 3:], shares)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([datetime.date(2024, 3, 1)] * 30, "row 0, column 'c': 2024-03-01 is a date or a time"),
        (pd.date_range("2024-03-01", periods=30), "is a date or a time"),
        ([f"n{i}" for i in range(30)], r"column 'c' holds 30 different texts \(n0, n1, n10, ...\) in 30 rows"),
        ([1, 2, "x"] * 10, r"row 2, column 'c': .*'x' is not a number.*categories=\['c'\]"),
        (["x", 1, 2] * 10, r"row 1, column 'c': 1 is a number, and 'x' \(row 0\) is not"),
        ([1.0, np.inf, 2.0] * 10, "row 1, column 'c' is inf"),
        (["y" * 2000, "z"] * 15, "2000 characters is no category"),
    ],
)
def test_columns_that_are_no_features_are_refused(column: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(pd.DataFrame({"c": column}))


def test_named_columns_hold_categories_whatever_their_cells() -> None:
    frame = pd.DataFrame({"zip": [1, 2, 3] * 10, "code": ["x", 1, 2.5] * 10, "name": [f"n{i}" for i in range(30)]})
    encoder = TableEncoder(categories=["zip", "code", "name"]).fit(frame)
    columns = encoder.encoding_["columns"]
    assert columns[0]["categories"] == ["1", "2", "3"]
    assert columns[1]["categories"] == ["1", "2.5", "x"]
    assert len(columns[2]["categories"]) == 30
    assert encoder.transform(frame).shape == (30, 36)
    with pytest.raises(ValueError, match="there is no column 'zap'"):
        TableEncoder(categories=["zap"]).fit(frame)


def test_parameters_are_checked() -> None:
    frame, _ = table()
    for parameters in ({"missing": "median"}, {"missing": "drop"}, {"unknown": "warn"}):
        with pytest.raises(ValueError, match="expected one of"):
            TableEncoder(**parameters).fit(frame)
    model = rvr(gamma=0.1).fit(np.arange(10.0)[:, np.newaxis], np.arange(10.0))
    with pytest.raises(ValueError, match="the encoder makes 6 features, and the model was fitted to 1"):
        model.save("never.json", encoder=TableEncoder().fit(frame))


@parametrize_with_checks([TableEncoder(), TableEncoder(missing="mean"), TableEncoder(missing="indicator")])
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_encoder_is_a_transformer_of_scikit_learn() -> None:
    frame, y = table(gaps=True)
    encoder = clone(TableEncoder(missing="mean", categories=["zone"]))
    assert encoder.get_params() == {"missing": "mean", "unknown": "error", "categories": ["zone"]}
    framed = encoder.set_output(transform="pandas").fit_transform(frame)
    assert framed.columns[0] == "age" and framed.shape == (ROWS, 6)
    assert np.mean(cross_val_score(make_pipeline(TableEncoder(missing="mean"), rvr(gamma=1e-3)), frame, y)) > 0.5
    restored = pickle.loads(pickle.dumps(encoder))
    assert restored.encoding_ == encoder.encoding_
