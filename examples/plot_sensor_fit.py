"""
Calibrating a sensor whose noise is bounded
===========================================

An analogue-to-digital converter rounds: its reading is wrong by at most half a count, and all errors up to half a count
are equally likely. For noise of this kind the minimax fit is much better than least squares. For noise with outliers it
is much worse. This example shows both, and how the certificate tells the two cases apart.
"""

# %%
# The sensor
# ----------
# The sensor is given known settings :math:`s \in [-1, 1]`, and its readings, in counts, follow a slightly bent line. We
# want to find the three parameters of this line from rounded readings.

import matplotlib.pyplot as plt
import numpy as np

import hasd

TRUTH = np.array([512.3, 401.7, -23.4])  # offset, gain, curvature, all in counts
HALF = 0.5  # of a count: what rounding does at most


def readings(n, rng, glitches=0):
    setting = rng.uniform(-1.0, 1.0, n)
    A = np.column_stack((np.ones(n), setting, setting**2))
    reading = np.round(A @ TRUTH)
    reading[rng.choice(n, glitches, replace=False)] -= np.ceil(rng.exponential(20.0, glitches))
    return A, reading


# %%
# One calibration
# ---------------
# All parameters that agree with every reading to half a count form a small polytope that contains the truth. The
# minimax fit lies inside it, because its largest residual is at most that of the truth. The least-squares fit may lie
# outside. Which of the two is closer to the truth in a single calibration is a matter of chance.

A, reading = readings(400, np.random.default_rng(0))
minimax = hasd.chebyshev(A, reading)
squares = np.linalg.lstsq(A, reading, rcond=None)[0]
print(minimax.message)
for name, x in (("minimax", minimax.x), ("least squares", squares)):
    worst = np.abs(A @ x - reading).max()
    print(f"{name:14}largest residual {worst:.4f} counts, parameters off by {np.linalg.norm(x - TRUTH):.4f}")

# %%
# More readings
# -------------
# With :math:`n` readings the error of least squares falls like :math:`1/\sqrt n`. The minimax fit is determined by the
# readings whose errors are nearly half a count. With :math:`n` readings the closest of them come within about
# :math:`1/n` of it, and the error of the fit falls like :math:`1/n`. With few readings neither fit is better.
#
# Then we add glitches: a loose contact lowers one reading in a hundred, by twenty counts on average. The minimax fit
# follows the worst readings, and more readings do not help. Least squares has smaller errors, because it averages over
# all readings, but it does not find the truth either.

SIZES, REPEATS = np.array([25, 100, 400, 1600]), 20


def parameter_errors(n, glitches=0):
    rng = np.random.default_rng(n)
    errors, proven = [], 0
    for _ in range(REPEATS):
        A, reading = readings(n, rng, glitches)
        minimax = hasd.chebyshev(A, reading)
        squares = np.linalg.lstsq(A, reading, rcond=None)[0]
        errors.append([np.linalg.norm(x - TRUTH) for x in (minimax.x, squares)])
        proven += minimax.lower > HALF
    return np.sqrt(np.mean(np.square(errors), axis=0)), proven / REPEATS


rounded = [parameter_errors(n) for n in SIZES]
glitched = [parameter_errors(n, glitches=n // 100) for n in SIZES[1:]]
bounded_minimax, bounded_squares = np.transpose([errors for errors, _ in rounded])
outlier_minimax, outlier_squares = np.transpose([errors for errors, _ in glitched])

# %%
# Which case is it?
# -----------------
# The certificate tells. For *all* parameters, the largest residual is at least ``res.lower``. If this is more than half
# a count, rounding alone cannot explain the readings: some reading is a glitch, or the model is wrong. Otherwise the
# readings are consistent with rounding, and the minimax fit is the better choice.

false_alarms = max(share for _, share in rounded)
detected = min(share for _, share in glitched)
print(f"proven inconsistent: {false_alarms:.0%} of the sets with rounding only, {detected:.0%} of those with glitches")

# %%
# As a rule of thumb, use the minimax fit for errors that have a bound (rounding, tolerances, worst-case
# specifications), least squares for errors that add up from many causes, and a robust loss for glitches.

fig, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
panels = (("Rounding only", bounded_minimax, bounded_squares), ("1 % glitches", outlier_minimax, outlier_squares))
for ax, (title, ours, theirs) in zip(axes, panels, strict=True):
    ax.loglog(SIZES[-theirs.size :], theirs, "s--", color="#E69F00", label="least squares")
    ax.loglog(SIZES[-ours.size :], ours, "o-", color="#0072B2", label="minimax")
    ax.set(title=title, xlabel="readings", ylabel="parameter error (counts)", xlim=(18, 2600))
for power, start, text in ((0.5, 0.4, "$n^{-1/2}$"), (1.0, 0.13, "$n^{-1}$")):
    line = start * (SIZES / SIZES[0]) ** -power
    axes[0].plot(SIZES, line, ":", color="0.5")
    axes[0].annotate(text, (SIZES[-1], line[-1]), xytext=(3, 0), textcoords="offset points", va="center")
for ax in axes:
    ax.set_xticks(SIZES, [str(n) for n in SIZES])
    ax.set_xticks([], minor=True)
axes[0].legend(loc="lower left", frameon=False)
axes[1].legend(loc="center right", frameon=False)
plt.show()
