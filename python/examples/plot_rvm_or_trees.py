"""
When not to use an RVM: steps
=============================

A sum of bumps suits smooth functions. Boosted trees suit functions with thresholds. Both learn both kinds here, from
100 to 1,000 rows.
"""

# %%
# Two functions of six features, with a noise of 0.2: no model can have a lower error.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from sklearn.ensemble import HistGradientBoostingRegressor

rng = np.random.default_rng(0)


def steps(X):
    return 2.0 * (X[:, 0] > 0.3) - 3.0 * ((X[:, 1] > 0.6) & (X[:, 2] > 0.5)) + (X[:, 3] > X[:, 4])


def smooth(X):
    return 2.0 * np.sin(5.0 * X[:, 0]) + 4.0 * X[:, 1] * X[:, 2] + X[:, 3] ** 2


MODELS = {"RVR()": RVR, "boosted trees": lambda: HistGradientBoostingRegressor(random_state=0)}
SIZES = [100, 300, 1000]
errors = {}
print(f"{'function':<10}{'model':<16}" + "".join(f"{f'{rows} rows':>12}" for rows in SIZES))
for f in (smooth, steps):
    X, X_new = rng.uniform(size=(1000, 6)), rng.uniform(size=(2000, 6))
    y, y_new = [f(rows) + 0.2 * rng.standard_normal(len(rows)) for rows in (X, X_new)]
    for name, make in MODELS.items():
        fits = [make().fit(X[:rows], y[:rows]) for rows in SIZES]
        errors[f.__name__, name] = [np.sqrt(np.mean((fit.predict(X_new) - y_new) ** 2)) for fit in fits]
        print(f"{f.__name__:<10}{name:<16}" + "".join(f"{e:>12.2f}" for e in errors[f.__name__, name]))

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), sharey=True, layout="constrained")
for ax, f in zip(axes, ["smooth", "steps"], strict=True):
    for name, style in zip(MODELS, ["o-", "s--"], strict=True):
        ax.plot(SIZES, errors[f, name], style, label=name)
    ax.axhline(0.2, linestyle=":", color="black", label="noise")
    ax.set(title=f"{f} function", xscale="log", xlabel="training rows")
axes[0].set(ylabel="RMS error of new rows", ylim=(0.0, 1.0))
axes[0].legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
found = {key: [round(float(values[0]), 2), round(float(values[2]), 2)] for key, values in errors.items()}
assert found["smooth", "RVR()"] == [0.23, 0.21] and found["smooth", "boosted trees"] == [0.54, 0.28], found
assert found["steps", "RVR()"] == [0.86, 0.65] and found["steps", "boosted trees"] == [0.63, 0.36], found
# sphinx_gallery_end_ignore

# %%
# *Smooth (left): with 100 rows the RVM is better (0.23) than the trees with 1,000 (0.28). Steps (right): the
# trees with 300 rows are better than the RVM with 1,000. Try both on your table; the data decide.*
#
# See also: :doc:`/explanation/models`.
