"""Exported models: how far they are from relvec, and what they take. Prints the tables of docs/export.md.

Needs onnxruntime and m2cgen. Sizes on processors need avr-gcc and arm-none-eabi-gcc; a message says which is missing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import m2cgen
import numpy as np
import onnxruntime
import sklearn.svm
from relvec import RVC, RVR, SVC, SVR, from_sklearn
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.preprocessing import StandardScaler

warnings.simplefilter("ignore")
PRECISIONS = ("float64", "mixed", "float32")
TARGETS = {
    "ATmega328P": ["avr-gcc", "-mmcu=atmega328p"],
    "Cortex-M4F": [
        "arm-none-eabi-gcc",
        "-mcpu=cortex-m4",
        "-mthumb",
        "-mfloat-abi=hard",
        "-mfpu=fpv4-sp-d16",
        "--specs=nosys.specs",
    ],
    "Cortex-M0": ["arm-none-eabi-gcc", "-mcpu=cortex-m0", "-mthumb", "--specs=nosys.specs"],
}
# The inputs are volatile, so that nothing is worked out when the program is compiled.
PROGRAM = """#include "model.h"
volatile model_real in[MODEL_FEATURES], out[16];
int main(void) {
    model_real x[MODEL_FEATURES], p[16];
    int i;
    for (i = 0; i < MODEL_FEATURES; i++) x[i] = in[i];
    CALL
    for (i = 0; i < 16; i++) out[i] = p[i];
    return 0;
}
"""
EMPTY = "int main(void) { return 0; }\n"
# What m2cgen's code takes to be called as the headers are; without code it serves COPIES.
COPIES = PROGRAM.replace("CALL", "for (i = 0; i < 16; i++) p[i] = x[0];")
PLAIN = "typedef {real} model_real;\n#define MODEL_FEATURES {features}\n{code}"


def models():
    """Name, fitted estimator, rows."""
    friedman, t = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
    new = make_friedman1(200, n_features=5, random_state=1)[0]
    iris, kind = load_iris(return_X_y=True)
    cancer, ill = load_breast_cancer(return_X_y=True)
    cancer = StandardScaler().fit_transform(cancer)
    rng = np.random.default_rng(0)
    smooth = rng.standard_normal((1000, 8))
    s = np.sin(2.0 * smooth[:, 0]) + smooth[:, 1] * smooth[:, 2] + 0.1 * rng.standard_normal(1000)
    counts = np.random.default_rng(0).poisson(np.exp(t / 10.0))
    ard = {"weight_prior": "ard", "variance": "posterior"}
    return [
        ("RVR, process prior", RVR().fit(friedman, t), new),
        ("RVR, process prior, noise of 7 %", RVR().fit(smooth, s), smooth + 0.1),
        ("RVR, precisions", RVR(**ard).fit(friedman, t), new),
        ("RVR, Student-t noise", RVR(likelihood="student_t", **ard).fit(friedman, t), new),
        ("RVR, counts", RVR(likelihood="poisson", **ard).fit(friedman, counts), new),
        ("RVR, linear spline kernel", RVR(kernel="linear_spline", **ard).fit(friedman, t), new),
        ("RVR, polynomial kernel", RVR(kernel="poly", coef0=1.0, gamma=0.3, **ard).fit(friedman, t), new),
        ("RVC, 2 classes", RVC(weight_prior="ard").fit(cancer, ill), cancer),
        ("RVC, 3 classes, label regression", RVC().fit(iris, kind), iris),
        ("RVC, 3 classes, joint", RVC(weight_prior="ard").fit(iris, kind), iris),
        ("RVC, 3 classes, one-versus-one", RVC(multi_class="one_vs_one").fit(iris, kind), iris),
        ("SVC, 3 classes, probabilities", SVC(gamma=0.1, probability=True).fit(iris, kind), iris),
        ("SVR", SVR(C=10.0).fit(friedman, t), new),
    ]


def call(model):
    if isinstance(model, RVR):
        return "model_predict(x, p, p + MODEL_OUTPUTS);"
    if isinstance(model, SVR):
        return "model_predict(x, p);"
    return "p[MODEL_CLASSES] = (model_real)model_probabilities(x, p);"


def wanted(model, rows):
    if isinstance(model, RVR):
        return dict(zip(["mean", "std"], (v[:, np.newaxis] for v in model.predict(rows, return_std=True)), strict=True))
    if isinstance(model, SVR):
        return {"mean": model.predict(rows)[:, np.newaxis]}
    return {"probabilities": model.predict_proba(rows)}


def onnx_errors(model, rows):
    """The largest error of each precision, relative to the largest prediction of its kind."""
    cells = []
    for precision in PRECISIONS:
        try:
            data = model.to_onnx(precision=precision)
        except ValueError:
            cells.append("refused")
            continue
        given = rows.astype(np.float64 if precision == "float64" else np.float32)
        session = onnxruntime.InferenceSession(data)
        found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": given}), strict=True))
        expected = wanted(model, given.astype(np.float64))
        errors = [np.abs(found[name] - values).max() / np.abs(values).max() for name, values in expected.items()]
        cells.append(", ".join(f"{error:.0e}" for error in errors))
    return cells


def scikit_learn_models():
    """Name, support vector machine of scikit-learn, and the calls of its functions in code of relvec and m2cgen."""
    friedman, t = make_friedman1(200, n_features=5, noise=1.0, random_state=0)
    iris, kind = load_iris(return_X_y=True)
    cancer, ill = load_breast_cancer(return_X_y=True)
    cancer = StandardScaler().fit_transform(cancer)
    decide, value = "model_decision(x, p);", "p[0] = score(x);"
    return [
        ("SVC, 3 classes", sklearn.svm.SVC(gamma=0.1).fit(iris, kind), decide, "score(x, p);"),
        ("SVC, 2 classes", sklearn.svm.SVC().fit(cancer, ill), decide, value),
        ("SVC, 2 classes, linear kernel", sklearn.svm.SVC(kernel="linear").fit(cancer, ill), decide, value),
        ("SVR", sklearn.svm.SVR(C=10.0).fit(friedman, t), "model_predict(x, p);", value),
    ]


def compiled(command, text, header, folder):
    """Bytes of flash (code and tables) and of memory (data, and the stack frames of main.c) of a whole program."""
    (folder / "model.h").write_text(header)
    (folder / "main.c").write_text(text)
    size = command[0].removesuffix("gcc") + "size"
    options = [
        "-std=c99",
        "-Os",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-ffunction-sections",
        "-fdata-sections",
        "-fstack-usage",
    ]
    line = [*command, *options, "-Wl,--gc-sections", "-o", folder / "main", folder / "main.c", "-lm"]
    # The linker of newlib notes that there is no system to call.
    done = subprocess.run(line, stderr=subprocess.PIPE, cwd=folder, text=True, check=False)
    if done.returncode:
        raise MemoryError if "region" in done.stderr else RuntimeError(done.stderr)
    told = subprocess.run([size, folder / "main"], check=True, capture_output=True, text=True).stdout.splitlines()[1]
    code, data, zeros = (int(number) for number in told.split()[:3])
    # Compilers name the file of the frames in their own ways.
    (file,) = folder.glob("*.su")
    frames = [line.split("\t") for line in file.read_text().splitlines()]
    file.unlink()
    return np.array([code + data, data + zeros + sum(int(frame[1]) for frame in frames)])


def beyond(name, text, header, base, folder):
    """Bytes of flash and memory of a program on a processor beyond those of another, as text."""
    command = TARGETS[name]
    if not shutil.which(command[0]):
        print(f"{name}: left out, {command[0]} is not installed", file=sys.stderr)
        return ["-", "-"]
    try:
        return [str(size) for size in compiled(command, text, header, folder) - compiled(command, *base, folder)]
    except MemoryError:
        return ["does not fit", ""]


def sizes(model, folder):
    """Bytes of tables and of programs on processors."""
    for precision in ("float", "int16"):
        try:
            header = model.to_c(precision=precision)
        except ValueError:
            yield [precision, "refused", *["" for _ in TARGETS]]
            continue
        told = re.search(r"Tables: (\d+) bytes", header)[1]
        program = PROGRAM.replace("CALL", call(model))
        yield [precision, told, *(beyond(name, program, header, (EMPTY, ""), folder)[0] for name in TARGETS)]


def sizes_beside_m2cgen(model, own_call, its_call, folder):
    """The program that wrote the code, and bytes of flash and memory on processors."""
    plain, features = PLAIN.format, model.n_features_in_
    code = plain(real="double", features=features, code=m2cgen.export_to_c(model))
    programs = [(f"m2cgen {m2cgen.__version__}", "double", its_call, code)]
    for precision, real in [("double", "double"), ("float", "float"), ("int16", "float")]:
        programs.append((f"relvec, {precision}", real, own_call, from_sklearn(model).to_c(precision=precision)))
    for by, real, called, header in programs:
        program = PROGRAM.replace("CALL", called)
        base = COPIES, plain(real=real, features=features, code="")
        names = ("ATmega328P", "Cortex-M4F")
        yield [by, *(cell for name in names for cell in beyond(name, program, header, base, folder))]


def main():
    every = models()
    print("| model | vectors x features | " + " | ".join(PRECISIONS) + " | ONNX, kB |")
    print("|---|---|" + "---|" * len(PRECISIONS) + "---|")
    for name, model, rows in every:
        shape = f"{len(model._model.relevance)} x {rows.shape[1]}"
        kilobytes = f"{len(model.to_onnx()) / 1000:.1f}"
        print(f"| {name} | {shape} | " + " | ".join([*onnx_errors(model, rows), kilobytes]) + " |")
    print("\n| model | precision | tables | " + " | ".join(TARGETS) + " |")
    print("|---|---|---|" + "---|" * len(TARGETS))
    with tempfile.TemporaryDirectory() as folder:
        for name, model, _ in every:
            for cells in sizes(model, Path(folder)):
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print("\n| model | vectors x features | code by | ATmega328P flash | RAM | Cortex-M4F flash | RAM |")
        print("|---|---|---|---|---|---|---|")
        for name, model, *calls in scikit_learn_models():
            shape = f"{len(model.support_)} x {model.n_features_in_}"
            for cells in sizes_beside_m2cgen(model, *calls, Path(folder)):
                print(f"| {name} | {shape} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
