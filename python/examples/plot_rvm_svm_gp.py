"""
RVM, SVM and Gaussian process side by side
==========================================

The same 60 values, fitted by a relevance vector machine, a support vector machine and a Gaussian process. The three
curves are almost the same. What differs is how many rows the model needs afterwards, and whether it has error bars.
"""

# %%
# The data have a gap between 4 and 7.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVR

rng = np.random.default_rng(0)
x = np.sort(np.concatenate([rng.uniform(0.0, 4.0, 35), rng.uniform(7.0, 10.0, 25)]))
X, noise = x[:, np.newaxis], 0.15


def f(x):
    return np.sin(x) + 0.3 * x


y = f(x) + noise * rng.standard_normal(len(x))
line = np.linspace(-1.0, 11.0, 300)
grid = line[:, np.newaxis]

# %%
# The RVM has no settings. The process learns width, amplitude and noise from all rows. The settings of the SVM come
# from a search over 45 combinations, each cross-validated.

rvm = RVR().fit(X, y)
process = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), normalize_y=True).fit(X, y)
choices = {"C": [1, 10, 100], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0], "epsilon": [0.05, 0.1, 0.2]}
svm = GridSearchCV(SVR(), choices, scoring="neg_root_mean_squared_error").fit(X, y).best_estimator_

predictions = {
    "RVM": (*rvm.predict(grid, return_std=True), rvm.centres_),
    "SVM": (svm.predict(grid), None, svm.support_),
    "Gaussian process": (*process.predict(grid, return_std=True), np.arange(len(x))),
}
inside = (line >= 0.0) & (line <= 10.0) & ((line <= 4.0) | (line >= 7.0))
print(f"{'':<18}{'rows kept':>10}{'RMS error where there are data':>34}")
for name, (mean, _, kept) in predictions.items():
    print(f"{name:<18}{len(kept):>10}{np.sqrt(np.mean((mean - f(line))[inside] ** 2)):>34.3f}")

# %%
# Rows that a model keeps are circled. Bands are two standard deviations of a new observation.

figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.2), sharey=True, layout="constrained")
for ax, (name, (mean, std, kept)) in zip(axes, predictions.items(), strict=True):
    ax.plot(x, y, ".", color="0.4", markersize=4)
    ax.plot(x[kept], y[kept], "o", markerfacecolor="none", markeredgecolor="#D55E00", markersize=8)
    ax.plot(line, mean, color="#0072B2")
    if std is not None:
        ax.fill_between(line, mean - 2.0 * std, mean + 2.0 * std, color="#0072B2", alpha=0.2, linewidth=0)
    ax.plot(line, f(line), ":", color="black")
    ax.set(title=f"{name}: {len(kept)} of 60 rows", xlabel="x")
plt.show()

# sphinx_gallery_start_ignore
assert [len(kept) for _, _, kept in predictions.values()] == [6, 37, 60]
gap = np.abs(line - 5.5).argmin()
widths = [round(float(predictions[name][1][gap]), 2) for name in ("RVM", "Gaussian process")]
assert widths == [0.33, 0.24], widths
# sphinx_gallery_end_ignore

# %%
# *The same curve three times where there are data, from 6 rows of 60 (RVM), from 37 (SVM) and from all of them
# (Gaussian process). In the middle of the gap the standard deviation rises from 0.15, the noise, to 0.33 (RVM)
# and 0.24 (process). The SVM has no error bars.*
#
# Next: :doc:`plot_gap`, where the band of a sparse model must grow.
