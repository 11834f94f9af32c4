"""Pipelines of scikit-learn with estimators of this package become one ONNX graph."""

import builtins

import numpy as np
import pytest
import relvec.onnx
from exported import CLASS_ROWS, M_NEW, NEW, C, K, M, S, T, Y, off
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR
from skl2onnx import to_onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingRegressor
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import rvc, rvr
from test_onnx import session

relvec.onnx.register()
NAMES = np.array(["north", "east", "south", "west"])


def run(proto, rows):
    own = session(proto.SerializeToString())
    return own.run(None, {"X": rows})


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pipelines_of_regression(dtype):
    limit = 1e-11 if dtype == np.float64 else 2e-6
    rows = NEW.astype(dtype)
    for model in (RVR(), rvr(gamma=0.6), SVR(gamma=0.6), NuSVR(gamma=0.6)):
        pipeline = make_pipeline(StandardScaler(), model).fit(S, T)
        (mean,) = run(to_onnx(pipeline, rows[:1]), rows)
        assert mean.dtype == dtype
        assert off(mean, pipeline.predict(rows)[:, np.newaxis]) < limit
    pipeline = make_pipeline(StandardScaler(), rvr(gamma=0.6)).fit(S, np.column_stack([T, 3.0 * T - S[:, 0]]))
    mean, std = run(to_onnx(pipeline, rows[:1], options={RVR: {"return_std": True}}), rows)
    wanted = pipeline.predict(rows, return_std=True)
    assert off(mean, wanted[0]) < limit
    assert off(std, wanted[1]) < limit


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "model", [RVC(), rvc(gamma=0.5, multi_class="one_vs_one"), SVC(probability=True), NuSVC(probability=True)]
)
def test_pipelines_of_classes(model, dtype):
    limit = 1e-9 if dtype == np.float64 else 2e-6
    for X, y, given in [(M, NAMES[K], M_NEW), (C, Y, CLASS_ROWS)]:
        rows = given.astype(dtype)
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
        label, probabilities = run(to_onnx(pipeline, rows[:1], options={"zipmap": False}), rows)
        assert label.tolist() == pipeline.predict(rows).tolist()
        assert off(probabilities, pipeline.predict_proba(rows)) < limit
    # Dictionaries of probabilities, the default of skl2onnx, are of single precision.
    rows = CLASS_ROWS.astype(np.float32)
    _, maps = run(to_onnx(pipeline, rows[:1]), rows)
    assert off(np.array([[one[0], one[1]] for one in maps]), pipeline.predict_proba(rows)) < 2e-6


@pytest.mark.parametrize(
    "model",
    [
        RVC(),
        SVC(),
        SVC(decision_function_shape="ovo"),
        SVC(multi_class="one_vs_rest"),
    ],
)
def test_raw_scores_are_those_of_decision_function(model):
    for X, y, rows in [(M, K, M_NEW), (C, Y, CLASS_ROWS)]:
        model.fit(X, y)
        if getattr(model, "decision_function_shape", "") == "ovo" and y is K:
            # skl2onnx wants a score for each class.
            continue
        options = {"zipmap": False, "raw_scores": True}
        _, scores = run(to_onnx(model, rows[:1], options={id(model): options}), rows)
        wanted = model.decision_function(rows)
        wanted = np.column_stack([-wanted, wanted]) if y is Y else wanted
        assert off(scores, wanted) < 1e-10


def test_models_in_other_models():
    for model in (RVC(), SVC()):
        for X, y, rows in [(C, Y, CLASS_ROWS), (M, K, M_NEW)]:
            calibrated = CalibratedClassifierCV(model, cv=2).fit(X, y)
            proto = to_onnx(calibrated, rows[:1], options={"zipmap": False})
            label, probabilities = run(proto, rows)
            assert off(probabilities, calibrated.predict_proba(rows)) < 1e-6
            assert (label == calibrated.predict(rows)).mean() == 1.0
    bag = BaggingRegressor(rvr(gamma=0.6), 3, random_state=0).fit(S, T)
    assert off(run(to_onnx(bag, NEW[:1]), NEW)[0][:, 0], bag.predict(NEW)) < 1e-6
    several = OneVsRestClassifier(rvc(gamma=0.5)).fit(M, K)
    label, _ = run(to_onnx(several, M_NEW[:1], options={"zipmap": False}), M_NEW)
    assert label.tolist() == several.predict(M_NEW).tolist()


def test_estimators_without_a_graph_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="SVC without probabilities: fit with probability=True"):
        to_onnx(SVC().fit(C, Y), CLASS_ROWS[:1])
    with pytest.raises(ValueError, match="classes of type float64"):
        to_onnx(RVC().fit(C, 2.0 * Y), CLASS_ROWS[:1])
    real = builtins.__import__

    def without(name, *rest):
        if name == "skl2onnx":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match="pip install skl2onnx"):
        relvec.onnx.register()
