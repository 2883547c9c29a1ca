"""The report on the dimension: medians, fitted slopes beside those of the bounds, and who wins where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .style import CURVES, NORMED, norm_name
from .tables import Rows, Tables, column, group, markdown, section, select

OURS, PEER, PLANNED = "hasd", "L-BFGS-B", "nemirovskii-nesterov"
FREE = 3.0
"""Up to this factor between the smallest and the largest size, evaluations are said not to depend on it."""
TITLES = {"softmax": "the softmax", "graph": "ℓ∞ potentials on a graph"}
UNITS = {"softmax": "d", "graph": "nodes"}
SHORT = {method: curve.short for method, curve in CURVES.items()}


def median(rows: Rows, name: str = "evaluations") -> float:
    """The median over starts; inf where less than half of the runs arrived.

    >>> median([{"evaluations": 5}, {"evaluations": 7}, {"evaluations": math.nan}])
    7.0
    """
    values = column(rows, name).astype(float)
    return float(np.median(np.where(np.isnan(values), math.inf, values)))


def slope(sizes: Any, counts: Any) -> float:
    """The exponent e of count = c size^e, fitted to what is finite; NaN where that is one point.

    >>> round(slope([10, 100, 1000], [2.0, 20.0, math.inf]), 6)
    1.0
    """
    x, y = np.log(np.asarray(sizes, dtype=float)), np.log(np.asarray(counts, dtype=float))
    known = np.isfinite(y)
    return float(np.polyfit(x[known], y[known], 1)[0]) if known.sum() > 1 else math.nan


def panel(rows: Rows, problem: str, constant: str, p: float) -> dict[str, dict[int, Rows]]:
    """The runs by method and size: those in l_p, and at the same sizes those of the methods that are in l_2 always."""
    here = select(rows, problem=problem, constant=constant)
    sizes = {row["size"] for row in here if row["method"] in NORMED and row["p"] == p}
    mine = [row for row in here if row["size"] in sizes and (row["method"] not in NORMED or row["p"] == p)]
    by_method = group(mine, "method").items()
    return {method: {size: runs for (size,), runs in group(some, "size").items()} for (method,), some in by_method}


def counts(runs: dict[int, Rows], name: str = "evaluations") -> list[float]:
    """The medians at all sizes."""
    return [median(some, name) for some in runs.values()]


def report(tables: Tables, sizes: Any) -> str:
    """The section on the dimension."""
    rows = tables["dimension"]
    paragraphs = [*_setting(rows, sizes)]
    for problem in TITLES:
        for constant in ("declared", "found"):
            for p in sizes.exponents(problem):
                paragraphs += _table(panel(rows, problem, constant, p), problem, constant, p, sizes.evaluations)
    return section(*paragraphs, "### What this says", "\n".join(_findings(rows, sizes)))


def _setting(rows: Rows, sizes: Any) -> list[str]:
    errors = column(select(rows, problem="graph"), "error")
    text = f"""\
Evaluations until f(x) − f* is a hundredth of f(x₀) − f*: the median over {sizes.starts} random starts or graphs, in
runs of at most {sizes.evaluations} evaluations (seed {sizes.seed}). Every call of the function counts as one. A run has
arrived when a point that it evaluates is low enough, or its iterate x_t. Where a method does not evaluate x_t, as LC,
AGD and the optimised form of HASD, f(x_t) is computed for this purpose alone and not counted."""
    problems = f"""\
Softmax: α log Σ (e^(x_i/α) + e^(−x_i/α)), α = 0.002, from random starts in [−1, 1]^d; x* = 0, f* = α log 2d. Graph: the
smoothed maximum over edges of |x_i − x_j − b_ij|, α = 0.01, on random graphs with three edges a node and normal b, from
0; L is 4/α in ℓ∞ and 2/α in ℓ₂. Its f* is found by Newton's method with conjugate gradients, none of the methods
compared, and certified by duality: its error is at most {errors.max():.1e} of f(x₀) − f*."""
    bounds = """\
"Slope" is that of log evaluations against log size, fitted to the sizes at which the median run arrives. "Bound" is
what the method's theorem promises for the declared L, with the mean gain measured in the run and, for the published
HASD, with its constant 324 and two evaluations an iteration; – where it needs what is not known. With L found, AGD, LC,
steepest descent and both forms of HASD backtrack, which costs evaluations; L-BFGS-B and hasd-qn need no L.
Figures: `dimension.png`, `dimension-exponents.png`; data: `dimension.csv`."""
    planned = """\
NN is `nemirovskii-nesterov`, whose guarantee knows no gain, but is one in R_p = ‖x₀ − x*‖_p. It must be told R_p and
the number T of iterations that it will make, and no T is good for every accuracy. Here it is given the true R_p and the
best T: T is doubled until a run of T iterations arrives, and then bisected until it is the smallest such T up to a
fiftieth. Each T is a fresh run, and only the evaluations of the best one are counted. Nobody can know this T in
advance; R_p is not tuned."""
    return ["## The dimension", text, problems, bounds, planned]


def _table(runs: dict[str, dict[int, Rows]], problem: str, constant: str, p: float, most: int) -> list[str]:
    """Medians by method and size, with slopes; for a declared L also the bounds."""
    sizes = list(next(iter(runs.values())))
    header = ["method", *(f"{size:,}" for size in sizes), "slope"]
    if constant == "declared":
        header += [f"bound at {sizes[0]:,}", f"at {sizes[-1]:,}", "its slope"]
    lines = []
    for method, mine in runs.items():
        medians = counts(mine)
        line = [SHORT[method], *(shown(count, most) for count in medians), slope(sizes, medians)]
        if constant == "declared":
            bounds = counts(mine, "bound")
            ends = [f"{bound:,.0f}" if math.isfinite(bound) else "–" for bound in (bounds[0], bounds[-1])]
            line += [*ends, slope(sizes, bounds)]
        lines.append(line)
    title = f"### {TITLES[problem][0].upper()}{TITLES[problem][1:]}, L {constant}, {norm_name(p)}"
    return [title, f"Evaluations by {'d' if problem == 'softmax' else 'number of nodes'}.", markdown(header, lines)]


def shown(count: float, most: int) -> str:
    """A median as text.

    >>> shown(12.0, 3000), shown(12.5, 3000), shown(math.inf, 3000)
    ('12', '12.5', '> 3000')
    """
    return f"> {most}" if math.isinf(count) else f"{count:g}"


def _findings(rows: Rows, sizes: Any) -> list[str]:
    """Sentences on every panel, from its numbers."""
    out = []
    for problem, title in TITLES.items():
        for p in sizes.exponents(problem):
            for constant in ("declared", "found"):
                runs = panel(rows, problem, constant, p)
                where = f"On {title} in {norm_name(p)} with L {constant}"
                out.append(f"- {where}, {winners(runs, problem)}. {_growth(runs, problem)}".rstrip())
                out.append(f"- {where}, {_against(PLANNED, runs, problem)}.")
                if constant == "found":
                    out.append(f"- {where}, {_against(PEER, runs, problem)}.")
    return out


def winners(runs: dict[str, dict[int, Rows]], problem: str) -> str:
    """Who needs the fewest evaluations, and at which sizes."""
    won: dict[str, list[str]] = {}
    for size in next(iter(runs.values())):
        medians = {method: median(mine[size]) for method, mine in runs.items()}
        least = min(medians.values())
        if math.isfinite(least):
            names = " and ".join(SHORT[method] for method, count in medians.items() if count == least)
            won.setdefault(names, []).append(f"{size:,} ({least:g})")
    if not won:
        return "no method arrives"
    parts = [f"{names} at {UNITS[problem]} = {listing(places)}" for names, places in won.items()]
    return f"the fewest evaluations are those of {'; of '.join(parts)}"


def listing(names: list[str]) -> str:
    """Names as in a sentence.

    >>> listing(["a"]), listing(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def growth(runs: dict[int, Rows]) -> float:
    """The median at the largest size over that at the smallest."""
    medians = counts(runs)
    return medians[-1] / medians[0] if math.isfinite(medians[0]) else math.nan


def _growth(runs: dict[str, dict[int, Rows]], problem: str) -> str:
    """How the evaluations grow from the smallest size to the largest."""
    sizes = list(runs[OURS])
    if len(sizes) < 2 or math.isnan(growth(runs[OURS])):
        return ""
    ours = growth(runs[OURS])
    factors = [f"{SHORT[method]} {_times(mine)}" for method, mine in runs.items() if method != OURS]
    verdict = f"which is {'at most' if ours <= FREE else 'more than'} {FREE:g} times"
    return (
        f"From {UNITS[problem]} = {sizes[0]:,} to {sizes[-1]:,} those of {SHORT[OURS]} grow {_times(runs[OURS])}, "
        f"{verdict}; the others: {', '.join(factors)}."
    )


def _times(runs: dict[int, Rows]) -> str:
    """A growth as text; a run that did not arrive has spent at least so much."""
    factor = growth(runs)
    if math.isnan(factor):
        return "unknown"
    if math.isfinite(factor):
        return f"{factor:.2g} times"
    first, *_, last = runs.values()
    return f"over {median(last, 'spent') / median(first):.2g} times"


def _against(other: str, runs: dict[str, dict[int, Rows]], problem: str) -> str:
    """At which sizes our method needs fewer evaluations than another one, and at which it does not."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for size, mine in runs[OURS].items():
        ours, theirs = median(mine), median(runs[other][size])
        sides[ours < theirs].append(f"{size:,} ({ours:g} against {theirs:g})")
    parts = [
        f"{verb} at {UNITS[problem]} = {listing(sides[fewer])}"
        for fewer, verb in ((True, f"needs fewer evaluations than {SHORT[other]}"), (False, "does not need fewer"))
        if sides[fewer]
    ]
    return f"{SHORT[OURS]} {', and '.join(parts)}"
