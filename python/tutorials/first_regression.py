"""
1. A first regression
=====================

In ten minutes you will have a curve with reliable error bars, know which rows the model needs, and have it in a file.
You need Python and the package (:doc:`/install`), and you have used scikit-learn before.
"""

# %%
# Look at the data
# ----------------
#
# A sensor was read a hundred times. Each reading is the value of a smooth curve plus noise.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)
x = np.linspace(-10.0, 10.0, 100)
y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
X = x[:, np.newaxis]
print(X.shape, y.shape)

figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
ax.plot(x, y, ".", color="black")
ax.set(xlabel="x", ylabel="y")
plt.show()

# %%
# Rows are observations, columns are features: ``X`` has 100 rows and one column.
#
# Fit
# ---
#
# There is nothing to choose. ``RVR`` learns the width of its kernel, the size of the noise, and the rows it needs.

from relvec import RVR

model = RVR().fit(X, y)
print(model)

# %%
# The second line is the result: of a hundred rows ten are *centres*. The prediction is a sum of ten bumps, one at each
# of them. The others are no longer needed. The bumps can be drawn: each is the kernel around one centre, times its
# weight.

from sklearn.metrics.pairwise import rbf_kernel

grid = np.linspace(-10.0, 10.0, 400)[:, np.newaxis]
bumps = rbf_kernel(grid, X[model.centres_], gamma=model.gamma_) * model.dual_coef_
figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
ax.plot(grid, bumps, color="#D55E00", linewidth=1)
ax.plot(grid, bumps.sum(axis=1) + model.intercept_, color="#0072B2", linewidth=2)
ax.plot(x[model.centres_], np.zeros(10), "o", color="#D55E00", fillstyle="none")
ax.set(xlabel="x", ylabel="bumps, and their sum")
plt.show()

# %%
# Notice that the bumps, in orange, are large and of both signs, and that their sum, in blue, is the curve.
#
# Predict, with a band
# --------------------
#
# ``predict`` returns the mean, and with ``return_std`` the standard deviation of a new reading.

mean, std = model.predict([[0.0], [5.0]], return_std=True)
print(mean.round(2), std.round(2))

# %%
# :class:`~relvec.plotting.RegressionDisplay` draws all of it.

from relvec.plotting import RegressionDisplay

RegressionDisplay.from_estimator(model, X, y, parts=True)
plt.show()

# %%
# Notice three things. The band of two standard deviations contains almost all readings. It is made of two parts: the
# dark one is the uncertainty of the curve, the light one is noise. And the circled rows, the
# :term:`relevance vectors <relevance vector>`, were chosen by the fit.
#
# Check what the band promises
# ----------------------------
#
# ``predict_interval`` returns the ends of an interval that should contain 95 % of new readings. Since these data are
# made, new ones can be made too.

x_new = rng.uniform(-10.0, 10.0, 2000)
y_new = np.sinc(x_new / np.pi) + 0.1 * rng.standard_normal(2000)
lower, upper = model.predict_interval(x_new[:, np.newaxis], level=0.95)
inside = (lower < y_new) & (y_new < upper)
print(f"{inside.mean():.1%} of 2,000 new readings are in their 95 % intervals")
print(f"noise: learned {model.noise_variance_**0.5:.3f}, true 0.100")

# sphinx_gallery_start_ignore
assert len(model.centres_) == 10 and 0.9 < inside.mean() < 0.96
# sphinx_gallery_end_ignore

# %%
# A few percent fewer than promised is usual with a hundred rows: the noise itself had to be learned from them.
#
# Leave the data
# --------------
#
# Outside the data nobody knows the curve. The band shows it.

far = np.linspace(-25.0, 25.0, 400)
mean, std = model.predict(far[:, np.newaxis], return_std=True)
figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
ax.fill_between(far, mean - 2.0 * std, mean + 2.0 * std, color="#0072B2", alpha=0.25, linewidth=0)
ax.plot(far, mean, color="#0072B2")
ax.plot(x, y, ".", color="black", markersize=3)
ax.set(xlabel="x", ylabel="y")
plt.show()

# %%
# Notice that the mean returns to a constant and the band widens. Its width is that of the prior: the
# uncertainty of the curve before any reading.
#
# Save, and load
# --------------
#
# A model is one JSON file. The command line and Rust read it as well.

import tempfile
from pathlib import Path

from relvec import load

path = Path(tempfile.mkdtemp()) / "sensor.json"
model.save(path)
again = load(path)
print(f"{path.stat().st_size / 1000:.0f} kB")
print(again.predict([[0.0], [5.0]]).round(2))

figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
ax.plot(x, model.predict(X), color="#0072B2", linewidth=5, alpha=0.4, label="fitted")
ax.plot(x, again.predict(X), "--", color="black", linewidth=1, label="read from the file")
ax.set(xlabel="x", ylabel="mean")
ax.legend()
plt.show()

# %%
# Notice that the two curves are one: a file gives the predictions of the model that was saved, to the last digit.
#
# Next
# ----
#
# - :doc:`first_classifier`: classes, and probabilities that mean what they say.
# - :doc:`/explanation/model`: what the sum of bumps is.
# - :doc:`/how-to/choose-settings`: when there *is* something to choose.
