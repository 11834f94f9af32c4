"""
3. A real table, from start to end
==================================

The whole recommended procedure on one table: look, fit, measure on rows the model has not seen, compare with other
models, find out what matters, and save.
"""

# %%
# The table
# ---------
#
# 442 patients with diabetes (Efron et al. 2004), as scikit-learn ships them: age, sex, body mass index, blood
# pressure and six blood values; the target is the progression of the disease one year later. One column is a
# category.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

bunch = load_diabetes(as_frame=True, scaled=False)
table = bunch.data.assign(sex=np.where(bunch.data["sex"] == 1, "a", "b"))
target = bunch.target
print(table.head(3).to_string())

figure, axes = plt.subplots(1, 3, figsize=(9.0, 2.6), layout="constrained")
axes[0].hist(target, 30, color="#0072B2")
axes[0].set(xlabel="progression", ylabel="patients")
for ax, name in zip(axes[1:], ["bmi", "s5"], strict=True):
    ax.plot(table[name], target, ".", color="black", markersize=3)
    ax.set(xlabel=name, ylabel="progression")
plt.show()

# %%
# Set rows aside
# --------------
#
# A quarter of the rows is for the last check only.

from sklearn.model_selection import train_test_split

train, test, y, y_test = train_test_split(table, target, test_size=0.25, random_state=0)
print(len(train), "rows to train on,", len(test), "to test")

# %%
# Fit, and look at the model
# --------------------------
#
# :class:`~relvec.TableEncoder` makes numbers of categories. The widths are learned in units of each feature's spread,
# so that nothing has to be scaled.

from relvec import RVR, TableEncoder
from sklearn.pipeline import make_pipeline

model = make_pipeline(TableEncoder().set_output(transform="pandas"), RVR(folds=5)).fit(train, y)
print(str(model[-1].summary()).split("\n", 1)[1])

# %%
# ``folds=5`` repeated the fit five times without a fifth of the rows. The line *5-fold check* shows what to
# expect of new rows, and whether the intervals hold.
#
# Measure on new rows
# -------------------

from relvec.plotting import PredictionIntervalDisplay

display = PredictionIntervalDisplay.from_estimator(model, test, y_test)
plt.show()
mean = model.predict(test)
print(f"RMS error {np.sqrt(np.mean((mean - y_test) ** 2)):.1f}, of the mean {y_test.std():.1f}")
print(f"{display.coverage:.0%} of the patients are in their 95 % intervals")

# sphinx_gallery_start_ignore
assert 0.9 < display.coverage < 0.99
# sphinx_gallery_end_ignore

# %%
# Each bar is the interval of one patient. They are long: this table does not say more. A model without error bars would
# have hidden that.
#
# Which features matter?
# ----------------------

from relvec.plotting import FeatureRelevanceDisplay

FeatureRelevanceDisplay.from_estimator(model[-1])
plt.show()

# %%
# A feature is relevant if the prediction varies fast along it. A blood value, ``s5``, comes first.
#
# Compare
# -------
#
# One should never trust one kind of model alone. All are cross-validated on the same folds of the training rows.

from relvec import compare
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

numbers = TableEncoder().set_output(transform="pandas").fit_transform(train)
scores = compare(
    numbers,
    y,
    {
        "RVR()": RVR(),
        'RVR("linear")': make_pipeline(StandardScaler(), RVR("linear")),
        "boosted trees": HistGradientBoostingRegressor(random_state=0),
        "ridge": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 3, 20))),
    },
    cv=5,
)
print(scores[["rmse", "rmse_standard_error"]].round(1).to_string())

figure, ax = plt.subplots(figsize=(6.5, 2.4), layout="constrained")
ax.errorbar(scores["rmse"], scores.index, xerr=scores["rmse_standard_error"], fmt="o", color="#0072B2")
ax.set(xlabel="RMS error of held-out rows, with its standard error")
ax.invert_yaxis()
plt.show()

# sphinx_gallery_start_ignore
rmse, error = scores["rmse"], scores["rmse_standard_error"].max()
assert (rmse.drop("boosted trees") - rmse["ridge"]).abs().max() < error < (rmse["boosted trees"] - rmse["ridge"]) / 2
# sphinx_gallery_end_ignore

# %%
# Boosted trees are worse by three standard errors. The other three differ by less than one: on this table a plane
# does as well as a curve. Then take the simplest model that has what you need, here intervals.
#
# Save it with the encoder
# ------------------------
#
# The file takes patients as the table has them, in Python and on the command line.

import tempfile
from pathlib import Path

from relvec import load

path = Path(tempfile.mkdtemp()) / "diabetes.json"
model[-1].save(path, encoder=model[0])
print(load(path).predict(test.head(3)).round(1))
print(f"{path.stat().st_size / 1000:.0f} kB")

# %%
# Next
# ----
#
# - :doc:`/tutorials/shell`: the same from the command line.
# - :doc:`/how-to/choose-settings`: what to try if the result is not good enough.
# - :doc:`/how-to/recipes`: use the file in a service, in Polars or in Spark.
