"""The two gradient-norm corollaries: T by the formulas, the gradient after T iterations, and the stops without G_hat.

Problems with a known radius R: the symmetric softmax from (1, ..., 1), where R = sqrt(d) and G = d^{1/2 - 1/p} are
exact, and LogSumExp with random signs, where R comes from the reference optimum and G_hat = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np

from .. import theory
from .._math.geometry import Lp, gain
from .._minimize import iterate
from .._plots import legend_below
from ..objectives import Affine, SymmetricSoftmax
from . import families
from .experiment import Experiment, size, sweep
from .gains import step_gains
from .reference import reference
from .style import mark
from .tables import Tables, column, first_index, group, markdown, section, select
from .workers import Workers

PROBLEMS = ("softmax", "logsumexp")
METHODS = {"hasd-paper": "-.", "hasd": ":"}
"""The methods, each with the dashes of what it needed."""


@dataclass(frozen=True)
class GradientNormSizes:
    """How much to measure."""

    n: int = size(60, "rows of A (LogSumExp)")
    d: int = size(10, "variables of both problems")
    iterations: int = size(20000, "no rule with a longer T is run")
    seed: int = 0
    accuracies: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01)


def instance(name: str, sizes: GradientNormSizes) -> tuple[Affine, np.ndarray, float, float]:
    """A problem by its name: f, x_0, R and a lower bound on the mean gain at p = inf."""
    d = sizes.d
    if name == "softmax":
        return SymmetricSoftmax(b=np.zeros(d)), np.ones(d), math.sqrt(d), theory.softmax_gain(d, math.inf)
    make = partial(families.problem, "signs", sizes.n, d, sizes.seed)
    return make(0.0), np.zeros(d), reference(make, 0.0).radius, 1.0


def periods(method: str, L: float, R: float, G: float, eps: float) -> list[tuple[str, str, int]]:
    """(rule, point, T) for every formula; the point is the last or the best."""
    args = (L, R, G, eps)
    if method == "hasd":
        return [("2 LR/(Ĝε)", "last", theory.optimised_gradient_norm_iterations(L, R, math.inf, G, eps))]
    last, best = theory.gradient_norm_iterations, theory.gradient_norm_iterations_best
    return [
        ("18√2 LR/(Ĝε), the paper's", "last", last(*args, constant=theory.GRADIENT_PAPER)),
        ("12 LR/(Ĝε)", "last", last(*args)),
        ("21 (LR/(Ĝε))^⅔, the paper's", "best", best(*args, constant=theory.GRADIENT_BEST_PAPER)),
        ("16 (LR/(Ĝε))^⅔", "best", best(*args)),
    ]


def stops(method: str, L: float, R: float, eps: float, weights: np.ndarray) -> list[tuple[str, str, int]]:
    """(rule, point, T) for the stops that need no G_hat; T is read off the weights, if they get there."""
    rules = [("A_T ≥ LR²/ε²", "last", weights >= theory.gradient_norm_weight(L, R, eps))]
    if method == "hasd-paper":
        total = np.cumsum(weights)
        rules.append(("Σ A_t ≥ 9LR²/ε²", "best", total >= theory.gradient_norm_weight_sum(L, R, eps)))
    return [(rule, point, T) for rule, point, met in rules if (T := first_index(met)) is not None]


def solve(sizes: GradientNormSizes, problem: str, method: str) -> Tables:
    """All rules of a method on a problem, read off one run, which is shorter where it ends at machine precision."""
    f, x0, R, G = instance(problem, sizes)
    L = float(f.smoothness(math.inf))
    first = float(np.abs(f.value_and_grad(x0)[1]).sum())
    accuracies = [share * first for share in sizes.accuracies]
    fixed = [periods(method, L, R, G, eps) for eps in accuracies]
    longest = max((T for rules in fixed for _, _, T in rules if sizes.iterations >= T), default=1)
    states = islice(iterate(f, x0, method=method, p=math.inf, L=L, mu=0.0), longest + 1)
    geometry = Lp(math.inf)
    norm = geometry.dual_norm
    points = [(norm(f.value_and_grad(state.x)[1]), state.weight, gain(geometry, state.at.g)) for state in states]
    norms, weights, gains = np.transpose(points)
    steps = step_gains(method, gains)
    rows = []
    for share, eps, rules in zip(sizes.accuracies, accuracies, fixed, strict=True):
        needed = first_index(norms <= eps)
        for rule, point, T in [*rules, *stops(method, L, R, eps, weights)]:
            if longest >= T:
                measured = norms[: T + 1][-1] if point == "last" else norms[1 : T + 1].min()
                row = {"rule": rule, "point": point, "share": share, "eps": eps, "T": T, "measured": measured}
                rows.append({**row, "needed": needed, "gain": steps[:T].mean() / G if T > 0 else math.nan})
    return {"gradnorm": rows}


def tables(sizes: GradientNormSizes, workers: Workers) -> Tables:
    """A row a (problem, rule, eps)."""
    out = sweep(workers, "gradnorm", partial(solve, sizes), problem=PROBLEMS, method=METHODS)
    if not out["gradnorm"]:
        raise ValueError(f"every rule asks for more than {sizes.iterations} iterations: raise --iterations")
    return out


def draw(figure: Any, tables: Tables) -> None:
    """T against eps for every rule, and what was really needed."""
    panels = group(tables["gradnorm"], "problem")
    rules = group(tables["gradnorm"], "method", "rule")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, ((name,), rows) in zip(axes, panels.items(), strict=True):
        for k, (method, rule) in enumerate(rules):
            mine = select(rows, method=method, rule=rule)
            style = mark(k, markersize=5.0, label=f"{method}: {rule}")
            if method == "hasd":
                style |= {"linestyle": "--", "markerfacecolor": "white"}
            ax.plot(column(mine, "share"), column(mine, "T"), **style)
        for method, dashes in METHODS.items():
            mine = [row for row in select(rows, method=method) if row["needed"] is not None]
            needed = sorted({(row["share"], row["needed"]) for row in mine})
            ax.plot(*zip(*needed, strict=True), color="0.5", linestyle=dashes, label=f"{method}: needed")
        ax.set(xscale="log", yscale="log", title=name, xlabel="ε, as a share of the first gradient's norm", ylabel="T")
        shares = sorted({row["share"] for row in rows})
        ax.set_xticks(shares, [f"{share:g}" for share in shares])
        ax.set_xticks([], minor=True)
        ax.invert_xaxis()
    legend_below(figure, axes[0], 3)


def report(tables: Tables, sizes: GradientNormSizes) -> str:
    """Every rule with the gradient that was measured."""
    rows = tables["gradnorm"]
    lines = map(itemgetter("problem", "method", "rule", "point", "eps", "T", "measured", "needed"), rows)
    failures = sum(row["measured"] > row["eps"] for row in rows)
    verdict = "Every rule kept its promise." if failures == 0 else f"{failures} RULES FAILED."
    least = min((row["gain"] for row in rows if not math.isnan(row["gain"])), default=math.nan)
    shares = ", ".join(f"{share:g}" for share in sizes.accuracies)
    header = ["problem", "method", "rule", "point", "ε", "T", "measured", "iterations needed"]
    text = f"""p = inf, declared L. Softmax: symmetric, α = 1, d = {sizes.d}, from (1, …, 1), R = √d, Ĝ = √d (exact).
LogSumExp: random signs, n = {sizes.n}, d = {sizes.d}, seed {sizes.seed}, from 0, R from the reference optimum, Ĝ = 1.
ε is {shares} of the first gradient's ℓ₁ norm; rules that ask for more than {sizes.iterations} iterations are left out.
"last" promises ‖∇f(x_T)‖₁ ≤ ε, "best" only the smallest over t ≤ T. The rules with A_T and Σ A_t need no Ĝ; their T
is read off the run. {verdict} Those with Ĝ assume that it is at most the mean gain over the T iterations (for `hasd`
the mean of min(s, r²/s), where s is the gain of the gradient before): that was {least:.3g} Ĝ at least."""
    return section("## The norm of the gradient", text, markdown(header, lines))


EXPERIMENT = Experiment(
    name="gradnorm",
    summary="the gradient-norm corollaries: T by the formulas against the gradient measured",
    sizes=GradientNormSizes(),
    quick=GradientNormSizes(n=30, d=4, iterations=400),
    tables=tables,
    plots={"gradnorm": ((10.0, 5.0), draw)},
    report=report,
)
