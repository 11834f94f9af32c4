"""Sparse rows: the same estimators as of dense rows, and tables in svmlight's format."""

import json
import pickle

import numpy as np
import pytest
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR, _sparse, load, read_svmlight
from scipy import sparse
from sklearn import svm
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder
from support import rvc, rvr

MACHINES = [SVC, NuSVC, SVR, NuSVR]
THEIRS = {SVC: svm.SVC, NuSVC: svm.NuSVC, SVR: svm.SVR, NuSVR: svm.NuSVR}


def table(n=80, features=40, share=0.15, seed=0):
    """Dense rows, most numbers of which are zero, with an empty row; classes and targets."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, features)) < share, rng.normal(size=(n, features)), 0.0)
    X[3] = 0.0
    t = np.tanh(X[:, :5].sum(axis=1)) + 0.1 * rng.normal(size=n)
    return X, np.digitize(t, [-0.3, 0.3]), t


def functions(model, X):
    return model.decision_function(X) if hasattr(model, "classes_") else model.predict(X)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "matern52", "rational_quadratic"])
def test_sparse_rows_give_the_machines_of_dense_rows(machine, kernel):
    X, classes, t = table()
    y = t if issubclass(machine, (SVR, NuSVR)) else classes
    own = machine(kernel=kernel, tol=1e-6)
    if machine is NuSVC:
        own.set_params(nu=0.2)
    dense, made = pickle.loads(pickle.dumps(own)).fit(X, y), own.fit(sparse.csr_matrix(X), y)
    assert sparse.issparse(made.support_vectors_) and sparse.issparse(made.dual_coef_)
    np.testing.assert_array_equal(made.support_vectors_.toarray(), X[made.support_])
    assert made.dual_coef_.shape == (dense.dual_coef_.shape[0], len(made.support_))
    if kernel != "linear":
        assert made.gamma_ == pytest.approx(dense.gamma_, rel=1e-13)
    np.testing.assert_allclose(functions(made, X), functions(dense, X), atol=1e-4)
    for model in (made, dense):
        np.testing.assert_allclose(functions(model, sparse.csr_matrix(X)), functions(model, X), atol=1e-11)
    if kernel == "linear":
        assert sparse.issparse(made.coef_)
        np.testing.assert_allclose(made.coef_.toarray(), dense.coef_, atol=1e-4)
        with pytest.raises(ValueError, match="read-only"):
            made.coef_.data[0] = 1.0


@pytest.mark.parametrize("machine", MACHINES)
def test_agrees_with_scikit_learn_on_sparse_rows(machine):
    X, classes, t = table(seed=1)
    y = t if issubclass(machine, (SVR, NuSVR)) else classes
    settings = {"nu": 0.2} if machine is NuSVC else {}
    own = machine(tol=1e-6, **settings).fit(sparse.csr_matrix(X), y)
    theirs = THEIRS[machine](tol=1e-6, **settings).fit(sparse.csr_matrix(X), y)
    assert own.gamma_ == pytest.approx(theirs._gamma, rel=1e-12)
    np.testing.assert_allclose(functions(own, X), functions(theirs, sparse.csr_matrix(X)), atol=1e-4)


@pytest.mark.parametrize(
    "kind", ["csc", "coo", "lil", "dok", "array", "float32", "int64", "unsorted", "twice", "zeros"]
)
def test_any_sparse_matrix_is_read_and_left_as_it_is(kind):
    X, y, _ = table(seed=2)
    X = X.astype(np.float32).astype(np.float64)
    expected = SVC().fit(sparse.csr_matrix(X), y).decision_function(X)
    plain = sparse.csr_matrix(X)
    if kind in ("csc", "coo", "lil", "dok"):
        given = plain.asformat(kind)
    elif kind == "array":
        given = sparse.csr_array(X)
    elif kind == "float32":
        given = plain.astype(np.float32)
    elif kind == "int64":
        given = plain.copy()
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    elif kind == "unsorted":
        order = np.concatenate(
            [np.arange(b - 1, a - 1, -1) for a, b in zip(plain.indptr, plain.indptr[1:], strict=False)]
        )
        given = sparse.csr_matrix((plain.data[order], plain.indices[order], plain.indptr), shape=X.shape)
        assert not given.has_sorted_indices
    elif kind == "twice":
        half = np.repeat(plain.data / 2, 2)
        given = sparse.csr_matrix((half, np.repeat(plain.indices, 2), 2 * plain.indptr), shape=X.shape)
    else:
        filled = np.argwhere(np.ones_like(X))
        given = sparse.csr_matrix((X.ravel(), filled[:, 1], np.arange(len(X) + 1) * X.shape[1]), shape=X.shape)
    before = given.copy().tocsr()
    size = given.nnz
    model = SVC().fit(given, y)
    assert given.nnz == size and (given.tocsr() != before).nnz == 0
    assert model.dual_coef_.dtype == np.float64
    np.testing.assert_array_equal(model.decision_function(given), expected)
    assert np.all(model.support_vectors_.data != 0)


@pytest.mark.parametrize("machine", [*MACHINES, RVR, RVC])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(machine, value):
    X, classes, t = table()
    y = t if machine in (SVR, NuSVR, RVR) else classes
    X = sparse.lil_matrix(X)
    X[5, 7] = value
    with pytest.raises(ValueError, match=rf"row 5, column 7 is ({value}|NaN)[;:] every value must be a finite number"):
        machine().fit(sparse.csr_matrix(X), y)
    model = SVC().fit(sparse.csr_matrix(table()[0]), classes)
    with pytest.raises(ValueError, match=r"rows to predict: row 5, column 7 is"):
        model.predict(sparse.csr_matrix(X))


def test_sparse_rows_reject_kernels_and_settings_of_dense_rows():
    X, y, _ = table()
    made = sparse.csr_matrix(X)
    with pytest.raises(ValueError, match="kernel = linear_spline: expected another kernel for sparse rows"):
        SVC(kernel="linear_spline").fit(made, y)
    with pytest.raises(ValueError, match="kernel = a sum of kernels, or periodic: expected another kernel for sparse"):
        SVC(kernel="rbf + linear").fit(made, y)
    for machine in (SVC, RVC):
        with pytest.raises(TypeError, match="Sparse precomputed kernels are not supported: pass an array"):
            machine(kernel="precomputed").fit(sparse.csr_matrix(X @ X.T), y)
    model = SVC().fit(made, y)
    with pytest.raises(ValueError, match="X has 39 features, but SVC is expecting 40"):
        model.predict(made[:, :39])


def test_kernel_functions_see_dense_rows():
    X, y, _ = table()
    model = SVC(kernel=lambda A, B: A @ B.T).fit(sparse.csr_matrix(X), y)
    expected = SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.decision_function(sparse.csr_matrix(X)), expected.decision_function(X), atol=2e-3)


def test_probabilities_and_decisions_of_sparse_rows():
    X, y, _ = table(n=150, seed=3)
    made = sparse.csr_matrix(X)
    model = SVC(probability=True, random_state=0).fit(made, y)
    np.testing.assert_allclose(model.predict_proba(made), model.predict_proba(X), atol=1e-11)
    np.testing.assert_array_equal(model.decide(made, reject=0.5).rejected, model.decide(X, reject=0.5).rejected)


def test_files_and_pickles_hold_sparse_vectors(tmp_path):
    rng = np.random.default_rng(4)
    X = sparse.random(200, 20_000, 0.002, format="csr", random_state=rng)
    y = rng.integers(0, 2, 200)
    model = SVC(C=10.0).fit(X, y)
    model.save(tmp_path / "m.json")
    assert (tmp_path / "m.json").stat().st_size < 30 * X.nnz
    assert list(json.loads((tmp_path / "m.json").read_text())["model"]["expansion"]["basis"]) == ["sparse"]
    for again in (load(tmp_path / "m.json"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
        assert (again.support_vectors_ != model.support_vectors_).nnz == 0
    text = model.to_libsvm()
    assert len(text) < 40 * X.nnz


def test_models_without_vectors_and_rows_without_entries():
    X = sparse.csr_matrix(np.eye(4))
    model = SVR(epsilon=10.0).fit(X, [0.0, 1.0, 2.0, 3.0])
    assert model.support_vectors_.shape == (0, 4) and model.dual_coef_.shape == (1, 0)
    assert len(set(model.predict(X))) == 1
    one = SVC().fit(sparse.csr_matrix([[0.0, 0.0], [0.0, 1.0]]), [0, 1])
    assert list(one.predict(sparse.csr_matrix((3, 2)))) == [0, 0, 0]


def test_sparse_rows_go_through_pipelines():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 30, (120, 3)).astype(str)
    y = (words[:, 0].astype(int) > 15).astype(int)
    model = make_pipeline(OneHotEncoder(), MaxAbsScaler(), SVC()).fit(words, y)
    assert model.score(words, y) > 0.9


@pytest.mark.parametrize(
    "own", [{}, {"weight_prior": "ard"}, {"weight_prior": "ard", "variance": "healed"}, {"kernel": "linear"}]
)
@pytest.mark.parametrize("machine", [RVR, RVC])
def test_relevance_vector_machines_keep_sparse_vectors(machine, own, tmp_path):
    if machine is RVC:
        own = {name: value for name, value in own.items() if name != "variance"}
    X, classes, t = table(n=120, seed=6)
    y = t if machine is RVR else classes
    rows = sparse.csr_matrix(X)
    dense, made = machine(**own).fit(X, y), machine(**own).fit(sparse.csc_matrix(X), y)
    assert dense.relevance_.tolist() == made.relevance_.tolist() != []
    assert sparse.issparse(made.relevance_vectors_) and not sparse.issparse(dense.relevance_vectors_)
    np.testing.assert_array_equal(made.relevance_vectors_.toarray(), dense.relevance_vectors_)
    made.save(tmp_path / "m.json")
    dense.save(tmp_path / "d.json")
    assert (tmp_path / "m.json").stat().st_size < (tmp_path / "d.json").stat().st_size
    again = load(tmp_path / "m.json")
    assert (again.relevance_vectors_ != made.relevance_vectors_).nnz == 0
    for model, given in [(made, X), (made, rows), (again, rows), (pickle.loads(pickle.dumps(made)), rows)]:
        if machine is RVC:
            np.testing.assert_allclose(model.predict_proba(given), dense.predict_proba(X), atol=1e-10)
            continue
        found, expected = model.predict(given, return_std=True), dense.predict(X, return_std=True)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.predict(given), expected[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.predict_interval(given), dense.predict_interval(X), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(model.leave_one_out(given, y), dense.leave_one_out(X, y), rtol=1e-6, atol=1e-6)
    if machine is RVR:
        np.testing.assert_allclose(made.sample_y(rows[:5]), dense.sample_y(X[:5]), rtol=1e-6, atol=1e-6)
    if made.kernel == "linear":
        np.testing.assert_allclose(made.coef_, dense.coef_, atol=1e-10)


def test_the_file_of_a_relevance_vector_machine_leaves_out_zeros(tmp_path):
    X = sparse.random(60, 2000, 0.01, format="csr", random_state=1)
    t = np.asarray(X.sum(axis=1)).ravel()
    for machine, own, most in [
        (RVR, {}, 250_000),
        (RVR, {"weight_prior": "ard", "gamma": 0.5}, 150_000),
        (RVC, {}, 120_000),
    ]:
        model = machine(**own).fit(X, t if machine is RVR else t > np.median(t))
        model.save(tmp_path / "m.json")
        assert len(model.relevance_) > 20 and (tmp_path / "m.json").stat().st_size < most


def test_vectors_that_are_no_sparse_rows_stay_dense():
    X, _, t = table(n=60, features=8, share=0.4, seed=9)
    rows = sparse.csr_matrix(X)
    spline = rvr(kernel="linear_spline").fit(rows, t)
    given = rvr(landmarks=X[:20] + 0.5).fit(rows, t)
    kept = rvr(keep_statistics=True, dictionary=20, gamma=0.5).fit(rows, t)
    for model in (spline, given, kept):
        assert isinstance(model.relevance_vectors_, np.ndarray)
        np.testing.assert_allclose(model.predict(rows), model.predict(X), rtol=1e-9, atol=1e-9)
    assert kept.partial_fit(rows, t).predict(rows).shape == (60,)


@pytest.mark.parametrize("make", [rvr, rvc])
def test_a_fit_to_sparse_rows_can_be_continued(make):
    X, classes, t = table(n=120, seed=8)
    y, rows = t if make is rvr else classes > 0, sparse.csr_matrix(X)
    model = make(gamma=0.1, warm_start=True).fit(rows, y)
    first = model.log_evidence_
    assert model.fit(rows, y).log_evidence_ == pytest.approx(first, abs=1.0)
    assert sparse.issparse(model.relevance_vectors_)


@pytest.mark.parametrize("machine", [RVR, RVC])
def test_too_many_numbers_are_not_filled_in(machine):
    y = np.arange(11_000.0) if machine is RVR else np.arange(11_000) % 2
    wide = sparse.csr_matrix((np.arange(1.0, 11_001.0), (np.arange(11_000), np.zeros(11_000))), shape=(11_000, 20_000))
    found = r"needs dense rows, and at most 100000000 numbers .*found 220000000.*inner products.*TruncatedSVD"
    for settings in (
        {"weight_prior": "ard", "gamma": 0.1, "centres": "learned"},
        {"kernel": "laplacian"},
        {"gamma": "evidence-ard"},
        {"kernel": lambda A, B: A @ B.T},
    ):
        with pytest.raises(ValueError, match=found):
            machine(**settings).fit(wide, y)


@pytest.mark.parametrize("own", [{}, {"weight_prior": "ard", "gamma": "scale"}])
@pytest.mark.parametrize("features", [30_000, 9_000])
@pytest.mark.parametrize("machine", [RVR, RVC])
def test_many_rows_learn_from_landmarks(machine, features, own):
    n, rng = 12_000, np.random.default_rng(0)
    # Words of a topic, and others.
    columns = np.where(rng.random((n, 8)) < 0.7, rng.integers(0, 40, (n, 8)), rng.integers(0, features, (n, 8)))
    X = sparse.csr_matrix((np.ones(8 * n), columns.ravel(), 8 * np.arange(n + 1)), shape=(n, features))
    X.sum_duplicates()
    t = np.asarray(X[:, :20].sum(axis=1)).ravel() + 0.3 * rng.normal(size=n)
    y = t if machine is RVR else t > np.median(t)
    model = machine(memory_limit=120_000_000, **own).fit(X[: n - 500], y[: n - 500])
    assert sparse.issparse(model.relevance_vectors_)
    assert (model.relevance_vectors_ != X[model.relevance_]).nnz == 0
    assert 0 < len(model.relevance_) <= model.report_["candidates"] < 300
    assert model.score(X[n - 500 :], y[n - 500 :]) > 0.7


def test_svmlight_tables_are_those_of_scikit_learn(tmp_path):
    X, y, _ = table(seed=7)
    path = tmp_path / "d.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    read, targets = read_svmlight(path)
    # They are written with 16 digits.
    np.testing.assert_allclose(read.toarray(), X[:, : read.shape[1]], rtol=1e-15)
    np.testing.assert_array_equal(targets, y)
    assert read_svmlight(path, n_features=50)[0].shape == (80, 50)
    path.write_text("1 2:1 1:1\n")
    with pytest.raises(ValueError, match=r"d\.svm'.*sorted"):
        read_svmlight(path)


@pytest.mark.parametrize("own", [{}, {"weight_prior": "ard"}, {"kernel": "linear"}, {"kernel": "auto"}, {"gamma": 0.1}])
@pytest.mark.parametrize("machine", [RVR, RVC])
def test_rows_of_more_features_than_rows_stay_sparse(monkeypatch, tmp_path, machine, own):
    X = sparse.random(69, 300, 0.05, format="csr", random_state=2)
    X = sparse.vstack([X, X[9]]).tocsr()
    t = np.asarray(X[:, :100].sum(axis=1)).ravel()
    y = t if machine is RVR else t > np.median(t)
    new = sparse.random(30, 300, 0.05, format="csr", random_state=3)
    isotropic = own if "gamma" in own or own.get("kernel") == "linear" else own | {"gamma": "evidence-isotropic"}
    dense = machine(**isotropic).fit(X.toarray(), y)
    monkeypatch.setattr(_sparse, "MOST_FILLED", 10_000)
    made = machine(**own).fit(X, y)
    assert sparse.issparse(made.relevance_vectors_) and made.relevance_vectors_.shape[1] == 300
    assert (made.relevance_vectors_ != X[made.relevance_]).nnz == 0
    assert np.ndim(getattr(made, "gamma_", 0.0)) == 0
    made.save(tmp_path / "m.json")
    for model in (made, load(tmp_path / "m.json"), pickle.loads(pickle.dumps(made))):
        for rows in (new, new.toarray()):
            if machine is RVC:
                np.testing.assert_allclose(model.predict_proba(rows), dense.predict_proba(new.toarray()), atol=1e-4)
            else:
                found, expected = model.predict(rows, return_std=True), dense.predict(new.toarray(), return_std=True)
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_wide_rows_are_counted_without_copies_and_rows_of_weight_zero():
    X = sparse.random(20, 30, 0.3, format="csr", random_state=4)
    y = np.asarray(X[:, :10].sum(axis=1)).ravel()
    weights = np.where(np.arange(20) < 3, 0.0, 3.0)
    some = np.arange(3, 20)
    one = rvr().fit(X, y, weights)
    three = rvr().fit(sparse.vstack([X[some]] * 3), np.tile(y[some], 3))
    assert np.ndim(one.gamma_) == np.ndim(three.gamma_) == 0
    np.testing.assert_allclose(one.predict(X), three.predict(X), rtol=1e-4)


def test_a_fit_to_wide_rows_names_a_bad_number():
    X = sparse.random(20, 60, 0.2, format="csr", random_state=4)
    X.data[3] = np.nan
    with pytest.raises(ValueError, match=r"X, row \d+, column \d+ is nan"):
        rvr().fit(X, np.arange(20.0))
