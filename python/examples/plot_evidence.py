"""
Evidence: neither too stiff nor too loose
=========================================

Three widths of the kernel explain the same sixty values. The evidence, the probability of the values before they were
seen, is highest for the one in the middle. No row is held out.
"""

# %%
# Under the process prior, the evidence is computed for each given width.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR

rng = np.random.default_rng(0)
x = np.linspace(-10.0, 10.0, 60)
X = x[:, np.newaxis]
y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(60)

gammas = np.geomspace(0.01, 8.0, 25)
evidence = np.array([RVR(gamma=gamma, weight_prior="process").fit(X, y).log_evidence_ for gamma in gammas])
learned = RVR().fit(X, y)
print(f"{'gamma':>8}{'log evidence':>15}")
for gamma in [0.01, learned.gamma_, 5.0]:
    model = RVR(gamma=gamma, weight_prior="process").fit(X, y)
    print(f"{gamma:>8.3f}{model.log_evidence_:>15.1f}")

# %%
# A stiff curve cannot follow the values. A loose one could follow any values, so it gives little probability to these.

line = np.linspace(-10.0, 10.0, 300)
figure, axes = plt.subplots(2, 2, figsize=(9.0, 5.2), layout="constrained")
axes[0, 0].semilogx(gammas, evidence, ".-", color="#0072B2")
axes[0, 0].axvline(learned.gamma_, linestyle=":", color="black")
axes[0, 0].set(title="log evidence (dotted: learned width)", xlabel="gamma", ylabel="nats")
for ax, gamma, name in [
    (axes[0, 1], 0.01, "too wide"),
    (axes[1, 0], learned.gamma_, "learned"),
    (axes[1, 1], 5.0, "too narrow"),
]:
    model = RVR(gamma=gamma, weight_prior="process").fit(X, y)
    mean, std = model.predict(line[:, np.newaxis], return_std=True)
    ax.fill_between(line, mean - 2.0 * std, mean + 2.0 * std, color="#0072B2", alpha=0.25, linewidth=0)
    ax.plot(line, mean, color="#0072B2")
    ax.plot(x, y, ".", color="black")
    ax.plot(line, np.sinc(line / np.pi), ":", color="#D55E00")
    ax.set(title=f"{name}: gamma {gamma:.3g}, {model.log_evidence_:.1f} nats", ylim=(-0.8, 1.5))
plt.show()

# sphinx_gallery_start_ignore
values = [
    round(float(RVR(gamma=g, weight_prior="process").fit(X, y).log_evidence_)) for g in (0.01, learned.gamma_, 5.0)
]
assert values == [14, 44, 7] and 0.7 < gammas[evidence.argmax()] / learned.gamma_ < 1.4, values
# sphinx_gallery_end_ignore

# %%
# *The evidence is 14 nats for the widest kernel, 44 for the learned one and 7 for the narrowest. The learned
# width lies at the top of the curve, and its fit (bottom left) is the one near the dotted truth.*
#
# See also: :doc:`/explanation/evidence`.
