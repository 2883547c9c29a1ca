"""The performance profile (Dolan & More 2002): the share of problems solved within a factor of the best solver."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from benchmarks.run import MAIN
from benchmarks.solvers import BASELINE, OURS
from benchmarks.summary import MEASURES, Results

TAB = matplotlib.color_sequences["tab10"]
PEERS = [color for color in TAB if color != TAB[3]]  # red is ours
STYLES = {OURS: {"color": "C3", "linewidth": 2.6, "zorder": 3}, BASELINE: {"color": "black", "linewidth": 2.0}}
LEAST = 0.5
"""A solver must have been run on this share of the problems to be drawn."""
LABELS = {"work": "products or evaluations", "seconds": "wall time"}


def plot(results: Results, out: Path) -> list[Path]:
    """Two panels, work and time, to the main target; PNG and PDF.  Shares are of the problems a solver was run on."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
    for ax, measure in zip(axes, MEASURES, strict=True):
        ax.set_prop_cycle(color=PEERS)
        for solver, costs in results.profile(MAIN, measure).items():
            if costs.size < LEAST * len(results.problems):
                continue
            finite = costs[np.isfinite(costs)]
            x = np.concatenate(([1.0], finite, [1e3]))
            y = np.concatenate(([0.0], np.arange(1, finite.size + 1), [finite.size])) / costs.size
            ax.step(x, y, where="post", label=solver, **STYLES.get(solver, {"linewidth": 1.0}))
        ax.set(xscale="log", xlim=(1.0, 1e3), ylim=(0.0, 1.02), xlabel=f"{LABELS[measure]} over the best solver's")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(f"share of problems solved to {MAIN:.0e}")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    paths = [out / f"profile.{kind}" for kind in ("png", "pdf")]
    for path in paths:
        figure.savefig(path, dpi=150)
    plt.close(figure)
    return paths
