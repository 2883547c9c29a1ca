"""The pictures of training: final validation losses with every seed, and how they were reached."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._plots import COLORS, legend_below
from .tables import Rows, Tables, column, group, select
from .training_optimizers import CONTENDERS
from .training_report import LABELS, OURS, PEER, TASK_TITLES, lowest_label

OWN, OTHER = COLORS[1], COLORS[0]
"""Ours, and the others."""
DASHES = ("-", "--", ":", "-.")
ROOM = 2.0
"""Curves are shown up to this times the largest final loss."""


def draw(figure: Any, tables: Tables) -> None:
    """A panel a task, a line an optimizer: small dots are seeds, large ones their mean."""
    axes = figure.subplots(2, 2, sharey=True).ravel()
    names = list(LABELS)
    for ax, task in zip(axes, TASK_TITLES, strict=True):
        rows = select(tables["training"], task=task)
        for (name,), mine in group(rows, "optimizer").items():
            _seeds(ax, names.index(name), mine, OWN if name in OURS else OTHER)
        peer = column(select(rows, optimizer=PEER), "validation").mean()
        if np.isfinite(peer):
            ax.axvline(peer, color="0.6", linewidth=0.8, linestyle="--", zorder=0)
        ax.set(title=_title(tables, task), ylim=(len(names) - 0.5, -0.5))
        _plain_ticks(ax)
        ax.set_yticks(range(len(names)), list(LABELS.values()))
    for ax in axes[2:]:
        ax.set_xlabel("validation loss at the end; less is better")
    figure.suptitle("Each optimizer at its best learning rate (orange: ours; dashed line: AdamW)", fontsize=11.0)


def _seeds(ax: Any, place: int, rows: Rows, color: str) -> None:
    values = column(rows, "validation").astype(float)
    if not np.isfinite(values).all():
        ax.text(0.98, place, "diverged", transform=ax.get_yaxis_transform(), ha="right", va="center", color=color)
        return
    ax.hlines(place, values.min(), values.max(), color=color, alpha=0.5)
    ax.plot(values, np.full(len(values), place), ".", color=color, markersize=4.0)
    ax.plot(values.mean(), place, "o", color=color, markersize=7.0, markerfacecolor="white")


def draw_curves(figure: Any, tables: Tables) -> None:
    """The mean validation loss against the steps, a panel a task."""
    axes = figure.subplots(2, 2).ravel()
    for ax, task in zip(axes, TASK_TITLES, strict=True):
        finals = column(select(tables["training"], task=task), "validation").astype(float)
        for (name,), mine in group(select(tables["training-curves"], task=task), "optimizer").items():
            by_step = group(mine, "step").items()
            steps, means = zip(*((step, column(some, "validation").mean()) for (step,), some in by_step), strict=True)
            ax.plot(steps, means, label=LABELS[name], **_style(name))
        known = finals[np.isfinite(finals)]
        if len(known):
            ax.set_ylim(0.9 * known.min(), ROOM * known.max())
        ax.set(title=_title(tables, task), xlabel="steps")
        ax.set_ylabel("validation loss")
        _plain_ticks(ax, "y")
    figure.suptitle("Validation loss against steps, mean over seeds (thick: ours)", fontsize=11.0)
    legend_below(figure, axes[-1], 4)


def _title(tables: Tables, task: str) -> str:
    title = TASK_TITLES[task]
    return f"{title[0].upper()}{title[1:]}: lowest is {lowest_label(tables['training'], task)}"


def _style(name: str) -> dict[str, Any]:
    """Ours are thick and in warm colours."""
    if name in OURS:
        return {"color": ("black", COLORS[1], COLORS[3])[OURS.index(name)], "linewidth": 2.4, "zorder": 3.0}
    place = [other for other in CONTENDERS if other not in OURS].index(name)
    return {"color": (COLORS[0], COLORS[2], COLORS[5], COLORS[4])[place % 4], "linestyle": DASHES[place // 4 + 1]}


def _plain_ticks(ax: Any, axis: str = "x") -> None:
    """A logarithmic axis whose ticks are plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(ax, f"set_{axis}scale")("log")
    one = getattr(ax, f"{axis}axis")
    one.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    one.set_minor_formatter(NullFormatter())
