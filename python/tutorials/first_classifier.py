"""
2. A first classifier
=====================

At the end you will have class probabilities, know whether they are right, and have used them for a decision.
"""

# %%
# Two classes in the plane
# ------------------------
#
# Two crescents that overlap: no classifier can be right every time.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

X, y = make_moons(1200, noise=0.35, random_state=0)
X, y, X_new, y_new = X[:200], y[:200], X[200:], y[200:]
kind = np.array(["blue", "orange"])[y]

figure, ax = plt.subplots(figsize=(5.5, 4.0), layout="constrained")
for name, colour, mark in [("blue", "#0072B2", "o"), ("orange", "#D55E00", "^")]:
    ax.plot(*X[kind == name].T, mark, color=colour, markersize=4, label=name)
ax.legend()
plt.show()

# %%
# Fit
# ---
#
# Labels may be words or numbers. As for a regression, there are no settings to choose.

from relvec import RVC

model = RVC().fit(X, kind)
print(model)

# %%
# Probabilities
# -------------
#
# Columns of ``predict_proba`` are in the order of ``classes_``.

points = [[-1.0, 0.5], [0.5, 0.25], [2.0, 0.0]]
print(*model.classes_)
print(model.predict_proba(points).round(2))

# %%
# :class:`~relvec.plotting.DecisionDisplay` shows them over the plane.

from relvec.plotting import DecisionDisplay

DecisionDisplay.from_estimator(model, X, kind)
plt.show()

# %%
# Notice that the probability changes slowly where the classes overlap. The relevance vectors (circled) need not be near
# the boundary, unlike support vectors.
#
# Are the probabilities right?
# ----------------------------
#
# Of the rows with a probability of 0.8, eight of ten should belong to the class. That can be counted on the 1,000 rows
# that the model has not seen.

from relvec.plotting import ReliabilityDisplay
from sklearn.metrics import accuracy_score, log_loss

truth = np.array(["blue", "orange"])[y_new]
accuracy = accuracy_score(truth, model.predict(X_new))
loss = log_loss(truth, model.predict_proba(X_new))
print(f"accuracy {accuracy:.3f}, log loss {loss:.3f} nats")
ReliabilityDisplay.from_estimator(model, X_new, truth)
plt.show()

# %%
# Dots on the diagonal are right. Notice how near they are, although nothing was calibrated afterwards.
#
# Many features, and a support vector machine beside it
# -----------------------------------------------------
#
# The breast cancer table of scikit-learn has 30 features. ``SVC`` of this package has scikit-learn's parameters. It
# needs features of the same scale, ``RVC`` does not.

from relvec import SVC
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

cells, diagnosis = load_breast_cancer(return_X_y=True)
rvc = RVC().fit(cells[::2], diagnosis[::2])
few = RVC(weight_prior="ard").fit(cells[::2], diagnosis[::2])
svc = make_pipeline(StandardScaler(), SVC(probability=True)).fit(cells[::2], diagnosis[::2])
print(f"{'':<26}{'accuracy':>10}{'log loss':>10}{'rows kept':>11}")
results = {}
for name, machine, kept in [
    ("RVC()", rvc, len(rvc.relevance_)),
    ('RVC(weight_prior="ard")', few, len(few.relevance_)),
    ("SVC(probability=True)", svc, len(svc[-1].support_)),
]:
    probability = machine.predict_proba(cells[1::2])
    right = accuracy_score(diagnosis[1::2], machine.predict(cells[1::2]))
    results[name] = right, log_loss(diagnosis[1::2], probability), kept
    print(f"{name:<26}{right:>10.3f}{results[name][1]:>10.3f}{kept:>11}")

figure, ax = plt.subplots(figsize=(6.5, 2.2), layout="constrained")
ax.barh(list(results), [kept for _, _, kept in results.values()], color="#0072B2")
ax.set(xlabel="rows that the model keeps, of 285")
ax.invert_yaxis()
plt.show()

# sphinx_gallery_start_ignore
losses = {name: loss for name, (_, loss, _) in results.items()}
assert min(losses, key=losses.get) == "RVC()" and len(few.relevance_) == 3
# sphinx_gallery_end_ignore

# %%
# The three are about equally accurate. Notice the lengths of the bars: three rows suffice for the second model.
# Its log loss is the highest, so its probabilities are the least reliable; those of the default are the best.
#
# Decide
# ------
#
# Class 0 is malignant. If a missed case costs twenty times as much as a false alarm, decide so. Rows of ``costs``
# are the true class, columns the decision.

decided = rvc.decide(cells[1::2], costs=[[0.0, 20.0], [1.0, 0.0]])
plain = rvc.predict(cells[1::2])
for name, labels in [("most probable class", plain), ("least expected cost", decided.labels)]:
    missed = np.sum((diagnosis[1::2] == 0) & (labels == 1))
    alarms = np.sum((diagnosis[1::2] == 1) & (labels == 0))
    print(f"{name}: {missed} missed, {alarms} false alarms")

malignant = rvc.predict_proba(cells[1::2])[:, 0]
figure, ax = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
ax.plot(np.sort(malignant), color="#0072B2")
ax.axhline(0.5, color="black", linestyle="--", label="most probable class")
ax.axhline(1.0 / 21.0, color="black", linestyle=":", label="least expected cost")
ax.set(xlabel="new rows, sorted", ylabel="probability of malignant")
ax.legend()
plt.show()

# %%
# Next
# ----
#
# - :doc:`real_table`: the whole procedure on one table.
# - :doc:`/examples/plot_calibration_rejection`: leave doubtful rows to a person.
# - :doc:`/how-to/decide`: frequencies, costs and rejection.
