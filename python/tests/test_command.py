"""The wheel's command, and one model file for Python, the command line and Rust."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import relvec
from support import GOLDEN, rvc, rvr

CASES = [
    "reg_sinc_gauss_n40",
    "reg_2d_gauss_n50",
    "reg_spline_fixednoise_n24",
    "reg_vb_n30",
    "cls_1d_gauss_n36",
    "cls_2d_gauss_n50",
    "cls_vb_jj_n30",
    "target_surface2d_s1_n1000",
    "target_friedman1_s1_n1000",
]


def command(*args, cwd=None):
    """Run the command ``relvec`` that was installed with the package."""
    name = "relvec.exe" if os.name == "nt" else "relvec"
    path = Path(sys.executable).parent / name
    return subprocess.run([str(path), *map(str, args)], cwd=cwd, capture_output=True, text=True, timeout=300)


def read(path):
    """A table of numbers with every digit."""
    with open(path) as file:
        names = file.readline().strip().split(",")
    return pd.DataFrame(np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2), columns=names)


def golden(case):
    """A golden table and the kernel that belongs to it."""
    table = read(GOLDEN / f"{case}.csv")
    if case.startswith("target"):
        return table, "rbf", 2.0 if "surface" in case else 0.03
    values = json.loads((GOLDEN / f"{case}.json").read_text())
    return table, *(("rbf", values["gamma"]) if values["kernel"] == "gaussian" else (values["kernel"], None))


@pytest.mark.filterwarnings("ignore::relvec.InterpolationWarning")
@pytest.mark.parametrize("case", CASES)
def test_python_and_the_command_write_the_same_model(case, tmp_path):
    table, kernel, gamma = golden(case)
    classes = case.startswith("cls")
    args = ["--target", "t", "--task", "classify" if classes else "regress", "--no-standardize", "--kernel", kernel]
    args += ["--preset", "tipping2001"]
    if gamma is not None:
        args += ["--set", f"kernel.gamma={json.dumps(gamma)}"]
    run = command("fit", GOLDEN / f"{case}.csv", *args, "-o", tmp_path / "command.json")
    assert run.returncode == 0, run.stderr

    X, t = table.drop(columns="t"), table["t"]
    model = rvc(kernel) if classes else rvr(kernel)
    model.set_params(**({} if gamma is None else {"gamma": gamma}))
    model.fit(X, t.astype(int) if classes else t).save(tmp_path / "python.json")
    assert (tmp_path / "python.json").read_bytes() == (tmp_path / "command.json").read_bytes()

    # And both ways: each reads the other's file, and predicts the same.
    rows = X.iloc[:7]
    rows.to_csv(tmp_path / "rows.csv", index=False, float_format="%.17g")
    run = command("predict", tmp_path / "python.json", tmp_path / "rows.csv", "-o", tmp_path / "out.csv")
    assert run.returncode == 0, run.stderr
    out = read(tmp_path / "out.csv")
    loaded = relvec.load(tmp_path / "command.json")
    if classes:
        np.testing.assert_array_equal(out["prediction"], loaded.predict(rows))
        assert loaded.classes_.dtype.kind == "i"
        np.testing.assert_allclose(out[["probability_0", "probability_1"]], loaded.predict_proba(rows), rtol=1e-12)
    else:
        mean, std = loaded.predict(rows, return_std=True)
        np.testing.assert_array_equal(out["prediction"], mean)
        np.testing.assert_allclose(out["std"], std, rtol=1e-15)


def test_a_model_that_standardises(tmp_path):
    """The command line's models carry their scaling: raw rows go in, relevance vectors are raw rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": 1e3 * rng.normal(size=60) + 5e3, "b": 1e-3 * rng.normal(size=60)})
    t = pd.Series(np.sin(X["a"] / 1e3) + 100 * X["b"], name="y")
    X.assign(y=t).to_csv(tmp_path / "d.csv", index=False, float_format="%.17g")
    assert command("fit", "d.csv", "--target", "y", "-o", "m.json", cwd=tmp_path).returncode == 0
    model = relvec.load(tmp_path / "m.json")
    np.testing.assert_allclose(model.relevance_vectors_, X.to_numpy()[model.relevance_], rtol=1e-12)
    assert np.corrcoef(model.predict(X), t)[0, 1] > 0.9
    assert command("predict", "m.json", "d.csv", "-o", "p.csv", cwd=tmp_path).returncode == 0
    predicted = read(tmp_path / "p.csv")["prediction"]
    np.testing.assert_array_equal(predicted, model.predict(X))
    # Saved again by Python it is the same file.
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_a_model_without_feature_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = rvr().fit(X, X[:, 0])
    model.save(tmp_path / "m.json")
    np.savetxt(tmp_path / "d.csv", X, delimiter=",", header="p,q", comments="", fmt="%.17g")
    run = command("predict", "m.json", "d.csv", "-o", "p.csv", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    predicted = read(tmp_path / "p.csv")["prediction"]
    np.testing.assert_array_equal(predicted, model.predict(X))
    assert "40 rows, 2 features" in command("inspect", "m.json", cwd=tmp_path).stdout


def test_an_external_kernel_is_for_who_computes_it(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    rvr(lambda a, b: np.exp(-((a[:, None] - b[None]) ** 2).sum(-1))).fit(X, X[:, 0]).save(tmp_path / "m.json")
    (tmp_path / "d.csv").write_text("p,q\n1,2\n")
    run = command("predict", "m.json", "d.csv", "-o", "p.csv", cwd=tmp_path)
    assert run.returncode == 1 and "external" in run.stderr
    assert not (tmp_path / "p.csv").exists()


def test_exit_codes_and_version(tmp_path):
    assert command("--version").stdout.strip() == f"relvec {relvec.__version__}"
    module = subprocess.run([sys.executable, "-m", "relvec", "--version"], capture_output=True, text=True, timeout=60)
    assert module.stdout.strip() == f"relvec {relvec.__version__}"
    assert command("inspect", "none.json", cwd=tmp_path).returncode == 1
    assert command("fit", "d.csv", "--target", "y", "--kernel", "none", "-o", "m.json", cwd=tmp_path).returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_the_command(tmp_path):
    import signal
    import time

    # A fit of ten seconds and more: a smooth target in ten features, every row a candidate.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(8000, 10))
    y = np.sin(3 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + X[:, 3] + 0.1 * rng.normal(size=8000)
    header = ",".join("abcdefghijy")
    np.savetxt(tmp_path / "d.csv", np.column_stack([X, y]), delimiter=",", header=header, comments="")
    path = Path(sys.executable).parent / "relvec"
    words = [str(path), "fit", "d.csv", "--target", "y", "--preset", "tipping2001", "-v", "-o", "m.json"]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        run.stderr.readline()  # the fit has begun
        time.sleep(0.2)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == -signal.SIGINT
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.csv"]
