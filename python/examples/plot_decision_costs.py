"""
When one error is worse than another: costs
===========================================

To miss an ill patient costs more than to examine a healthy one. The classifier is fitted once; the costs enter when it
decides.
"""

# %%
# Breast cancer: 285 rows to train on, 284 to test. Class 0 is malignant. A missed one costs 1, 10 or 100 times as much
# as a false alarm.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVC
from sklearn.datasets import load_breast_cancer

cancer = load_breast_cancer()
X, y = cancer.data, np.where(cancer.target == 0, "malignant", "benign")
model = RVC().fit(X[::2], y[::2])
X_new, y_new = X[1::2], y[1::2]
print("classes:", *model.classes_)

# %%
# Rows of the costs are the true class, columns the decision, both in the order of ``classes_``.

FACTORS = [1, 10, 100]
missed, alarms = [], []
print(f"{'cost of a miss':<16}{'missed':>8}{'false alarms':>14}")
for factor in FACTORS:
    labels = model.decide(X_new, costs=[[0.0, 1.0], [factor, 0.0]]).labels
    missed.append(int(np.sum((y_new == "malignant") & (labels == "benign"))))
    alarms.append(int(np.sum((y_new == "benign") & (labels == "malignant"))))
    print(f"{factor:<16}{missed[-1]:>8}{alarms[-1]:>14}")

# %%
# The threshold on the probability follows from the costs: 1 / (1 + cost of a miss).

malignant = model.predict_proba(X_new)[:, 1]
figure, ax = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
bins = np.linspace(0.0, 1.0, 41)
ax.hist(
    [malignant[y_new == "benign"], malignant[y_new == "malignant"]], bins, color=["#0072B2", "#D55E00"], stacked=True
)
for factor, style in zip(FACTORS, ["-", "--", ":"], strict=True):
    ax.axvline(1.0 / (1.0 + factor), color="black", linestyle=style, label=f"threshold at costs 1:{factor}")
ax.set(xlabel="probability of malignant", ylabel="rows (blue: benign, orange: malignant)", yscale="symlog")
ax.legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
assert (missed[0], alarms[0], missed[2], alarms[2]) == (7, 3, 0, 42)
# sphinx_gallery_end_ignore

# %%
# *One model, three thresholds. At equal costs 7 malignant cases are missed, and there are 3 false alarms. If a
# miss costs a hundred times as much, none is missed, for 42 false alarms.*
