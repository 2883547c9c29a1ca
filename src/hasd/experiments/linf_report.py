"""The report and the figure of the l_inf regression: certified gaps against products."""

from __future__ import annotations

import math
from typing import Any

from .._plots import legend_below
from ..theory import AREA_ALPHA, AREA_KAPPA
from .tables import Rows, Tables, column, first_index, group, markdown, section, select

LABELS = {
    "area-proven": "area convexity, proven constants",
    "area-brave": "area convexity, α = 0.5, κ = 0.3 (no theorem)",
    "hasd": "HASD, ℓ∞, smoothing lowered in stages (ours)",
    "chebyshev": "hasd.chebyshev (ours; with linear programs)",
    "highs": "linear program in HiGHS",
}
TITLES = {"dense": "dense Gaussian A", "sparse": "sparse A, three entries a row"}
STYLES = {
    "area-proven": {"color": "#0072B2", "linestyle": "--"},
    "area-brave": {"color": "#009E73", "linestyle": "-."},
    "hasd": {"color": "black", "linewidth": 2.2},
    "chebyshev": {"color": "#D55E00", "linestyle": "none", "marker": "*", "markersize": 12.0},
}
LEVELS = (1.0, 0.1, 0.01, 1e-3, 1e-4)
"""Certified gaps, as parts of the minimum."""
FIRST_ORDER = ("area-proven", "area-brave", "hasd")
"""Those whose whole cost is products."""


def products_to(rows: Rows, level: float) -> float:
    """The products at which a curve's certified gap is first at most this part of the minimum; NaN: never."""
    t = first_index(column(rows, "share") <= level)
    return math.nan if t is None else rows[t]["products"]


def winners(rows: Rows) -> str:
    """Which of the first-order methods needs the fewest products to each level, in words."""
    words = []
    for level in LEVELS:
        counts = {method: products_to(select(rows, method=method), level) for method in FIRST_ORDER}
        arrived = {method: count for method, count in counts.items() if not math.isnan(count)}
        best = min(arrived, key=lambda method: arrived[method], default=None)
        words.append(f"{level:g}: {'none arrives' if best is None else f'{LABELS[best]} ({arrived[best]})'}")
    return "; ".join(words)


def draw(figure: Any, tables: Tables) -> None:
    """Certified gap against products, a panel a family."""
    families = group(tables["linf"], "family")
    axes = figure.subplots(1, len(families), sharey=True, squeeze=False)[0]
    for ax, ((family,), rows) in zip(axes, families.items(), strict=True):
        for method, style in STYLES.items():
            mine = select(rows, method=method)
            ax.plot(column(mine, "products"), column(mine, "share"), label=LABELS[method], **style)
        proven = select(rows, method="area-proven")
        bound = {"color": "#0072B2", "linewidth": 0.9, "linestyle": ":", "label": "its bound, √3 N (4 ln 2n + 1)/T"}
        ax.plot(column(proven, "products"), column(proven, "bound"), **bound)
        highs = select(rows, method="highs")[-1]["share"]
        ax.axhline(highs, color="0.6", linewidth=0.9, label="linear program in HiGHS (no products): its certified gap")
        ax.set(xscale="log", yscale="log", title=f"{TITLES[family]}\n{_caption(rows)}", xlabel="products with A or Aᵀ")
    axes[0].set_ylabel("certified gap, as a part of the minimum")
    figure.suptitle("min ‖Ax − b‖∞ over [−1, 1]ᵈ: how soon a gap is certified", fontsize=11.0)
    legend_below(figure, axes[0], 2)


def _caption(rows: Rows) -> str:
    """Who is first at one per cent, and who is lowest of all, in a line or two."""
    counts = {method: products_to(select(rows, method=method), 0.01) for method in (*FIRST_ORDER, "chebyshev")}
    named = [f"{NAMES[m]} {count:,.0f}" for m, count in sorted(counts.items(), key=_order) if not math.isnan(count)]
    return f"products to 1%: {', '.join(named) if named else 'not reached by any'}"


NAMES = {"area-proven": "area convexity, proven", "area-brave": "area convexity, brave", "hasd": "HASD"}
NAMES["chebyshev"] = "chebyshev"
"""Short names."""


def _order(item: tuple[str, float]) -> float:
    return math.inf if math.isnan(item[1]) else item[1]


def report(tables: Tables, sizes: Any) -> str:
    """The ends of all runs, and the products to given gaps."""
    proven = select(tables["linf"], method="area-proven")
    kept = all(row["share"] <= row["bound"] for row in proven)
    setting = f"""\
min ‖Ax − b‖∞ over [−1, 1]^d, n = {sizes.n}, d = {sizes.d}, seed {sizes.seed}, at most {sizes.products} products a run.
The minimiser without the box is inside the box (`hasd.chebyshev` finds and proves it), so that all solve one problem."""
    return section("## The ℓ∞ regression", setting)
