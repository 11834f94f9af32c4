"""C headers, compiled as C99 and as C++11, predict what relvec predicts, for every kind of model."""

import re
import shutil
import subprocess
import warnings

import numpy as np
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
from support import PARAMETERS, PINNED, papers, rvc, rvr

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror", "-pedantic"]
# Rust links with a C compiler too, and g++ comes with it.
COMPILERS = {
    "c": ["gcc", "-x", "c", "-std=c99", *WARNINGS],
    "c++": ["g++", "-x", "c++", "-std=c++11", *WARNINGS],
}
MAIN = """
#include <stdio.h>
#define MODEL_SELF_TEST
#include "model.h"
int main(void) {
    double v;
    model_real x[MODEL_FEATURES], out[64];
    int d, i, k, failed = model_self_test();
    if (failed) { printf("row %d of the self-test\\n", failed); return 1; }
    for (;;) {
        for (d = 0; d < MODEL_FEATURES; d++) { if (scanf("%lf", &v) != 1) return 0; x[d] = (model_real)v; }
        k = -1;
        CALL
        printf("%d", k);
        for (i = 0; i < COUNT; i++) printf(" %.17g", (double)out[i]);
        puts("");
    }
}
"""


@pytest.fixture(scope="module", autouse=True)
def compilers():
    for name in ("gcc", "g++"):
        assert shutil.which(name), f"{name} is needed to test C headers"


def compiled(folder, language, *words):
    """Compile main.c of the folder; what the compiler says is no secret."""
    done = subprocess.run(
        [*COMPILERS[language], *words, "-o", folder / "main", folder / "main.c", "-lm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "main"


def names(model, std):
    """The call that fills `out`, and what the parts of `out` are."""
    if isinstance(model, (RVR, SVR, NuSVR)):
        has_std = std and isinstance(model, RVR)
        call = "model_predict(x, out, out + MODEL_OUTPUTS);" if has_std else "model_predict(x, out);"
        return call, ["mean", "std"] if has_std else ["mean"]
    if isinstance(model, RVC):
        return "k = model_probabilities(x, out);", ["probabilities"]
    if model.probability:
        return "model_decision(x, out); k = model_probabilities(x, out + MODEL_FUNCTIONS);", [
            "decision",
            "probabilities",
        ]
    return "model_decision(x, out); k = model_class(x);", ["decision"]


def run(model, rows, folder, precision, language, std=True):
    """What a compiled program predicts, by the names that the outputs of an ONNX graph have."""
    call, parts = names(model, std)
    wanted = expected(model, rows)
    widths = [wanted[part].shape[1] for part in parts]
    model.to_c(folder / "model.h", precision=precision, std=std)
    # The header alone: the program below prints doubles on purpose.
    (folder / "main.c").write_text('#include "model.h"\nint main(void) { return 0; }\n')
    compiled(folder, language, "-Wdouble-promotion" if precision == "float" else "-Wconversion", "-fsyntax-only")
    (folder / "main.c").write_text(MAIN.replace("CALL", call).replace("COUNT", str(sum(widths))))
    program = compiled(folder, language)
    text = "\n".join(" ".join(repr(float(v)) for v in row) for row in rows)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    table = np.array([line.split() for line in done.stdout.splitlines()], dtype=np.float64)
    values = dict(zip(parts, np.split(table[:, 1:], np.cumsum(widths)[:-1], axis=1), strict=True))
    if "label" in wanted:
        values["label"] = np.asarray(model.classes_)[table[:, 0].astype(int)]
    return values, wanted


def check(model, rows, folder, limits=(1e-12, 1e-4), of_std=1.0, std=True):
    for precision, limit, language in [
        ("double", limits[0], "c"),
        ("float", limits[1], "c++"),
        ("float", limits[1], "c"),
    ]:
        given = rows if precision == "double" else rows.astype(np.float32).astype(np.float64)
        found, wanted = run(model, given, folder, precision, language, std)
        for name, values in found.items():
            if name == "label":
                assert values.tolist() == wanted[name].tolist(), (precision, language)
            else:
                largest = limit * (of_std if name == "std" else 1.0)
                assert off(values, wanted[name]) <= largest, (precision, name, off(values, wanted[name]))


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_agrees_in_c(kernel, tmp_path):
    check(rvr(kernel=kernel, gamma=[0.8, 0.3], **PARAMETERS).fit(S, T), NEW, tmp_path, limits(kernel)[::2])
    check(rvc(kernel=kernel, gamma=0.3, **PARAMETERS).fit(C, Y), CLASS_ROWS, tmp_path, limits(kernel)[::2])
    if kernel != "sigmoid":
        model = RVR(kernel=kernel, gamma=[0.8, 0.3], weight_prior="process", **PARAMETERS).fit(S, T)
        check(model, NEW, tmp_path, limits(kernel)[::2], of_std=10.0)


@pytest.mark.parametrize("kernel", SUMS)
def test_sums_of_kernels(kernel, tmp_path):
    for model, rows, of_std in with_kernel(kernel):
        check(model, rows, tmp_path, of_std=of_std)


def test_sums_keep_the_digits_of_years(tmp_path):
    model, rows = forecast()
    check(model, rows, tmp_path)
    assert model.to_c().count("fmodf(") == 1
    # The kernel of each centre: three exponentials, and the remainder and the sine of one column.
    calls = int(re.search(r"and (\d+) calls", model.to_c(std=False))[1])
    assert calls == 5 * len(model._model.relevance) + 1


def test_default_models_agree_in_c(tmp_path):
    check(RVR().fit(S, T), NEW, tmp_path, of_std=10.0)
    check(RVC().fit(C, Y), CLASS_ROWS, tmp_path)
    check(RVC().fit(M, K), M_NEW, tmp_path)


def test_sparse_rows(tmp_path):
    X = np.where(np.random.default_rng(0).random((60, 90)) < 0.1, 1.0, 0.0)
    rows, t = sparse.csr_matrix(X), X.sum(axis=1)
    check(RVR(gamma=0.01).fit(rows, t), X, tmp_path, of_std=10.0)
    check(RVC(gamma=0.01).fit(rows, t > np.median(t)), X, tmp_path)


@pytest.mark.parametrize("prior", ["ard", "process"])
def test_several_outputs_agree_in_c(prior, tmp_path):
    targets = np.column_stack([T, 100.0 * np.cos(S[:, 0]), S[:, 1] - 0.3 * T])
    model = RVR(gamma=0.6, weight_prior=prior, variance="posterior").fit(S, targets)
    check(model, NEW, tmp_path, of_std=10.0 if prior == "process" else 1.0)


def test_counts_and_student_t_noise_agree_in_c(tmp_path):
    counts = np.random.default_rng(0).poisson(np.exp(T - 0.5))
    check(rvr(gamma=0.6, likelihood="poisson").fit(S, counts), NEW, tmp_path)
    check(RVR(gamma=0.6, likelihood="poisson").fit(S, counts), NEW, tmp_path, of_std=10.0)
    check(rvr(gamma=0.6, likelihood="poisson").fit(S, counts), NEW, tmp_path, std=False)
    check(rvr(gamma=0.6, likelihood="student_t", noise_degrees=4.0).fit(S, T), NEW, tmp_path)
    check(rvr(gamma=0.6, fit_intercept=False).fit(S, T), NEW, tmp_path)
    check(rvr(gamma=0.6).fit(S, T), NEW, tmp_path, std=False)
    check(SVR(gamma=0.6, C=10.0).fit(S, T), NEW, tmp_path)
    check(NuSVR(gamma=0.6, C=10.0).fit(S, T), NEW, tmp_path)
    found, _ = run(rvr(gamma=0.6, likelihood="student_t", noise_degrees=1.5).fit(S, T), NEW, tmp_path, "float", "c")
    assert np.all(np.isinf(found["std"]))


def test_a_constant_model_agrees_in_c(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = rvr(gamma=0.6).fit(S, np.random.default_rng(1).standard_normal(len(S)) + 3.0)
    check(model, NEW, tmp_path)


@pytest.mark.parametrize("rule", ["joint", "one_vs_rest", "one_vs_one"])
def test_binary_models_of_several_classes_agree_in_c(rule, tmp_path):
    for classes in (3, 4):
        X, y = several_classes(classes=classes)
        check(rvc(gamma=0.5, multi_class=rule).fit(X, y), M_NEW, tmp_path, (1e-10, 1e-4))
    check(RVC(multi_class=rule).fit(X, y), M_NEW, tmp_path, (1e-10, 1e-4))


@pytest.mark.parametrize("own", [{"posterior": "laplace"}, {"fit_intercept": False}])
def test_joint_models_agree_in_c(own, tmp_path):
    check(rvc(gamma=0.5, **own).fit(M, K), M_NEW, tmp_path)


def test_precisions_of_each_class(tmp_path):
    check(relvec.load(PINNED / "rvc_class_precisions.json"), M_NEW, tmp_path)


@pytest.mark.parametrize("rule", ["one_vs_rest", "one_vs_one"])
@pytest.mark.parametrize("probability", [False, True])
def test_support_vector_classifiers(rule, probability, tmp_path):
    own = {"gamma": 0.5, "probability": probability, "multi_class": rule}
    check(SVC(**own).fit(M, K), M_NEW, tmp_path, (1e-10, 1e-4))
    check(NuSVC(**own).fit(C, Y), CLASS_ROWS, tmp_path, (1e-12, 1e-4))


def test_names_of_all_kinds_are_words_in_c(tmp_path):
    labels = np.array(['a "quoted"\n one', "??/ ß, 類\\"])
    frame = pd.DataFrame(C, columns=["*/ int x; /*", "name_ {names} \\\n \x07"])
    model = rvc(gamma=0.3).fit(frame, labels[Y])
    model.to_c(tmp_path / "model.h")
    main = """#include <stdio.h>
#include "model.h"
int main(void) { printf("%s|%s", model_label(0), model_label(1)); return 0; }
"""
    (tmp_path / "main.c").write_text(main)
    for language in COMPILERS:
        found = subprocess.run([compiled(tmp_path, language)], capture_output=True, check=True).stdout.decode()
        assert found.split("|") == model.classes_.tolist()


def test_two_models_in_one_program(tmp_path):
    rvr(gamma=0.6).fit(S, T).to_c(tmp_path / "level.h", name="level")
    rvc(gamma=0.3).fit(C, Y).to_c(tmp_path / "kind.h", name="kind", precision="double")
    main = """#include "level.h"
#include "kind.h"
int main(void) {
    float x[LEVEL_FEATURES] = {1, 1}, mean, std;
    double z[KIND_FEATURES] = {1, 1};
    level_predict(x, &mean, &std);
    return kind_class(z) == 1 && mean > 1.0f && mean < 3.0f ? 0 : 1;
}
"""
    (tmp_path / "main.c").write_text(main)
    for language in COMPILERS:
        subprocess.run([compiled(tmp_path, language)], check=True)


def test_the_self_test_sees_a_changed_table(tmp_path):
    text = rvr(gamma=0.6).fit(S, T).to_c()
    first = re.search(r"model_weights\[\d+\] MODEL_TABLE = \{\n    (\S+),", text)[1]
    main = '#define MODEL_SELF_TEST\n#include "model.h"\nint main(void) { return model_self_test(); }\n'
    (tmp_path / "main.c").write_text(main)
    codes = []
    for changed in (text, text.replace(first, f"1.05f * {first}", 1)):
        (tmp_path / "model.h").write_text(changed)
        codes.append(subprocess.run([compiled(tmp_path, "c")], check=False).returncode)
    assert codes[0] == 0
    assert 1 <= codes[1] <= 10


def table_bytes(header):
    return int(re.search(r"Tables: (\d+) bytes", header)[1])


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (RVR().fit(S, T), NEW),
        (rvr(gamma=[0.8, 0.3], kernel="matern52").fit(S, T), NEW),
        (rvc(gamma=0.5).fit(M, K), M_NEW),
        (rvc(gamma=0.5, multi_class="one_vs_one").fit(M, K), M_NEW),
        (SVC(gamma=0.5).fit(M, K), M_NEW),
    ],
)
def test_tables_of_whole_numbers_are_small_and_tell_their_effect(model, rows, tmp_path):
    rows = rows.astype(np.float32).astype(np.float64)
    found, wanted = run(model, rows, tmp_path, "int16", "c")
    head = (tmp_path / "model.h").read_text().split("#ifndef")[0]
    told = [float(number) for number in re.findall(r" by (\S+) of", head.replace("\n", " "))]
    assert 0.0 < max(told) <= 0.02
    off = {
        "mean": lambda a, b: np.abs(a - b) / wanted["std"],
        "std": lambda a, b: np.abs(a / b - 1.0),
        "probabilities": lambda a, b: np.abs(a - b),
        "decision": lambda a, b: np.abs(a - b),
    }
    parts = [name for name in found if name != "label"]
    for name, bound in zip(parts, told, strict=True):
        # Told of other rows than these, and without the rounding of single precision.
        assert off[name](found[name], wanted[name]).max() <= 2.0 * bound + 1e-4
    # Triangles of a few rows, one for each pair of classes, have as many steps as they save.
    smaller = table_bytes(model.to_c(precision="int16")) < table_bytes(model.to_c())
    assert smaller or getattr(model, "multi_class", None) == "one_vs_one"


def test_the_header_says_what_it_takes():
    text = rvr(gamma=0.6).fit(S, T).to_c()
    sizes = [int(n) for n in re.findall(r"\[(\d+)\] MODEL_TABLE", text.split("#ifdef MODEL_SELF_TEST")[0])]
    assert f"Tables: {4 * sum(sizes)} bytes" in text
    assert "2 numbers" in text


def test_bad_names_and_precisions_are_refused_in_c():
    model = rvr(gamma=0.6).fit(S, T)
    for name in ("", "2nd", "my model", "int", "a-b", "größe"):
        with pytest.raises(ValueError, match=f'name = "{name}": expected a letter'):
            model.to_c(name=name)
    with pytest.raises(ValueError, match="precision = 'half': expected 'float', 'double', 'int16'"):
        model.to_c(precision="half")
    with pytest.raises(ValueError, match="healed"):
        rvr(gamma=0.6, variance="healed").fit(S, T).to_c()
    X = np.linspace(0.0, 1.0, 60)[:, np.newaxis]
    model = papers(SVR, gamma=0.05, C=1e9, epsilon=1e-6).fit(X, np.sin(6.0 * X[:, 0]))
    with pytest.raises(ValueError, match="use precision = double, or fit with weight_prior = ard"):
        model.to_c()
