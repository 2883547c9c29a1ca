"""
First steps: minimise, and know how close you are
=================================================

:func:`hasd.minimize` takes any smooth convex function. Besides a point it returns a *certificate*: a number below which
the minimum cannot lie. This example minimises a Python function and then one of the library's own objectives, and stops
each time when the certified error is small enough.
"""

# %%
# A black box
# -----------
# We want to smooth a noisy signal :math:`y` without blurring its jumps. The penalty on the difference of neighbours
# grows like its square if the difference is small, and only like its size if it is large.
#
# .. math:: f(x) = \tfrac12 \|x - y\|^2 + \lambda \sum_i \sqrt{\varepsilon^2 + (x_{i+1} - x_i)^2}
#
# The function returns value and gradient, as for ``jac=True`` in SciPy.

import matplotlib.pyplot as plt
import numpy as np

import hasd

rng = np.random.default_rng(0)
position = np.linspace(0.0, 1.0, 300)
truth = np.select([position < 0.25, position < 0.6, position < 0.8], [0.0, 2.0, 0.5], 1.2)
y = truth + 0.3 * rng.standard_normal(position.size)


def smoothing(x, strength=2.0, eps=0.05):
    difference = np.diff(x)
    length = np.sqrt(eps**2 + difference**2)
    gradient = x - y
    gradient[:-1] -= strength * difference / length
    gradient[1:] += strength * difference / length
    return 0.5 * np.sum((x - y) ** 2) + strength * np.sum(length), gradient


# %%
# The first term makes ``f`` strongly convex with modulus 1. We say so by ``mu=1``, and then the certificate needs
# nothing else. ``gap_tol`` stops the run when the certified error is that small. This is easier to choose than a
# tolerance for the gradient, because it is in the units of ``f``.

box = hasd.minimize(smoothing, np.zeros(y.size), jac=True, mu=1.0, gap_tol=1e-6, tol=0.0)
print(box.message)
print(f"f(x) = {box.fun:.8f} after {box.nfev} evaluations; the minimum is at least {box.lower:.8f}")

# %%
# LogSumExp
# ---------
# The objectives of the library know their structure. This one is :math:`\log \sum_i \exp(a_i^T x - b_i)` with a ridge,
# a smooth stand-in for the largest of 500 linear functions. We need not give a stepsize, a smoothness constant or a
# norm. The objective knows its ridge, so the certificate needs no ``radius`` either.

A, b = rng.standard_normal((500, 60)), rng.standard_normal(500)
softmax = hasd.objectives.LogSumExp(A, b, ridge=1e-3)
lse = hasd.minimize(softmax, np.zeros(60), gap_tol=1e-6, tol=0.0)
print(lse.message)
print(f"f(x) = {lse.fun:.8f} after {lse.nit} iterations; the minimum is at least {lse.lower:.8f}")

# %%
# Without strong convexity, the certificate needs ``radius``, a bound on the distance from the start to a minimiser. We
# can ask for any radius after the run, without running again; the certified error grows with the radius.

plain = hasd.minimize(hasd.objectives.LogSumExp(A, b), np.zeros(60), tol=1e-8)
for radius in (1.0, 10.0, 100.0):
    print(f"if a minimiser lies within {radius:5.0f} of x0, f(x) is optimal to {plain.certificate.gap(radius):.1e}")

# %%
# What the run looked like
# ------------------------
# ``res.trace`` has a row for each iteration. The upper curve is what the method knows while it runs: the best value
# minus the best lower bound. The lower curve is the true error, for which a second, longer run found the minimum. The
# certified error is always above the true one. The run stops when it falls below the dotted line, ``gap_tol``.

best_box = hasd.minimize(smoothing, np.zeros(y.size), jac=True, mu=1.0, tol=1e-12).fun
best_lse = hasd.minimize(softmax, np.zeros(60), tol=1e-12).fun

fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
left.plot(position, y, ".", color="0.65", markersize=3, label="data")
left.plot(position, box.x, color="#0072B2", label="minimiser")
left.set(title="Smoothed signal", xlabel="position", ylim=(-0.9, 3.7))
left.legend(loc="upper right", frameon=False)
certified, errors = [], []
for ax, run, best, title in ((middle, box, best_box, "Black box"), (right, lse, best_lse, "LogSumExp")):
    certified.append(run.trace["upper"] - run.trace["lower"])
    errors.append(run.trace["upper"] - best)
    ax.semilogy(run.trace["iteration"], certified[-1], color="#0072B2", label="f − lower bound")
    ax.semilogy(run.trace["iteration"], errors[-1], "--", color="#E69F00", label="f − minimum")
    ax.axhline(1e-6, color="black", linestyle=":", linewidth=1, label="gap_tol")
    ax.set(title=title, xlabel="iteration")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(loc="upper right", frameon=False)
plt.show()
