"""
Relevance of features: five that matter, five that do not
=========================================================

The target of Friedman (1991) depends on five of ten features. The fit does not use this. It learns one width for each
feature, and the widths of the useless ones become so large that these features have no effect.
"""

# %%
# Ten draws of 200 rows each.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from sklearn.datasets import make_friedman1

relevance = []
for draw in range(10):
    X, y = make_friedman1(200, n_features=10, noise=1.0, random_state=draw)
    relevance.append(RVR().fit(X, y).feature_relevance_)
relevance = np.array(relevance)

print(f"{'feature':<10}{'mean':>8}{'smallest':>10}{'largest':>10}")
for k in range(10):
    column = relevance[:, k]
    print(f"x{k + 1:<9}{column.mean():>8.3f}{column.min():>10.3f}{column.max():>10.3f}")

# %%
# The first three features enter through a product and a square, the next two through straight lines. A straight line
# needs no narrow kernel: relevance is a measure of how fast the function varies along a feature, not of how much.

figure, ax = plt.subplots(figsize=(7.0, 3.2), layout="constrained")
names = [f"x{k + 1}" for k in range(10)]
ax.bar(names, relevance.mean(axis=0), color=["#0072B2"] * 5 + ["#D55E00"] * 5)
ax.plot(np.tile(np.arange(10), 10), relevance.ravel(), ".", color="black", alpha=0.5)
ax.set(ylabel="relevance (sums to 1)", xlabel="feature: blue ones determine the target")
plt.show()

# sphinx_gallery_start_ignore
assert relevance[:, 5:].max() < 0.01 and relevance[:, 4].max() < 0.01
# sphinx_gallery_end_ignore

# %%
# *In ten of ten draws each of the five useless features has a relevance below 0.01. Of the useful ones x5, whose
# straight line is the flattest, has the lowest relevance, about as low: to find out whether such a feature
# matters, leave it out and compare held-out errors.*
