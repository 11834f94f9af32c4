"""The least that an installed package can do: `python smoke.py`, or `python smoke.py plot` with that extra."""

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import relvec

# Python puts the folder of this file, not that of the package, first on its path.
assert "site-packages" in Path(relvec.__file__).parts, f"not the installed package: {relvec.__file__}"

rows = np.linspace(-10, 10, 100)[:, np.newaxis]
truth = np.sinc(rows[:, 0] / np.pi)
targets = truth + 0.1 * np.random.default_rng(0).standard_normal(100)
model = relvec.RVR().fit(rows, targets)
mean, std = model.predict(rows, return_std=True)
assert np.all(np.abs(mean - truth) < 4 * std), np.max(np.abs(mean - truth) / std)
assert relvec.RVC().fit(rows, truth > 0).score(rows, truth > 0) > 0.9

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.json"
    model.save(path)
    command = Path(sysconfig.get_path("scripts")) / "relvec"
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["relvec", version("relvec")], said
    subprocess.run([command, "inspect", path], check=True, capture_output=True)

if "plot" in sys.argv[1:]:
    import matplotlib

    matplotlib.use("Agg")
    from relvec.plotting import RegressionDisplay

    assert RegressionDisplay.from_estimator(model, rows, targets).ax_.lines
print(f"relvec {version('relvec')}: fits, predicts, saves" + (", plots" if "plot" in sys.argv[1:] else ""))
