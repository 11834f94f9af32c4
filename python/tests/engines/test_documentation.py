"""Documentation of the modules that need an engine is complete."""

import importlib
import inspect

import pytest
from numpydoc.validate import validate

MODULES = ["dask", "spark", "ray"]
# As in the test of the other modules; what takes one thing and says it in its summary needs no table of it.
NOT_ASKED = {"SA01", "ES01", "EX01", "PR01", "RT01", "RT03", "PR02"}


def public():
    for module in MODULES:
        for name in importlib.import_module(f"relvec.{module}").__all__:
            yield f"relvec.{module}.{name}"
            own = getattr(importlib.import_module(f"relvec.{module}"), name)
            for method in vars(own) if inspect.isclass(own) else []:
                if not method.startswith("_") and inspect.isfunction(vars(own)[method]):
                    yield f"relvec.{module}.{name}.{method}"


@pytest.mark.parametrize("name", list(public()))
def test_docstrings_are_complete(name):
    assert not [(code, text) for code, text in validate(name)["errors"] if code not in NOT_ASKED]
