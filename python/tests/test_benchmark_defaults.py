"""What the benchmark of fits without settings computes itself."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    if not BENCHMARKS.exists():
        pytest.skip("the benchmarks are not there")
    pytest.importorskip("pandas")
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((70, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(70)
    return X, (y - y.mean()) / y.std()


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("priors", ["PRIORS", "PRIORS_FEW"])
def test_gradient_of_the_dense_process_is_that_of_differences(rows, each, priors):
    import dense_process

    X, y = rows
    objective = dense_process.Objective(X, np.column_stack([y, y**2]), getattr(dense_process, priors), each)
    theta = objective.start() + 0.2 * np.arange(len(objective.start()))
    steps = 1e-5 * np.eye(len(theta))
    slopes = [(objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5 for step in steps]
    np.testing.assert_allclose(objective(theta)[1], slopes, rtol=1e-6, atol=1e-6)


def test_dense_process_predicts_as_scikit_learn_does_at_its_kernel(rows):
    from dense_process import DenseProcess
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = rows
    own = DenseProcess().fit(X, y)
    # The feature that says nothing has the least width, and a width of each feature is worth its price.
    assert own.each_ and own.structure_ and own.gamma_.argmin() == 2
    kernel = ConstantKernel(own.amplitude_) * RBF((2.0 * own.gamma_) ** -0.5) + ConstantKernel(1.0)
    other = GaussianProcessRegressor(kernel, alpha=own.noise_variance_, optimizer=None).fit(X, y)
    X_test = np.random.default_rng(1).standard_normal((30, 3))
    mean, std = own.predict(X_test)
    expected, spread = other.predict(X_test, return_std=True)
    np.testing.assert_allclose(mean[:, 0], expected, atol=1e-8)
    np.testing.assert_allclose(std, np.sqrt(spread**2 + own.noise_variance_), rtol=1e-8)
    # Leaving a row out by the formula is leaving it out, the kernel held.
    without = GaussianProcessRegressor(kernel, alpha=own.noise_variance_, optimizer=None)
    at = int(np.flatnonzero(own.rows == 5)[0])
    keep = np.arange(70) != 5
    expected = without.fit(X[keep], y[keep]).predict(X[5:6])
    assert own.left_out()[at, 0] == pytest.approx(expected[0], abs=1e-8)


def test_dense_process_finds_a_constant_in_noise():
    from dense_process import DenseProcess

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    own = DenseProcess().fit(X, (y - y.mean()) / y.std())
    mean, std = own.predict(X[:3])
    assert not own.structure_
    assert mean == pytest.approx(0.0, abs=1e-12)
    # The unbiased variance, and that of the mean.
    assert std == pytest.approx(np.sqrt(50 / 49 * 51 / 50))


def test_dense_classes_have_probabilities_of_their_own_temperature():
    from dense_process import DenseClasses

    rng = np.random.default_rng(0)
    y = np.repeat([3, 5, 9], 30)
    X = np.column_stack([y + rng.standard_normal(90), rng.standard_normal(90), np.ones(90)])
    X[:, 0] = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    p = DenseClasses().fit(X, y).predict_proba(X)
    assert p.sum(axis=1) == pytest.approx(1.0)
    loss = -np.log(p[np.arange(90), np.searchsorted([3, 5, 9], y)]).mean()
    assert np.mean(np.array([3, 5, 9])[p.argmax(axis=1)] != y) < 0.2 and loss < 0.5


def test_draws_are_standardised_by_their_training_rows(tmp_path):
    from defaults_tables import TABLES, draw

    (tmp_path / "boston_housing.csv").write_text(
        "a,b,target\n" + "".join(f"{i},{i % 7},{i * i}\n" for i in range(200)), encoding="utf-8"
    )
    for name in ("friedman1", "grid", "boston"):
        own = draw(TABLES[name], 50, 0, tmp_path)
        assert own.X.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
        assert own.X.std(axis=0) == pytest.approx(1.0) and own.y.std() == pytest.approx(1.0)
        assert abs(own.X_test.mean()) > 1e-6 and len(own.y_test) >= 100
        assert draw(TABLES[name], 50, 0, tmp_path).digest == own.digest != draw(TABLES[name], 50, 1, tmp_path).digest
    # 100 rows to predict are not left.
    assert draw(TABLES["boston"], 200, 0, tmp_path) is None
    iris = draw(TABLES["iris"], 300, 0, tmp_path)
    assert (len(iris.X), len(iris.X_test)) == (105, 45)
    assert set(iris.y) == {0.0, 1.0, 2.0}


def test_outliers_are_among_the_training_rows_alone(tmp_path):
    from defaults_tables import TABLES, draw

    own = draw(TABLES["outliers"], 1000, 0, tmp_path)
    assert np.abs(own.y).max() > 2.0 * np.abs(own.y_test).max()


def bench(monkeypatch, *arguments):
    import defaults

    monkeypatch.setattr(sys, "argv", ["defaults.py", *map(str, arguments)])
    defaults.main()


def test_results_of_a_small_run_are_kept_and_told(tmp_path, monkeypatch, capsys):
    import defaults

    small = ["--data", tmp_path, "--work", tmp_path / "work", "--only", "noise,line1,iris", "--draws", 1]
    small += ["--sizes", "25,20,300", "--methods", "dense,relvec,linear,svm"]
    bench(monkeypatch, *small)
    records = [json.loads(line) for line in (tmp_path / "work" / "results.jsonl").read_text().splitlines()]
    assert {(r["table"], r["size"], r["method"]) for r in records} == {
        (table, size, method)
        for table, size in (("noise", 25), ("line1", 20), ("iris", 300))
        for method in ("dense", "relvec", "linear", "svm")
    }
    assert all("failed" not in record and record["cpu"] > 0.0 for record in records)
    line = next(r for r in records if (r["table"], r["method"]) == ("line1", "linear"))
    assert line["r2"] == pytest.approx(1.0, abs=1e-6) and line["rmse"] < 1e-3
    page = (tmp_path / "work" / "defaults.md").read_text(encoding="utf-8")
    assert "| noise | 25 | 25 | 25 |" not in page and "### Coverage of 95 % intervals [%]" in page
    capsys.readouterr()
    # Nothing is measured twice.
    monkeypatch.setattr(defaults, "measured", lambda *_: pytest.fail("measured again"))
    bench(monkeypatch, *small)
    bench(monkeypatch, "--data", tmp_path, "--work", tmp_path / "work", "--summary")
    text = capsys.readouterr().out
    assert text.count("R2 of exact lines") == 2 and "\n iris   300 " in text
    with (tmp_path / "work" / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"table": "noi')
    with pytest.raises(SystemExit, match=r"results\.jsonl, line 13: expected a result"):
        bench(monkeypatch, *small)


def test_results_of_another_version_are_left_out(tmp_path, monkeypatch):
    import defaults
    import defaults_methods

    small = ["--data", tmp_path, "--work", tmp_path, "--only", "noise", "--sizes", "25", "--draws", 1]
    small += ["--methods", "dense"]
    bench(monkeypatch, *small)
    assert len(defaults.Results(tmp_path).current()) == 1
    monkeypatch.setattr(defaults_methods, "content", lambda module: "another")
    assert defaults.Results(tmp_path).current().empty


def test_methods_that_fail_or_do_not_exist_are_told(tmp_path, monkeypatch, capsys):
    import defaults
    import defaults_methods
    from defaults_methods import Method

    def fail(draw):
        raise ValueError("no kernel")

    methods = {"relvec": Method("fails", fail), "ard": Method("unknown", defaults_methods.relvec_regression(colour=1))}
    for module in (defaults, defaults_methods):
        monkeypatch.setattr(module, "METHODS", methods)
    bench(monkeypatch, "--data", tmp_path, "--work", tmp_path, "--only", "noise", "--sizes", "25", "--draws", 2)
    found = defaults.Results(tmp_path).current().set_index(["method", "draw"])
    assert found.failed["relvec", 0] == "ValueError: no kernel"
    assert found.skipped["ard", 1] == "the installed relvec has no parameter colour"
    out = capsys.readouterr().out
    assert "no  default fits that failed: 2 (at most 0)" in out and "noise 25 0 relvec ValueError: no kernel" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--only", "nose"], "nose: expected some of sinc"), (["--methods", "x"], "expected some")],
)
def test_unknown_names_are_refused(tmp_path, monkeypatch, capsys, arguments, message):
    with pytest.raises(SystemExit):
        bench(monkeypatch, "--data", tmp_path, *arguments)
    assert message in capsys.readouterr().err


def test_figures_are_compared_table_by_table(monkeypatch):
    import defaults_figures

    def record(table, size, draw, method, **own):
        return {"table": table, "size": size, "draw": draw, "method": method, **own}

    records = [
        record("sinc", 100, draw, method, nlpd=nlpd, coverage=coverage, centres=centres, cpu=cpu)
        for draw, method, nlpd, coverage, centres, cpu in (
            (0, "dense", 0.1, 0.95, 100, 1.0),
            (0, "relvec", 0.14, 0.91, 20, 1.0),
            (1, "dense", 0.3, 0.95, 100, 1.0),
            (1, "relvec", 0.34, 0.95, 40, 1.0),
            # A draw that the dense process has not seen.
            (2, "relvec", 9.0, 0.0, 100, 1.0),
        )
    ]
    records += [
        record("grid", 100, 0, method, nlpd=nlpd, coverage=0.95, centres=10)
        for method, nlpd in (("dense", 1.0), ("relvec", 0.9))
    ]
    records += [record("sinc", 200, 0, "gp", cpu=10.0), record("sinc", 200, 0, "relvec", cpu=1.0, nlpd=0.0)]
    # With no part in the means.
    records += [record("line1", 20, 0, "relvec", nlpd=9.0, r2=0.98), record("line1", 20, 0, "dense", nlpd=-9.0, r2=1.0)]
    records += [record("noise", 50, 0, "relvec", centres=3), record("noise", 50, 0, "dense", centres=0)]
    records += [record("noise", 50, 1, "relvec", centres=7), record("noise", 50, 1, "dense", centres=50)]
    records += [
        record("california", 10_000, d, "relvec", rmse=r, nlpd=0.5, cpu=3.0) for d, r in enumerate((0.5, 0.6, 9.0))
    ]
    for table, svm, own, vectors in (("ripley", 0.2, 0.1, 100), ("digits", 0.4, 0.4, 200), ("iris", 0.1, 0.0, 20)):
        records.append(record(table, 300, 0, "svm", loss=svm, error=0.1, centres=vectors, cpu=2.0))
        records.append(record(table, 300, 0, "relvec", loss=own, error=0.05, centres=vectors // 4, cpu=0.7))
    monkeypatch.setattr(defaults_figures, "EARLIER", {"california": (0.5, 0.45, 6.0)})
    found = {goal.what: (goal.found, goal.reached) for goal in defaults_figures.goals(defaults_figures.frame(records))}
    assert found["mean NLPD above the dense process, 100 rows"] == ("-0.030", True)
    assert found["mean NLPD above the dense process, 400 rows"] == ("not measured", None)
    assert found["NLPD above the dense process, worst table, 80 to 400 rows"] == ("0.040 (sinc, 100)", True)
    assert found["coverage of 95 % intervals below the dense process's, worst table"] == ("2.0 points (sinc)", True)
    assert found["CPU seconds beside scikit-learn's process, 200 rows"] == ("0.100", True)
    assert found["R2 of exact lines, least of any draw"] == ("0.98000", False)
    noise = "centres of pure noise, most of the draws in which the dense process finds none"
    assert found[noise] == ("3 (1 of 2 draws)", False)
    assert found["california, 10,000 rows, beside earlier learned widths: RMSE, ratio"] == ("1.200", False)
    assert found["california, 10,000 rows, beside earlier learned widths: CPU seconds, ratio"] == ("0.50", True)
    assert found["two classes: mean log loss beside SVC + Platt, ratio"] == ("0.500", True)
    assert found["several classes: mean log loss beside SVC + Platt, ratio"] == ("0.800", True)
    assert found["several classes: centres beside the support vectors, ratio"] == ("0.25", True)
    assert found["digits, 300 rows: error"] == ("5.0 %", True)
    assert found["digits, 300 rows: CPU seconds of a fit"] == ("0.70", False)
