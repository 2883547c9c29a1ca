"""A solution as text for people."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from .faults import make_printable
from .problems import FileSolution
from .settings import PROBLEMS

WIDTH, INDENT = 100, 13
SHOWN = 10
"""Coefficients that are shown, and rows."""


def summary(name: str, problem: str, solution: FileSolution, written: bool = False) -> str:
    """The lines of the summary, ASCII but for the file's own names; ``written``: files with the rest will follow."""
    rows = [
        ("problem", f"{problem}: {PROBLEMS[problem]}"),
        ("data", f"{name}: {solution.size}"),
        ("status", f"{'solved' if solution.solved else 'NOT SOLVED'}. {solution.message}"),
        ("value", f"{solution.fun:.12g}"),
        ("lower bound", _lower(solution)),
        ("gap", _gap(solution)),
        ("method", f"{solution.method}{': ' if solution.method and solution.why else ''}{solution.why}"),
        ("work", f"iterations {int(solution.res.nit)}, products {solution.nprod}, seconds {solution.seconds:.3g}"),
        *_extra_rows(solution, written),
        *(("note", note) for note in solution.notes),
    ]
    return "\n".join(row(title, text) for title, text in rows)


def row(title: str, text: str) -> str:
    """A title and its text, wrapped beside it."""
    lines = textwrap.wrap(make_printable(text), WIDTH - INDENT, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"{head:{INDENT}}{line}" for head, line in zip([title] + [""] * len(lines), lines, strict=False))


def _lower(solution: FileSolution) -> str:
    if not math.isfinite(solution.lower):
        return "none: no certificate was found at this point"
    return f"{solution.lower:.12g} ({solution.proves})"


def _gap(solution: FileSolution) -> str:
    if not math.isfinite(solution.gap):
        return "unknown"
    exact = solution.lower == 0.0 and solution.solved  # the value is rounding: a gap relative to it means nothing
    relative = "" if exact or not solution.fun else f", {solution.gap / abs(solution.fun):.1e} of the value"
    return f"{solution.gap:.3g}{relative}: the value is that close to the best possible, or closer"


def _extra_rows(solution: FileSolution, written: bool) -> list[tuple[str, str]]:
    """The rows that only some problems have: coefficients, active rows, the cost of a plan."""
    arrays, scalars, rows = solution.arrays, solution.scalars, []
    if "active" in arrays and arrays["active"].size:
        active = arrays["rows"][arrays["active"]] if "rows" in arrays else arrays["active"]
        rows.append(("active rows", f"{active.size} rows prove the bound: {_first_numbers(active)}"))
    if "cost" in scalars:
        rows.append(
            ("cost", f"{scalars['cost']:.12g} without the entropy; marginals to {scalars['marginal_error']:.1e}")
        )
    if "coef" in arrays:
        names, values = arrays["columns"], arrays["coef"] + 0.0
        few = values.size <= SHOWN
        shown = range(values.size) if few else np.argsort(-np.abs(values), kind="stable")[:SHOWN]
        where = "solution.json has all" if written else "--out DIR writes all of them"
        rest = "" if few else f" (the {SHOWN} largest of {values.size}; {where})"
        rows.append(("coefficients", ", ".join(f"{names[k]} {values[k]:.6g}" for k in shown) + rest))
    if "intercept" in arrays and arrays["intercept"] != 0.0:
        rows.append(("intercept", f"{float(arrays['intercept']):.6g}"))
    return rows


def _first_numbers(numbers: np.ndarray) -> str:
    shown = ", ".join(str(number) for number in numbers[:SHOWN])
    return f"{shown}{', ...' if numbers.size > SHOWN else ''} (from 0)"
