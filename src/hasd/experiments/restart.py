"""Strong convexity: the paper's restarts with G_hat = 1, the certified restart rule, and mu inside every cut.

LogSumExp with random signs, alpha = 0.1, mu = 1, l_inf.  Theorem: every restart at least halves the gap.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, takewhile
from operator import itemgetter
from typing import Any

import numpy as np

from .._minimize import iterate
from .._plots import COLORS, legend_below
from ..theory import RESTART, RESTART_PAPER, optimised_restart_period, restart_period
from .experiment import Experiment, size, sweep
from .families import problem
from .reference import reference
from .tables import Rows, Tables, column, cost_to_reach, first_index, group, markdown, section, select
from .workers import Workers

ALPHA, RIDGE = 0.1, 1.0
LEVELS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10)
VARIANTS: dict[str, dict[str, Any]] = {
    "restart, T = 36 √(L/μ) (the paper's)": {"method": "hasd-restart", "G_hat": 1.0, "constant": RESTART_PAPER},
    "restart, T = 17 √(L/μ)": {"method": "hasd-restart", "G_hat": 1.0, "constant": RESTART},
    "restart once A ≥ 2/μ": {"method": "hasd-restart"},
    "restart once A ≥ 2/μ, optimised form inside": {"method": "hasd-restart", "inner": "hasd"},
    "hasd, μ in every cut": {"method": "hasd"},
    "hasd, μ ignored": {"method": "hasd", "mu": 0.0},
}


@dataclass(frozen=True)
class RestartSizes:
    """How much to measure."""

    n: int = size(200, "rows of A")
    d: int = size(50, "columns of A")
    evaluations: int = size(20000, "budget of every run")
    seed: int = 0


def solve(sizes: RestartSizes, variant: str) -> Tables:
    """One run: every iterate until rounding level, and every epoch.  An epoch ends where the weight falls back."""
    make = partial(problem, "signs", sizes.n, sizes.d, sizes.seed, alpha=ALPHA)
    f = make(RIDGE)
    best = reference(make, RIDGE)
    options = {"mu": RIDGE, **VARIANTS[variant]}
    L = f.smoothness(math.inf)
    states = iterate(f, np.zeros(sizes.d), p=math.inf, L=L, **options)
    within = takewhile(lambda state: state.nfev <= sizes.evaluations, states)
    nfev, fun, weights = np.transpose([(state.nfev, state.fun, state.weight) for state in within])
    epochs = np.cumsum(np.diff(weights, prepend=0.0) < 0.0)
    rows = [
        {"epoch": epoch, "iteration": t, "nfev": count, "gap": gap, "floor": best.floor, "L": float(L)}
        for t, (epoch, count, gap) in enumerate(zip(epochs, nfev.astype(int), best.gap(fun), strict=True))
    ]
    arrived = first_index(column(rows, "gap") <= best.floor)
    rows = rows if arrived is None else rows[: arrived + 1]
    return {"restart": rows, "restart-epochs": halvings(rows)}


def halvings(rows: Rows) -> Rows:
    """A row an epoch: the gap before and after.  x_0 of an epoch is the last point of the one before."""
    ends = [epoch[-1] for epoch in group(rows, "epoch").values()]
    out = []
    for before, end in pairwise([rows[0], *ends]):
        counts = {"iterations": end["iteration"] - before["iteration"], "nfev": end["nfev"]}
        gaps = {"gap_before": before["gap"], "gap_after": end["gap"], "ratio": end["gap"] / before["gap"]}
        out.append({"epoch": end["epoch"], **counts, **gaps, "completed": int(end is not ends[-1])})
    return out


def tables(sizes: RestartSizes, workers: Workers) -> Tables:
    """The runs of all variants."""
    return sweep(workers, "restart", partial(solve, sizes), variant=VARIANTS)


def draw(figure: Any, tables: Tables) -> None:
    """Gap against evaluations, a mark at every restart."""
    ax = figure.subplots()
    for k, ((variant,), rows) in enumerate(group(tables["restart"], "variant").items()):
        ax.plot(column(rows, "nfev"), column(rows, "gap"), color=COLORS[k], label=variant)
        ends = select(tables["restart-epochs"], variant=variant, completed=1)
        ax.plot(column(ends, "nfev"), column(ends, "gap_after"), "o", color=COLORS[k], markersize=4.0)
    ax.set(xscale="log", yscale="log", xlabel="evaluations", ylabel="f(x) − f*")
    ax.set_title("LogSumExp with random signs, strongly convex (dots: restarts)")
    legend_below(figure, ax, 2)


def report(tables: Tables, sizes: RestartSizes) -> str:
    """Evaluations to given gaps, and the halvings."""
    L = tables["restart"][0]["L"]
    completed = select(tables["restart-epochs"], completed=1)
    lines = []
    for (variant,), rows in group(tables["restart"], "variant").items():
        ratios = [row["ratio"] for row in select(completed, variant=variant)]
        counts = [cost_to_reach(rows, level, "nfev") for level in LEVELS]
        lines.append([variant, *counts, len(ratios), max(ratios, default=math.nan)])
    header = ["method", *(f"{level:g}" for level in LEVELS), "epochs completed", "worst ratio"]
    history = map(itemgetter("variant", "epoch", "iterations", "gap_before", "gap_after", "ratio"), completed)
    failures = sum(row["ratio"] > 0.5 for row in completed)
    verdict = "it did, in every completed epoch" if failures == 0 else f"{failures} epochs DID NOT"
    optimised = optimised_restart_period(L, RIDGE, math.inf, 1.0)
    setting = f"""\
LogSumExp with random signs, n = {sizes.n}, d = {sizes.d}, α = {ALPHA:g}, μ = {RIDGE:g}, p = inf, declared
L = {L:.6g}, seed {sizes.seed}, {sizes.evaluations} evaluations at most. The fixed periods with Ĝ = 1 are
{restart_period(L, RIDGE, 1.0, RESTART_PAPER)} (the paper's 36) and {restart_period(L, RIDGE, 1.0)} iterations (17, the
same proof unrounded); for the optimised form the same argument gives {optimised}."""
    costs = """\
Evaluations until the gap is a given fraction of the first (–: not within the budget), and the worst ratio of gaps over
a completed epoch:"""
    halving = f"Every restart must at least halve the gap: {verdict}. A run is followed until its gap is rounding."
    epochs = markdown(["method", "epoch", "iterations", "gap before", "gap after", "ratio"], history)
    return section("## Restarts", setting, costs, markdown(header, lines), halving, epochs)


EXPERIMENT = Experiment(
    name="restart",
    summary="strong convexity: the paper's restarts, certified restarts and mu inside the cuts",
    sizes=RestartSizes(),
    quick=RestartSizes(n=40, d=8, evaluations=1500),
    tables=tables,
    plots={"restart": ((8.0, 5.2), draw)},
    report=report,
)
