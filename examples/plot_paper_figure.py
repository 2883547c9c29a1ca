"""
The paper's figure
==================

Bai and Bullins compare gradient descent, Nesterov's accelerated gradient, linear coupling and HASD on a LogSumExp with
a ridge, each with the best of 31 stepsizes. ``hasd reproduce figure`` repeats this comparison in full and writes every
number to a table. This page does the same with a smaller problem in a few seconds.
"""

# %%
# The experiment as data
# ----------------------
# An experiment consists of sizes, a function that computes tables from sizes, and functions that draw tables. We keep
# the seven largest of the paper's stepsizes, and take a smaller matrix and fewer iterations. (The sizes in
# ``experiment.quick``, which ``--quick`` uses, are even smaller and only show that everything works.)

from dataclasses import replace

import matplotlib.pyplot as plt

from hasd.experiments import EXPERIMENTS
from hasd.experiments.style import METHODS, RC

experiment = EXPERIMENTS["figure"]
sizes = replace(experiment.sizes, n=100, d=20, iterations=40, stepsizes=experiment.sizes.stepsizes[-7:])
print(sizes)

# %%
# The command line spreads the runs over all cores with ``hasd.experiments.Workers``. Here they run one after the other.


class TakingTurns:
    def map(self, function, tasks, label):
        return [function(task) for task in tasks]


tables = experiment.tables(sizes, TakingTurns())
chosen = [row["stepsize"] for row in tables["figure-tuning"] if row["chosen_iterations"] or row["chosen_evaluations"]]
print({name: len(rows) for name, rows in tables.items()})
print(f"tuned stepsizes: from {min(chosen):g} to {max(chosen):g}; the smallest that was tried: {sizes.stepsizes[0]:g}")

# %%
# On iterations
# -------------
# The top row is the problem as published. Its matrix has no negative entry, so at :math:`\mu = 0` the function is
# unbounded below. There is no error to show, and that panel shows values instead. The bottom row is the same matrix
# with random signs, which has a minimum.


def draw(stem):
    inches, onto = experiment.plots[stem]
    with plt.rc_context(RC):
        onto(plt.figure(figsize=inches, layout="constrained"), tables)


draw("figure")

# %%
# On evaluations
# --------------
# The published method evaluates two gradients in an iteration, the others one. With the same number of gradients it has
# half as many iterations, and its stepsize is tuned again for them.

draw("figure-evaluations")

# %%
# In numbers
# ----------
# These are the errors at the end of the budget, each method with its tuned stepsize. No method is best everywhere. With
# random signs AGD, in :math:`\ell_2`, is ahead: the rows of this matrix are dense, so that the smoothness constant in
# :math:`\ell_\infty` is about :math:`d` times that in :math:`\ell_2`, which cancels what the geometry gains.
# ``hasd reproduce dimension`` shows problems where it does not.


def last_gaps(family, mu, axis):
    rows = [row for row in tables["figure"] if (row["family"], row["mu"], row["tuned_on"]) == (family, mu, axis)]
    return {row["method"]: row["gap"] for row in rows}


winners = {}
for axis in ("iterations", "evaluations"):
    print(f"counted in {axis}")
    for family, mu in (("published", 1e-2), ("signs", 0.0), ("signs", 1e-2)):
        gaps = last_gaps(family, mu, axis)
        winners[axis, family, mu] = min(gaps, key=gaps.get)
        shown = ", ".join(f"{METHODS[name].short} {gap:.1e}" for name, gap in gaps.items())
        print(f"  {family:<9} mu = {mu:<5g}", shown)

plt.show()
