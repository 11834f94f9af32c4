"""
From three hundred to ten thousand rows
=======================================

More rows make predictions better until only the noise is left. Time grows slower than the number of rows, because the
number of centres is limited.
"""

# %%
# The target of Friedman (1991) with ten features. Its noise has a standard deviation of 1, so no model can have a lower
# error on new rows.

import time

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from sklearn.datasets import make_friedman1

X, y = make_friedman1(20_000, n_features=10, noise=1.0, random_state=0)
X_new, y_new = X[10_000:], y[10_000:]

SIZES = [300, 1_000, 3_000, 10_000]
errors, centres, seconds, covered = [], [], [], []
print(f"{'rows':>8}{'centres':>9}{'RMS error':>11}{'95 % intervals cover':>22}")
for rows in SIZES:
    began = time.perf_counter()
    model = RVR().fit(X[:rows], y[:rows])
    seconds.append(time.perf_counter() - began)
    centres.append(len(model.centres_))
    errors.append(np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)))
    lower, upper = model.predict_interval(X_new)
    covered.append(np.mean((lower < y_new) & (y_new < upper)))
    print(f"{rows:>8}{centres[-1]:>9}{errors[-1]:>11.3f}{covered[-1]:>22.1%}")

# %%
# Times are those of the computer that built this page.

figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.2), layout="constrained")
for ax, values, name in zip(
    axes, [errors, centres, seconds], ["RMS error", "centres", "seconds of a fit"], strict=True
):
    ax.plot(SIZES, values, "o-", color="#0072B2")
    ax.set(xscale="log", xlabel="training rows", ylabel=name)
axes[0].axhline(1.0, linestyle=":", color="black")
axes[2].set_yscale("log")
plt.show()

# sphinx_gallery_start_ignore
assert [round(errors[0], 2), round(errors[-1], 2)] == [1.09, 1.0] and max(centres) < 80
assert min(covered) > 0.94
# sphinx_gallery_end_ignore

# %%
# *The error falls from 1.09 with 300 rows to 1.00 with 10,000, where 1 is the noise. The model needs fewer than 80
# centres at each size, and the intervals hold at each.*
