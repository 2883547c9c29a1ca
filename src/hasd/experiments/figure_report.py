"""The report on the paper's figure: its two claims in numbers, whichever way they fall."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .style import AXES, METHODS
from .tables import Rows, Tables, column, first_index, group, markdown, short_text

LEVELS = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8)
"""Gaps relative to f(x_0) - f* at which methods are compared."""
PAPERS = "hasd-paper"
CLAIMS = {
    "linear-coupling": "(i) significantly better than LC",
    "agd": "(ii) comparable to or slightly better than AGD",
}
"""What the paper says of its method, by rival."""
SHORT = {method: line.short for method, line in METHODS.items()}
TIE = 1.1
"""Gaps within ten per cent are called equal."""


def report(tables: Tables, sizes: Any) -> str:
    """The section on the figure."""
    parts = [_setting(sizes), _ill_posedness(tables, sizes), _references(tables["figure-reference"])]
    for axis in AXES:
        rows = [row for row in tables["figure"] if row["tuned_on"] == axis]
        parts += [
            f"### On {axis}\n",
            _final_gaps(rows, axis, sizes.iterations),
            _levels(rows, axis),
            _claims(rows, axis),
        ]
    return "\n".join([*parts, _edge(tables["figure-tuning"])])


def _setting(sizes: Any) -> str:
    return f"""## The paper's figure

f(x) = LogSumExp(Ax − b) + (μ/2)‖x‖², A_ij ~ Bernoulli(0.8), b_i ~ N(0, 1), x₀ = 0. The paper gives neither
n, d nor the number of iterations; here n = {sizes.n}, d = {sizes.d}, T = {sizes.iterations}, seed {sizes.seed}.
Every method tries the paper's stepsizes 1/L ({len(sizes.stepsizes)} of its 31) for each μ, and keeps the one with the
lowest f(x_T); a run that ends above f(x₀) or at no number loses;
where several end at rounding level, the first to arrive wins.
"On evaluations" the tuning is repeated at a budget of {sizes.iterations} gradient evaluations: the published HASD
asks for two an iteration, the others for one. The methods are not told μ, as in the paper.
"HASD tight" is our form of the method and is not in the paper.
Figures: `figure.png`, `figure-evaluations.png`; data: `figure.csv`, `figure-tuning.csv`, `figure-reference.csv`.
"""


def _ill_posedness(tables: Tables, sizes: Any) -> str:
    rows = [row for row in tables["figure"] if row["family"] == "published" and row["mu"] == 0.0]
    lines = []
    for axis in AXES:
        mine = group([row for row in rows if row["tuned_on"] == axis], "method")
        lines.append([axis, *(curve[-1]["fun"] for curve in mine.values())])
    header = ["value at the end", *(SHORT[method] for (method,) in mine)]
    optima = [row for row in tables["figure-reference"] if row["family"] == "published"]
    third = ", and the third the symmetric softmax on [A; −A]" if sizes.symmetric else ""
    scaled = ", ".join(f"{-row['fun'] * row['mu'] / sizes.d:.3f}" for row in optima)
    return f"""### The published problem is ill-posed at μ = 0

A has no negative entry, so along −(1, …, 1) every row of Ax falls and f(−s·1) → −∞: there is no optimum and no gap.
Its panel shows plain objective values, "unbounded below: values, not gaps". For μ > 0 the optimum value is −c·d/μ with
c = {scaled}: far away, which is why the largest stepsizes win there.
The second row of panels is the well-posed twin, the same A with random signs{third}.

{markdown(header, lines)}
"""


def _references(rows: Rows) -> str:
    lines = [
        [
            row["family"],
            row["mu"],
            f"{row['fun']:.10g}",
            row["radius"],
            row["grad_norm"],
            row["certificate"],
            row["floor"],
        ]
        for row in rows
    ]
    worst = max(row["certificate"] / row["floor"] for row in rows if row["mu"] > 0.0)
    decrement = max(row["decrement"] for row in rows if row["mu"] == 0.0)
    header = ["problem", "μ", "f*", "‖x*‖₂", "‖∇f‖₂", "‖∇f‖²/(2μ)", "gaps floored at"]
    return f"""### Reference optima

Newton's method with Cholesky, none of the methods compared. ‖∇f‖²/(2μ) bounds the error in f*; it is at most
{worst:.1e} of the floor of the gaps shown, which is 4 ε max(1, |f*|), the rounding of f itself. At μ = 0 there is no
such bound; Newton's last decrement is at most {decrement:.1e} there.

{markdown(header, lines)}
"""


def _bounded_curves(rows: Rows) -> dict[tuple[Any, ...], dict[str, Rows]]:
    """The curves by (family, mu) and method, for problems that have gaps."""
    panels = group([row for row in rows if not math.isnan(row["gap"])], "family", "mu")
    return {key: {method: mine for (method,), mine in group(panel, "method").items()} for key, panel in panels.items()}


def _final_gaps(rows: Rows, axis: str, budget: int) -> str:
    lines = []
    for (family, mu), curves in _bounded_curves(rows).items():
        cells = [f"{short_text(mine[-1]['gap'])} ({mine[-1]['stepsize']:g})" for mine in curves.values()]
        lines.append([family, mu, curves[PAPERS][0]["gap"], *cells])
    header = ["problem", "μ", "at x₀", *(SHORT[method] for method in curves)]
    return f"Gap after {budget} {axis} (in brackets the tuned stepsize).\n\n{markdown(header, lines)}\n"


def cost_to_reach(rows: Rows, level: float, axis: str) -> float:
    """Iterations or evaluations until the gap is `level` times the first one; NaN where it never is."""
    gaps = column(rows, "gap")
    t = first_index(gaps <= level * gaps[0])
    return math.nan if t is None else float(rows[t][AXES[axis]])


def _levels(rows: Rows, axis: str) -> str:
    lines = []
    for (family, mu), curves in _bounded_curves(rows).items():
        for level in LEVELS:
            counts = {method: cost_to_reach(mine, level, axis) for method, mine in curves.items()}
            if any(not math.isnan(count) for count in counts.values()):
                ratios = [counts[rival] / counts[PAPERS] if counts[PAPERS] else math.nan for rival in CLAIMS]
                lines.append([family, mu, f"{level:g}", *counts.values(), *ratios])
    header = ["problem", "μ", "gap/first", *(SHORT[m] for m in curves), *(f"{SHORT[rival]}/HASD" for rival in CLAIMS)]
    return (
        f"{axis.capitalize()} of these tuned runs until the gap is a given fraction of the first (–: not reached); "
        f"ratios above 1 favour HASD.\n\n{markdown(header, lines)}\n"
    )


def _claims(rows: Rows, axis: str) -> str:
    """Both claims: who ends lower on how many panels, and who is faster to the levels both reach."""
    out = ["What the paper says, and what this run gives:\n"]
    panels = _bounded_curves(rows)
    for rival, claim in CLAIMS.items():
        ratios = [curves[rival][-1]["gap"] / curves[PAPERS][-1]["gap"] for curves in panels.values()]
        lower = sum(ratio > TIE for ratio in ratios)
        higher = sum(ratio < 1.0 / TIE for ratio in ratios)
        speed = [
            cost_to_reach(curves[rival], level, axis) / count
            for curves in panels.values()
            for level in LEVELS
            if (count := cost_to_reach(curves[PAPERS], level, axis)) > 0.0
        ]
        speed = [ratio for ratio in speed if not math.isnan(ratio)]
        out.append(
            f"- {claim}: HASD's final gap is lower on {lower} of {len(ratios)} problems, within ten per cent on "
            f"{len(ratios) - lower - higher}, higher on {higher} (rival's gap over HASD's: {_range(ratios)}). "
            f"To the levels both reach, {SHORT[rival]} needs {_range(speed)} times as many {axis}."
        )
    return "\n".join([*out, ""])


def _range(ratios: list[float]) -> str:
    if not ratios:
        return "–"
    return f"{short_text(min(ratios))} to {short_text(max(ratios))}, median {short_text(float(np.median(ratios)))}"


def _edge(rows: Rows) -> str:
    """How often the tuning ended at the end of the list of stepsizes."""
    largest = max(row["stepsize"] for row in rows)
    chosen = [row for row in rows if row["chosen_iterations"]]
    edge = [row for row in chosen if row["stepsize"] == largest]
    places = [
        f"{family} μ = {mu:g} ({', '.join(SHORT[row['method']] for row in mine)})"
        for (family, mu), mine in group(edge, "family", "mu").items()
    ]
    where = f": {'; '.join(places)}" if edge else ""
    lost = sum(row["diverged_iterations"] for row in rows)
    return f"""### Remarks on the tuning

{lost} of {len(rows)} runs end above f(x₀) or at no number. On iterations {len(edge)} of {len(chosen)} tuned runs sit at
the largest stepsize of the paper's list, {largest:g}, where the list and not the method sets the pace{where}.
A stepsize means different things to different methods: with the same L, LC steps s/L, the published HASD s/(2L) with
weights that carry a further 1/18, the tight form s/L with none.
"""
