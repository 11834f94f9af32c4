"""
Trust, and when to withhold it: calibration and rejection
=========================================================

A probability is useful if it is right: of the rows with a probability of 80 %, eight of ten belong to the class. Then
a classifier can leave doubtful rows to a person, and the rest has fewer errors.
"""

# %%
# Two moons with much noise: 300 rows to train on, 5,000 to test.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVC
from relvec.plotting import ReliabilityDisplay
from sklearn.datasets import make_moons

X, y = make_moons(5300, noise=0.45, random_state=0)
model = RVC().fit(X[:300], y[:300])
X_new, y_new = X[300:], y[300:]

# %%
# ``decide`` rejects rows whose best class has less than the asked probability.

shares, errors = [], []
print(f"{'least probability':<20}{'rejected':>10}{'errors among the rest':>24}")
for least in [0.5, 0.6, 0.7, 0.8, 0.9]:
    decided = model.decide(X_new, reject=least)
    taken = ~decided.rejected
    shares.append(np.mean(decided.rejected))
    errors.append(np.mean(decided.labels[taken] != y_new[taken]))
    print(f"{least:<20}{shares[-1]:>10.1%}{errors[-1]:>24.1%}")

# %%
# Left: observed against predicted probabilities. Right: errors among the rows that are decided.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
ReliabilityDisplay.from_estimator(model, X_new, y_new, ax=left)
right.plot(shares, errors, "o-", color="#0072B2")
right.set(xlabel="share of rows rejected", ylabel="error rate of the others", ylim=(0.0, None))
plt.show()

# sphinx_gallery_start_ignore
assert round(errors[0], 2) == 0.16 and round(shares[3], 2) == 0.27 and round(errors[3], 2) == 0.09
# sphinx_gallery_end_ignore

# %%
# *Left: the dots lie near the diagonal, so the probabilities are reliable. Right: 16 % of all rows are
# classified wrongly. If the classifier leaves 27 % of the rows to somebody else, 9 % of the others are wrong.*
#
# See also: :doc:`plot_decision_costs` for errors that are not equally bad.
