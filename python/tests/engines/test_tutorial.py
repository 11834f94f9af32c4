"""The tutorial of the documentation runs as it is written."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import relvec
from support import ROOT

PAGE = (ROOT / "docs" / "python" / "how-to" / "engines.rst").read_text()
BLOCK = re.compile(r"\.\. code-block:: python\n   :name: (\w+)\n\n((?:   .*\n|\n)+)")
PROGRAMS = {name: re.sub(r"^   ", "", text, flags=re.MULTILINE) for name, text in BLOCK.findall(PAGE)}
MODELS = {"dask": "model-dask.json", "spark": "model-spark/model/part-00000", "ray": "model-ray.json"}


def test_there_is_a_program_for_each_engine():
    assert set(PROGRAMS) == {"data", *MODELS}


@pytest.mark.parametrize("engine", MODELS)
def test_the_program_makes_a_model_and_a_column(tmp_path, engine):
    for name in ("data", engine):
        # A file by the name of an engine would be imported in its place.
        (tmp_path / f"program_{name}.py").write_text(PROGRAMS[name])
        done = subprocess.run(
            [sys.executable, f"program_{name}.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    table = pd.read_parquet(tmp_path / f"predicted-{engine}")
    model = relvec.load(tmp_path / MODELS[engine])
    mean, std = model.predict(table[["depth", "heat", "flow"]], return_std=True)
    np.testing.assert_allclose(table["prediction"], mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(table["std"], std, rtol=1e-6)
    assert len(table) == 32_000
    assert np.mean(np.abs(table["prediction"] - table["y"]) < 2.0 * table["std"]) > 0.9
