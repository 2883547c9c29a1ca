"""The report and the figure of the l_inf regression: certified gaps against products."""

from __future__ import annotations

import math
from typing import Any

from .._plots import legend_below
from .tables import Rows, Tables, column, first_index, group, markdown, section, select

TITLES = {"dense": "Dense Gaussian A", "sparse": "Sparse A, three entries a row"}
NAMES = {
    "area-proven": "area convexity, proven constants",
    "area-smaller": "area convexity, smaller constants",
    "hasd": "HASD (ours)",
    "chebyshev": "hasd.chebyshev (ours)",
    "highs": "linear program in HiGHS",
}
SHORT = {"area-proven": "area convexity (proven)", "area-smaller": "area convexity (smaller)"}
SHORT |= {"hasd": "HASD", "chebyshev": "chebyshev and linear programs"}
"""The same where there is little room."""
LABELS = {
    "area-proven": "area convexity, proven constants",
    "area-smaller": "area convexity, smaller constants: no theorem",
    "hasd": "HASD in ℓ∞, less smoothing in every stage (ours)",
    "chebyshev": "hasd.chebyshev (ours): its linear programs are not counted",
}
STYLES: dict[str, dict[str, Any]] = {
    "area-proven": {"color": "#0072B2", "linestyle": "--"},
    "area-smaller": {"color": "#009E73", "linestyle": "-."},
    "hasd": {"color": "black", "linewidth": 2.2},
    "chebyshev": {"color": "#D55E00", "linestyle": "none", "marker": "*", "markersize": 12.0},
}
FIRST_ORDER = ("area-proven", "area-smaller", "hasd")
"""Those whose whole cost is products."""
LEVELS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
"""Certified gaps, as parts of the minimum."""
SHOWN = 0.01
"""The one that the titles speak of."""


def products_to(rows: Rows, level: float) -> Any:
    """The products at which a curve's certified gap is first at most this part of the minimum; NaN: never."""
    t = first_index(column(rows, "share") <= level)
    return math.nan if t is None else rows[t]["products"]


def counts(rows: Rows, level: float) -> dict[str, Any]:
    """The products to a level, by method, the fewest first; NaN, which a method without products also has, last."""
    found = {method: products_to(mine, level) for (method,), mine in group(rows, "method").items()}
    return dict(sorted(found.items(), key=lambda item: (math.isnan(item[1]), item[1])))


def title(rows: Rows) -> str:
    """The products of every method to the level that is shown, the fewest first, two methods a line."""
    words = []
    for method, count in counts(rows, SHOWN).items():
        if method in SHORT:
            spent = max(column(select(rows, method=method), "products"))
            words.append(f"{SHORT[method]} {f'> {spent:,}' if math.isnan(count) else f'{count:,}'}")
    lines = (", ".join(words[k : k + 2]) for k in range(0, len(words), 2))
    return f"products to {SHOWN:.0%}: " + ",\n".join(lines)


def draw(figure: Any, tables: Tables) -> None:
    """Certified gap against products, a panel a family."""
    families = group(tables["linf"], "family")
    axes = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for ax, ((family,), rows) in zip(axes, families.items(), strict=True):
        for method, style in STYLES.items():
            mine = select(rows, method=method)
            ax.plot(column(mine, "products"), column(mine, "share"), label=LABELS[method], **style)
        proven = select(rows, method="area-proven")
        bound = {"color": "#0072B2", "linewidth": 0.9, "linestyle": ":", "label": "what the proven constants promise"}
        ax.plot(column(proven, "products"), column(proven, "bound"), **bound)
        height = select(rows, method="highs")[-1]["share"]
        ax.axhline(height, color="0.6", linewidth=0.9, label="linear program in HiGHS (it has no products)")
        ax.set(xscale="log", yscale="log", xlabel="products with A or its transpose")
        ax.set_title(f"{TITLES[family]}\n{title(rows)}")
    axes[0].set_ylabel("certified gap, as a part of the minimum")
    figure.suptitle("min ‖Ax − b‖∞ over the box [−1, 1]ᵈ: how many products certify a gap", fontsize=11.0)
    legend_below(figure, axes[0], 2)


def winners(rows: Rows) -> str:
    """Which of the methods whose whole cost is products needs the fewest, level by level."""
    words = []
    for level in LEVELS:
        found = {method: count for method, count in counts(rows, level).items() if method in FIRST_ORDER}
        best, count = next(iter(found.items()))
        words.append(f"{level:g}: none" if math.isnan(count) else f"{level:g}: {NAMES[best]}, {count}")
    return "; ".join(words)


def levels_table(rows: Rows) -> str:
    """Products to every level, by method."""
    found = [counts(rows, level) for level in LEVELS]
    lines = [[NAMES[method], *(some[method] for some in found)] for method in NAMES if method != "highs"]
    return markdown(["method", *(f"{level:g}" for level in LEVELS)], lines)


def ends_table(rows: Rows) -> str:
    """How every run ended; with the seconds where they were asked for."""
    names = ["iteration", "products", "upper", "lower", "share", *(["seconds"] if "seconds" in rows[0] else [])]
    header = ["method", "iterations", "products", "value", "lower bound", "certified gap / minimum", *names[5:]]
    return markdown(header, [[NAMES[row["method"]], *(row[name] for name in names)] for row in rows])


def report(tables: Tables, sizes: Any) -> str:
    """The ends of all runs, the products to given gaps, and who needs the fewest."""
    proven = select(tables["linf"], method="area-proven")
    broken = sum(not row["share"] <= row["bound"] for row in proven)
    kept = "Its gap is within this bound in every row." if broken == 0 else f"{broken} ROWS BREAK THIS BOUND."
    setting = f"""\
min ‖Ax − b‖∞ over the box [−1, 1]^d, n = {sizes.n}, d = {sizes.d}, seed {sizes.seed}. A run ends after
{sizes.products} products with A, |A| or a transpose, or earlier where rounding or a gap of 1e-9 ends it. b is scaled
so that the largest entry of the minimiser without the box is between 1/2 and 1: the minimum is the same with and
without the box, which `hasd.chebyshev` proves, and all solve the same problem. Every gap is that of a value
and a lower bound from the run itself, rounding counted."""
    rivals = f"""\
Area convexity with the proven constants α = 4, κ = √3/2 promises a gap of √3 N (4 ln 2n + 1)/T after T iterations, and
a little more for minima that are found inexactly. {kept}
The smaller constants are α = 0.5, κ = 0.3: no theorem covers them, but the gaps that they reach are certified all the
same. The iterations of `hasd.chebyshev` are linear programs, and those of HiGHS are steps of its solver. Products do
not measure the cost of either; `--seconds` adds a column that does."""
    parts = [setting, rivals]
    for (family,), rows in group(tables["linf"], "family").items():
        ends = select(tables["linf-ends"], family=family)
        needed = f"Products until the certified gap is a given part of the minimum, {ends[0]['minimum']:.6g}:"
        fewest = f"The fewest products to each gap, of the methods whose whole cost they are: {winners(rows)}."
        parts += [f"### {TITLES[family]}", ends_table(ends), needed, levels_table(rows), fewest]
    return section("## The ℓ∞ regression", *parts)
