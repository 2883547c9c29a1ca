"""The performance profile (Dolan & More 2002): the share of problems solved within a factor of the best solver."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.run import MAIN
from benchmarks.solvers import BASELINE, OURS
from benchmarks.summary import MEASURES, Results
from hasd._plots import COLORS, RC, legend_below

STYLES = {
    OURS: {"color": COLORS[1], "linewidth": 2.6, "zorder": 3},
    BASELINE: {"color": "black", "linewidth": 2.0},
}
PEERS = [
    {"color": color, "linestyle": dashes, "linewidth": 1.2}
    for dashes, color in product(("-", "--", ":"), (COLORS[0], *COLORS[2:6]))
]
LEAST = 0.5
"""A solver must have been run on this share of the problems to be drawn."""
WIDEST = 100.0
"""Up to this multiple of the best solver's cost."""
LABELS = {"work": "products (Hessians not counted) or evaluations", "seconds": "wall time"}


class Panel(NamedTuple):
    """What one panel shows."""

    results: Results
    measure: str  # work or seconds
    label: str


def work_and_time(results: Results) -> list[Panel]:
    """Two panels of one run."""
    return [Panel(results, measure, LABELS[measure]) for measure in MEASURES]


def plot(panels: Sequence[Panel], paths: Sequence[Path]) -> None:
    """Profiles to the main target, side by side.  Shares are of the problems a solver was run on."""
    solvers = list(dict.fromkeys(solver for panel in panels for solver in _drawn(panel)))
    others = [solver for solver in solvers if solver not in STYLES]
    styles = {**STYLES, **{solver: PEERS[k % len(PEERS)] for k, solver in enumerate(others)}}
    with plt.rc_context(RC):
        figure, axes = plt.subplots(
            1, len(panels), figsize=(8.0, 3.9), layout="constrained", sharey=True, squeeze=False
        )
        for ax, panel in zip(axes[0], panels, strict=True):
            drawn = _drawn(panel)
            for solver in solvers:  # one that is missing here still has its place in the legend
                ax.step(*_steps(drawn.get(solver, np.array([math.inf]))), where="post", label=solver, **styles[solver])
            ax.set(xscale="log", xlim=(1.0, WIDEST), ylim=(0.0, 1.02), xlabel=f"{panel.label}, over the best solver's")
        axes[0, 0].set_ylabel(f"share of problems solved to {MAIN:.0e}")
        legend_below(figure, axes[0, 0], 5)
        for path in paths:
            figure.savefig(path)
        plt.close(figure)


def _drawn(panel: Panel) -> dict[str, np.ndarray]:
    """The costs over the best one's, of solvers that were run often enough."""
    least = LEAST * len(panel.results.problems)
    return {name: costs for name, costs in panel.results.profile(MAIN, panel.measure).items() if costs.size >= least}


def _steps(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the curve."""
    finite = costs[np.isfinite(costs)]
    shares = np.concatenate(([0.0], np.arange(1, finite.size + 1), [finite.size])) / costs.size
    return np.concatenate(([1.0], finite, [max(WIDEST, *finite)])), shares
