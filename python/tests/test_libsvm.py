"""Model files of LIBSVM, both ways, beside LIBSVM's own package and scikit-learn."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import relvec
import sklearn.svm
from exported import CLASS_ROWS, M_NEW, NEW, C, K, M, S, T, Y
from libsvm.svmutil import svm_load_model, svm_predict, svm_read_problem, svm_save_model, svm_train
from numpy.testing import assert_allclose, assert_array_equal
from relvec import SVC, SVR, NuSVC, NuSVR, from_libsvm, from_sklearn
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import rbf_kernel
from support import rvr

# The kernel is none of a positive definite kind, and relvec says so.
pytestmark = pytest.mark.filterwarnings("ignore:.*the kernel sigmoid is not positive definite")
KERNELS = [
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 3},
    {"kernel": "sigmoid", "gamma": 0.1, "coef0": 0.2},
]


def lists(rows):
    return [list(map(float, row)) for row in rows]


def theirs(model, folder, rows, probability=False):
    """Labels and values, or probabilities, that LIBSVM predicts with the file of a model."""
    path = folder / "model.libsvm"
    text = model.to_libsvm(path)
    assert path.read_text() == text
    # LIBSVM 3.37 for Python ends the process on any nu_svc model that it reads, its own too. c_svc predicts the same.
    path.write_text(text.replace("svm_type nu_svc", "svm_type c_svc", 1))
    labels, _, values = svm_predict([], lists(rows), svm_load_model(str(path)), f"-q -b {int(probability)}")
    return np.array(labels), np.array(values)


def pairs(classes):
    """The place of LIBSVM's pairs of classes among those of relvec."""
    return [j * (j - 1) // 2 + i for i in range(classes) for j in range(i + 1, classes)]


@pytest.mark.parametrize("own", KERNELS, ids=lambda own: own["kernel"])
@pytest.mark.parametrize("cls", [SVC, NuSVC])
def test_libsvm_predicts_the_same_classes(cls, own, tmp_path):
    for X, y, rows in [(C, Y, CLASS_ROWS), (M, K, M_NEW)]:
        model = cls(**own).fit(X, y)
        labels, values = theirs(model, tmp_path, rows)
        assert_array_equal(labels, model.predict(rows))
        wanted = -model._functions(rows)[:, pairs(len(model.classes_))]
        assert_allclose(values, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("own", KERNELS, ids=lambda own: own["kernel"])
@pytest.mark.parametrize("cls", [SVR, NuSVR])
def test_libsvm_predicts_the_same_values(cls, own, tmp_path):
    model = cls(**own).fit(S, T)
    wanted = model.predict(NEW)
    assert_allclose(theirs(model, tmp_path, NEW)[0], wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), SVR(kernel="poly", gamma=0.5)], ids=repr)
def test_the_self_test_holds_what_libsvm_predicts(model, tmp_path):
    path = tmp_path / "m.libsvm"
    model.fit(*((S, T) if isinstance(model, SVR) else (M, K))).to_libsvm(path)
    targets, rows = svm_read_problem(f"{path}.test")
    found = svm_predict(targets, rows, svm_load_model(str(path)), "-q")[0]
    assert len(rows) == 10 and len(set(targets)) > 1
    assert_allclose(found, targets, rtol=1e-11, atol=1e-12)


def test_libsvm_predicts_the_same_probabilities(tmp_path):
    model = SVC(gamma=0.5, probability=True).fit(C, Y)
    assert_allclose(theirs(model, tmp_path, CLASS_ROWS, True)[1], model.predict_proba(CLASS_ROWS), rtol=0, atol=1e-12)
    model = SVC(gamma=0.5, probability=True).fit(M[K < 3], K[K < 3])
    # LIBSVM ends its coupling at 0.005 / K.
    assert_allclose(theirs(model, tmp_path, M_NEW, True)[1], model.predict_proba(M_NEW), rtol=0, atol=2e-3)


@pytest.mark.parametrize("own", KERNELS, ids=lambda own: own["kernel"])
def test_written_machines_are_read_back(own, tmp_path):
    for model, rows in [(SVC(probability=True, **own).fit(M, K), M_NEW), (NuSVR(**own).fit(S, T), NEW)]:
        model.to_libsvm(tmp_path / "model.libsvm")
        again = from_libsvm(tmp_path / "model.libsvm")
        assert type(again) is type(model)
        assert again.to_libsvm() == model.to_libsvm()
        assert_allclose(again.predict(rows), model.predict(rows), rtol=0, atol=1e-12)
        if isinstance(model, SVC):
            assert_allclose(again.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=1e-10)
        # It is a model like any other.
        again.save(tmp_path / "again.json")
        assert_array_equal(relvec.load(tmp_path / "again.json").predict(rows), again.predict(rows))


@pytest.mark.parametrize(
    "options", ["-s 0 -t 2 -g 0.5", "-s 0 -t 1 -g 0.3 -r 1 -d 3", "-s 1 -t 2 -g 0.5 -n 0.3", "-s 0 -t 0 -b 1"]
)
def test_models_that_libsvm_trained_are_read(options, tmp_path):
    path = tmp_path / "model.libsvm"
    # Labels in the order in which LIBSVM meets them: 7, 3, 5.
    names = np.array([7, 3, 5])
    X, y = M[K < 3], names[K[K < 3]]
    trained = svm_train(list(map(float, y)), lists(X), f"-q {options}")
    svm_save_model(str(path), trained)
    model = from_libsvm(path)
    assert model.classes_.tolist() == [7, 3, 5]
    # The file has 17 digits of coefficients, and 8 of vectors.
    if trained.get_svm_type() == 1:
        # LIBSVM for Python does not predict with its own models of nu_svc, see above.
        (tmp_path / "c_svc").write_text(path.read_text().replace("nu_svc", "c_svc", 1))
        trained = svm_load_model(str(tmp_path / "c_svc"))
    labels, _, values = svm_predict([], lists(M_NEW), trained, "-q")
    wanted = -np.array(values)
    assert_allclose(model._functions(M_NEW)[:, pairs(3)], wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert (model.predict(M_NEW) == labels).mean() > 0.98


@pytest.mark.parametrize("own", KERNELS, ids=lambda own: own["kernel"])
@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_classifiers_of_scikit_learn_are_taken_over(name, own):
    names = np.array(["north", "east", "south", "west"])
    for X, y, rows in [(C, names[Y], CLASS_ROWS), (M, names[K], M_NEW)]:
        theirs = getattr(sklearn.svm, name)(decision_function_shape="ovo", **own).fit(X, y)
        model = from_sklearn(theirs)
        assert type(model).__name__ == name
        assert_array_equal(model.classes_, theirs.classes_)
        assert_array_equal(model.predict(rows), theirs.predict(rows))
        wanted = theirs.decision_function(rows)
        found = model._functions(rows)
        found = found[:, 0] if wanted.ndim == 1 else -found[:, pairs(4)]
        assert_allclose(found, wanted, rtol=0, atol=1e-11 * np.abs(wanted).max())


@pytest.mark.parametrize("name", ["SVR", "NuSVR"])
def test_regression_of_scikit_learn_is_taken_over(name):
    frame = pd.DataFrame(S, columns=["a", "b"])
    theirs = getattr(sklearn.svm, name)(gamma=0.5, C=3.0).fit(frame, T)
    model = from_sklearn(theirs)
    rows = pd.DataFrame(NEW, columns=["a", "b"])
    assert_allclose(model.predict(rows), theirs.predict(rows), rtol=0, atol=1e-12)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert (model.C, model.gamma) == (3.0, 0.5)


def test_probabilities_and_sparse_rows_of_scikit_learn():
    with warnings.catch_warnings():
        # Newer versions advise against it.
        warnings.simplefilter("ignore", FutureWarning)
        theirs = sklearn.svm.SVC(gamma=0.5, probability=True, random_state=0).fit(C, Y)
        # scikit-learn's LIBSVM couples two classes as it does more, and ends at 0.005 / K.
        found = from_sklearn(theirs).predict_proba(CLASS_ROWS)
        assert_allclose(found, theirs.predict_proba(CLASS_ROWS), rtol=0, atol=5e-3)
    sparse = np.where(np.abs(C) < 0.3, 0.0, C)
    theirs = sklearn.svm.SVC(gamma=0.5).fit(csr_matrix(sparse), Y)
    assert_array_equal(from_sklearn(theirs).predict(CLASS_ROWS), theirs.predict(CLASS_ROWS))


def test_foreign_models_that_differ_are_refused():
    with pytest.raises(TypeError, match="LinearSVC: expected SVC, NuSVC, SVR or NuSVR of scikit-learn"):
        from_sklearn(sklearn.svm.LinearSVC().fit(C, Y))
    with pytest.raises(ValueError, match="kernel = 'precomputed': expected 'linear'"):
        from_sklearn(sklearn.svm.SVC(kernel="precomputed").fit(rbf_kernel(C), Y))
    with pytest.raises(ValueError, match="not fitted"):
        from_sklearn(sklearn.svm.SVR())


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (rvr(gamma=0.6).fit(S, T), "a relevance vector machine cannot be written; export it as ONNX or C"),
        (SVC(multi_class="one_vs_rest").fit(M, K), "one-versus-rest of several classes"),
        (SVC(kernel="laplacian").fit(C, Y), "the kernel laplacian"),
        (SVC(gamma=[0.5, 0.2]).fit(C, Y), "a gamma for each feature"),
        (SVC(kernel="precomputed").fit(rbf_kernel(C), Y), "a kernel that relvec does not compute"),
    ],
)
def test_models_that_libsvm_lacks_are_refused(model, match):
    with pytest.raises(ValueError, match=match):
        model.to_libsvm()


GOOD = SVC(gamma=0.5, probability=True).fit(M, K).to_libsvm()


def cut(key, new):
    """The file with another line for `key`; without it if there is no new one."""
    return re.sub(rf"^{key} .*\n", f"{key} {new}\n" if new is not None else "", GOOD, count=1, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "line 1: the file ends before the line SV"),
        ("hello\n", "line 1: expected svm_type"),
        (GOOD.split("SV\n")[0], "ends before the line SV"),
        (cut("svm_type", "one_class"), "line 1: svm_type one_class: expected c_svc, nu_svc, epsilon_svr, nu_svr"),
        (cut("kernel_type", "precomputed"), "line 2: kernel_type precomputed: expected linear"),
        (cut("gamma", "-1"), "gamma"),
        (cut("gamma", "wide"), "line 3: gamma wide: expected a finite number"),
        (cut("gamma", None), "expected a line gamma before SV"),
        (cut("rho", "1 2"), "rho has 2 numbers: expected 6"),
        (cut("rho", "1 2 3 4 5 nan"), "rho nan: expected a finite number"),
        (cut("nr_class", "1"), "nr_class 1: expected from 2"),
        (cut("nr_class", "99999999999999999999"), "expected a number"),
        (cut("nr_sv", "1 1 1 1"), "nr_sv 4 vectors in all: expected total_sv"),
        (cut("label", "1 2 3 3"), "class, and no label twice"),
        (cut("total_sv", "5"), "vectors: expected total_sv, 5"),
        (GOOD + "0 0 0 1:1\n", "vectors: expected total_sv"),
        (GOOD.replace(" 1:", " 0:", 1), "0:.*expected index:value"),
        (GOOD.replace(" 2:", " 1:", 1), "expected indices from 1 that ascend, after 1"),
        (GOOD.replace(" 2:", " 99999999999:", 1), "expected index:value"),
        (GOOD.replace(" 2:", " 2:x", 1), "expected a finite number"),
        (GOOD.rstrip().rsplit("\n", 1)[0] + "\n1.0\n", "the end of the line: expected a finite number"),
    ],
)
def test_damaged_files_are_named_by_line(text, match, tmp_path):
    path = tmp_path / "model.libsvm"
    path.write_text(text)
    with pytest.raises(ValueError, match=match) as caught:
        from_libsvm(path)
    assert str(path) in str(caught.value)


def test_features_that_are_zero_in_all_vectors_are_told(tmp_path):
    X = np.column_stack([C, np.zeros(len(C))])
    path = tmp_path / "model.libsvm"
    SVC(gamma=0.5).fit(X, Y).to_libsvm(path)
    assert from_libsvm(path).n_features_in_ == 2
    assert from_libsvm(path, n_features=3).n_features_in_ == 3
    with pytest.raises(ValueError, match="the vectors have 2 features: expected at most 1"):
        from_libsvm(path, n_features=1)
