"""Engines are optional: the package imports none of them, and says what to install."""

import subprocess
import sys

import pytest

ENGINES = {"dask": "dask", "spark": "pyspark", "ray": "ray"}


def python(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def test_the_package_imports_no_engine():
    done = python(
        "import sys, relvec, relvec.distributed; relvec.RVR, relvec.RVC, relvec.load\n"
        "print(*sorted({'dask', 'distributed', 'pyspark', 'ray'} & set(sys.modules)))"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


@pytest.mark.parametrize(("name", "engine"), ENGINES.items())
def test_a_missing_engine_is_named_with_what_to_install(name, engine):
    done = python(f"import sys; sys.modules[{engine!r}] = None; import relvec.{name}")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: relvec.{name} needs packages that are missing (")
    assert last.endswith(f"): pip install 'relvec[{name}]'")
