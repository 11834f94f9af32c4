"""scikit-learn's own tests of support vector machines, with those of relvec in their place.

    python python/tests/sklearn_svm.py

The tests are those of the installed scikit-learn. A test may fail only if `PINS` lists it, with the reason, and what is
listed has to fail: an entry that is no longer needed is an error as well.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import relvec
import sklearn.svm

REPLACED = ["SVC", "NuSVC", "SVR", "NuSVR"]
FILES = ["test_svm.py", "test_sparse.py"]
# Tests that pin what is of LIBSVM or of scikit-learn's wrapper of it, as regular expressions of their names; and why.
PINS = {
    r"test_svm::test_(negative_sample_weights_mask_all_samples|negative_weights_svc_leave_just_one_label).*": (
        "the words of LIBSVM's errors"
    ),
    r"test_svm::test_svc_nonfinite_params.*": "the words of an error; relvec names the row and the column",
    r"test_svm::test_libsvm_convergence_warnings.*|test_sparse::test_timeout.*": "the words of LIBSVM's warning",
    r"test_svm::test_(probability_raises_futurewarning|svc_nusvc_probA_probB_deprecated).*": (
        "probability, probA_ and probB_ are deprecated in scikit-learn alone"
    ),
    r"test_svm::test_gamma_scale": "the private attribute _gamma; relvec has gamma_",
    r"test_svm::test_tweak_params": "predictions that change with the private attribute _dual_coef_",
    r"test_svm::test_svc_raises_error_internal_representation": "the private attribute _n_support",
    r"test_svm::test_svc_ovr_tie_breaking.*": (
        "rows where all kernel values are 0: votes and scores of LIBSVM disagree there, those of relvec agree"
    ),
    r"test_svm::test_bad_input.*": "machines of dense rows refuse sparse rows; those of relvec predict them",
    r"test_svm::test_svr_errors": "fit accepts a kernel function that returns another shape; relvec refuses it in fit",
    r"test_svm::test_custom_kernel_not_array_input.*": (
        "kernel functions of texts; those of relvec are called with rows of numbers, which a model file can hold"
    ),
}


class Outcomes:
    """The outcome of each test."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.failed: dict[str, str] = {}
        self.skipped: set[str] = set()

    def pytest_runtest_logreport(self, report: Any) -> None:
        name = report.nodeid.rsplit("/", 1)[-1].replace(".py::", "::")
        if report.failed:
            message = (
                report.longrepr.reprcrash.message if hasattr(report.longrepr, "reprcrash") else str(report.longrepr)
            )
            self.failed[name] = message.strip().splitlines()[0] if message.strip() else ""
        elif report.skipped:
            self.skipped.add(name)
        elif report.when == "call":
            self.passed.add(name)


def main() -> int:
    for name in REPLACED:
        setattr(sklearn.svm, name, getattr(relvec, name))
    folder = Path(sklearn.svm.__file__).parent / "tests"
    outcomes = Outcomes()
    # Settings of this repository, such as warnings that are errors, are not those of scikit-learn.
    options = ["-q", "-p", "no:cacheprovider", "-c", os.devnull, "--tb=no", "--no-header", "--pyargs"]
    modules = [f"sklearn.svm.tests.{Path(file).stem}" for file in FILES if (folder / file).is_file()]
    if len(modules) < len(FILES):
        print(f"{folder}: expected {', '.join(FILES)}")
        return 1
    pytest.main([*options, *modules], plugins=[outcomes])
    pinned = {name: next((pin for pin in PINS if re.fullmatch(pin, name)), None) for name in outcomes.failed}
    unknown = sorted(name for name, pin in pinned.items() if pin is None)
    needless = [pin for pin in PINS if pin not in pinned.values()]
    print(
        f"scikit-learn {sklearn.__version__}: {len(outcomes.passed)} tests pass, {len(outcomes.skipped)} are skipped,"
    )
    print(f"{len(outcomes.failed) - len(unknown)} fail as listed, {len(unknown)} fail otherwise")
    for name in unknown:
        print(f"  {name}: {outcomes.failed[name]}")
    for pin in needless:
        print(f"  listed, and no such test fails: {pin}")
    return 1 if unknown or needless or not outcomes.passed else 0


if __name__ == "__main__":
    sys.exit(main())
