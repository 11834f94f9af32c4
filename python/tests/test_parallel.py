"""Threads and processes: as many as joblib allows, and none that hang."""

import json
import os
import subprocess
import sys

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from relvec._threads import threads
from support import rvc, rvr, sinc, two_classes

# Asks a worker of joblib; the backend and the number of workers are filled in.
ASK = """
import json, joblib
from relvec._threads import threads
def ask():
    return threads(None)
def main():
    print(json.dumps(joblib.Parallel(n_jobs={workers}, backend="{backend}")(joblib.delayed(ask)() for _ in range(4))))
if __name__ == "__main__":
    main()
"""

# Cross-validation in processes, beside the same one without.
VALIDATE = """
import json, numpy as np
from sklearn.model_selection import cross_val_score
from support import rvc, rvr
def main():
    X = np.linspace(-10, 10, 120)[:, np.newaxis]
    t = np.sinc(X[:, 0] / np.pi) + 0.1 * np.random.default_rng(0).standard_normal(120)
    shuffled = np.random.default_rng(1).permutation(120)
    X, t = X[shuffled], t[shuffled]
    # A fit in this process first: what it leaves behind must not stop those of the workers.
    rvr(gamma=0.1).fit(X, t).predict(X)
    out = []
    for model, y in [(rvr(gamma=0.1), t), (rvc(gamma=0.1), t > 0)]:
        both = [cross_val_score(model, X, y, cv=4, n_jobs=n).tolist() for n in (2, 1)]
        out.append(both)
    print(json.dumps(out))
if __name__ == "__main__":
    main()
"""

# A process forked after a fit, as multiprocessing's does on Linux.
FORK = """
import multiprocessing, numpy as np, json, warnings
from support import rvr
# Python warns of any fork beside threads; that it works is what is asked.
warnings.simplefilter("ignore", DeprecationWarning)
X = np.linspace(-10, 10, 50)[:, np.newaxis]
t = np.sinc(X[:, 0] / np.pi)
def work(_):
    model = rvr(gamma=0.1, n_jobs=2).fit(X, t)
    return float(model.predict(X).sum())
here = work(0)
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(json.dumps([here, *pool.map(work, range(2))]))
"""


def output(code, tmp_path, **environment):
    """What a Python program of its own prints last, from JSON; None takes a variable away."""
    file = tmp_path / "program.py"
    file.write_text(code)
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    variables = {name: value for name, value in variables.items() if value is not None}
    done = subprocess.run(
        [sys.executable, str(file)], env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_all_processors_outside_of_joblib(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads(None) == joblib.cpu_count()


def test_numbers_of_jobs_are_those_of_joblib():
    assert threads(1) == 1
    assert threads(3) == 3
    assert threads(-1) == joblib.cpu_count()
    assert threads(np.int64(2)) == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ("1,2", 1), ("100000", joblib.cpu_count()), ("", joblib.cpu_count()), ("many", joblib.cpu_count())],
)
def test_omp_num_threads_is_a_limit(monkeypatch, value, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads(None) == expected
    # Asked for by name, the caller's number counts.
    assert threads(2) == 2


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_share_the_processors(backend, tmp_path):
    workers = max(2, joblib.cpu_count())
    found = output(ASK.format(workers=workers, backend=backend), tmp_path, OMP_NUM_THREADS=None)
    assert found == [1, 1, 1, 1]


def test_two_workers_have_half_the_processors_each(tmp_path):
    found = output(ASK.format(workers=2, backend="loky"), tmp_path, OMP_NUM_THREADS=None)
    assert found == [max(1, joblib.cpu_count() // 2)] * 4


def test_cross_validation_in_processes_ends_and_equals_one_process(tmp_path):
    for parallel, alone in output(VALIDATE, tmp_path):
        assert parallel == alone
        assert np.min(alone) > 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")
def test_a_forked_process_can_fit(tmp_path):
    here, *there = output(FORK, tmp_path)
    assert there == [here, here]


def test_threads_of_joblib_fit_side_by_side():
    X, t = sinc()
    C, y = two_classes()
    jobs = [joblib.delayed(rvr(gamma=g).fit)(X, t) for g in (0.05, 0.1, 0.2)] + [joblib.delayed(rvc().fit)(C, y)]
    fitted = joblib.Parallel(n_jobs=4, backend="threading")(jobs)
    for model, gamma in zip(fitted, (0.05, 0.1, 0.2), strict=False):
        assert_array_equal(model.predict(X), rvr(gamma=gamma).fit(X, t).predict(X))
    assert_array_equal(fitted[-1].predict_proba(C), rvc().fit(C, y).predict_proba(C))


@pytest.mark.parametrize("settings", [{}, {"search": "mackay"}, {"dictionary": 100}])
def test_results_do_not_depend_on_the_number_of_threads(settings):
    X, t = sinc(400)
    one, four = (rvr(gamma=0.1, n_jobs=n, **settings).fit(X, t) for n in (1, 4))
    assert_array_equal(one.relevance_, four.relevance_)
    assert_array_equal(one.dual_coef_, four.dual_coef_)
    assert one.log_evidence_ == four.log_evidence_
    # Predictions go over the threads in blocks.
    new = np.linspace(-12.0, 12.0, 5000)[:, np.newaxis]
    assert_array_equal(one.predict(new, return_std=True), four.predict(new, return_std=True))


def test_zero_jobs_are_refused():
    X, t = sinc()
    with pytest.raises(ValueError, match="n_jobs == 0"):
        rvr(n_jobs=0).fit(X, t)


def test_an_array_in_a_fit_cannot_be_resized():
    """Its memory would go away beneath the fit; numpy refuses while somebody refers to the array."""
    X = np.random.default_rng(0).standard_normal((200, 3))
    y = X[:, 0] + 0.1 * X[:, 1]
    refused = []

    def resize(progress):
        try:
            X.resize((1, 1), refcheck=False)
        except ValueError as error:
            refused.append(str(error))
        return True

    model = rvr(gamma=0.5, callback=resize).fit(X, y)
    assert refused
    assert "cannot resize" in refused[0]
    assert X.shape == (200, 3)
    # Afterwards the array is the caller's again.
    assert model.predict(X).shape == (200,)
    X.resize((2, 3), refcheck=False)
    assert X.shape == (2, 3)
