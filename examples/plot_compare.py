"""
Compare methods, and know how close each one got
================================================

:func:`hasd.compare` runs several methods on one problem, SciPy's among them, and counts their evaluations alike. What
one of our methods certifies is true for all of them: a lower bound on the minimum bounds the error of SciPy's answer
too.
"""

# %%
# The problem
# -----------
# We fit a logistic regression to 600 points with 120 features, of which some vary much more than others. The ridge
# makes the function strongly convex, so the certificates need no ``radius``.

import matplotlib.pyplot as plt
import numpy as np

import hasd

rng = np.random.default_rng(0)
A = rng.standard_normal((600, 120)) * np.geomspace(3.0, 0.1, 120)
labels = np.where(A @ rng.standard_normal(120) + rng.standard_normal(600) > 0.0, 1.0, -1.0)
f = hasd.objectives.Logistic(A, labels, ridge=1e-3)
x0 = np.zeros(120)

# %%
# Equal budgets
# -------------
# The methods are given by labels. Each is a name, or a dictionary of settings of :func:`hasd.minimize`; names of
# ``scipy.optimize.minimize`` work too. With a budget the tolerances are 0, so that nothing else ends a run before
# machine precision.

methods = {
    "hasd, p = 2": {"method": "hasd", "p": 2},
    "hasd, p = inf": {"method": "hasd", "p": np.inf},
    "Nesterov's": "agd",
    "the default": "auto",
    "L-BFGS (SciPy)": "L-BFGS-B",
    "CG (SciPy)": "CG",
}
race = hasd.compare(f, x0, methods, budget=150)
print(race)

# %%
# ``own gap`` is what a method certified by itself, and ``gap`` is what the best lower bound of all runs says of its
# answer. SciPy's methods certify nothing themselves; the bound of another method says how good their answers are.
#
# The solid lines show how far each best value so far was above the best of all. The dashed ones show the certified gap,
# which is what the method knew at that time.

ax = race.plot(certified=True)
ax.set_title("Logistic regression, 120 features")

# %%
# To a tolerance
# --------------
# Without a budget each method runs until its own tolerance. SciPy's are not ours: its answer may be further from the
# minimum than you want, and the column ``gap`` says how far at most.

finish = hasd.compare(f, x0, {"the default": {"gap_tol": 1e-9}, "L-BFGS (SciPy)": "L-BFGS-B"})
print(finish)
for row in finish.rows():
    print(f"{row['label']}: f(x) is within {row['gap']:.1e} of the minimum, certified")

plt.show()
