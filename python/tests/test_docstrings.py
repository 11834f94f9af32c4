"""Documentation that cannot go out of date: examples run, parameters are all described, types hold."""

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import relvec
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate
from relvec import RVC, RVR, SVC, SVR, ModelSummary, NuSVC, NuSVR, Statistics, Survey, TableEncoder
from support import ROOT, papers, two_classes

SVMS = [SVC, SVR, NuSVC, NuSVR]
PUBLIC = [
    f"relvec.{name}" for name in relvec.__all__ if callable(getattr(relvec, name)) and not name.startswith("Relevance")
]
METHODS = [
    f"relvec.{cls.__name__}.{name}"
    for cls in (RVR, RVC, *SVMS, Statistics, Survey, ModelSummary, TableEncoder)
    for name, member in inspect.getmembers(cls)
    if not name.startswith("_")
    and (inspect.isfunction(member) or isinstance(member, property))
    and (getattr(member, "fget", None) or member).__module__.startswith("relvec")
]
# Not asked of every docstring: a See Also, an extended summary, an example.
NOT_ASKED = {"SA01", "ES01", "EX01"}


def names(*, engine):
    """Modules of the package that import Dask, Spark or Ray, whose tests are in the folder engines, or all others."""
    for info in pkgutil.iter_modules(relvec.__path__):
        source = Path(info.module_finder.find_spec(info.name).origin)
        imports = source.suffix == ".py" and re.search(
            r"^ *(import|from) (dask|pyspark|ray)\b", source.read_text(encoding="utf-8"), re.MULTILINE
        )
        if bool(imports) == engine and info.name != "_core":
            yield info.name


def modules():
    yield relvec
    for name in names(engine=False):
        yield importlib.import_module(f"relvec.{name}")


def test_modules_that_import_an_engine_are_found():
    assert {"dask", "spark", "ray", "_dask_rows", "_ray_rows", "_spark_rows"} <= set(names(engine=True))
    assert {"rvr", "rvc", "distributed", "_partitions"} <= set(names(engine=False))


@pytest.mark.parametrize("module", list(modules()), ids=lambda module: module.__name__)
def test_examples_of_docstrings_run(module):
    assert module.__doc__
    assert doctest.testmod(module).failed == 0


def test_there_are_examples():
    estimators = ("RVR", "RVC", "SVC", "SVR", "NuSVC", "NuSVR")
    for name in (*estimators, "Statistics", "TableEncoder", "compare", "learn_kernel", "load"):
        assert ">>> " in getattr(relvec, name).__doc__


DISTRIBUTED = ["fit", "Arrays", "Arrays.classes", "Arrays.map_reduce", "Rows.classes", "Rows.map_reduce"]


@pytest.mark.parametrize(
    "name",
    [*PUBLIC, *METHODS, "relvec.presets.tipping2001", *(f"relvec.distributed.{own}" for own in DISTRIBUTED)],
)
def test_docstrings_are_complete(name):
    errors = [(code, text) for code, text in validate(name)["errors"] if code not in NOT_ASKED]
    assert not errors


def test_these_are_looked_at():
    assert set(PUBLIC) == {
        f"relvec.{name}"
        for name in (
            *("RVC", "RVR", "SVC", "SVR", "NuSVC", "NuSVR", "Statistics", "compare", "load"),
            *("LearnedKernel", "ModelSummary", "learn_kernel", "InterpolationWarning", "TableEncoder"),
            *("from_libsvm", "from_sklearn", "read_svmlight", "Survey", "landmarks"),
        )
    }
    assert {"relvec.RVR.fit", "relvec.RVR.predict", "relvec.RVR.save", "relvec.RVC.predict_proba"} <= set(METHODS)


@pytest.mark.parametrize("cls", [RVR, RVC, *SVMS])
def test_parameters_and_defaults_are_those_of_the_constructor(cls):
    described = {entry.name: entry.type for entry in NumpyDocString(inspect.getdoc(cls))["Parameters"]}
    own = {name: p for name, p in inspect.signature(cls.__init__).parameters.items() if name != "self"}
    assert list(described) == list(own)
    assert set(own) == set(cls().get_params())
    for name, parameter in own.items():
        default = re.search(r"default=(.+)$", described[name])
        assert default, name
        assert eval(default[1]) == parameter.default, name


def test_parameters_and_attributes_of_the_statistics():
    page = NumpyDocString(inspect.getdoc(Statistics))
    assert {entry.name for entry in page["Parameters"]} == set(inspect.signature(Statistics).parameters)
    properties = {name for name, member in inspect.getmembers(Statistics) if isinstance(member, property)}
    assert {entry.name for entry in page["Attributes"]} == properties


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_attributes_are_those_of_a_fit(cls):
    described = {entry.name for entry in NumpyDocString(inspect.getdoc(cls))["Attributes"]}
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=["a", "b"])
    # Only some kernels have the one, only the linear one has the other; a process prior has no precisions.
    one, other = cls(gamma="evidence-ard").fit(frame, y), cls(kernel="linear").fit(frame, y)
    more = [cls(kernel=kernel, coef0=1.0, degree=2).fit(frame, y) for kernel in ("poly", "rational_quadratic")]
    more.append(papers(cls).fit(frame, y))
    assert described == {name for name in vars(one) if name.endswith("_")} | {
        "alpha_",
        "coef0_",
        "coef_",
        "covariance_",
        "degree_",
        "shape_",
        "well_determined_",
    }
    for name in described:
        assert any(hasattr(model, name) for model in (one, other, *more)), name


@pytest.mark.parametrize("cls", SVMS)
def test_attributes_are_those_of_a_machine(cls):
    described = {entry.name for entry in NumpyDocString(inspect.getdoc(cls))["Attributes"]}
    X, y = two_classes()
    frame = pd.DataFrame(X, columns=["a", "b"])
    one, other = cls().fit(frame, y), cls(kernel="linear").fit(frame, y)
    assert described == {name for name in vars(one) if name.endswith("_")} | {"coef_"}
    assert all(hasattr(one, name) or hasattr(other, name) for name in described)


@pytest.mark.parametrize("cls", [RVR, RVC])
def test_long_names_are_the_same_classes(cls):
    long = {RVR: relvec.RelevanceVectorRegressor, RVC: relvec.RelevanceVectorClassifier}
    assert long[cls] is cls


def test_the_names_of_the_package():
    assert relvec.__all__ == sorted(relvec.__all__)
    for name in relvec.__all__:
        assert hasattr(relvec, name)
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", relvec.__version__)


def test_types_of_the_extension_module_are_those_that_it_has(tmp_path):
    # From an empty folder: in that of the installed packages, they would shadow the standard library's.
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "relvec._core",
        "--mypy-config-file",
        str(ROOT / "pyproject.toml"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
