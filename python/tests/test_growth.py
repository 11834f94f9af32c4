"""Models that grow: rows added to the sums that a model keeps."""

import copy
import pickle

import numpy as np
import pytest
from relvec import Statistics, load
from support import rvr, surface


def split(rows=900):
    X, y = surface(rows)
    return X, y, [slice(0, 300), slice(300, 500), slice(500, rows)]


def test_added_rows_are_rows():
    X, y, parts = split()
    model = rvr(gamma=0.5, dictionary=60, keep_statistics=True)
    for part in parts:
        assert model.partial_fit(X[part], y[part]) is model
    assert model._model.n_rows == 900 and model._model.kept_statistics == 60
    assert model.relevance_.max() < 300 and np.array_equal(X[model.relevance_], model.relevance_vectors_)
    sums = Statistics(gamma=0.5, centres=model.relevance_vectors_).update(X, y)
    once = sums.fit(sparsity=0.0)
    assert abs(model.log_evidence_ - once.log_evidence_) < 2.0
    assert np.allclose(model.predict(X), once.predict(X), atol=0.3 * model.noise_variance_**0.5)


def test_weights_noise_and_copies(tmp_path):
    X, y, _ = split(400)
    weights = np.arange(400) % 3 + 0.0
    noise = 0.02 + 0.01 * (np.arange(400) % 2)
    model = rvr(gamma=0.5, dictionary=40, keep_statistics=True)
    model.fit(X[:200], y[:200], weights[:200], noise_variance=noise[:200])
    path = tmp_path / "model.json"
    model.save(path)
    read = load(path).set_params(keep_statistics=True, sparsity=0.0)
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), read]
    model.partial_fit(X[200:], y[200:], weights[200:], noise_variance=noise[200:])
    for twin in twins:
        twin.partial_fit(X[200:], y[200:], weights[200:], noise_variance=noise[200:])
        assert np.array_equal(twin.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="noise variance"):
        model.partial_fit(X[200:], y[200:])


def test_growth_rejects_models_without_statistics():
    X, y, _ = split(200)
    assert not hasattr(rvr(), "partial_fit")
    with pytest.raises(ValueError, match="keep_statistics"):
        rvr(keep_statistics=True).fit(X, y)
    model = rvr(dictionary=30).fit(X, y).set_params(keep_statistics=True)
    with pytest.raises(ValueError, match="keeps none"):
        model.partial_fit(X, y)
    model = rvr(dictionary=30, keep_statistics=True).fit(X, y)
    with pytest.raises(ValueError, match="expecting 2 features"):
        model.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match="that of the model is rbf"):
        model.set_params(kernel="matern52").partial_fit(X, y)
    for setting in [{"centres": "learned"}, {"likelihood": "student_t"}]:
        with pytest.raises(ValueError, match="keep_statistics"):
            rvr(dictionary=30, keep_statistics=True, **setting).fit(X, y)
    with pytest.raises(ValueError, match="keep_statistics"):
        rvr(dictionary=30, keep_statistics=True).fit(X, np.column_stack([y, y]))
