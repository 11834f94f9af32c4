"""
Counts with exposures: accidents by hour
========================================

Counts are whole numbers, and large ones vary more than small ones. With ``likelihood="poisson"`` the model learns the
log of the rate, and takes into account over how long each count was gathered.
"""

# %%
# Simulated: accidents by hour of the day, each observed on one to ten days.

import matplotlib.pyplot as plt
import numpy as np
from relvec import RVR

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(0.0, 24.0, 120))
days = rng.integers(1, 11, 120)


def rate(hour):
    """Accidents per day and hour."""
    return 0.5 + 4.0 * np.exp(-0.5 * ((hour - 8.0) / 1.5) ** 2) + 6.0 * np.exp(-0.5 * ((hour - 17.5) / 2.0) ** 2)


counts = rng.poisson(rate(hour) * days)
model = RVR(likelihood="poisson").fit(hour[:, np.newaxis], counts, exposure=days)

# %%
# Predictions are for an exposure of one day, unless another is given. The quantiles of a new count contain the
# uncertainty of the rate.

line = np.linspace(0.0, 24.0, 200)
grid = line[:, np.newaxis]
expected = model.predict(grid)
low, high = model.predict_quantiles(grid, [0.05, 0.95]).T

fresh_hour = rng.uniform(0.0, 24.0, 2000)
fresh = rng.poisson(rate(fresh_hour))
bounds = model.predict_quantiles(fresh_hour[:, np.newaxis], [0.05, 0.95])
covered = np.mean((bounds[:, 0] <= fresh) & (fresh <= bounds[:, 1]))
error = np.sqrt(np.mean((expected - rate(line)) ** 2))
print(f"{'rows':<44}{len(hour):>8}")
print(f"{'relevance vectors':<44}{len(model.relevance_):>8}")
print(f"{'RMS error of the rate (mean rate 2.4)':<44}{error:>8.2f}")
print(f"{'new counts from the 5 % to the 95 % quantile':<44}{covered:>8.1%}")

# %%
# The dots are counts divided by days, larger ones of more days.

figure, ax = plt.subplots(figsize=(8.0, 3.6), layout="constrained")
ax.scatter(hour, counts / days, s=4.0 * days, color="0.4", alpha=0.7, label="observed per day")
ax.fill_between(line, low, high, step="mid", color="#0072B2", alpha=0.2, linewidth=0, label="90 % of counts of one day")
ax.plot(line, expected, color="#0072B2", label="expected")
ax.plot(line, rate(line), ":", color="black", label="true rate")
ax.set(xlabel="hour", ylabel="accidents per day and hour")
ax.legend(fontsize="small")
plt.show()

# sphinx_gallery_start_ignore
assert len(model.relevance_) == 4 and round(covered, 2) in (0.96, 0.97) and low.min() >= 0.0
# sphinx_gallery_end_ignore

# %%
# *Four relevance vectors describe both rush hours. The band is wide where the rate is high, as counts demand, and
# its lower end is never below zero. 96 % of new counts lie between the 5 % and the 95 % quantile: more than 90 %,
# because counts are whole numbers and the ends belong to the interval.*
