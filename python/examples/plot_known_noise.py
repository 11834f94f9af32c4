"""
Two instruments: noise that is known
====================================

Half of the values come from a good instrument, half from a bad one, and the data sheets say how good. ``fit`` takes
the noise variance of each row; then the good values count more.
"""

# %%
# The good instrument has a noise of 0.03, the bad one of 0.5.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0.0, 10.0, 80))
bad = rng.random(80) < 0.5
sigma = np.where(bad, 0.5, 0.03)


def f(x):
    return np.sin(1.3 * x) * np.exp(-0.1 * x)


y = f(x) + sigma * rng.standard_normal(80)
X = x[:, np.newaxis]

# %%
# One model is given the variances. The other estimates one noise for all rows.

known = RVR().fit(X, y, noise_variance=sigma**2)
alike = RVR().fit(X, y)

line = np.linspace(0.0, 10.0, 300)
grid = line[:, np.newaxis]
results = {}
print(f"{'noise':<12}{'centres':>9}{'RMS error':>11}{'std of the function (mean)':>28}")
for name, model in [("known", known), ("estimated", alike)]:
    mean, std, _ = model.predict(grid, return_parts=True)
    results[name] = (mean, std, np.sqrt(np.mean((mean - f(line)) ** 2)))
    print(f"{name:<12}{len(model.centres_):>9}{results[name][2]:>11.3f}{std.mean():>28.3f}")

# %%
# The bands are two standard deviations of the function, without noise.

figure, axes = plt.subplots(1, 2, figsize=(10.0, 3.4), sharey=True, layout="constrained")
for ax, (name, (mean, std, _)) in zip(axes, results.items(), strict=True):
    ax.plot(x[bad], y[bad], "x", color="0.6", label="bad instrument")
    ax.plot(x[~bad], y[~bad], ".", color="black", label="good instrument")
    ax.plot(line, mean, color="#0072B2")
    ax.fill_between(line, mean - 2.0 * std, mean + 2.0 * std, color="#0072B2", alpha=0.3, linewidth=0)
    ax.plot(line, f(line), ":", color="#D55E00", label="truth")
    ax.set(title=f"noise {name}", xlabel="x")
axes[0].legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
assert round(results["known"][2], 2) == 0.01 and round(results["estimated"][2], 2) == 0.13
assert 8.0 < results["estimated"][1].mean() / results["known"][1].mean() < 13.0
# sphinx_gallery_end_ignore

# %%
# *With known variances the model follows the good values: its error is 0.01 instead of 0.13, and its band narrower by
# a factor of ten.*
