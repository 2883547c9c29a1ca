"""The report on the paper's figure: its two claims in numbers, whichever way they fall."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import Any

import numpy as np

from .style import AXES, METHODS, norm_name
from .tables import Rows, Tables, cost_to_reach, group, markdown, section, select, short_text

LEVELS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
"""Gaps relative to f(x_0) - f* at which methods are compared."""
PAPERS = "hasd-paper"
CLAIMS = {
    "linear-coupling": "(i) significantly better than LC",
    "agd": "(ii) comparable to or slightly better than AGD",
}
"""What the paper says of its method, by rival."""
TWINS = {"signs": "the same A with random signs", "symmetric": "the symmetric softmax on [A; −A]"}
"""The well-posed twins of the published problem."""
SHORT = {method: line.short for method, line in METHODS.items()}
TIE = 1.1
"""Gaps within ten per cent are called equal."""


def report(tables: Tables, sizes: Any) -> str:
    """The section on the figure."""
    paragraphs = [*_setting(sizes), *_ill_posedness(tables, sizes), *_references(tables["figure-reference"])]
    for axis in AXES:
        paragraphs += _comparison(select(tables["figure"], tuned_on=axis), axis, sizes.iterations)
    return section(*paragraphs, *_remarks(tables["figure-tuning"]))


def _setting(sizes: Any) -> list[str]:
    text = f"""\
f(x) = LogSumExp(Ax − b) + (μ/2)‖x‖², A_ij ~ Bernoulli(0.8), b_i ~ N(0, 1), x₀ = 0. The paper gives neither
n, d nor the number of iterations; here n = {sizes.n}, d = {sizes.d}, T = {sizes.iterations}, seed {sizes.seed}.
Every method tries the paper's stepsizes 1/L ({len(sizes.stepsizes)} of its 31) for each μ, and keeps the one with the
lowest f(x_T); a run that ends above f(x₀) or at no number loses;
where several end at rounding level, the first to arrive wins.
"On evaluations" the tuning is repeated at a budget of {sizes.iterations} gradient evaluations: the published HASD
asks for two an iteration, the others for one. The methods are not told μ, as in the paper.
LC and HASD step in {norm_name(sizes.p)}. "HASD optimised" is our form of the method and is not in the paper.
Figures: `figure.png`, `figure-evaluations.png`; data: `figure.csv`, `figure-tuning.csv`, `figure-reference.csv`."""
    return ["## The paper's figure", text]


def _ill_posedness(tables: Tables, sizes: Any) -> list[str]:
    rows = select(tables["figure"], family="published", mu=0.0)
    ends = {axis: group(select(rows, tuned_on=axis), "method").values() for axis in AXES}
    lines = [[axis, *(curve[-1]["fun"] for curve in curves)] for axis, curves in ends.items()]
    optima = select(tables["figure-reference"], family="published")
    scaled = ", ".join(f"{-row['fun'] * row['mu'] / sizes.d:.3f}" for row in optima)
    text = f"""\
A has no negative entry, so along −(1, …, 1) every row of Ax falls and f(−s·1) → −∞: there is no optimum and no gap.
Its panel shows plain objective values, "unbounded below: values, not gaps". For μ > 0 the optimum value is −c·d/μ with
c = {scaled}: far away, which is why the largest stepsizes win there."""
    table = markdown(["value at the end", *SHORT.values()], lines)
    return ["### The published problem is ill-posed at μ = 0", text, table, *_twins(tables, sizes)]


def _twins(tables: Tables, sizes: Any) -> list[str]:
    """Which rows of panels show well-posed twins, and which are left out."""
    shown = {row["family"] for row in tables["figure"]}
    sentences = [
        f"The {place} row of panels is {'the' if place == 'second' else 'another'} well-posed twin, {TWINS[family]}."
        for place, family in zip(("second", "third"), [name for name in TWINS if name in shown], strict=False)
    ]
    return [" ".join([*sentences, *(f"{line[0].upper()}{line[1:]}." for line in left_out_lines(tables, sizes))])]


def left_out_lines(tables: Tables, sizes: Any) -> list[str]:
    """What the figure leaves out and why, a line a twin: the twins for which no minimiser is found at mu = 0."""
    shown = {row["family"] for row in tables["figure"]}
    reason = f"no minimiser was found at mu = 0 with n = {sizes.n}, d = {sizes.d} (there may be none below n = 2 d)"
    return [
        f"the twin, {TWINS[family]}, is left out, because {reason}" for family in sizes.families if family not in shown
    ]


def _references(rows: Rows) -> list[str]:
    names = ("family", "mu", "fun", "radius", "grad_norm", "certificate", "floor")
    lines = map(itemgetter(*names), [{**row, "fun": f"{row['fun']:.10g}"} for row in rows])
    worst = max(row["certificate"] / row["floor"] for row in rows if row["mu"] > 0.0)
    decrements = [row["decrement"] for row in rows if row["mu"] == 0.0]
    header = ["problem", "μ", "f*", "‖x*‖₂", "‖∇f‖₂", "‖∇f‖²/(2μ)", "gaps floored at"]
    text = f"""\
Newton's method with Cholesky, none of the methods compared. ‖∇f‖²/(2μ) bounds the error in f*; it is at most
{worst:.1e} of the floor of the gaps shown, which is 4 ε max(1, |f*|), the rounding of f itself."""
    if decrements:
        text += f"\nAt μ = 0 there is no such bound; Newton's last decrement is at most {max(decrements):.1e} there."
    return ["### Reference optima", text, markdown(header, lines)]


def _comparison(rows: Rows, axis: str, budget: int) -> list[str]:
    """Final gaps, costs of reaching the levels, and what becomes of both claims, over the problems that have gaps."""
    ends, costs = [], []
    final: dict[str, list[float]] = {rival: [] for rival in CLAIMS}
    speed: dict[str, list[float]] = {rival: [] for rival in CLAIMS}
    for place, panel in group([row for row in rows if not math.isnan(row["gap"])], "family", "mu").items():
        curves = {method: mine for (method,), mine in group(panel, "method").items()}
        last = {method: mine[-1]["gap"] for method, mine in curves.items()}
        cells = [f"{short_text(last[method])} ({mine[-1]['stepsize']:g})" for method, mine in curves.items()]
        ends.append([*place, panel[0]["gap"], *cells])
        for rival in CLAIMS:
            final[rival].append(last[rival] / last[PAPERS])
        for level in LEVELS:
            counts = {method: cost_to_reach(mine, level, AXES[axis]) for method, mine in curves.items()}
            ratios = [counts[rival] / (counts[PAPERS] or math.nan) for rival in CLAIMS]
            if not all(map(math.isnan, counts.values())):
                costs.append([*place, f"{level:g}", *counts.values(), *ratios])
            for rival, ratio in zip(CLAIMS, ratios, strict=True):
                speed[rival].append(ratio)
    quotients = [f"{SHORT[rival]}/HASD" for rival in CLAIMS]
    return [
        f"### On {axis}",
        f"Gap after {budget} {axis} (in brackets the tuned stepsize).",
        markdown(["problem", "μ", "at x₀", *SHORT.values()], ends),
        f"{axis.capitalize()} of these tuned runs until the gap is a given fraction of the first (–: not reached); "
        "ratios above 1 favour HASD.",
        markdown(["problem", "μ", "gap/first", *SHORT.values(), *quotients], costs),
        "What the paper says, and what this run gives:",
        "\n".join(_claim(rival, final[rival], speed[rival], axis) for rival in CLAIMS),
    ]


def _claim(rival: str, final: list[float], speed: list[float], axis: str) -> str:
    """Who ends lower on how many problems, and who is faster to the levels both reach."""
    lower = sum(ratio > TIE for ratio in final)
    higher = sum(ratio < 1.0 / TIE for ratio in final)
    return (
        f"- {CLAIMS[rival]}: HASD's final gap is lower on {lower} of {len(final)} problems, within ten per cent on "
        f"{len(final) - lower - higher}, higher on {higher} (rival's gap over HASD's: {_range(final)}). "
        f"To the levels both reach, {SHORT[rival]} needs {_range(speed)} times as many {axis}."
    )


def _range(ratios: list[float]) -> str:
    known = [ratio for ratio in ratios if not math.isnan(ratio)]
    if not known:
        return "–"
    return f"{short_text(min(known))} to {short_text(max(known))}, median {short_text(float(np.median(known)))}"


def _remarks(rows: Rows) -> list[str]:
    """How often the tuning ended at the end of the list of stepsizes."""
    largest = max(row["stepsize"] for row in rows)
    chosen = select(rows, chosen_iterations=1)
    edge = select(chosen, stepsize=largest)
    places = [
        f"{family} μ = {mu:g} ({', '.join(SHORT[row['method']] for row in mine)})"
        for (family, mu), mine in group(edge, "family", "mu").items()
    ]
    where = f": {'; '.join(places)}" if edge else ""
    lost = sum(row["diverged_iterations"] for row in rows)
    text = f"""\
{lost} of {len(rows)} runs end above f(x₀) or at no number. On iterations {len(edge)} of {len(chosen)} tuned runs sit at
the largest stepsize of the paper's list, {largest:g}, where the list and not the method sets the pace{where}.
A stepsize means different things to different methods: with the same L, LC steps s/L, the published HASD s/(2L) with
weights that carry a further 1/18, our form s/L with none."""
    return ["### Remarks on the tuning", text]
