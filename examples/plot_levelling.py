"""
Which measurement is wrong? A levelling network
===============================================

Surveyors measure how much higher one station is than the next, all over a network, with an instrument that is off by at
most 3 mm. Which heights agree best with *all* measurements? :func:`hasd.chebyshev` finds heights whose largest error is
as small as possible, and names a loop of measurements that proves that no heights do better. If the smallest possible
error is more than 3 mm, some measurement is wrong, and a few more fits prove which one.

The same program finds the offsets of clocks that are compared in pairs, or any other quantities of which only
differences are measured, if the errors have a bound.
"""

# %%
# The measurements
# ----------------
# The file :download:`levelling.csv <../../examples/levelling.csv>` has a row for each measurement: the two stations,
# and how much higher the second is than the first, in metres.
# :download:`levelling_stations.csv <../../examples/levelling_stations.csv>` says where the stations are; only the maps
# need that.

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, ListedColormap
from scipy import optimize, sparse
from scipy.spatial import Delaunay

import hasd

TOLERANCE = 0.003  # metres: the instrument is off by at most this
HERE = Path(globals().get("__file__", "")).parent  # notebooks have no __file__: they look beside themselves


def table(file):
    with open(HERE / file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


stations = table("levelling_stations.csv")
place = np.array([(float(row["east"]), float(row["north"])) for row in stations])  # kilometres
column = {row["station"]: k for k, row in enumerate(stations)}

rows = table("levelling.csv")
ends = np.array([(column[row["from"]], column[row["to"]]) for row in rows], dtype=np.int32)
difference = np.array([float(row["difference"]) for row in rows])
print(f"{len(stations)} stations, {len(rows)} measurements; the first: {rows[0]}")

# %%
# The matrix has a row for each measurement, with 1 in the column of the second station and −1 in that of the first. So
# ``A @ heights`` are the differences of the heights, and ``A @ heights - difference`` are the errors. The matrix is
# sparse: it has two entries in a row.

count = np.arange(len(rows))
entries = np.concatenate((np.ones(count.size), -np.ones(count.size)))
where = np.concatenate((count, count)), np.concatenate((ends[:, 1], ends[:, 0]))
A = sparse.csr_array((entries, where), shape=(len(rows), len(stations)))

# %%
# The fit, and what it proves
# ---------------------------
# No heights at all agree with these measurements to 3 mm.

fit = hasd.chebyshev(A, difference)
print(f"the largest error of our heights is {1e3 * fit.fun:.3f} mm")
print(f"no heights have a largest error below {1e3 * fit.lower:.3f} mm")

# %%
# You need not believe the solver, because you can check the proof by hand. ``fit.active`` names a few measurements that
# form a closed loop. If you walk around the loop, you come back to the height where you started, so the differences
# along the way should sum to 0. What they sum to instead, the *misclosure*, is the sum of their errors. So whatever the
# heights are, one of these errors is at least as large as the misclosure divided by the number of measurements.
#
# One loop is always enough for such a proof: the smallest possible largest error is the largest value of misclosure
# divided by number of measurements, over all loops of the network.


def name(k):
    return f"{rows[k]['from']}-{rows[k]['to']}"


loop, direction = fit.active, np.sign(fit.multipliers).astype(int)
assert not np.any(direction @ A[loop])  # the walk enters every station as often as it leaves it
misclosure = direction @ difference[loop]
share = abs(misclosure) / loop.size
for k, sign in zip(loop, direction, strict=True):
    print(f"{name(k)} walked {'forwards' if sign > 0 else 'backwards':9} {sign * difference[k]:+10.4f} m")
print(f"misclosure {1e3 * misclosure:+.1f} mm over {loop.size} measurements: {1e3 * share:.3f} mm each")

# %%
# The map shows the stations and the measurements between them. A measurement is blue if its error is within the
# tolerance, and orange or red if it is not. The loop is outlined in black, and shown again on the right. Orange lines
# far from the loop mean little, because the fit only cares for the largest error.

STEPS = [0.0, 1.0, 2.0, 3.0, 6.0, 12.0]  # mm
COLOURS = ListedColormap(["#C6DBEF", "#6BAED6", "#2171B5", "#FDAE61", "#D7301F"])


def draw_map(ax, used, residual, outlined):
    size = 1e3 * np.abs(residual)
    order = np.argsort(size)  # the largest errors are drawn last
    lines = LineCollection(place[ends[used[order]]], array=size[order], cmap=COLOURS, norm=BoundaryNorm(STEPS, 5))
    lines.set_linewidth(2.0)
    ax.add_collection(LineCollection(place[ends[outlined]], colors="black", linewidths=6.0, capstyle="round"))
    ax.add_collection(lines)
    ax.plot(*place.T, "o", color="0.25", markersize=2.5)
    ax.set(xlabel="east (km)", ylabel="north (km)", aspect="equal")
    ax.spines[["top", "right"]].set_visible(False)
    ax.figure.colorbar(lines, ax=ax, label="error of the measurement (mm)", location="bottom", shrink=0.7, aspect=40)


fig, (left, right) = plt.subplots(1, 2, figsize=(11.5, 5.2), layout="constrained", width_ratios=(1.75, 1))
draw_map(left, count, fit.residual, loop)
left.set_title(f"All measurements: the largest error is at least {1e3 * fit.lower:.3f} mm")
centre = place[ends[loop]].mean(axis=(0, 1))
arrow = {"arrowstyle": "-|>", "color": "#D7301F", "linewidth": 2.5, "mutation_scale": 18, "shrinkA": 6, "shrinkB": 6}
for k, sign in zip(loop, direction, strict=True):
    start, end = place[ends[k]][::sign]
    right.annotate("", end, start, arrowprops=arrow)
    label = centre + 1.2 * (0.5 * (start + end) - centre)
    right.text(*label, f"{sign * difference[k]:+.4f} m", ha="left" if label[0] > centre[0] else "right", va="center")
for k in np.unique(ends[loop]):
    right.plot(*place[k], "o", color="0.25")
    right.text(*(centre + 1.27 * (place[k] - centre)), stations[k]["station"], ha="center", va="center", weight="bold")
around = f"Once around, the sum should be 0.\nIt is {1e3 * misclosure:+.1f} mm."
right.text(0.5, 0.0, around, transform=right.transAxes, ha="center", va="top", fontsize="large")
right.set(title="The loop that proves it", aspect="equal")
right.margins(0.7, 0.2)
right.axis("off")

# %%
# Which measurement is wrong?
# ---------------------------
# A measurement of the loop must be wrong, but this fit does not say which: it shares the misclosure out equally. So we
# leave out each of them in turn, and fit the others.

without = {k: hasd.chebyshev(A[count != k], difference[count != k]) for k in loop}
for k, other in without.items():
    verdict = "one of the others is wrong" if other.lower > TOLERANCE else "the others agree"
    print(f"without {name(k)}: largest error {1e3 * other.fun:.3f} mm, at least {1e3 * other.lower:.3f} mm; {verdict}")

# %%
# Without one of the three, the others agree to 3 mm. Without either of the other two, the lower bound proves that they
# cannot. And whatever we leave out elsewhere, the loop remains. So this is the only measurement without which all
# others agree: if only one is wrong, it is this one.

wrong = min(without, key=lambda k: without[k].fun)
kept, clean = count != wrong, without[wrong]
off = abs(A @ clean.x - difference)[wrong]
print(f"{name(wrong)} is off by {100 * off:.0f} cm from the heights that the others give")

# %%
# The heights
# -----------
# Differences do not change if all heights grow by the same amount, so they determine the heights only up to a constant.
# (Each connected piece of the network has such a constant. There are as many as stations minus ``clean.rank``.) We know
# the height of one station, the *benchmark*, and shift all others with it.

BENCHMARK, KNOWN = "S001", 420.8726  # metres


def from_benchmark(x):
    return x + (KNOWN - x[column[BENCHMARK]])


heights = from_benchmark(clean.x)
constants = len(stations) - clean.rank
print(f"free constants: {constants}; heights from {heights.min():.1f} m to {heights.max():.1f} m")

# %%
# Least squares gives heights too. Fitted to all measurements, it has its largest error at the wrong one. That is a good
# hint, but no proof. Fitted to the others, its largest error is still more than 3 mm. If the instrument is never off by
# more than that, the least-squares heights are *impossible*, while those of the minimax fit are possible.


def least_squares(used):
    x = np.linalg.lstsq(A[used].toarray(), difference[used], rcond=None)[0]
    return from_benchmark(x), A[used] @ x - difference[used]


_, hint = least_squares(count)
hinted = np.argmax(np.abs(hint))
squares, squares_residual = least_squares(kept)
print(f"least squares of all: the largest error, {1e3 * abs(hint[hinted]):.1f} mm, is at {name(hinted)}")
for label, residual in (("minimax", clean.residual), ("least squares", squares_residual)):
    beyond = np.count_nonzero(np.abs(residual) > TOLERANCE)
    print(f"without it: {label:14}largest error {1e3 * np.abs(residual).max():.3f} mm, {beyond} errors above 3 mm")

# %%
# On the map without the wrong measurement, which is dotted, all lines are blue. Another loop proves that no heights do
# better. On the right are the errors of all measurements, sorted. The minimax fit keeps the largest ones small, and in
# return has more errors of middle size than least squares.

fig, (left, right) = plt.subplots(1, 2, figsize=(11.5, 5.2), layout="constrained", width_ratios=(1.75, 1))
draw_map(left, count[kept], clean.residual, count[kept][clean.active])
left.plot(*place[ends[wrong]].T, color="black", linestyle=":", linewidth=2.0)
left.set_title(f"Without {name(wrong)}: the largest error is {1e3 * clean.fun:.3f} mm")
ranks = 1 + np.arange(clean.residual.size)
curves = (("least squares", squares_residual, "s--", "#E69F00"), ("minimax", clean.residual, "o-", "#0072B2"))
for label, residual, look, colour in curves:
    right.semilogx(ranks, np.sort(1e3 * np.abs(residual))[::-1], look, color=colour, markersize=3, label=label)
right.axhline(1e3 * TOLERANCE, color="black", linestyle=":", label="tolerance of the instrument")
right.set(title="Errors, sorted", xlabel="measurement, from the largest error", ylabel="error (mm)", ylim=0.0)
right.xaxis.set_major_formatter("{x:g}")
right.spines[["top", "right"]].set_visible(False)
right.legend(loc="lower left", frameon=False)

# %%
# Was it right?
# -------------
# These measurements are not real: the function below made the two files. It puts stations on hilly ground, at random
# but at least 1.3 km apart, and measures between neighbours. The errors are spread evenly from −3 to 3 mm, and one
# measurement, chosen at random, is read 3 cm too high.


def survey(seed, n=160):
    rng = np.random.default_rng(seed)
    spots = np.empty((0, 2))
    while len(spots) < n:
        spot = rng.uniform((0.0, 0.0), (30.0, 18.0)).round(2)
        if np.all(np.hypot(*(spots - spot).T) > 1.3):
            spots = np.vstack((spots, spot))
    spots = spots[np.argsort(spots[:, 0], kind="stable")]
    corners = Delaunay(spots).simplices
    pairs = np.unique(np.sort(np.vstack((corners[:, :2], corners[:, 1:], corners[:, ::2]))), axis=0)
    pairs = pairs[np.hypot(*(spots[pairs[:, 0]] - spots[pairs[:, 1]]).T) < 4.0]
    pairs = rng.permuted(pairs, axis=1)
    hills = 90.0 * np.sin(spots[:, 0] / 6.0) * np.cos(spots[:, 1] / 5.0)
    truth = (420.0 + hills + rng.normal(0.0, 8.0, n)).round(4)
    errors = rng.uniform(-TOLERANCE, TOLERANCE, len(pairs))
    misread = rng.integers(len(pairs))
    errors[misread] += 0.03
    return spots, pairs, truth, (truth[pairs[:, 1]] - truth[pairs[:, 0]] + errors).round(4), misread


spots, pairs, truth, made, misread = survey(seed=3)
same = np.array_equal(pairs, ends) and np.allclose(spots, place) and np.allclose(made, difference, rtol=0.0, atol=1e-9)
print(f"the files are as made here: {same}; the wrong measurement is {name(misread)}")
height_error = {"minimax": heights - truth, "least squares": squares - truth}
for label, error in height_error.items():
    print(f"{label:14}heights are off by {1e3 * np.sqrt(np.mean(error**2)):.1f} mm (root mean square)")

# %%
# So the wrong measurement was found. The heights of both fits are about equally good: a station takes part in only a
# few measurements. The :ref:`sensor example <sphx_glr_gallery_plot_sensor_fit.py>` has hundreds of readings for each
# parameter, and there the minimax fit is much better.

# %%
# The same with a smoothed maximum
# --------------------------------
# For this problem ``hasd.chebyshev`` is the best choice: it is exact, and its proof is a loop. If the largest error is
# only a part of what you want to minimise, you can replace it by a smooth function and use :func:`hasd.minimize`. For
# errors :math:`r_1, \dots, r_m` and a small :math:`\alpha`,
#
# .. math:: f = \alpha \log \sum_{k=1}^m \left(e^{r_k/\alpha} + e^{-r_k/\alpha}\right), \qquad
#    \max_k |r_k| \le f \le \max_k |r_k| + \alpha \log 2m.
#
# So a lower bound on :math:`f`, less :math:`\alpha \log 2m`, is a lower bound on the largest error. We want to know the
# smallest possible largest error to 0.1 mm. One half of this we allow for the smoothing, the other half for
# ``gap_tol``. The unknowns are corrections to the least-squares heights, in millimetres.

ACCURACY = 0.1  # mm
smoothing = gap_tol = 0.5 * ACCURACY
B, misfit = A[kept], -1e3 * squares_residual
f = hasd.objectives.SymmetricSoftmax(B, misfit, alpha=smoothing / np.log(2 * misfit.size))
zero = np.zeros(len(stations))

# %%
# The certificate needs ``radius``, a bound on the Euclidean length of the vector of corrections. It need not be sharp.
# At the minimum of :math:`f`, no error is larger than :math:`f(0)`. So the corrections of two neighbours differ at most
# by :math:`f(0)` plus the misfit of their measurement. We keep the most central station as it is, and add this up along
# the shortest paths to all others.

apart = sparse.csr_array((f(zero) + np.abs(misfit), (ends[kept, 0], ends[kept, 1])), shape=2 * zero.shape)
radius = np.linalg.norm(sparse.csgraph.dijkstra(apart, directed=False), axis=1).min()
smooth = hasd.minimize(f, zero, method="hasd", p=np.inf, gap_tol=gap_tol, radius=radius)
smooth_error = np.abs(B @ smooth.x - misfit).max()
smooth_lower = smooth.lower - smoothing
print(smooth.message)
print(f"largest error {smooth_error:.3f} mm; no heights have less than {smooth_lower:.2f} mm")
print(f"radius {radius:.0f} mm; the corrections have the length {np.linalg.norm(smooth.x - smooth.x.mean()):.0f} mm")

# %%
# How many evaluations does it take? We count those until a method has *found* heights whose largest error is within 0.1
# mm of the smallest possible one, and those until it has *proven* it. For the count we run without a trace, which would
# evaluate ``f`` once more in each iteration.


def run(solve):
    errors = []

    def watched(x):
        errors.append(np.abs(B @ x - misfit).max())
        return f.value_and_grad(x)

    return solve(watched), np.minimum.accumulate(errors)


def certified(**settings):
    return lambda fun: hasd.minimize(fun, zero, jac=True, gap_tol=gap_tol, radius=radius, trace=False, **settings)


runs = {
    "hasd, p=inf": run(certified(method="hasd", p=np.inf)),
    "hasd, p=2": run(certified(method="hasd", p=2)),
    "hasd-qn": run(certified()),
    "L-BFGS-B": run(lambda fun: optimize.minimize(fun, zero, jac=True, method="L-BFGS-B")),
}
target = 1e3 * clean.fun + ACCURACY
found = {label: 1 + int(np.argmax(errors <= target)) for label, (_, errors) in runs.items()}
for label, (res, _) in runs.items():
    proof = f"proven after {res.nfev}" if "gap" in res else "never proven"
    print(f"{label:12} found after {found[label]:3} evaluations, {proof}")

# %%
# With ``p=inf``, a step moves every station by the same amount, up or down; with ``p=2``, each in proportion to its
# part of the gradient. Here ``p=inf`` finds good heights first. A proof takes longer: it excludes better heights within
# the whole radius, which is more than a hundred times what was needed. The quasi-Newton method ``hasd-qn`` is what
# ``hasd.minimize`` takes if we name neither ``method`` nor ``p``. SciPy's L-BFGS-B has no proof.
#
# The picture shows the largest error of the best heights so far, and what the run with ``p=inf`` has proven. The
# smallest possible error, which we know from ``hasd.chebyshev``, lies between the two.

LOOKS = {"hasd, p=inf": ("#0072B2", "-"), "hasd, p=2": ("#56B4E9", "--"), "L-BFGS-B": ("#E69F00", "-.")}
fig, ax = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
for label, (colour, style) in LOOKS.items():
    errors = runs[label][1]
    ax.semilogx(1 + np.arange(errors.size), errors, style, color=colour, linewidth=2, label=label)
    ax.plot(found[label], errors[found[label] - 1], "o", color=colour)
ax.plot(smooth.trace["nfev"], smooth.trace["lower"] - smoothing, color="#009E73", label="proven by hasd, p=inf")
ax.axhline(1e3 * clean.fun, color="black", linewidth=1, label="smallest possible")
ax.axhspan(1e3 * clean.fun, target, color="0.9", linewidth=0, label="within 0.1 mm of it")
ax.set(xlabel="evaluations of f and its gradient", ylabel="largest error (mm)", ylim=(1.9, 3.7))
ax.xaxis.set_major_formatter("{x:g}")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(loc="lower left", frameon=False)
plt.show()
