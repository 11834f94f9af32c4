"""
Wrong values: Student-t noise
=============================

One value in eight is wrong by several standard deviations. Under Gaussian noise these values bend the curve and widen
the band. Student-t noise gives them a small weight.
"""

# %%
# The data, with every eighth value moved.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from relvec.plotting import RegressionDisplay

rng = np.random.default_rng(0)
x = np.linspace(-10.0, 10.0, 120)
truth = np.sinc(x / np.pi)
y = truth + 0.1 * rng.standard_normal(len(x))
wrong = np.arange(3, len(x), 8)
y[wrong] += rng.choice([-1.5, 2.0], len(wrong))
X = x[:, np.newaxis]

# %%
# The only difference between the two models is the noise.

gaussian = RVR().fit(X, y)
student = RVR(likelihood="student_t").fit(X, y)
weights = np.array(student.report_["row_weights"])
errors = [np.sqrt(np.mean((model.predict(X) - truth) ** 2)) for model in (gaussian, student)]

print(f"{'RMS error, Gaussian noise':<34}{errors[0]:>8.3f}")
print(f"{'RMS error, Student-t noise':<34}{errors[1]:>8.3f}")
print(f"{'degrees of freedom, learned':<34}{student.noise_degrees_:>8.1f}")
print(f"{'largest weight of a wrong value':<34}{weights[wrong].max():>8.2f}")
print(f"{'median weight of the others':<34}{np.median(np.delete(weights, wrong)):>8.2f}")

# %%
# Right: the colour of a value is its weight.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.0, 3.6), sharey=True, layout="constrained")
for ax, model, name in [(left, gaussian, "Gaussian"), (right, student, "Student-t")]:
    RegressionDisplay.from_estimator(model, X, y, ax=ax)
    ax.plot(x, truth, ":", color="black")
    ax.set_title(f"{name} noise")
    ax.get_legend().remove()
dots = right.scatter(x, y, c=weights, cmap="cividis", s=22, zorder=5)
figure.colorbar(dots, ax=right, label="weight of the row")
plt.show()

# sphinx_gallery_start_ignore
assert [round(error, 2) for error in errors] == [0.21, 0.07] and weights[wrong].max() < 0.03
# sphinx_gallery_end_ignore

# %%
# *Two fits of the same rows, with Gaussian and with Student-t noise. The error against the truth is 0.21 with
# Gaussian noise and 0.07 with Student-t noise, under which no wrong value (dark) has a weight above 0.03.*
