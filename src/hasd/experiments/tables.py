"""Rows and how they are written: a table is a list of dicts, a file is its exact text.

Floats are written with all their digits and nothing about time or machine is kept: a rerun gives the same bytes.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Row = dict[str, Any]
Rows = list[Row]
Tables = dict[str, Rows]
"""The tables of an experiment by file stem."""


def csv_text(rows: Rows) -> str:
    """The table as CSV; the columns are those of the first row.

    >>> print(csv_text([{"p": float("inf"), "gap": np.float64(0.1), "n": 3}]), end="")
    p,gap,n
    inf,0.1,3
    """
    if not rows:
        raise ValueError("a table needs at least one row")
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: str(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def select(rows: Rows, **values: Any) -> Rows:
    """The rows with these values in these columns.

    >>> select([{"p": 2, "t": 0}, {"p": 3, "t": 0}, {"p": 2, "t": 1}], p=2, t=1)
    [{'p': 2, 't': 1}]
    """
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def group(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    """The rows by the values of these columns, in order of appearance.

    >>> group([{"p": 2, "t": 0}, {"p": 3, "t": 0}, {"p": 2, "t": 1}], "p")[(2,)]
    [{'p': 2, 't': 0}, {'p': 2, 't': 1}]
    """
    out: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        out.setdefault(tuple(row[name] for name in names), []).append(row)
    return out


def column(rows: Rows, name: str) -> np.ndarray:
    """One column as an array."""
    return np.array([row[name] for row in rows])


def first_index(met: np.ndarray) -> int | None:
    """The first index at which a condition holds; None where it never does.

    >>> first_index(np.array([False, True, True])), first_index(np.array([False]))
    (1, None)
    """
    return int(np.argmax(met)) if met.any() else None


def cost_to_reach(rows: Rows, level: float, name: str) -> Any:
    """The count in a column where the gap is first `level` times that of the first row; NaN where it never is."""
    gaps = column(rows, "gap")
    t = first_index(gaps <= level * gaps[0])
    return math.nan if t is None else rows[t][name]


def markdown(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers are shortened.

    >>> print(markdown(["p", "G"], [[float("inf"), 3.16227766]]))
    | p | G |
    |---|---|
    | inf | 3.162 |
    """
    table = [header, ["---"] * len(header), *([short_text(value) for value in line] for line in lines)]
    return "\n".join(f"|{'|'.join(line)}|" if line[0] == "---" else f"| {' | '.join(line)} |" for line in table)


def section(*paragraphs: str) -> str:
    """A part of the report: its heading, texts and tables with empty lines between them."""
    return "\n\n".join(paragraphs) + "\n"


def short_text(value: Any) -> str:
    """Four digits of a float, a dash for nothing."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return "–"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
