"""What is printed of an estimator, of its summary and its report; and what warnings say."""

import copy
import json
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from relvec import RVC, RVR, SVC, SVR, InterpolationWarning, NuSVC, NuSVR, _core, load
from relvec._progress import end_line
from relvec._report import LINES, WIDTH, Report
from relvec._text import listed, share, significant
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support import ROOT, rvc, rvr, sinc, two_classes

PINNED = ROOT / "crates" / "relvec" / "tests" / "pinned"
X, T = sinc(60)
IRIS = load_iris(return_X_y=True)
FITS = {
    "process": lambda: RVR(folds=3).fit(X, T),
    "learned": lambda: rvr(kernel="auto", gamma="evidence", folds=3, sparsity="cv").fit(X, T),
    "centres": lambda: rvr(gamma=0.1, dictionary=6, centres="learned").fit(X, T),
    "variational": lambda: rvr(gamma=0.1, search="variational").fit(X, T),
    "student_t": lambda: rvr(gamma=0.1, likelihood="student_t").fit(X, T),
    "several": lambda: rvc(multi_class="one_vs_rest").fit(*IRIS),
    "labels": lambda: RVC().fit(*IRIS),
    "support": lambda: SVC().fit(*IRIS),
    "interpolating": lambda: rvr(gamma=1e4).fit(X, T),
}


@pytest.mark.parametrize("name", FITS)
def test_reports_print_in_ten_lines(name):
    report = FITS[name]().report_
    lines = repr(report).splitlines()
    assert len(lines) <= LINES and max(map(len, lines)) <= WIDTH
    assert lines[0].startswith("status converged, iterations ")
    for key in report:
        assert key in repr(report)
    assert "array(" not in repr(report)


def test_summaries_name_the_share_of_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (100, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(100)
    model = RVR().fit(X, y)
    share = model.noise_variance_**0.5 / y.std()
    assert model.report_["noise_share"] == model.summary().as_dict()["noise_share"] == share
    assert f" ({100.0 * share:.2g} % of that of the target)" in str(model.summary())
    for others in [(X, y, np.full(100, 2.0)), (X, np.stack([y, y], axis=1)), (X, np.ones(100))]:
        assert "noise_share" not in model.fit(*others).report_
        assert "of that of the target" not in str(model.summary())


def test_reports_are_dictionaries():
    report = FITS["learned"]().report_
    plain = dict(report)
    assert isinstance(report, Report) and list(report) == list(plain)
    for again in (copy.deepcopy(report), pickle.loads(pickle.dumps(report))):
        assert type(again) is Report and list(again) == list(plain)
        assert again["kernel_search"] == plain["kernel_search"] and again["status"] == "converged"
        assert_array_equal(again["log_evidence"], plain["log_evidence"])
    small = Report(status="converged", iterations=3)
    assert small == {"status": "converged", "iterations": 3} and repr(small) == "status converged, iterations 3"


def test_reports_survive_the_pickle_of_their_estimator():
    model = FITS["process"]()
    again = pickle.loads(pickle.dumps(model))
    assert type(again.report_) is Report and repr(again.report_) == repr(model.report_)
    assert type(model.__getstate__()["report_"]) is dict


def described(path, capfd):
    """The lines of ``relvec inspect``: those with labels, and the rows of the table."""
    assert _core.main(["relvec", "inspect", str(path)]) == 0
    _, labelled, table, *_ = capfd.readouterr().out.split("\n\n")
    return [line for line in labelled.splitlines() if not line.startswith("file ")], table


def weights_of(table):
    """The rows of a table, split; neither its head nor what is said below it."""
    return [line.split() for line in table.splitlines() if re.match(r" *(\d+|intercept) +-?(\d|inf)", line)]


@pytest.mark.parametrize("path", sorted(PINNED.glob("[!p]*.json")), ids=lambda path: path.stem)
def test_summaries_say_what_the_command_says(path, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    labelled, table = described(path, capfd)
    model = load(path)
    _, own, *parts = str(model.summary()).split("\n\n")
    (own_table,) = (part for part in parts if "----" in part)
    for ours, theirs in zip(own.splitlines(), labelled, strict=True):
        # The names of the outputs are the command's affair.
        assert ours == theirs or (theirs.endswith("standard deviations ") and ours.startswith(theirs))
    assert weights_of(own_table) == weights_of(table) and own_table.splitlines()[1].strip("-") == ""


@pytest.mark.parametrize("path", sorted(PINNED.glob("[!p]*.json")), ids=lambda path: path.stem)
def test_summaries_hold_what_the_command_writes_as_json(path, capfd):
    assert _core.main(["relvec", "inspect", "--json", str(path)]) == 0
    own = load(path).summary().as_dict()
    for key, value in json.loads(capfd.readouterr().out).items():
        if key.startswith("noise_std") and value is not None:
            assert own[key] == pytest.approx(value, rel=1e-14)
        elif key != "format_version":
            assert own[key] == value, key
    assert json.loads(json.dumps(own, allow_nan=False)) == own


ALL = {"RVR": RVR, "RVC": RVC, "SVC": SVC, "SVR": SVR, "NuSVC": NuSVC, "NuSVR": NuSVR}


@pytest.mark.parametrize("name", ALL)
def test_estimators_print_their_parameters_and_what_was_fitted(name):
    model = ALL[name](gamma=0.5)
    assert str(model) == repr(model) == f"{name}(gamma=0.5)"
    with pytest.raises(NotFittedError):
        model.summary()
    X, y = two_classes(60)
    model.fit(X, y)
    parameters, fitted = str(model).split("\n")
    assert parameters == repr(model) == f"{name}(gamma=0.5)"
    vectors = "support vector" if name not in ("RVR", "RVC") else "centre"
    n = len(model._model.relevance)
    assert f"{n} {vectors}{'s' * (n != 1)} of 60 rows" in fitted and re.search(r", converged in [\w. ]+ s$", fitted)
    assert str(model.summary()).startswith(f"{name}: ") and str(model.summary()) == repr(model.summary())


def test_several_outputs_and_classes_are_printed():
    outputs = RVR().fit(X, np.column_stack([T, -T]))
    assert (
        str(outputs).split("\n")[1].startswith(f"2 outputs, {len(outputs.centres_)} centres of 60 rows, log evidence ")
    )
    assert "standard deviations" in str(outputs.summary()) and "output 1" in str(outputs.summary())
    target = pd.DataFrame({"left": T, "right": -2.0 * T})
    named = str(RVR().fit(X, target).summary())
    assert "regression of `left`, `right` on 1 feature" in named and "(right)" in named
    pairs = rvc(multi_class="one_vs_one").fit(*IRIS)
    assert str(pairs).split("\n")[1].startswith(f"3 classes, {len(pairs.relevance_)} relevance vectors of 150 rows, ")
    assert "1/0: positive weights are evidence for the first of the two classes" in str(pairs.summary())


def test_warnings_of_a_fit_are_printed():
    with pytest.warns(InterpolationWarning):
        model = rvr(gamma=1e4).fit(X, T)
    assert str(model).endswith("; 1 warning: see summary()")
    text = str(model.summary())
    assert "suspected: intervals may be too narrow" in text
    assert " ".join(f"warning: {model.report_['warnings'][0]}".split()) in " ".join(text.split())
    with pytest.warns(ConvergenceWarning):
        late = rvr(gamma=0.1, search="mackay", time_limit=1e-9).fit(X, T)
    text = " ".join(str(late.summary()).split())
    assert re.search(r"; not converged, time limit after (under 0\.01|[\d.]+) s ", text)
    assert "Raise time_limit." in str(late.summary())


def test_warnings_of_a_loaded_model_are_printed(tmp_path):
    with pytest.warns(InterpolationWarning):
        rvr(gamma=1e4).fit(X, T).save(tmp_path / "model.json")
    model = load(tmp_path / "model.json")
    assert "converged after" in str(model) and str(model).endswith("; 1 warning: see summary()")
    assert model.summary().as_dict()["warnings"][0].startswith("the model shows signs of interpolating")
    assert "seconds" not in model.summary().as_dict()
    # A name is not taken for a key of the file.
    X2 = pd.DataFrame({'a "interpolates":true b': X[:, 0]})
    rvr(gamma=0.1).fit(X2, T).save(tmp_path / "named.json")
    assert load(tmp_path / "named.json").summary().as_dict()["warnings"] == []


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("name", FITS)
def test_summaries_fit_the_terminal(name, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = str(FITS[name]().summary())
    assert max(map(len, text.splitlines())) <= width


def test_names_cannot_break_the_text():
    names = ["a\nb", "\x1b[31mred", "x" * 300]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=names)
    text = str(RVR(gamma="evidence-ard").fit(frame, frame["a\nb"] ** 2 + rng.normal(size=60)).summary())
    assert "\x1b" not in text and "a\\nb" in text and "x" * 201 not in text


def test_many_outputs_are_counted():
    many = np.column_stack([np.roll(T, k) for k in range(12)])
    text = str(RVR(gamma=0.1).fit(X, many).summary())
    assert "weights of 6 outputs more not shown" in text or "outputs more not shown; dual_coef_ has them" in text


@pytest.mark.parametrize("name", FITS)
def test_cards_are_small_and_without_scripts(name):
    model = FITS[name]()
    card = model.summary()._repr_html_()
    assert len(card.encode()) <= 20_000 and "<script" not in card
    assert ("relvec amber" in card) == (name == "interpolating") == ("<b>Warning:</b>" in card)
    assert "prefers-color-scheme:dark" in card
    parser = Balanced()
    parser.feed(card)
    assert parser.open == []
    assert (
        "log evidence of the search by iteration" in card
        or len(model.report_.get("log_evidence", [])) < 3
        or name == "several"
    )


class Balanced(HTMLParser):
    """Fails on tags that are closed in another order than they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_names_are_escaped_in_cards():
    bad = '<script>alert("&")</script>'
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 2)), columns=[bad, "<b>"])
    classes = np.array([bad, "<i>", "</style>"])[np.digitize(frame[bad], [-0.5, 0.5])]
    model = RVC(gamma="evidence-ard").fit(frame, pd.Series(classes, name="</div>"))
    card = model.summary()._repr_html_()
    assert "<script" not in card and "<i>" not in card and card.count("</style>") == 1 and "alert(&quot;" in card
    parser = Balanced()
    parser.feed(card)
    assert parser.open == [] and any("<script>alert" in text for text in parser.texts)


def test_cards_of_long_names_are_small():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 40)), columns=["<" * 500 + str(i) for i in range(40)])
    target = pd.DataFrame(
        rng.normal(size=(60, 30)) + frame.to_numpy()[:, :30], columns=["&" * 500 + str(i) for i in range(30)]
    )
    assert len(RVR(gamma="evidence-ard").fit(frame, target).summary()._repr_html_().encode()) <= 20_000
    y = np.array(["<" * 500 + str(i) for i in range(12)])[np.arange(60) % 12]
    assert len(rvc(multi_class="one_vs_one").fit(frame, y).summary()._repr_html_().encode()) <= 20_000


@pytest.mark.parametrize("name", ALL)
def test_notebooks_show_a_card_above_the_diagram(name):
    model = ALL[name](gamma=0.5)
    diagram = model._repr_html_()
    assert 'class="relvec' not in diagram and "sk-container" in diagram
    model.fit(*two_classes(60))
    shown = model._repr_html_()
    assert (
        shown.startswith('<div style="font:12px system-ui,sans-serif"><div class="relvec"')
        and "<details><summary>parameters</summary><style>" in shown
    )
    assert model._repr_mimebundle_()["text/plain"] == repr(model)
    assert model._repr_mimebundle_()["text/html"].startswith(
        '<div style="font:12px system-ui,sans-serif"><div class="relvec"'
    )
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_") and "text/html" not in model._repr_mimebundle_()


def test_one_of_several_outputs_is_printed_as_any():
    one = RVR().fit(X, np.column_stack([T, -T])).output(1)
    assert "noise standard deviation" in str(one) and str(one.summary()).startswith(
        "RVR: regression on 1 feature, 60 rows"
    )


def test_a_pipeline_shows_its_steps():
    pipeline = make_pipeline(StandardScaler(), RVR()).fit(X, T)
    assert 'class="relvec' not in pipeline._repr_html_() and "centres of 60 rows" not in repr(pipeline)


def test_the_end_of_a_fit_is_printed():
    assert end_line("time_limit", 1, 2.5) == "time limit after 1 iteration, 2.50 s"
    assert end_line("converged", 12_000, 0.001) == "converged after 12,000 iterations, under 0.01 s"


def test_numbers_are_those_of_the_command():
    cases = [
        (0.0, "0"),
        (0.2, "0.2"),
        (1.0 / 9.0, "0.1111"),
        (-123456.0, "-123456"),
        (12.3456, "12.35"),
        (9.99999, "10"),
    ]
    cases += [(1e-12, "1.000e-12"), (0.00012345, "0.0001234"), (0.000012345, "1.234e-5"), (1e9, "1.000e9")]
    for value, text in [*cases, (np.inf, "inf")]:
        assert significant(value, 4) == text
    assert share(5, 100, "row") == "5 of 100 rows (5 %)" and share(100, 100, "row") == "100 of 100 rows"
    assert share(3, 1_234_567, "row") == "3 of 1,234,567 rows (0.0002 %)" and share(2, 5, "row") == "2 of 5 rows"
    assert share(0, 0, "row") == "0 of 0 rows" and listed("abc", 2) == "a, b, ... (3 in all)"


def test_summaries_do_not_change_with_a_further_fit(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    model = RVR(gamma=0.1).fit(X, T)
    summary = model.summary()
    text, card, own = str(summary), summary._repr_html_(), summary.as_dict()
    model.fit(X[::2], -T[::2])
    assert (str(summary), summary._repr_html_(), summary.as_dict()) == (text, card, own)


def test_a_file_of_a_fit_that_did_not_converge_says_so(tmp_path):
    with pytest.warns(ConvergenceWarning):
        rvr(gamma=0.1, search={"scheme": "mackay", "max_iterations": 1}).fit(X, T).save(tmp_path / "model.json")
    text = str(load(tmp_path / "model.json").summary())
    assert text.startswith("RVR: regression on 1 feature, 60 rows; not converged, iteration limit after 1")
    assert "warning: the fit did not converge (iteration limit): " in text
