"""
A model is a sum of bumps
=========================

The prediction of a kernel model is a constant plus a sum of kernels, one at each centre, each times a weight. With one
feature the parts can be drawn.
"""

# %%
# Forty values, fitted with one precision per weight, which leaves few kernels.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR

rng = np.random.default_rng(1)
x = np.linspace(-6.0, 6.0, 40)
y = np.sinc(x / 2.0) + 0.08 * rng.standard_normal(40)
model = RVR(weight_prior="ard", variance="posterior").fit(x[:, np.newaxis], y)

# %%
# The kernel is exp(-gamma (x - c)^2) at each centre c. Its weights are in ``dual_coef_``.

line = np.linspace(-8.0, 8.0, 300)
centres, weights = x[model.centres_], model.dual_coef_[0]
bumps = weights * np.exp(-model.gamma_ * (line[:, np.newaxis] - centres) ** 2)
total = model.intercept_ + bumps.sum(axis=1)
difference = np.abs(total - model.predict(line[:, np.newaxis])).max()

print(f"{'centre':>8}{'weight':>10}")
for centre, weight in zip(centres, weights, strict=True):
    print(f"{centre:>8.2f}{weight:>10.3f}")
print(f"the sum differs from predict by at most {difference:.0e}")

# sphinx_gallery_start_ignore
assert difference < 1e-10 and len(centres) == 6
# sphinx_gallery_end_ignore

figure, axes = plt.subplots(1, 3, figsize=(10.0, 3.0), sharey=True, layout="constrained")
largest = np.abs(weights).argmax()
axes[0].plot(line, bumps[:, largest], color="#D55E00")
axes[0].set(title="one kernel times its weight", xlabel="x")
axes[1].plot(line, bumps, color="#D55E00", linewidth=1.0)
axes[1].set(title=f"all {len(centres)}", xlabel="x")
axes[2].plot(line, bumps, color="#D55E00", linewidth=0.7, alpha=0.5)
axes[2].plot(line, total, color="#0072B2")
axes[2].plot(x, y, ".", color="black", markersize=4)
axes[2].set(title="their sum, and the data", xlabel="x")
plt.show()

# %%
# *The curve is six bumps and a constant. Nothing else has to be kept: the other rows of the forty are not needed for a
# prediction.*
#
# See also: :doc:`/explanation/model`.
