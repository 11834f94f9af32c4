"""What is printed of an estimator, of its summary and its report; and what warnings say."""

import copy
import pickle

import pytest
from numpy.testing import assert_array_equal
from relvec import RVC, RVR, SVC
from relvec._report import LINES, WIDTH, Report
from sklearn.datasets import load_iris
from support import rvc, rvr, sinc

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
