"""Warnings of the engines are theirs, and no errors; relvec is imported by workers as it is here."""

import os
import sys

import pytest

# Workers of Spark and Ray look here for Python.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default"))
