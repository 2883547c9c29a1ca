"""
A low-pass filter with the least ripple
=======================================

A linear-phase FIR filter of odd length has the amplitude :math:`H(\\omega) = \\sum_k c_k \\cos k\\omega`. It should be
close to 1 in the passband and to 0 in the stopband, uniformly and with a weight for each band. This is a weighted
minimax fit whose rows are frequencies and whose columns are cosines. SciPy's ``remez`` (Parks and McClellan) solves
exactly this problem, so we can compare. :func:`hasd.chebyshev` also takes columns that are not cosines, and proves its
answer.
"""

# %%
# The specification
# -----------------
# The sampling rate is 1 Hz and the filter has 55 taps. The passband ends at 0.10 Hz and the stopband begins at 0.14 Hz.
# Errors in the stopband have ten times the weight of those in the passband.
#
# To compare like with like we take the frequencies that ``remez`` uses inside: in each band they start at its left
# edge and have equal steps, 16 per coefficient over the whole range, and the last one is moved to the right edge.

import matplotlib.pyplot as plt
import numpy as np
from scipy import signal

import hasd

TAPS, DENSITY = 55, 16
BANDS, DESIRED, WEIGHTS = [(0.0, 0.10), (0.14, 0.5)], [1.0, 0.0], [1.0, 10.0]
coefficients = TAPS // 2 + 1


def grid(density):
    step = 0.5 / (density * coefficients)
    parts = [np.arange(low, high, step) for low, high in BANDS]
    for part, (_, high) in zip(parts, BANDS, strict=True):
        part[-1] = high
    sizes = [part.size for part in parts]
    return np.concatenate(parts), np.repeat(DESIRED, sizes), np.repeat(WEIGHTS, sizes)


def cosines(frequency):
    return np.cos(2.0 * np.pi * frequency[:, None] * np.arange(coefficients))


# %%
# The fit
# -------
# Each row is multiplied with its weight. The coefficients of the cosines are those of the filter, folded at its centre.
# Least squares, which we show for comparison, weights squared errors, so it gets the squared weights.

frequency, desired, weight = grid(DENSITY)
res = hasd.chebyshev(weight[:, None] * cosines(frequency), weight * desired)
taps_minimax = np.concatenate((res.x[:0:-1] / 2.0, res.x[:1], res.x[1:] / 2.0))
edges = [edge for band in BANDS for edge in band]
taps_remez = signal.remez(TAPS, edges, DESIRED, weight=WEIGHTS, grid_density=DENSITY, fs=1.0)
taps_squares = signal.firls(TAPS, edges, np.repeat(DESIRED, 2), weight=np.square(WEIGHTS), fs=1.0)


def error(taps, frequency, desired, weight):
    middle = TAPS // 2
    folded = np.concatenate((taps[middle : middle + 1], 2.0 * taps[middle + 1 :]))
    return weight * (cosines(frequency) @ folded - desired)


designs = {"minimax": taps_minimax, "remez": taps_remez, "least squares": taps_squares}
fine = grid(64 * DENSITY)
on_grid = {name: np.abs(error(taps, frequency, desired, weight)).max() for name, taps in designs.items()}
between = {name: np.abs(error(taps, *fine)).max() for name, taps in designs.items()}
print(res.message)
for name in designs:
    print(f"{name:14}largest weighted error {on_grid[name]:.9f} on the grid, {between[name]:.9f} on a finer one")
print(f"no filter of this length has less than {res.lower:.9f} on the grid")

# %%
# On the grid both find the same filter, to the last digits. Between the points of the grid both exceed this value by
# the same half percent. This is an effect of the grid, not of the methods, and a denser grid removes it.

error_minimax, error_remez = on_grid["minimax"], on_grid["remez"]
difference = np.abs(taps_minimax - taps_remez).max()
print(f"taps differ by at most {difference:.1e}")

# %%
# Ripple in decibels
# ------------------
# The ripples of the minimax filter all have the same height and reach it at the marked frequencies, which prove that no
# filter is better. Least squares has smaller errors far from the edge of the band, but larger ones at the edge, and a
# specification bounds the largest error.

stopband = {}
for name in designs:
    ripple = np.abs(error(designs[name], *fine))[fine[1] == 0.0].max() / WEIGHTS[1]
    stopband[name] = 20.0 * np.log10(ripple)
    print(f"{name:14}stopband attenuation {-stopband[name]:.2f} dB")

fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8), layout="constrained")
looks = {
    "least squares": {"color": "#E69F00", "linestyle": "-", "linewidth": 1.2},
    "minimax": {"color": "#0072B2", "linestyle": "-", "linewidth": 2.4},
    "remez": {"color": "black", "linestyle": (0, (2, 3)), "linewidth": 1.2},
}
shown = np.linspace(0.0, 0.5, 4001)
for name, look in looks.items():
    amplitude = error(designs[name], shown, np.zeros(shown.size), np.ones(shown.size))
    left.plot(shown, 20.0 * np.log10(np.maximum(np.abs(amplitude), 1e-6)), label=name, **look)
left.set(title="Magnitude response", xlabel="frequency (cycles per sample)", ylabel="dB", xlim=(0, 0.5), ylim=(-90, 5))
left.legend(loc="upper right", frameon=False)
for name in ("least squares", "minimax"):
    values = error(designs[name], *fine)
    for band in DESIRED:
        part = fine[1] == band
        right.plot(fine[0][part], values[part], label=name if band else None, **{**looks[name], "linewidth": 1.2})
right.plot(frequency[res.active], res.residual[res.active], "o", color="black", markersize=4, label="proof")
right.axvspan(BANDS[0][1], BANDS[1][0], color="0.92", linewidth=0)
right.set(title="Weighted error", xlabel="frequency (cycles per sample)", xlim=(-0.005, 0.505))
right.legend(loc="upper right", frameon=False)
plt.show()
