"""The figure of a run: value and lower bound over time, how far they are apart, and what is left of each row."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._plots import COLORS, RC, legend_below
from .faults import quote
from .solvers import FileSolution

WIDE = 100.0
"""Values that differ by more than this factor are drawn on a logarithmic axis."""


def plot(solution: FileSolution, problem: str, path: Path) -> None:
    """Draw it; an ImportError where matplotlib is not there."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(RC), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters in labels that the font does not have
        figure = Figure(figsize=(11.0, 3.6), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _draw_values(left, middle, solution)
        _draw_rows(right, solution)
        figure.suptitle(f"{problem}: {'solved' if solution.solved else 'not solved'}", fontsize=10)
        legend_below(figure, left, 3)
        figure.savefig(path)


def _draw_values(left: Any, middle: Any, solution: FileSolution) -> None:
    """Value and bounds, and the value minus each bound in that one's colour and dashes.

    The bound that is known only at the end is a level.
    """
    trace, final = solution.res.trace, solution.res.lower
    when, fun, lower = (np.asarray(trace[name], dtype=float) for name in ("seconds", "fun", "lower"))
    short = when.size > 0 and when[-1] < 1.0
    when = when * (1000.0 if short else 1.0)
    look: dict[str, Any] = {"marker": "o" if len(when) <= 30 else None, "markersize": 3}
    label = "value of the plan, made at the end" if "plan" in solution.arrays else "value"
    left.plot(when, fun, color=COLORS[0], label=label, **look)
    shown = np.isfinite(lower)
    if shown.any():
        left.plot(when[shown], lower[shown], "--", color=COLORS[1], label="certified lower bound", **look)
    if np.isfinite(final):
        left.axhline(final, color=COLORS[2], linestyle=":", label="final lower bound")
    _scale(left, fun[np.isfinite(fun)], lower[shown])
    left.set(ylabel="value", title="value and lower bound")
    for values, color, dashes in ((fun - lower, COLORS[1], "--"), (fun - final, COLORS[2], ":")):
        good = np.isfinite(values) & (values > 0.0)
        if good.any():
            middle.semilogy(when[good], values[good], dashes, color=color)
    if not middle.has_data():
        middle.text(0.5, 0.5, "no lower bound, or no gap left", ha="center", transform=middle.transAxes)
    middle.set(ylabel="gap", title="value minus each lower bound")
    for axes in (left, middle):
        axes.set_xlabel("milliseconds" if short else "seconds")
        axes.locator_params(axis="x", nbins=6)


def _scale(axes: Any, fun: np.ndarray, lower: np.ndarray) -> None:
    """A logarithmic axis for positive values of different sizes; else the values' range, early bounds cut off."""
    both = np.concatenate((fun, lower))
    if not fun.size:
        return
    if both.min() > 0.0 and both.max() > WIDE * both.min():
        axes.set_yscale("log")
        return
    axes.ticklabel_format(axis="y", useOffset=False)
    span = float(np.ptp(fun))
    if lower.size and span > 1e-9 * abs(fun.min()) and lower.min() < fun.min() - 2.0 * span:
        axes.set_ylim(fun.min() - span, fun.max() + 0.1 * span)


def _draw_rows(axes: Any, solution: FileSolution) -> None:
    """The residuals over the predictions; of labels, the probabilities; of transport, the plan."""
    table = solution.predictions
    if "residual" in table:
        axes.plot(table["prediction"], table["residual"], ".", color=COLORS[0], markersize=4)
        axes.axhline(0.0, color="0.5", linewidth=0.8)
        axes.set(xlabel="prediction", ylabel="prediction - target", title="residuals")
    elif "label" in table:
        labels = np.unique(table["label"])
        values = [table["probability"][table["label"] == label] for label in labels]
        shown = [quote(label).replace("$", r"\$") for label in labels]  # a dollar begins a formula
        axes.hist(values, bins=np.linspace(0.0, 1.0, 21), color=list(COLORS[: len(labels)]), label=shown)
        axes.set_axisbelow(True)
        axes.set(xlabel="probability of the label that became +1", ylabel="rows", title="probabilities by label")
        axes.legend()
    else:
        axes.imshow(solution.arrays["plan"], aspect="auto", cmap="Blues")
        axes.grid(visible=False)
        axes.set(xlabel="column", ylabel="row", title="plan")
