"""
The paper's figure
==================

Bai and Bullins compare gradient descent, Nesterov's accelerated gradient, linear coupling and HASD on a LogSumExp with
a ridge, each with the best of 31 stepsizes. ``hasd reproduce figure`` repeats that, writes every number to a table and
takes its time; this page does the same, smaller, in a few seconds.
"""

# %%
# The experiment as data
# ----------------------
# An experiment is a set of sizes, a function from sizes to tables, and functions that draw tables. Of the paper's
# stepsizes we keep the seven largest, and take a smaller matrix and fewer iterations. (``experiment.quick``, behind
# ``--quick``, is smaller still: it only shows that everything works.)

from dataclasses import replace

import matplotlib.pyplot as plt

from hasd.experiments import EXPERIMENTS
from hasd.experiments.style import METHODS, RC

experiment = EXPERIMENTS["figure"]
sizes = replace(experiment.sizes, n=100, d=20, iterations=40, stepsizes=experiment.sizes.stepsizes[-7:])
print(sizes)

# %%
# The command line spreads the runs over all cores with ``hasd.experiments.Workers``. Here they take turns.


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
# The top row is the problem as published. Its matrix has no negative entry, so that at :math:`\mu = 0` the function
# falls without end and there is no error to show: that panel shows values. The bottom row is the same matrix with
# random signs, which has a minimum.


def draw(stem):
    inches, onto = experiment.plots[stem]
    with plt.rc_context(RC):
        onto(plt.figure(figsize=inches, layout="constrained"), tables)


draw("figure")

# %%
# On evaluations
# --------------
# The published method evaluates two gradients an iteration, the others one. Counted in gradients it has half as many
# iterations, and is tuned anew for them.

draw("figure-evaluations")

# %%
# In numbers
# ----------
# What is left of the error at the end of the budget, the tuned stepsize for each. No method wins everywhere.


def last_gaps(family, mu, axis):
    rows = [row for row in tables["figure"] if (row["family"], row["mu"], row["tuned_on"]) == (family, mu, axis)]
    return {row["method"]: row["gap"] for row in rows}


winners = {}
for axis in ("iterations", "evaluations"):
    print(f"random signs, counted in {axis}")
    for mu in (0.0, 1e-2):
        gaps = last_gaps("signs", mu, axis)
        winners[axis, mu] = min(gaps, key=gaps.get)
        print(f"  mu = {mu:<6g}", ", ".join(f"{METHODS[name].short} {gap:.1e}" for name, gap in gaps.items()))

plt.show()
