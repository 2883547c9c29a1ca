"""The figure of the benchmark: relative gaps over time or iterations."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from benchopt import BasePlot

FLOOR = 1e-16
"""Gaps below are drawn here: they are rounding."""
WIDTH = 44
"""Characters of a title's line that fit above the figure."""


def problems(df: pd.DataFrame) -> pd.Series:
    """The problem of every row, without dots: benchopt cuts the name of a figure's file at its last one.

    Figures would share a file.  Data and objective are one option and not two: some losses are skipped on some data.

    >>> problems(pd.DataFrame({"dataset_name": ["sparse"], "objective_name": ["fit[ridge=0.1]"]})).tolist()
    ['sparse_fit[ridge=0p1]']
    """
    return (df["dataset_name"] + "_" + df["objective_name"]).str.replace(".", "p")


class Plot(BasePlot):
    """(f - f*)/(f0 - f*) over time or iterations, f* the least value that any solver found.

    benchopt's own curve shows plain values where the figure is drawn by matplotlib, and no logarithm of them where they
    are negative.
    """

    name = "relative_gap"
    type = "scatter"
    options = {"problem": lambda df: problems(df).unique().tolist(), "X_axis": ["Time", "Iteration"]}

    def plot(self, df: pd.DataFrame, problem: str, X_axis: str) -> list[dict[str, Any]]:
        """A curve for each solver: medians over the repetitions."""
        rows = df[problems(df) == problem]
        start, least = rows["objective_value"].iloc[0], rows["objective_value"].min()
        curves = []
        for solver, of_solver in rows.groupby("solver_name"):
            medians = of_solver.groupby("stop_val")[["time", "objective_value"]].median()
            medians = medians[medians.index > 0]  # the start has gap 1, and no place on a logarithmic axis
            gaps = (medians["objective_value"] - least) / (start - least)
            x = medians["time"] if X_axis == "Time" else medians.index
            curve = {"x": x.tolist(), "y": np.maximum(gaps, FLOOR).tolist(), "label": solver}
            curves.append({**curve, **self.get_style(solver)})
        return curves

    def get_metadata(self, df: pd.DataFrame, problem: str, X_axis: str) -> dict[str, Any]:
        """Title and axes."""
        names = df.loc[problems(df) == problem, ["objective_name", "dataset_name"]].iloc[0]
        return {
            "title": "\n".join(textwrap.fill(name.replace(",", ", "), WIDTH, break_on_hyphens=False) for name in names),
            "xlabel": "seconds" if X_axis == "Time" else "iterations",
            "ylabel": "relative gap",
            "scale": "loglog",
        }
