"""HASD with a declared L in four norms on three problems, and what the guarantee says of each."""

import math

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse
from look import BLUE, EXPONENTS, GREEN, ORANGE, name_of

import hasd

rng = np.random.default_rng(0)
TARGET, BUDGET = 1e-4, 450


def transport():
    """Every variable meets few others: L grows slowly with p."""
    x, y = rng.random((60, 2)), rng.random((60, 2))
    cost = np.sum((x[:, None] - y) ** 2, axis=-1)
    mass = np.full(60, 1.0 / 60.0)
    return hasd.objectives.EntropicTransport(cost, mass, mass, reg=0.02)


def dense():
    """Every row meets every variable: L grows as fast as the gain can."""
    return hasd.objectives.LogSumExp(rng.standard_normal((300, 100)), rng.standard_normal(300))


def logistic():
    """A mean over rows: L_2 is small, and l_2 is the better norm."""
    A = scipy.sparse.random(1200, 300, density=0.02, random_state=rng, data_rvs=rng.standard_normal, format="csr")
    margin = A @ rng.standard_normal(300) + 0.3 * rng.standard_normal(1200)
    return hasd.objectives.Logistic(A, np.where(margin > 0.0, 1.0, -1.0), ridge=1e-4)


def run(objective, p, best):
    """Relative gap by evaluations, those that it took to the target, and L/(p* G^2)."""
    start = np.zeros(objective.dimension)
    L = float(objective.smoothness(p))
    trace = hasd.minimize(objective, start, method="hasd", p=p, L=L, mu=0.0, tol=0.0, maxfun=BUDGET).trace
    gap = (trace["fun"] - best) / (trace["fun"][0] - best)
    arrived = np.flatnonzero(gap <= TARGET)[0]
    G = np.mean(trace["gain"][1 : arrived + 1])
    return trace["nfev"], gap, int(trace["nfev"][arrived]), L / (hasd.Lp(p).dual * G**2)


problems = {
    "Entropic transport": (transport(), BLUE, "o"),
    "Dense LogSumExp": (dense(), GREEN, "s"),
    "Sparse logistic": (logistic(), ORANGE, "^"),
}
runs = {}
for name, (objective, _, _) in problems.items():
    least = hasd.minimize(objective, np.zeros(objective.dimension), tol=1e-10).fun
    runs[name] = {p: run(objective, p, least) for p in EXPONENTS}

fig, axes = plt.subplots(2, 2, figsize=(8.4, 6.0), layout="constrained")
for ax, (name, by_p) in zip(axes.flat, runs.items(), strict=False):
    for p, (evaluations, gap, arrived, _) in by_p.items():
        colour, line = EXPONENTS[p]
        shown = (gap >= 0.1 * TARGET) & (evaluations <= 1.3 * max(one[2] for one in by_p.values()))
        ax.semilogy(evaluations[shown], gap[shown], line, color=colour, linewidth=1.7, label=f"{name_of(p)}: {arrived}")
    ax.axhline(TARGET, color="black", linewidth=0.8, linestyle=":")
    ax.set(title=name, xlabel="gradient evaluations", ylabel="relative gap", ylim=(0.1 * TARGET, 200.0))
    ax.legend(
        loc="upper right",
        frameon=False,
        ncols=2,
        fontsize=8.5,
        title="evaluations to the dotted line",
        title_fontsize=8.5,
    )
last = axes[1, 1]
for name, (_, colour, marker) in problems.items():
    first = runs[name][2.0]
    predicted = [math.sqrt(one[3] / first[3]) for one in runs[name].values()]
    measured = [one[2] / first[2] for one in runs[name].values()]
    last.loglog(predicted, measured, marker, color=colour, label=name, markersize=6)
last.plot([0.15, 2.0], [0.15, 2.0], color="black", linewidth=0.8, linestyle=":")
last.set(
    title="All twelve runs, relative to $p = 2$", xlabel=r"predicted: $\sqrt{L_p/p^*}/G$", ylabel="measured evaluations"
)
ticks = [0.2, 0.5, 1.0, 2.0]
last.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
last.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
last.minorticks_off()
last.legend(loc="upper left", frameon=False)
plt.show()
