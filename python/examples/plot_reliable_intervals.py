"""
Do intervals contain what they promise?
=======================================

A 90 % interval should contain nine of ten new observations. The figure compares promised and observed shares for the
default, for one precision per weight, for the settings of the first papers, and for a Gaussian process on all rows.
"""

# %%
# Four functions of several features, each with noise, 150 training rows and 2,000 new rows.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR, InterpolationWarning, presets
from scipy.stats import norm
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits


def waves(n, noise, random_state):
    rng = np.random.default_rng(random_state)
    X = rng.uniform(-2.0, 2.0, (n, 4))
    return X, np.sin(2.0 * X[:, 0]) + np.cos(X[:, 1] * X[:, 2]) + noise * rng.standard_normal(n)


TABLES = [
    make_friedman1(2150, n_features=10, noise=1.0, random_state=0),
    make_friedman2(2150, noise=120.0, random_state=0),
    make_friedman3(2150, noise=0.1, random_state=0),
    waves(2150, 0.3, 0),
]

# %%
# The settings of the papers keep a width that is given, here by the rule ``"scale"``.


def process(features):
    kernel = ConstantKernel() * RBF(np.ones(features)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True)


MODELS = {
    "RVR()": lambda _: RVR(),
    "RVR, ard": lambda _: RVR(weight_prior="ard"),
    "RVR, tipping2001": lambda _: RVR(**presets.tipping2001()),
    "Gaussian process": process,
}
LEVELS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
coverage = {name: np.zeros((len(TABLES), len(LEVELS))) for name in MODELS}
for i, (X, y) in enumerate(TABLES):
    X = StandardScaler().fit(X[:150]).transform(X)
    for name, make in MODELS.items():
        # The settings of the papers interpolate one table, and the process leaves useless features at a bound.
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", InterpolationWarning)
            warnings.filterwarnings("ignore", ".*close to the specified")
            mean, std = make(X.shape[1]).fit(X[:150], y[:150]).predict(X[150:], return_std=True)
        z = np.abs(y[150:] - mean) / std
        coverage[name][i] = [np.mean(z < norm.ppf(0.5 + level / 2.0)) for level in LEVELS]

print(f"{'promised':<20}" + "".join(f"{level:>8.0%}" for level in LEVELS))
for name, shares in coverage.items():
    print(f"{name:<20}" + "".join(f"{share:>8.1%}" for share in shares.mean(axis=0)))

# %%
# Means over the four tables. Below the dotted line intervals are too narrow.

figure, ax = plt.subplots(figsize=(6.0, 4.2), layout="constrained")
ax.plot([0.5, 1.0], [0.5, 1.0], ":", color="black", label="as promised")
for (name, shares), style in zip(coverage.items(), ["o-", "s--", "^-.", "D:"], strict=True):
    ax.plot(LEVELS, shares.mean(axis=0), style, label=name)
ax.set(xlabel="promised share", ylabel="share of new rows in the interval")
ax.legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
found = [float(round(shares.mean(axis=0)[5], 2)) for shares in coverage.values()]
assert found == [0.93, 0.91, 0.68, 0.93], found
# sphinx_gallery_end_ignore

# %%
# *The default covers 93 % of new rows with intervals that promise 95 %, like the Gaussian process on all rows.
# One precision per weight is a little optimistic (91 %). The settings of the papers with a fixed width are far
# too narrow on some tables: 68 % in the mean.*
