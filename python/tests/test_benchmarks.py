"""What the benchmarks compute themselves."""

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support import rvc, rvr

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
GAMMA = 0.5


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    if not BENCHMARKS.exists():
        pytest.skip("the benchmarks are not there")
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (80, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(80)


def design(model, X):
    """Basis functions of a fitted machine, the constant last, and their precisions."""
    from learners import rbf

    Phi = np.column_stack([rbf(X, model.relevance_vectors_, GAMMA), np.ones(len(X))])
    return Phi, np.append(model.alpha_, model.intercept_alpha_)


def test_evidence_of_a_regression_is_that_of_relvec(rows):
    from evidence import Gaussian

    X, t = rows
    model = rvr(gamma=GAMMA).fit(X, t)
    Phi, alpha = design(model, X)
    own = Gaussian(Phi, t)
    beta = 1 / model.noise_variance_
    assert own(alpha, beta) == pytest.approx(model.log_evidence_, abs=1e-6)
    kept = np.isfinite(alpha)
    best = Gaussian(Phi[:, kept], t).optimum(alpha[kept], beta)
    # The fit has ended where no precision can be improved.
    assert model.log_evidence_ <= best + 1e-9
    assert best < model.log_evidence_ + 0.01


def test_evidence_of_classes_is_that_of_relvec(rows):
    from evidence import Laplace

    X, t = rows
    model = rvc(gamma=GAMMA).fit(X, (t > 0.3 * np.cos(5 * t)).astype(int))
    y = (t > 0.3 * np.cos(5 * t)).astype(float)
    Phi, alpha = design(model, X)
    assert Laplace(Phi, y)(alpha) == pytest.approx(model.log_evidence_, abs=1e-6)
    kept = np.isfinite(alpha)
    assert Laplace(Phi[:, kept], y).optimum(alpha[kept]) >= model.log_evidence_ - 1e-6


@pytest.mark.parametrize("name", ["Gaussian", "Laplace"])
def test_gradients_of_the_evidence(rows, name, monkeypatch):
    import evidence
    from learners import rbf

    X, t = rows
    Phi = rbf(X, X[:4], GAMMA)
    asked = []
    monkeypatch.setattr(evidence, "highest", lambda negative, start: asked.append((negative, start)))
    if name == "Gaussian":
        evidence.Gaussian(Phi, t).optimum(np.array([0.5, 1.0, 2.0, 3.0]), 20.0)
    else:
        evidence.Laplace(Phi, (t > 0).astype(float)).optimum(np.array([0.5, 1.0, 2.0, 3.0]))
    negative, start = asked[0]
    steps = 1e-4 * np.eye(len(start))
    slopes = [(negative(start + step)[0] - negative(start - step)[0]) / 2e-4 for step in steps]
    np.testing.assert_allclose(negative(start)[1], slopes, rtol=1e-5, atol=1e-5)


def test_time_to_an_evidence_is_counted_over_all_traces():
    from report import reached

    record = {"overhead": 0.5, "traces": [[[1.0, 2.0, 3.0], [-9.0, -5.0, -4.0]], [[0.25, 4.0], [-1.0, 0.0]]]}
    assert reached(record, [-5.0, -1.0]) == 0.5 + 2.0 + 0.25
    assert reached(record, [-5.0, 0.5]) is None
    assert reached({"wall": 1.0}, [-5.0]) is None


def test_cases_have_different_names_and_known_learners():
    from cases import all_cases
    from learners import LEARNERS

    cases = all_cases(BENCHMARKS)
    assert len({case.name for case in cases}) == len(cases) > len(all_cases(None))
    assert {entry.learner for case in cases for entry in case.entries} <= set(LEARNERS)


def test_draws_are_compared_pair_by_pair():
    from cases import Entry, friedman_data
    from draws import compare, on_from
    from report import draws

    data = friedman_data(60, 3)
    assert not np.array_equal(data.X, friedman_data(60, 4).X)
    found = compare("regression", data, (Entry("relvec"),))
    model = rvr(gamma=data.gamma).fit(data.X, data.t)
    assert found["relvec"][1] == model.log_evidence_
    off = data.center + data.scale * model.predict(data.X_test) - data.truth
    assert found["relvec"][0] == pytest.approx(np.sqrt(np.mean(off**2)))
    # A search that goes on from its end is there already.
    start = {
        "relevance": model.relevance_.tolist(),
        "alpha": model.alpha_.tolist(),
        "noise_variance": model.noise_variance_,
    }
    assert on_from(start, Entry("relvec"), data)[1] == pytest.approx(model.log_evidence_, abs=0.1)
    # Differences of 1 and 3: mean 2, standard error 1.
    runs = [
        {"kind": "regression", "fastrvm": [5.0, -9.0], "relvec": [5.0 + d, -7.0], "on": [4.0 + d, -8.0]}
        | {"ratios": [6.0 if d > 1.0 else None, d]}
        for d in (1.0, 3.0)
    ]
    line = draws({"a": runs}, 2, 1).splitlines()[-1]
    # An evidence that is never reached counts as 0.
    assert line == "| `a` | 5 | 7 | 2 +- 1 | 2 of 2 | 2 | 1 | 6, 1 of 2 | 3 (0 to 6) | 2 (1 to 3) |"
    line = draws({"a": [{**run, "kind": "classes"} for run in runs]}, 2, 1).splitlines()[-1]
    assert line.endswith("| 2 | - | - | 3 (0 to 6) | 2 (1 to 3) |")


def test_a_search_by_parts_is_that_of_all_candidates_where_those_are_few():
    from cases import friedman_data
    from parts import beside, tables
    from report import parts

    found = beside(friedman_data(80), 1)
    assert found["parts"]["evidence"] == pytest.approx(found["whole"]["evidence"], abs=1e-3)
    assert len(found["whole"]["evidence"]) == 5
    page = parts({"a": found}, 80, 1)
    assert page.endswith("| converged |\n")
    found["whole"]["evidence"] = [evidence + 3.0 for evidence in found["parts"]["evidence"]]
    found["whole"]["status"][2] = "time_limit"
    assert re.search(r"\| -3 \|.*\| converged, time_limit \|$", parts({"a": found}, 80, 1).strip())
    assert {len(data.X) for _, data in tables(50, None)} == {50}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_to_sums_keep_the_landmarks(rows):
    from report import solve as page
    from solve import solve

    X, t = rows
    found = solve(X, t, GAMMA, 12, 1)
    assert 0 < found["kernels"] <= 12 and found["status"] == "converged"
    text = page({"cholesky": [1e-3, 3e-3], "tables": {"kin40k": {**found, "wall": 0.5}}}, 1000, 1)
    assert "| 0.5 (goal 1.5) | 250 |" in text
    assert page({"failed": "no memory"}, 1000, 1) == "no memory\n"


def test_classes_are_beside_a_regression_of_the_same_rows():
    from classes import beside, simulated
    from report import classes

    X, t, labels = simulated(200)
    assert t.std() == pytest.approx(1.0) and 0.4 < labels.mean() < 0.6
    found = beside(X, t, labels, 1.0, 20, 1)
    assert (found["rows"], found["landmarks"]) == (200, 20)
    found["regression"]["cpu"], found["classes"]["cpu"] = 2.0, 3.0
    assert "| 2 | 3 | 1.5 |" in classes({"a": found}, 200, 20, 1)


def test_operations_are_those_of_every_instruction_of_ours(tmp_path, monkeypatch):
    import operations
    from report import operations as page

    # Operations of one instruction: numbers in a register, twice as many where it multiplies and adds.
    for words, expected in (
        ("vfmadd231pd %ymm0,%ymm1,%ymm2", 8),
        ("vfnmadd213pd (%rax),%zmm1,%zmm2", 16),
        ("vfmadd132sd %xmm0,%xmm1,%xmm2", 2),
        ("vaddps %ymm0,%ymm1,%ymm2", 8),
        ("mulpd %xmm0,%xmm1", 2),
        ("vsubsd %xmm0,%xmm1,%xmm2", 1),
        ("vmovapd %ymm0,%ymm1", 0),
        ("vpaddd %ymm0,%ymm1,%ymm2", 0),
        ("add %rax,%rbx", 0),
    ):
        assert operations.worth(*words.split(" ")) == expected, words
    ours = {16: 8, 20: 2}
    monkeypatch.setattr(operations, "instructions", lambda path: ours)
    profile = tmp_path / "profile"
    profile.write_text(
        "events: Ir\nob=(1) /a/relvec/relvec.so\nfn=(1) sweep\n0x10 3 100\n+4 3 10\n* 4 5\n"
        "cob=(2) /lib/libm.so\ncfn=(2) exp\ncalls=7 0x10\n0x10 3 999\n"
        "ob=(2)\nfn=(2)\n0x10 1 999\nob=(1)\nfn=(1)\n0x14 3 1\n"
    )
    assert operations.operations(profile) == 100 * 8 + 15 * 2 + 2
    found = {kind: {"operations": count, "kernels": 7} for kind, count in (("regression", 2e9), ("classes", 3e9))}
    assert "| 2 | 3 | 1.5 (goal 2) | 7, 7 |" in page({"a": found}, 200, 20, 1)
    assert page({"failed": "valgrind is not installed"}, 200, 20, 1) == "valgrind is not installed\n"


def test_calibration_error_is_that_of_the_display():
    from calibration import calibration_error
    from relvec.plotting import ReliabilityDisplay

    rng = np.random.default_rng(0)
    probability = rng.dirichlet([1.0, 1.0, 1.0], 300)
    truth = np.array(["a", "b", "c"])[rng.integers(3, size=300)]
    classes = np.array(["a", "b", "c"])
    pytest.importorskip("matplotlib").use("Agg")
    display = ReliabilityDisplay.from_predictions(truth, probability, classes=classes)
    assert calibration_error(truth, probability, classes) == pytest.approx(display.calibration_error, rel=1e-12)
    display.figure_.clear()


def test_splits_of_calibration_are_standardised_by_their_training_rows(tmp_path):
    from calibration import splits

    rng = np.random.default_rng(0)
    X = np.column_stack([5.0 + 3.0 * rng.standard_normal(40), np.ones(40)])
    order = np.array([rng.permutation(40) for _ in range(3)])
    np.savez(
        tmp_path / "ida_benchmarks.npz",
        toy__X=X,
        toy__y=np.repeat([-1, 1], 20),
        toy__train_idx=order[:, :30],
        toy__test_idx=order[:, 30:],
    )
    found = list(splits(tmp_path, "toy", 2))
    assert len(found) == 2
    for (own, labels, test, truth), rows in zip(found, order, strict=False):
        assert (own.shape, test.shape, len(labels), len(truth)) == ((30, 2), (10, 2), 30, 10)
        assert own.mean(axis=0) == pytest.approx([0.0, 0.0], abs=1e-12)
        assert own[:, 0].std() == pytest.approx(1.0) and np.all(test[:, 1] == 0.0)
        assert test[:, 0] == pytest.approx((X[rows[30:], 0] - X[rows[:30], 0].mean()) / X[rows[:30], 0].std())


@pytest.fixture
def reproduce():
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    return importlib.import_module("reproduce")


def test_experiments_reach_the_values_worked_out_by_hand(reproduce, tmp_path, capsys):
    reproduce.main(["--quick", "--only", "textbook,sinc50", "--out", str(tmp_path)])
    report = (tmp_path / "report.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report.splitlines() if line.startswith("| ")]
    found = {(machine, quantity): own for machine, quantity, *own in rows}
    by_hand = {
        ("SVM, three points", "w1"): 0.5,
        ("SVM, three points", "w2"): 0.5,
        ("SVM, three points", "b"): -2.0,
        ("SVM, three points", "margin"): np.sqrt(2.0),
        ("SVM, three points", "support vectors"): 2.0,
        ("SVM, exclusive or", "multiplier"): (1.0 - np.exp(-2.0)) ** -2,
        ("SVM, exclusive or", "b"): 0.0,
        ("SVM, exclusive or", "support vectors"): 4.0,
        ("SVM, exclusive or", "error, %"): 0.0,
    }
    for row, value in by_hand.items():
        assert float(found[row][1]) == pytest.approx(value, abs=1e-3), row
        assert found[row][4] == "yes", row
    for C in ("0.1", "1", "100", "infinity"):
        assert {(f"SVM, C {C}, gamma {gamma}", "error, %") for gamma in ("0.1", "1", "10")} <= set(found)
    for machine in ("RVM", "RVM, variational"):
        paper, ours, _, repeats, *_ = found[machine, "error (root mean square)"]
        assert (paper, repeats) == ("0.0494", "5")
        assert float(ours) == pytest.approx(0.0494, abs=0.02)
    figures = re.findall(r"!\[.*?\]\((.*?)\)", report)
    assert len(figures) == 7
    assert all("<svg" in (tmp_path / name).read_text() for name in figures)
    assert "| sinc50 | RVM | kernels | 6.9 |" in capsys.readouterr().out


def test_a_figure_is_met_within_the_bounds_of_its_kind(reproduce):
    def met(aim, paper, *values, **own):
        return reproduce.Row("RVM", "a quantity", paper, np.array(values), "", aim, **own).met

    # The mean is 1.2, the standard error 0.2 / sqrt(3).
    assert met(reproduce.ERROR, 1.0, 1.0, 1.2, 1.4)
    assert met(reproduce.ERROR, 0.9, 1.0, 1.2, 1.4) is False
    assert met(reproduce.ERROR, 1.0, 1.1) is False
    assert met(reproduce.ERROR, 1.0, 1.1, spread=0.05)
    assert met(reproduce.KERNELS, 10.0, 13.0)
    assert met(reproduce.KERNELS, 10.0, 13.1) is False
    assert met(reproduce.HAND, -2.0, -2.00001)
    assert met(reproduce.HAND, -2.0, -2.0001) is False
    assert met(reproduce.SHOWN, 1.0, 0.5) is None
    assert met(reproduce.ERROR, None, 0.5) is None


def test_settings_are_chosen_by_the_least_loss_of_cross_validations(reproduce, rows):
    candidates = [{"gamma": gamma, "C": 10.0, "epsilon": 0.1} for gamma in (1e-4, 0.5, 1e4)]
    machine, words = reproduce.choose(reproduce.scaled_svr, candidates, [rows, rows])
    assert words.startswith("C 10 sd(t), epsilon 0.1 sd(t), gamma 0.5 by 5-fold cross-validation")
    # Cost and tube in units of the spread of the targets.
    X, t = rows
    own = reproduce.SVR(gamma=0.5, C=10.0 * t.std(), epsilon=0.1 * t.std(), tol=1e-8)
    machine.regressor[-1].set_params(tol=1e-8)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(machine.fit(X, t).predict(X), own.fit(scaled, t).predict(scaled), atol=1e-5)


def test_an_experiment_that_is_unknown_or_has_no_table_is_an_error(reproduce, tmp_path, capsys):
    for arguments, told in (
        (["--only", "sinc,cosc"], "cosc: expected some of textbook, sinc, "),
        (["--only", "pima"], "pima needs pima_train.csv, pima_test.csv (no --data FOLDER is given)"),
        (["--data", str(tmp_path), "--only", "sinc,boston"], f"boston needs boston_housing.csv (not in {tmp_path})"),
    ):
        with pytest.raises(SystemExit) as end:
            reproduce.parsed(arguments)
        assert end.value.code == 2
        assert told in capsys.readouterr().err
    bench = reproduce.Bench(tmp_path, True, tmp_path)
    for text, found in (("a,b\n1,2\n", "only a, b"), ("a,target\n1,2\nx,\n", "no numbers in a, target")):
        (tmp_path / "table.csv").write_text(text)
        with pytest.raises(SystemExit, match=f"table.csv: expected numbers and a column `target`; found .*{found}"):
            bench.read("table.csv")
    (tmp_path / "table.csv").write_text("a,target\n1,2\n3,4\n")
    X, t = bench.read("table.csv")
    assert (X.tolist(), t.tolist()) == ([[1.0], [3.0]], [2.0, 4.0])
