"""What is asked of a file, and the three shapes in which a reader hands over what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .faults import Fault, listed, quoted

MATRIX_NAMES = ("A", "X")
COST_NAMES = ("C", "a", "b")


@dataclass(frozen=True)
class Request:
    """What the problem needs to be read."""

    cost: bool = False  # a cost matrix and two masses, instead of a matrix and a target
    labels: bool = False  # the target has two classes, which may be words
    optional: bool = False  # the target may be absent
    target: str | None = None  # the column or array that is the target; None: the last, or the usual names
    header: str = "auto"  # of a text table: yes, no or auto
    limit: float = 4 * 2**30  # bytes that the numbers may take in memory

    @property
    def vector_names(self) -> tuple[str, ...]:
        """The arrays that may be the target, the likelier first."""
        if self.target is not None:
            return (self.target,)
        return ("y", "b", "target") if self.labels else ("b", "y", "target")

    @property
    def wanted(self) -> tuple[str, ...]:
        """The arrays worth loading from an archive."""
        return COST_NAMES if self.cost else MATRIX_NAMES + self.vector_names


@dataclass(frozen=True)
class Table:
    """Rows and columns, the target among them."""

    values: np.ndarray  # float64, 2-D
    names: tuple[str, ...] | None = None  # of the columns
    classes: tuple[str, str] | None = None  # the target holds 0 and 1, which stand for these
    row: Callable[[int], str] = "row {} (from 0)".format  # where a row is in the file

    def place(self, i: int, j: int) -> str:
        """Where a cell is in the file."""
        return f"{self.row(i)}, {column(j, self.names)}"


@dataclass(frozen=True)
class Named:
    """Arrays by name, those of the request only."""

    arrays: dict[str, np.ndarray]
    there: tuple[str, ...]  # all the names in the file


@dataclass(frozen=True)
class Sparse:
    """A sparse matrix and its target."""

    matrix: Any  # a CSR array
    target: np.ndarray
    notes: tuple[str, ...] = field(default=())


Contents = Table | Named | Sparse


def column(j: int, names: tuple[str, ...] | None) -> str:
    """A column as people count it, with its name where it has one.

    >>> column(1, ("age", "dose")), column(1, None)
    ("column 2 ('dose')", 'column 2')
    """
    return f"column {j + 1} ({quoted(names[j])})" if names is not None and j < len(names) else f"column {j + 1}"


def find_column(target: str | None, names: tuple[str, ...] | None, width: int) -> int:
    """The index of the target's column: a name, an index from 0 (negative: from the end), or None for the last.

    >>> find_column("dose", ("age", "dose"), 2), find_column("-1", None, 5), find_column(None, None, 3)
    (1, 4, 2)
    """
    if target is None:
        return width - 1
    matches = [j for j, name in enumerate(names or ()) if name == target]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Fault("", f"--target {quoted(target)} names {len(matches)} columns; give an index instead")
    index = _whole(target)
    if index is not None and -width <= index < width:
        return index % width
    there = f"the columns are {listed(names)}" if names else f"there are {width} columns and no names"
    raise Fault("", f"--target {quoted(target)} is not there: {there}")


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
