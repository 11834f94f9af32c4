"""ONNX graphs in onnxruntime predict what relvec predicts, for every kind of model."""

import json
import re
import warnings

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import relvec
from exported import (
    CLASS_ROWS,
    M_NEW,
    NEW,
    SUMS,
    C,
    K,
    M,
    S,
    T,
    Y,
    expected,
    forecast,
    limits,
    off,
    several_classes,
    with_kernel,
)
from relvec import RVC, RVR, SVC, SVR, NuSVC, NuSVR
from relvec._table import KERNELS
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from support import PARAMETERS, PINNED, ROOT, papers, rvc, rvr


def session(data):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def run(data, rows, precision="float64"):
    """Outputs by their names."""
    own = session(data)
    found = own.run(None, {"X": np.asarray(rows, dtype=np.float64 if precision == "float64" else np.float32)})
    return dict(zip([output.name for output in own.get_outputs()], found, strict=True))


def check(model, rows, limits=(1e-12, 2e-7, 1e-4), of_std=1.0):
    """All precisions, and few rows or none; the limits of standard deviations are `of_std` times as large."""
    for precision, limit in zip(["float64", "mixed", "float32"], limits, strict=True):
        data = model.to_onnx(precision=precision)
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        # Rows in single precision are other rows: relvec is given those.
        given = rows if precision == "float64" else rows.astype(np.float32).astype(np.float64)
        found, wanted = run(data, given, precision), expected(model, given)
        assert found.keys() == wanted.keys()
        none, one = run(data, given[:0], precision), run(data, given[:1], precision)
        for name in wanted:
            assert none[name].shape == (0, *wanted[name].shape[1:])
            if name == "label":
                assert found[name].tolist() == wanted[name].tolist(), precision
                assert one[name].tolist() == wanted[name][:1].tolist(), precision
            else:
                largest = limit * (of_std if name == "std" else 1.0)
                assert off(found[name], wanted[name]) <= largest, (precision, name, off(found[name], wanted[name]))
                assert np.abs(one[name] - wanted[name][:1]).max() <= largest * np.abs(wanted[name]).max()


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_agrees_in_onnx(kernel):
    for gamma in (0.6, [0.8, 0.3]):
        check(rvr(kernel=kernel, gamma=gamma, **PARAMETERS).fit(S, T), NEW, limits(kernel))
    check(rvc(kernel=kernel, gamma=0.3, **PARAMETERS).fit(C, Y), CLASS_ROWS, limits(kernel))


@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel != "sigmoid"])
def test_process_priors_agree_in_onnx(kernel):
    """The variance is a difference: rounding counts by the amplitude over the noise variance, here 100 to 1,000."""
    model = RVR(kernel=kernel, gamma=0.6, weight_prior="process", **PARAMETERS).fit(S, T)
    check(model, NEW, limits(kernel), of_std=10.0)


@pytest.mark.parametrize("kernel", SUMS)
def test_sums_of_kernels(kernel):
    for model, rows, of_std in with_kernel(kernel):
        check(model, rows, of_std=of_std)


def test_sums_keep_the_digits_of_years():
    check(*forecast())


@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_models_of_sparse_rows_agree_in_onnx(kernel):
    X = np.where(np.random.default_rng(0).random((60, 90)) < 0.1, 1.0, 0.0)
    rows, t = sparse.csr_matrix(X), X.sum(axis=1)
    check(SVR(kernel=kernel).fit(rows, t), X)
    check(RVR(kernel=kernel, gamma=0.01, fit_intercept=False).fit(rows, t), X, of_std=10.0)
    check(rvc(kernel=kernel, gamma=0.01).fit(rows, t > np.median(t)), X)


def test_too_many_numbers_of_sparse_rows():
    X = sparse.random(120, 1_000_000, 1e-5, format="csr", random_state=0)
    with pytest.raises(ValueError, match=r"120 support vectors of 1000000 features, as sparse .* at most 100,000,000"):
        SVR(epsilon=0.0).fit(X, np.arange(120.0)).to_onnx()


def test_default_models_agree_in_onnx():
    check(RVR().fit(S, T), NEW, of_std=10.0)
    check(RVC().fit(C, Y), CLASS_ROWS)
    check(RVC().fit(M, K), M_NEW)


@pytest.mark.parametrize("own", [{}, {"weight_prior": "process"}, {"folds": 3, "calibrate": True}])
def test_several_outputs_agree_in_onnx(own):
    targets = np.column_stack([T, 100.0 * np.cos(S[:, 0]), S[:, 1] - 0.3 * T])
    model = RVR(gamma=0.6, **{"weight_prior": "ard", "variance": "posterior", **own}).fit(S, targets)
    check(model, NEW, of_std=10.0 if "weight_prior" in own else 1.0)


@pytest.mark.parametrize("degrees", [1.5, 4.0, None])
def test_student_t_noise_agrees_in_onnx(degrees):
    model = rvr(gamma=0.6, likelihood="student_t", noise_degrees=degrees).fit(S, T)
    if degrees == 1.5:
        assert np.all(np.isinf(run(model.to_onnx(), NEW)["std"]))
    else:
        check(model, NEW)


def test_counts_agree_in_onnx():
    counts = np.random.default_rng(0).poisson(np.exp(T - 0.5))
    check(rvr(gamma=0.6, likelihood="poisson").fit(S, counts), NEW)
    check(RVR(gamma=0.6, likelihood="poisson").fit(S, counts), NEW)
    # A log rate of which little is known: zeros alone.
    check(rvr(gamma=0.6, likelihood="poisson").fit(S[:20], np.r_[np.zeros(19), 1.0]), NEW)


@pytest.mark.parametrize("own", [{"fit_intercept": False}, {"noise_variance": 0.02}, {"search": "variational"}])
def test_other_settings_agree_in_onnx(own):
    check(rvr(gamma=0.6, **own).fit(S, T), NEW)


def test_a_constant_model_agrees_in_onnx():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rvr(gamma=0.6).fit(S, np.random.default_rng(1).standard_normal(len(S)) + 3.0)
    check(model, NEW)


@pytest.mark.parametrize("rule", ["joint", "one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("classes", [3, 4])
def test_binary_models_of_several_classes_agree_in_onnx(rule, classes):
    X, y = several_classes(classes=classes)
    loose = (1e-10, 2e-7, 1e-4) if rule == "one_vs_one" else (1e-12, 2e-7, 1e-4)
    check(rvc(gamma=0.5, multi_class=rule).fit(X, y), M_NEW, loose)
    check(RVC(multi_class=rule).fit(X, y), M_NEW, loose)


@pytest.mark.parametrize("own", [{"posterior": "laplace"}, {"fit_intercept": False}])
def test_joint_models_agree_in_onnx(own):
    check(rvc(gamma=0.5, **own).fit(M, K), M_NEW)


def test_precisions_of_each_class():
    check(relvec.load(PINNED / "rvc_class_precisions.json"), M_NEW)


@pytest.mark.parametrize("cls", [SVC, NuSVC])
@pytest.mark.parametrize("rule", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("probability", [False, True])
def test_support_vector_classifiers(cls, rule, probability):
    own = {"gamma": 0.5, "probability": probability, "multi_class": rule}
    check(cls(**own).fit(M, K), M_NEW, (1e-10, 1e-6, 1e-4))
    check(cls(**own).fit(C, Y), CLASS_ROWS, (1e-12, 1e-6, 1e-4))


@pytest.mark.parametrize("cls", [SVR, NuSVR])
def test_support_vector_regression(cls):
    check(cls(gamma=0.6, C=10.0).fit(S, T), NEW)


@pytest.mark.parametrize(
    "names",
    [["no", "yes"], ["ß, 類", 'a "quoted"\n one'], [3, 7], [False, True], [-1.0, 2.0]],
)
def test_labels_keep_their_type(names):
    names = np.array(names)
    model = rvc(gamma=0.3).fit(C, names[Y])
    found = run(model.to_onnx(), CLASS_ROWS)["label"]
    assert found.dtype.kind == ("O" if names.dtype.kind == "U" else names.dtype.kind)
    assert found.tolist() == model.predict(CLASS_ROWS).tolist()


def test_many_features_and_rows_far_from_zero():
    rng = np.random.default_rng(0)
    for features, shift in [(80, 0.0), (3, 1e6)]:
        X = rng.standard_normal((60, features)) + shift
        y = np.sin(X[:, 0] - shift) + 0.1 * rng.standard_normal(60)
        for kernel in ("rbf", "laplacian"):
            for gamma in (0.5 / features, 500.0):
                model = rvr(kernel=kernel, gamma=gamma).fit(X, y)
                found, wanted = run(model.to_onnx(), X[::2] + 0.01), expected(model, X[::2] + 0.01)
                assert off(found["mean"], wanted["mean"]) < 1e-12
                assert off(found["std"], wanted["std"]) < 1e-12


def test_a_model_of_the_command_standardises(tmp_path):
    table = pd.DataFrame(S * [1.0, 300.0] + [5.0, -1000.0], columns=["a", "b"]).assign(y=T)
    table.to_csv(tmp_path / "d.csv", index=False)
    line = ["relvec", "fit", str(tmp_path / "d.csv"), "--target", "y", "-o", str(tmp_path / "m.json"), "-q"]
    assert relvec._core.main(line) == 0
    model = relvec.load(tmp_path / "m.json")
    rows = NEW * [1.0, 300.0] + [5.0, -1000.0]
    found, wanted = run(model.to_onnx(), rows), expected(model, pd.DataFrame(rows, columns=["a", "b"]))
    assert off(found["mean"], wanted["mean"]) < 1e-12
    assert off(found["std"], wanted["std"]) < 1e-12
    # The command writes the same bytes.
    assert relvec._core.main(["relvec", "export", str(tmp_path / "m.json"), "-o", str(tmp_path / "m.onnx"), "-q"]) == 0
    assert (tmp_path / "m.onnx").read_bytes() == model.to_onnx()


def test_the_file_says_what_it_is(tmp_path):
    frame = pd.DataFrame(C, columns=["width", "height"])
    model = rvc(gamma=0.3).fit(frame, pd.Series(np.array(["no", "yes"])[Y], name="kind"))
    data = model.to_onnx(tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == data
    proto = onnx.load_from_string(data)
    assert (proto.producer_name, proto.ir_version, proto.opset_import[0].version) == ("relvec", 8, 13)
    known = {entry.key.removeprefix("relvec."): entry.value for entry in proto.metadata_props}
    assert json.loads(known["features"]) == ["width", "height"]
    assert json.loads(known["classes"]) == ["no", "yes"]
    assert json.loads(known["kernel"]) == {"rbf": {"gamma": 0.3}}
    assert (known["task"], known["machine"], known["version"]) == ("classification", "rvm", relvec.__version__)
    assert known["checksum"] == json.loads(model._model.to_json())["checksum"]
    # Its own rows are predicted as it says.
    test = json.loads(known["self_test"])
    found = run(data, test.pop("X"))
    assert found["label"].tolist() == test["label"]
    assert len(test["label"]) == 10
    assert off(found["probabilities"], np.array(test["probabilities"])) < 1e-12


@pytest.mark.parametrize("opset", [14, 17, 18, 21, 23])
def test_later_versions_of_the_operators(opset):
    for model, rows in [(rvr(gamma=0.6).fit(S, T), NEW), (rvc(gamma=0.5, multi_class="one_vs_one").fit(M, K), M_NEW)]:
        proto = onnx.load_from_string(model.to_onnx())
        before = run(proto.SerializeToString(), rows)
        proto.opset_import[0].version = opset
        onnx.checker.check_model(proto, full_check=True)
        after = run(proto.SerializeToString(), rows)
        assert all(np.array_equal(before[name], after[name]) for name in before)


def test_graphs_without_std_are_smaller():
    model = rvr(gamma=0.6).fit(S, T)
    small = model.to_onnx(std=False)
    assert list(run(small, NEW)) == ["mean"]
    assert len(small) < len(model.to_onnx())


def test_models_and_options_without_a_graph_are_refused():
    with pytest.raises(ValueError, match=r"healed needs a linear system .* weight_prior = process"):
        rvr(gamma=0.6, variance="healed").fit(S, T).to_onnx()
    for model in (rvr(kernel=rbf_kernel).fit(S, T), rvr(kernel="precomputed").fit(rbf_kernel(S), T)):
        with pytest.raises(ValueError, match=r"external.*built-in kernel"):
            model.to_onnx()
    with pytest.raises(ValueError, match="precision = 'half': expected 'float64', 'mixed', 'float32'"):
        rvr(gamma=0.6).fit(S, T).to_onnx(precision="half")
    with pytest.raises(ValueError, match="not fitted"):
        RVR().to_onnx()


def test_single_precision_that_would_not_do_is_refused():
    X = np.linspace(0.0, 1.0, 60)[:, np.newaxis]
    y = np.sin(6.0 * X[:, 0])
    model = papers(SVR, gamma=0.05, C=1e9, epsilon=1e-6).fit(X, y)
    with pytest.raises(
        ValueError, match=r"single precision would change a mean by .*support vectors.*precision = mixed"
    ):
        model.to_onnx(precision="float32")
    assert off(run(model.to_onnx(precision="mixed"), X, "mixed")["mean"], expected(model, X)["mean"]) < 1e-4


def test_the_examples_of_the_documentation_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "export.md").read_text()
    examples = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    exec(compile("".join(examples), "docs/export.md", "exec"), {})
    assert (tmp_path / "sinc.onnx").exists()
