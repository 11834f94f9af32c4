"""
Regression with error bars: noisy sinc
======================================

A hundred noisy values of sin(x) / x, the example of the first papers on relevance vector machines. The
model keeps a handful of the hundred kernels and learns the noise with them.
"""

# %%
# The data: evenly spaced, with Gaussian noise of standard deviation 0.1.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR
from relvec.plotting import AlphaDisplay, EvidenceDisplay, RegressionDisplay

rng = np.random.default_rng(0)
x = np.linspace(-10.0, 10.0, 100)
truth = np.sinc(x / np.pi)
noise_std = 0.1
t = truth + noise_std * rng.standard_normal(len(x))
X = x[:, np.newaxis]

# %%
# Only the width of the kernel is chosen by hand; the precisions of the weights and the noise are learnt by
# maximising the evidence.

model = RVR(gamma=0.1).fit(X, t)
mean = model.predict(X)

print(f"{'training rows':<28}{len(x):>8}")
print(f"{'relevance vectors':<28}{len(model.relevance_):>8}")
print(f"{'noise, learnt':<28}{np.sqrt(model.noise_variance_):>8.3f}")
print(f"{'noise, true':<28}{noise_std:>8.3f}")
print(f"{'RMS error against the truth':<28}{np.sqrt(np.mean((mean - truth) ** 2)):>8.3f}")

# %%
# The mean with a band of two standard deviations of a new observation. The dark part is what is not known
# of the weights, the rest is noise. The relevance vectors are circled.

display = RegressionDisplay.from_estimator(model, X, t, parts=True)
display.ax_.plot(x, truth, color="black", linestyle=":", label="truth")
display.ax_.legend(fontsize="small")
plt.show()

# %%
# How the fit went: the evidence rises while kernels are pruned. In the end each kernel that is left has a
# finite precision; those of all others are infinite.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
EvidenceDisplay.from_estimator(model, active=True, ax=left)
AlphaDisplay.from_estimator(model, ax=right)
plt.show()
