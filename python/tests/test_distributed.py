"""Fits to rows in parts: the same models, however the rows are parted."""

import json
import pickle
import random

import numpy as np
import pandas as pd
import pytest
import relvec
from relvec import RVC, RVR, Survey, _core, landmarks
from relvec.distributed import Arrays, fit
from sklearn.base import clone


def table(n=3000):
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(n)


class Shuffled(Arrays):
    """Merges answers in random order, twice each, as an engine may."""

    passes = 0

    def map_reduce(self, query):
        self.passes += 1
        targets = np.ascontiguousarray(self._y, dtype=np.float64) if self._targets is None else self._targets
        answers = []
        for part, own in enumerate(self._parts):
            one, again = (_core.answer(query, part, self._x[own], targets[own]) for _ in range(2))
            assert one == again
            answers.append(one)
        while len(answers) > 1:
            random.Random(len(answers) + self.passes).shuffle(answers)
            answers.append(_core.merge(answers.pop(), answers.pop()))
        return answers[0]


def test_regression_does_not_depend_on_parts(tmp_path):
    X, y = table()
    own = RVR(dictionary=50)
    source = Shuffled(X, y, parts=5)
    model = fit(own, source, sample=800)
    assert model is own and source.passes <= 4
    assert np.array_equal(X[model.relevance_], model.relevance_vectors_)
    again = fit(RVR(dictionary=50), Arrays(X, y, parts=5), sample=800)
    assert np.array_equal(model.dual_coef_, again.dual_coef_) and model.log_evidence_ == again.log_evidence_
    other = fit(RVR(dictionary=50), Arrays(X, y, parts=17), sample=800)
    assert other.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-9)
    mean, std = model.predict(X, return_std=True)
    assert np.mean((mean - y) ** 2) < 0.05 and np.all(std > 0.15)
    model.save(tmp_path / "m.json")
    assert np.array_equal(relvec.load(tmp_path / "m.json").predict(X), mean)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), mean)


def test_classes_of_any_labels_some_missing_in_a_part():
    X, y = table()
    order = np.argsort(y)
    X, labels = X[order], np.array(["low", "middle", "top"])[np.digitize(y[order], [0.0, 1.2])]
    model = fit(RVC(dictionary=80), Arrays(X, labels, parts=7), sample=1500)
    assert list(model.classes_) == ["low", "middle", "top"]
    assert np.mean(model.predict(X) == labels) > 0.8
    assert np.allclose(model.class_prior_, [np.mean(labels == own) for own in model.classes_])
    assert np.allclose(model.predict_proba(X[:9]).sum(axis=1), 1.0)


def test_precisions_come_from_two_passes():
    X, y = table()
    source = Shuffled(X, y, parts=5)
    model = fit(RVR(weight_prior="ard", dictionary=40), source, sample=800)
    assert source.passes == 2 and len(model.alpha_) == len(model.relevance_) <= 40
    assert np.array_equal(X[model.relevance_], model.relevance_vectors_)
    assert np.mean((model.predict(X) - y) ** 2) < 0.05


@pytest.mark.parametrize("edges", [[0.5], [0.0, 1.2]])
def test_sparse_classes_take_few_passes(edges):
    X, y = table()
    labels = np.digitize(y, edges)
    source = Shuffled(X, labels, parts=5)
    own = {"gamma": 1.0, "weight_prior": "ard", "landmarks": X[:40], "multi_class": "one_vs_rest"}
    model = fit(RVC(**own), source, sample=800, standardize=True)
    assert source.passes <= 60 and set(model.relevance_) <= set(range(40))
    again = fit(RVC(**own), Arrays(X, labels, parts=5), sample=800, standardize=True)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    scale = (X - X.mean(axis=0)) / X.std(axis=0)
    memory = RVC(**{**own, "landmarks": scale[:40]}).fit(scale, labels)

    def loss(p):
        return -np.mean(np.log(p[np.arange(len(X)), labels]))

    assert abs(loss(model.predict_proba(X)) - loss(memory.predict_proba(scale))) < 0.005


def test_few_rows_are_fitted_in_memory():
    X, y = table(300)
    for own in [RVR(), RVR(likelihood="student_t"), RVR(weight_prior="ard", folds=3)]:
        expected = type(own)(**own.get_params()).fit(X, y)
        found = fit(own, Arrays(X, y, parts=4))
        assert np.array_equal(found.dual_coef_, expected.dual_coef_)
        assert np.array_equal(found.relevance_, expected.relevance_)


def test_weights_outputs_names_and_standardised_features():
    X, y = table()
    frame = pd.DataFrame({"a": X[:, 0], "b": 1e3 * X[:, 1] + 5e4})
    targets = pd.DataFrame({"u": y, "v": 2 * y - 3})
    weights = np.arange(3000) % 3
    model = fit(RVR(dictionary=40), Arrays(frame, targets, weights, parts=3), sample=900, standardize=True)
    assert list(model.feature_names_in_) == ["a", "b"] and model.n_outputs_ == 2
    predicted = model.predict(frame)
    assert np.mean((predicted[:, 1] - targets["v"]) ** 2) < 0.3
    assert np.allclose(predicted[:, 1], 2 * predicted[:, 0] - 3, atol=1e-6)
    given = fit(RVR(landmarks=frame[:50].to_numpy()), Arrays(frame, y, parts=2), sample=900, standardize=True)
    assert set(given.relevance_) <= set(range(50))


def test_callback_and_errors_of_the_rows_arrive():
    X, y = table()
    seen = []
    fit(RVR(dictionary=20, callback=lambda progress: seen.append(progress["iteration"])), Arrays(X, y), sample=500)
    assert seen

    class Broken(Arrays):
        def map_reduce(self, query):
            raise LookupError("the engine is gone")

    with pytest.raises(LookupError, match="the engine is gone"):
        fit(RVR(), Broken(X, y), sample=500)

    class Wrong(Arrays):
        def map_reduce(self, query):
            return b"something"

    with pytest.raises(ValueError, match="not a valid relvec answer"):
        fit(RVR(), Wrong(X, y), sample=500)


@pytest.mark.parametrize(
    ("own", "fragment"),
    [
        (RVR(weight_prior="ard", centres="learned"), "centres = learned"),
        (RVC(weight_prior="ard", multi_class="joint"), "multi_class = joint"),
        (RVC(weight_prior="ard", posterior="averaged"), "posterior = averaged"),
        (RVR(likelihood="poisson", posterior="averaged"), "posterior = averaged"),
        (RVR(folds=3), "folds = 3"),
        (RVR(kernel="precomputed"), "kernel = 'precomputed' cannot be distributed"),
        (RVR(basis="given"), "basis = 'given' cannot be distributed"),
        (RVC(class_weight="balanced"), "class_weight cannot be distributed"),
        (RVC(multi_class="one_vs_rest"), "multi_class = one_vs_rest"),
    ],
)
def test_parameters_that_need_the_rows_are_refused(own, fragment):
    X, y = table()
    labels = np.digitize(y, [0.0, 1.2])
    source = Arrays(X, labels if isinstance(own, RVC) else np.abs(y).round(), parts=2)
    with pytest.raises(ValueError, match=fragment):
        fit(own, source, sample=500)


def test_counts_outliers_and_known_noise_in_parts():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2.0, 2.0, (3000, 2))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1]
    exposure = rng.uniform(0.5, 3.0, 3000)
    counts = rng.poisson(exposure * np.exp(f))
    noise = rng.uniform(0.01, 0.5, 3000)
    noisy = f + np.sqrt(noise) * rng.standard_normal(3000)
    wrong = f + 0.1 * rng.standard_normal(3000) + 10.0 * (rng.random(3000) < 0.05)
    # Kernels that are learned from 1,000 rows differ, and so would the counts that they expect.
    for own, y, given in [
        (RVR(likelihood="poisson", gamma=0.3), counts, {"exposure": exposure}),
        (RVR(likelihood="student_t"), wrong, {}),
        (RVR(), noisy, {"noise_variance": noise}),
    ]:
        whole = clone(own).fit(X, y, **given)
        parts = fit(own, Arrays(X, y, parts=3, **given), sample=2000)
        found, expected = parts.predict(X[:200]), whole.predict(X[:200])
        assert np.sqrt(np.mean((found - expected) ** 2)) < 0.05 * np.std(expected), own
    with pytest.raises(ValueError, match="give one of them"):
        Arrays(X, counts, exposure=exposure, noise_variance=noise)


def test_bad_cells_are_named_by_part_and_row():
    X, y = table()
    bad = X.copy()
    bad[1003, 1] = np.nan
    with pytest.raises(ValueError, match=r"^partition 1: X\[3, 1\] = nan: every value must be a finite number$"):
        fit(RVR(), Arrays(bad, y, parts=3), sample=500)
    with pytest.raises(TypeError, match="expected RVR or RVC"):
        fit(relvec.SVR(), Arrays(X, y))


def test_no_rows_answer_and_bytes_are_checked():
    X, y = table(50)
    queries = []

    class Kept(Arrays):
        def map_reduce(self, query):
            queries.append(query)
            return super().map_reduce(query)

    fit(RVR(dictionary=5, gamma=1.0), Kept(X, y), sample=20)
    for query in queries:
        empty = _core.answer(query, 1, np.empty((0, 2)), np.empty(0))
        whole = _core.answer(query, 0, X, y)
        assert _core.merge(whole, empty) == _core.merge(empty, whole)
        assert _core.answer(query, 1, np.empty((0, 2))) == empty
        with pytest.raises(ValueError, match="partition 0 is counted twice"):
            _core.merge(whole, whole)
        with pytest.raises(ValueError, match="cut short or damaged"):
            _core.merge(whole, empty[:-1])
        with pytest.raises(ValueError, match="cut short or damaged"):
            _core.answer(query[:-1], 0, X, y)


def test_a_survey_is_the_same_however_rows_are_parted():
    X, _ = table(2000)
    whole = Survey(100, random_state=3).update(X)
    parts = [Survey(100, random_state=3).update(X[i::7]) for i in range(7)]
    merged = sum(reversed(parts[1:]), parts[0])
    assert np.array_equal(merged.sample, whole.sample) and merged.n_rows == 2000
    assert np.allclose(merged.mean_, X.mean(axis=0)) and np.allclose(merged.scale_, X.std(axis=0))
    assert {tuple(row) for row in merged.sample} <= {tuple(row) for row in X}
    assert pickle.loads(pickle.dumps(whole)) == whole == Survey.from_bytes(whole.to_bytes())
    assert repr(whole) == "Survey(2000 rows of 2 features, 100 sampled)"
    with pytest.raises(ValueError, match=r"X\[1, 0\] = nan"):
        whole.update([[1.0, 2.0], [np.nan, 3.0]])
    with pytest.raises(ValueError, match="seeds"):
        whole.merge(Survey(100, random_state=4))
    with pytest.raises(ValueError, match="damaged"):
        Survey.from_bytes(whole.to_bytes()[:-9])
    weighted = Survey().update(X, np.arange(2000) % 2)
    assert len(weighted.sample) == 1000 and weighted.weight == 1000.0


def test_landmarks_are_rows_and_cover_them():
    X = np.repeat(np.arange(10.0) * 100, 50)[:, np.newaxis] + np.tile(np.arange(50) * 0.01, 10)[:, np.newaxis]
    chosen = landmarks(X, 30)
    assert chosen.shape == (30, 1) and {v[0] for v in chosen} <= {v[0] for v in X}
    assert {int(v[0] // 100) for v in chosen} == set(range(10))
    assert np.array_equal(landmarks(X, 30, random_state=0), chosen)
    wide = np.hstack([X, X])
    assert landmarks(wide, 5, kernel="laplacian", gamma=[1.0, 1e-9]).shape == (5, 2)
    with pytest.raises(ValueError, match="n = 0"):
        landmarks(X, 0)
    with pytest.raises(ValueError, match="kernel = 'none'"):
        landmarks(X, 3, kernel="none")


def test_the_file_of_a_model_says_nothing_of_parts(tmp_path):
    X, y = table()
    fit(RVR(dictionary=10), Arrays(X, y, parts=3), sample=500).save(tmp_path / "m.json")
    text = json.loads((tmp_path / "m.json").read_text())
    assert "parts" not in text and text["model"]["n_rows"] == 3000
