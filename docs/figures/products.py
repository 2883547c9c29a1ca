"""The gap of seven methods against products with A, at their defaults."""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from look import BLUE, GREEN, GREY, ORANGE, PURPLE, RED

import hasd

LOOKS = {
    "gradient-descent": (GREY, "-"),
    "linear-coupling": (PURPLE, "--"),
    "agd": (ORANGE, "-"),
    "hasd": (GREEN, "-"),
    "hasd-qn": (RED, "--"),
    "hasd-subspace": (BLUE, "-"),
    "hasd-newton": ("black", ":"),
}
BUDGET, FLOOR = 500, 1e-10
rng = np.random.default_rng(0)


def lse():
    """LogSumExp with dense rows: products are what costs."""
    return hasd.objectives.LogSumExp(rng.standard_normal((400, 120)), rng.standard_normal(400), ridge=1e-4)


def logistic():
    """Logistic loss with five entries a row: products are cheap."""
    A = scipy.sparse.random(2000, 500, density=0.01, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    margin = A @ rng.standard_normal(500) + 0.3 * rng.standard_normal(2000)
    return hasd.objectives.Logistic(A, np.where(margin > 0.0, 1.0, -1.0), ridge=1e-5)


def gaps(objective):
    """Products and relative gap of every method; which method auto takes."""
    start = np.zeros(objective.dimension)
    auto = hasd.minimize(objective, start, tol=1e-13)
    curves = {}
    for method in LOOKS:
        trace = hasd.minimize(objective, start, method=method, tol=1e-12, maxfun=BUDGET).trace
        curves[method] = trace["nprod"], (trace["fun"] - auto.fun) / (trace["fun"][0] - auto.fun)
    return curves, auto.method


problems = {"LogSumExp, 400 × 120, dense": gaps(lse()), "Logistic, 2000 × 500, sparse": gaps(logistic())}

fig, axes = plt.subplots(1, 2, figsize=(8.4, 4.1), layout="constrained", sharey=True)
for ax, (title, (curves, auto)) in zip(axes, problems.items(), strict=True):
    for method, (products, gap) in curves.items():
        colour, line = LOOKS[method]
        shown = gap > FLOOR
        ax.semilogy(products[shown], gap[shown], line, color=colour, linewidth=1.7, label=method)
    ax.set(title=f"{title}\nauto takes {auto}", xlabel="products with A or Aᵀ", xlim=(0, BUDGET), ylim=(FLOOR, 2.0))
axes[0].set_ylabel("relative gap")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
plt.show()
