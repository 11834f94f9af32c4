"""
Regression with error bars: noisy sinc
======================================

A hundred noisy values of sin(x) / x, the example of the first papers on relevance vector machines. The
model keeps a handful of the hundred kernels and learns their width and the noise with them.
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
# Nothing is chosen by hand: the width of the kernel, the kernels and the noise are learned by maximising the
# evidence. The weights have the prior of a Gaussian process. Its centres are the relevance vectors and the rows
# that complete them.

model = RVR().fit(X, t)
mean = model.predict(X)

print(f"{'training rows':<28}{len(x):>8}")
print(f"{'relevance vectors':<28}{len(model.relevance_):>8}")
print(f"{'centres':<28}{len(model.centres_):>8}")
print(f"{'width, gamma':<28}{model.gamma_:>8.3f}")
print(f"{'noise, learned':<28}{np.sqrt(model.noise_variance_):>8.3f}")
print(f"{'noise, true':<28}{noise_std:>8.3f}")
print(f"{'RMS error against the truth':<28}{np.sqrt(np.mean((mean - truth) ** 2)):>8.3f}")

# %%
# The mean with a band of two standard deviations of a new observation. The dark part is the uncertainty of the
# function, the rest is noise. The relevance vectors are circled.

display = RegressionDisplay.from_estimator(model, X, t, parts=True)
display.ax_.plot(x, truth, color="black", linestyle=":", label="truth")
display.ax_.legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
error = np.sqrt(np.mean((mean - truth) ** 2))
assert round(float(error), 2) == 0.04 and len(model.relevance_) == 6 and len(model.centres_) == 10, error
# sphinx_gallery_end_ignore

# %%
# *Ten centres, six of them relevance vectors, follow the truth with an RMS error of 0.04, less than half of the
# noise. The band widens where the data end.*
#
# The search
# ----------

# %%
# With a precision for each weight, the model of the papers, the evidence rises while kernels are pruned. In the
# end each kernel that is left has a finite precision; those of all others are infinite.

pruned = RVR(weight_prior="ard").fit(X, t)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
EvidenceDisplay.from_estimator(pruned, active=True, ax=left)
AlphaDisplay.from_estimator(pruned, ax=right)
plt.show()
