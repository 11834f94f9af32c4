"""Which candidates a fit has: given landmarks, more than there are rows, and the limit of time."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from relvec import RVC, RVR, load
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from support import papers, put, rvr, surface

X, T = surface(600)
Z = X[::20]


@pytest.mark.parametrize("cls", [RVR, RVC])
class TestGivenLandmarks:
    """The parameter `landmarks` as an array."""

    def target(self, cls):
        return T if cls is RVR else (np.median(T) < T).astype(int)

    def test_they_are_the_candidates(self, cls):
        y = self.target(cls)
        rows = papers(cls, gamma=2.0, landmarks=Z + 0.01).fit(X, y)
        assert rows.report_["candidates"] == len(Z)
        assert 0 < len(rows.relevance_) <= len(Z)
        assert_array_equal(rows.relevance_vectors_, (Z + 0.01)[rows.relevance_])
        assert rows.score(X, y) > 0.9
        frames = papers(cls, gamma=2.0, landmarks=pd.DataFrame(Z + 0.01)).fit(X, y)
        lists = papers(cls, gamma=2.0, landmarks=(Z + 0.01).tolist(), dictionary="all").fit(X, y)
        assert frames._model.to_json() == lists._model.to_json() == rows._model.to_json()

    def test_all_rows_are_a_fit_to_all_rows(self, cls):
        y = self.target(cls)[:150]
        given, plain = (papers(cls, gamma=2.0, landmarks=own).fit(X[:150], y) for own in (X[:150], "kmedoids"))
        assert_allclose(given.log_evidence_, plain.log_evidence_, atol=1.0)
        assert_allclose(given.predict(X), plain.predict(X), atol=0.05 if cls is RVR else 1)

    def test_equal_ones_count_once(self, cls):
        y = self.target(cls)
        twice = np.vstack([Z, Z])
        model = papers(cls, gamma=2.0, landmarks=twice).fit(X, y)
        assert model.report_["candidates"] == len(Z)
        assert np.all(model.relevance_ < len(Z))

    def test_all_far_away_is_told(self, cls):
        y = self.target(cls)
        with pytest.warns(UserWarning, match="30 of 30 candidates are zero .* landmarks with no row near them"):
            model = papers(cls, gamma=2.0, landmarks=Z + 1e3).fit(X, y)
        assert len(model.relevance_) == 0

    def test_a_callable_kernel_takes_them(self, cls):
        def rbf(a, b):
            return np.exp(-2.0 * ((a[:, None] - b[None]) ** 2).sum(-1))

        y = self.target(cls)
        model = papers(cls, rbf, landmarks=np.vstack([Z, Z])).fit(X, y)
        assert model.report_["candidates"] == len(Z)
        assert_array_equal(model.relevance_vectors_, Z[model.relevance_])
        plain = papers(cls, gamma=2.0, landmarks=Z).fit(X, y)
        assert_allclose(model.log_evidence_, plain.log_evidence_, atol=1e-3)

    def test_they_are_a_parameter_like_any(self, cls, tmp_path):
        y = self.target(cls)
        model = papers(cls, gamma=2.0, landmarks=Z)
        assert model.get_params()["landmarks"] is Z
        assert_array_equal(clone(model).landmarks, Z)
        assert "landmarks=array" in repr(model)
        fitted = papers(cls, gamma=2.0).set_params(landmarks=Z).fit(X, y)
        again = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(again.landmarks, Z)
        fitted.save(tmp_path / "model.json")
        for other in (again, load(tmp_path / "model.json")):
            assert_array_equal(other.predict(X), fitted.predict(X))

    @pytest.mark.parametrize(
        ("error", "match", "own"),
        [
            (ValueError, "landmarks has 1 features, but X has 2", {"landmarks": Z[:, :1]}),
            (ValueError, r"landmarks: Found array with 0 sample\(s\)", {"landmarks": Z[:0]}),
            (ValueError, r"landmarks\[3, 1\] = nan", {"landmarks": put(Z, (3, 1), np.nan)}),
            (ValueError, "landmarks: Expected 2D array, got 1D", {"landmarks": [1.0, 2.0]}),
            (ValueError, "landmarks: could not convert string", {"landmarks": [["a", "b"]]}),
            (TypeError, "The 'landmarks' parameter .* Got <Compressed Sparse Row", {"landmarks": sparse.csr_matrix(Z)}),
            (
                ValueError,
                "The 'landmarks' parameter .* among {'kmedoids', 'uniform'} or an array-like. Got None",
                {"landmarks": None},
            ),
            (ValueError, "The 'landmarks' parameter .* Got 3", {"landmarks": 3}),
            (ValueError, "cannot be combined with kernel='precomputed'", {"kernel": "precomputed", "landmarks": Z}),
            (ValueError, "cannot be combined with basis='given'", {"basis": "given", "landmarks": Z}),
            (ValueError, "dictionary = 5: expected 'auto', since the landmarks", {"dictionary": 5, "landmarks": Z}),
        ],
        ids=lambda value: str(value)[:40],
    )
    def test_bad_ones(self, cls, error, match, own):
        rows = X @ X.T if own.get("kernel") == "precomputed" else X
        with pytest.raises(error, match=match):
            papers(cls, **own).fit(rows, self.target(cls))


def linear(a, b):
    return a @ b.T + 1.0


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", linear])
@pytest.mark.parametrize("cls", [RVR, RVC])
def test_a_dictionary_larger_than_the_table(cls, kernel):
    rows = np.repeat(X[:40], 2, axis=0)
    y = np.repeat(T[:40] if cls is RVR else np.arange(40) % 2, 2)
    table = linear(rows, rows) if kernel == "precomputed" else rows
    text = f"{cls.__name__}: dictionary=41, but there are only 40 different rows: all of them are candidates"
    with pytest.warns(UserWarning, match=text) as caught:
        warned = papers(cls, kernel, dictionary=41).fit(table, y)
    assert caught[0].filename == __file__
    for size in (40, "all", "auto"):
        quiet = papers(cls, kernel, dictionary=size).fit(table, y)  # A warning would be an error here.
        assert_array_equal(quiet.predict(table), warned.predict(table))


def test_time_limit_ends_within_an_iteration():
    """The first iteration over so many candidates is longer than the limit."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2.0, 2.0, (6000, 6))
    t = np.sin(2.0 * rows[:, 0]) + rows[:, 1] + 0.2 * rng.standard_normal(6000)
    with pytest.warns(ConvergenceWarning, match=r"time_limit=1\.0"):
        model = rvr(gamma=0.5, dictionary="all", time_limit=1.0).fit(rows, t)
    assert model.report_["status"] == "time_limit"
    # Some two seconds; a machine that is busy with other things gets more.
    assert model.report_["seconds"] < 10.0
    assert np.isfinite(model.log_evidence_)
    assert model.score(rows, t) > 0.3


def test_time_limit_leaves_rows_out_where_there_is_no_time_for_all_of_them():
    rng = np.random.default_rng(0)
    rows = rng.uniform(-2.0, 2.0, (9000, 3))
    t = np.sin(2.0 * rows[:, 0]) + 0.2 * rng.standard_normal(9000)
    # Of a sample that has fewer rows than the dictionary was to have that alone is said.
    with pytest.warns(ConvergenceWarning, match="are not enough for all rows: 7000 of them were left out") as caught:
        model = rvr(gamma=0.5, dictionary=3000, time_limit=1e-9).fit(rows, t)
    assert [w.filename for w in caught] == [__file__]
    assert model.report_["adjustments"]["left_out_rows"] == 7000
    assert model.report_["status"] == "time_limit"
    assert_array_equal(model.relevance_vectors_, rows[model.relevance_])
    assert model.score(rows, t) > 0.8
