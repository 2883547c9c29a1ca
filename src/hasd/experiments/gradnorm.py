"""The two gradient-norm corollaries: T by the formulas, the gradient after T iterations, and the stops without G_hat.

Problems with a known radius R: the symmetric softmax from (1, ..., 1), where R = sqrt(d) and G = d^{1/2 - 1/p} are
exact, and LogSumExp with random signs, where R comes from the reference optimum and G_hat = 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from .. import theory
from .._math.geometry import Lp
from .._minimize import iterate
from .._plots import COLORS, MARKERS, legend_below
from ..objectives import Affine, SymmetricSoftmax
from .experiment import Experiment, seed, size
from .problems import problem
from .reference import reference
from .tables import Rows, Tables, column, first_index, group, markdown
from .workers import Workers

WINDOW = 2.0
"""How far rho r^2 may be above 1 in the tight form."""
PROBLEMS = ("softmax", "logsumexp")


@dataclass(frozen=True)
class GradientNormSizes:
    """How much to measure."""

    n: int = size(60, "rows of A (LogSumExp)")
    d: int = size(10, "variables of both problems")
    iterations: int = size(20000, "no rule with a longer T is run")
    seed: int = seed()
    accuracies: tuple[float, ...] = (0.3, 0.1, 0.03, 0.01)


@dataclass(frozen=True)
class Instance:
    """What the formulas ask for."""

    f: Affine
    x0: np.ndarray
    L: float
    R: float
    G: float  # a lower bound on the mean gain

    def accuracy(self, share: float) -> float:
        """eps as a share of the first gradient's l_1 norm."""
        return share * float(np.abs(self.f.value_and_grad(self.x0)[1]).sum())


def instance(name: str, sizes: GradientNormSizes) -> Instance:
    """A problem by its name, p = inf."""
    if name == "softmax":
        f: Affine = SymmetricSoftmax(b=np.zeros(sizes.d))
        G = theory.softmax_gain(sizes.d, math.inf)
        return Instance(f, np.ones(sizes.d), float(f.smoothness(math.inf)), math.sqrt(sizes.d), G)
    make = partial(problem, "signs", sizes.n, sizes.d, sizes.seed)
    f = make(0.0)
    R = float(np.linalg.norm(reference(make, 0.0).x))
    return Instance(f, np.zeros(sizes.d), float(f.smoothness(math.inf)), R, 1.0)


def periods(it: Instance, eps: float) -> list[tuple[str, str, str, int]]:
    """(method, rule, point, T) for every formula; the point is the last or the best."""
    args = (it.L, it.R, it.G, eps)
    last, best = theory.gradient_norm_iterations, theory.gradient_norm_iterations_best
    return [
        ("hasd-paper", "18√2 LR/(Ĝε), the paper's", "last", last(*args, constant=theory.GRADIENT_PAPER)),
        ("hasd-paper", "12 LR/(Ĝε)", "last", last(*args)),
        ("hasd-paper", "21 (LR/(Ĝε))^⅔, the paper's", "best", best(*args, constant=theory.GRADIENT_BEST_PAPER)),
        ("hasd-paper", "16 (LR/(Ĝε))^⅔", "best", best(*args)),
        ("hasd", "2√2 LR/(Ĝε)", "last", theory.tight_gradient_norm_iterations(*args, window=WINDOW)),
    ]


def stops(it: Instance, eps: float, weights: np.ndarray, method: str) -> list[tuple[str, str, str, int]]:
    """(method, rule, point, T) for the stops that need no G_hat; T is read off the weights, if they get there."""
    rules = [("A_T ≥ LR²/ε²", "last", weights >= theory.gradient_norm_weight(it.L, it.R, eps))]
    if method == "hasd-paper":
        total = np.cumsum(weights)
        rules.append(("Σ A_t ≥ 9LR²/ε²", "best", total >= theory.gradient_norm_weight_sum(it.L, it.R, eps)))
    return [(method, rule, point, T) for rule, point, met in rules if (T := first_index(met)) is not None]


def follow(it: Instance, method: str, T: int) -> tuple[np.ndarray, np.ndarray]:
    """||grad f(x_t)||_1 and A_t for t = 0, ..., T; shorter where the method ends at machine precision."""
    geometry = Lp(math.inf)
    norms, weights = [], []
    for state in islice(iterate(it.f, it.x0, method=method, p=math.inf, L=it.L, mu=0.0), T + 1):
        norms.append(geometry.dual_norm(it.f.value_and_grad(state.x)[1]))
        weights.append(state.weight)
    return np.array(norms), np.array(weights)


def solve(task: tuple[GradientNormSizes, str, str]) -> Rows:
    """All rules of a method on a problem, read off one run."""
    sizes, name, method = task
    it = instance(name, sizes)
    accuracies = [it.accuracy(share) for share in sizes.accuracies]
    fixed = {eps: [rule for rule in periods(it, eps) if rule[0] == method] for eps in accuracies}
    longest = max((rule[3] for rules in fixed.values() for rule in rules if rule[3] <= sizes.iterations), default=1)
    norms, weights = follow(it, method, longest)
    rows = []
    for share, eps in zip(sizes.accuracies, accuracies, strict=True):
        needed = first_index(norms <= eps)
        for _, rule, point, T in [*fixed[eps], *stops(it, eps, weights, method)]:
            if longest >= T:
                upto = norms[: T + 1]
                measured = float(upto[-1] if point == "last" else upto[1:].min())
                head = {"problem": name, "method": method, "rule": rule, "point": point}
                rows.append({**head, "share": share, "eps": eps, "T": T, "measured": measured, "needed": needed})
    return rows


def tables(sizes: GradientNormSizes, workers: Workers) -> Tables:
    """A row a (problem, rule, eps)."""
    tasks = [(sizes, name, method) for name in PROBLEMS for method in ("hasd-paper", "hasd")]
    rows = [row for part in workers.map(solve, tasks, "gradnorm") for row in part]
    if not rows:
        raise ValueError(f"every rule asks for more than {sizes.iterations} iterations: raise --iterations")
    return {"gradnorm": rows}


def draw(figure: Any, tables: Tables) -> None:
    """T against eps for every rule, and what was really needed."""
    panels = group(tables["gradnorm"], "problem")
    rules = list(group(tables["gradnorm"], "method", "rule"))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, ((name,), rows) in zip(axes, panels.items(), strict=True):
        for k, key in enumerate(rules):
            mine = [row for row in rows if (row["method"], row["rule"]) == key]
            style = {"marker": MARKERS[k % len(MARKERS)], "color": COLORS[k % len(COLORS)], "markersize": 5.0}
            if key[0] == "hasd":
                style |= {"linestyle": "--", "markerfacecolor": "white"}
            ax.plot(column(mine, "share"), column(mine, "T"), label=f"{key[0]}: {key[1]}", **style)
        for method, dashes in (("hasd-paper", "-."), ("hasd", ":")):
            mine = [row for row in rows if row["method"] == method and row["needed"] is not None]
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
    names = ("problem", "method", "rule", "point", "eps", "T", "measured", "needed")
    failures = sum(row["measured"] > row["eps"] for row in rows)
    verdict = "Every rule kept its promise." if failures == 0 else f"{failures} RULES FAILED."
    shares = ", ".join(f"{share:g}" for share in sizes.accuracies)
    header = ["problem", "method", "rule", "point", "ε", "T", "measured", "iterations needed"]
    return f"""## The norm of the gradient

p = inf, declared L. Softmax: symmetric, α = 1, d = {sizes.d}, from (1, …, 1), R = √d, Ĝ = √d (exact).
LogSumExp: random signs, n = {sizes.n}, d = {sizes.d}, seed {sizes.seed}, from 0, R from the reference optimum, Ĝ = 1.
ε is {shares} of the first gradient's ℓ₁ norm; rules that ask for more than {sizes.iterations} iterations are left out.
"last" promises ‖∇f(x_T)‖₁ ≤ ε, "best" only the smallest over t ≤ T. The rules with A_T and Σ A_t need no Ĝ; their T
is read off the run. {verdict}

{markdown(header, [[row[name] for name in names] for row in rows])}
"""


EXPERIMENT = Experiment(
    name="gradnorm",
    summary="the gradient-norm corollaries: T by the formulas against the gradient measured",
    sizes=GradientNormSizes(),
    quick=GradientNormSizes(n=30, d=4, iterations=400),
    tables=tables,
    plots={"gradnorm": ((10.0, 5.0), draw)},
    report=report,
)
