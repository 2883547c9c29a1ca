"""From a table to what a problem needs: a matrix and a target, or a cost matrix and two masses."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .faults import Fault, name_list, quote, refuse_above_limit, refuse_bad_numbers
from .settings import Settings

MASS_ERROR = 1e-9
"""What the sums of the masses may differ by, relative."""
MAX_LEVELS = 100
"""The most different words of a column of categories: with more they are names or free text."""
UNNAMED = ("", "__index_level_0__")
"""What a column of row numbers is called in files that pandas wrote."""
DAY, MONTH = r"\d{1,2}", r"(\d{1,2}|(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)"
DATE = re.compile(
    rf"(\d{{4}}[-/.]{MONTH}[-/.]{DAY}|{DAY}[-/. ]+{MONTH}[-/. ,]+\d{{2,4}})(?!\d).*|{DAY}:\d\d(:\d\d.*)?", re.I
)
"""A day, with or without a time, or a time alone."""
ALMOST = re.compile(r"[-+]?[.,_' ]*+\d[\d.,_' ]*+([eE][-+]?\d+)?\s*[%€$£]?")
"""A cell that was probably meant as a number: with another decimal sign, groups of digits or a unit.  Nothing is tried
twice (`*+`), as a hostile cell may have millions of digits."""
NUMBER = re.compile(r"\s*+[-+]?(\d++\.?\d*+|\.\d++)(e[-+]?\d++)?\s*|\s*[-+]?(nan|inf|infinity)\s*", re.ASCII | re.I)
TRUTH = {"true": 1.0, "false": 0.0}
NUMERIC = "biuf"
"""Kinds of NumPy types: booleans, integers, floating-point numbers."""
Names = tuple[str, ...] | None
"""Of columns; None where the file has none."""


@dataclass(frozen=True)
class Table:
    """The columns of a file that are asked for, as pandas read them."""

    frame: Any  # a DataFrame, its columns and rows counted from 0 as in the file
    names: Names  # of all the columns in the file
    chosen: list[int]  # the columns of the matrix
    target: int | None  # the target's column; None: there is none
    row: Callable[[int], str] = "row {} (from 0)".format  # where a row is in the file
    decimal: str = "."
    notes: tuple[str, ...] = ()
    called: str = ""  # the target, where that is no column

    def place(self, i: int, j: int) -> str:
        """Where the cell in row i of the frame and column j of the file is in the file."""
        column_name = self.target_name if j == self.target else column(j, self.names)
        return f"{self.row(int(self.frame.index[i]))}, {column_name}"

    @property
    def target_name(self) -> str:
        """What the target is called in the file."""
        return self.called or column(self.target or 0, self.names)


@dataclass(frozen=True)
class Pair:
    """A matrix and a target."""

    A: Any  # float64, dense or CSR
    b: np.ndarray  # for labels: -1 and 1
    target: str  # what the target is called in the file
    columns: tuple[str, ...] | None = None  # of A, no two the same
    notes: tuple[str, ...] = ()
    classes: tuple[str, str] | None = None  # what -1 and 1 are in the file
    rows: np.ndarray | None = None  # of A in the file, from 0, where some were left out


@dataclass(frozen=True)
class Cost:
    """A cost matrix and the masses of its rows and columns, of equal sums."""

    C: np.ndarray
    a: np.ndarray
    b: np.ndarray
    notes: tuple[str, ...] = ()


def column(j: int, names: Names) -> str:
    """A column, counted from 0 as in the options, with its name where it has one.

    >>> column(1, ("age", "dose")), column(1, None)
    ("column 1 ('dose')", 'column 1 (from 0)')
    """
    return f"column {j} ({quote(names[j]) if names is not None else 'from 0'})"


def find_column(text: str | None, names: Names, width: int, option: str = "--target") -> int:
    """The index of a column: a name, an index from 0 (negative: from the end), or None for the last.

    >>> find_column("dose", ("age", "dose"), 2), find_column("-1", None, 5), find_column(None, None, 3)
    (1, 4, 2)
    """
    if text is None:
        return width - 1
    matches = [j for j, name in enumerate(names or ()) if name == text]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Fault("", f"{option} {quote(text)} names {len(matches)} columns; give an index instead")
    if re.fullmatch(r"-?\d{1,9}", text) and -width <= int(text) < width:
        return int(text) % width
    there = f"the columns are {name_list(names)}" if names else f"there are {width} columns and no names"
    raise Fault("", f"{option} {quote(text)} is not there: {there}")


def select(settings: Settings, names: Names, width: int) -> tuple[list[int], int | None, list[int]]:
    """The columns of the matrix, the target's (None for a cost matrix), and both in the file's order."""
    if settings.problem == "transport":
        if not width:
            raise Fault("", "the cost matrix has no columns")
        return [*range(width)], None, [*range(width)]
    if width < 2:
        raise Fault("", "a target and at least one more column are needed")
    target = find_column(settings.target, names, width)
    chosen = [find_column(one, names, width, "--columns") for one in settings.columns or ()] or range(width)
    left_out = {find_column(one, names, width, "--drop") for one in settings.drop or ()}
    if target in left_out:
        raise Fault("", f"--drop: {column(target, names)} is the target")
    kept = [j for j in dict.fromkeys(chosen) if j != target and j not in left_out]
    if not kept:
        raise Fault("", "--columns and --drop leave no column beside the target")
    return kept, target, sorted({*kept, target})


def is_number(cell: str, decimal: str = ".") -> bool:
    """Whether a cell is a number as files write them: no digit groups, which Python would take.

    >>> is_number(" -1.5e3"), is_number("1_000"), is_number("1,5", ","), is_number("1.5", ",")
    (True, False, True, False)
    """
    return (decimal == "." or "." not in cell) and NUMBER.fullmatch(cell.replace(decimal, ".")) is not None


def make_pair(table: Table, settings: Settings) -> Pair:
    """The target, and the other columns as numbers."""
    full = _drop_missing(table, settings)
    target, labels, classes, notes = full.frame[table.target], settings.problem == "logistic", None, [*full.notes]
    if target.dtype.kind in NUMERIC or not labels:
        b = _matrix(full, [int(target.name)], settings, words=False)[0][:, 0]
    if labels:
        b, classes, said = make_labels(target, table.target_name)
        notes += said
    A, names, expanded = _matrix(full, table.chosen, settings, words=True)
    unnamed = [j for j in table.chosen if table.names and table.names[j] in UNNAMED]
    notes += [f"Column {j} (from 0) has no name (a row number?) and was taken as data." for j in unnamed[:3]]
    notes += expanded + ["Columns have no names here and are counted from 0."] * (table.names is None)
    rows = None if len(full.frame) == len(table.frame) else full.frame.index.to_numpy()
    return Pair(A, b, table.target_name, names, tuple(notes), classes, rows)


def refuse_zero_target(data: Pair) -> None:
    """A residual is no part of a target that is 0."""
    zero = np.flatnonzero(data.b == 0.0)
    if zero.size:
        row = int(zero[0]) if data.rows is None else int(data.rows[zero[0]])
        more = f", one of {zero.size} such rows" if zero.size > 1 else ""
        raise Fault(f"row {row} (from 0), {data.target}", f"the target is 0{more}; --relative needs other targets")


def make_cost(table: Table, settings: Settings) -> Cost:
    """The table as a cost matrix, with uniform masses."""
    return with_masses(_matrix(_drop_missing(table, settings), table.chosen, settings, words=False)[0])


def with_masses(C: np.ndarray, a: np.ndarray | None = None, b: np.ndarray | None = None) -> Cost:
    """A cost matrix and its masses: uniform, with the sum of the other, where one is absent."""
    for name, mass in (("a", a), ("b", b)):
        if mass is not None and (mass.min() < 0.0 or not 0.0 < mass.sum() < math.inf):
            worst = f"entry {int(np.argmin(mass))} (from 0) is {mass.min():g}" if mass.min() < 0.0 else "no finite sum"
            raise Fault(f"array '{name}'", f"{worst}; masses are 0 or more, and not all 0")
    total = next((float(mass.sum()) for mass in (a, b) if mass is not None), 1.0)
    notes = tuple(f"Uniform masses {name}, as none are given." for name, mass in (("a", a), ("b", b)) if mass is None)
    a, b = (np.full(n, total / n) if mass is None else mass for mass, n in zip((a, b), C.shape, strict=True))
    if abs(a.sum() - b.sum()) > MASS_ERROR * a.sum():
        raise Fault("", f"a sums to {a.sum():.9g} and b to {b.sum():.9g}; equal sums are needed")
    return Cost(C, a, b, notes)


def make_labels(values: Any, place: str) -> tuple[np.ndarray, tuple[str, str], list[str]]:
    """Two classes as -1 and 1 (the smaller number or the first in the alphabet is -1), their names, and notes."""
    import pandas as pd

    numeric = values.dtype.kind in NUMERIC
    codes, found = pd.factorize(values.to_numpy(), sort=True) if numeric else _find_words(values)
    names = [f"{value:g}" if numeric else value for value in found]
    if len(names) != 2:
        different = "only one value" if len(names) == 1 else f"{len(names)} different values"
        raise Fault(place, f"{different} ({name_list(names)}); logistic needs two classes")
    said = [f"Labels: {quote(names[0])} became -1, {quote(names[1])} became +1."]
    return 2.0 * codes - 1.0, (names[0], names[1]), [] if numeric and list(found) == [-1, 1] else said


def _drop_missing(table: Table, settings: Settings) -> Table:
    """The rows without missing values, and a note; unless the settings drop rows, a missing value is a Fault."""
    frame = table.frame
    if not len(frame):
        raise Fault("", "no rows")
    missing = frame.isna().to_numpy()
    rows = missing.any(axis=1)
    count = int(rows.sum())
    if count == 0:
        return table
    if settings.missing != "drop":
        i = int(np.argmax(rows))
        more = f", one of {count} such rows" if count > 1 else ""
        hint = "" if settings.problem == "transport" else " (--missing drop leaves such rows out)"
        raise Fault(table.place(i, int(frame.columns[np.argmax(missing[i])])), f"the cell is empty or nan{more}{hint}")
    if count == len(frame):
        raise Fault("", "every row has a missing value; none is left")
    note = f"{count} of {len(frame)} rows have missing values and were left out (--missing drop)."
    return replace(table, frame=frame[~rows], notes=(*table.notes, note))


def _matrix(
    table: Table, chosen: Iterable[int], settings: Settings, words: bool
) -> tuple[np.ndarray, tuple[str, ...], list[str]]:
    """Columns as one matrix, categories a column a level; the columns' names; what is to be said of categories."""
    blocks: list[np.ndarray] = []
    titles: list[tuple[str, int]] = []  # of the matrix's columns: a name, and the column of the file
    notes: list[str] = []
    first = 1 if settings.intercept else 0  # the column of level 0 would be what the others leave of the ones
    for j in chosen:
        name, place = table.names[j] if table.names and table.names[j] else f"column {j}", column(j, table.names)
        values, levels = _measure(table, j, words)
        shown = levels[first:]
        extent = 8.0 * len(values) * (len(titles) + len(shown))
        refuse_above_limit(extent, settings.max_memory, f"{place} as categories")
        blocks.append(np.eye(len(levels), dtype=bool)[values, first:] if levels else values[:, None])
        titles += [(f"{name}={level}", j) for level in shown] or [(name, j)]
        if levels:
            base = f"; the coefficients are relative to {quote(levels[0])}" if first else ""
            notes.append(f"The words in {place} became {len(shown)} columns of 0 and 1{base}.")
    A = np.hstack(blocks, dtype=np.float64)
    refuse_bad_numbers(A, "the cell is", lambda i, k: table.place(i, titles[k][1]))
    often = Counter(name for name, _ in titles)
    return A, tuple(f"{name} (column {j})" if often[name] > 1 else name for name, j in titles), notes


def _find_words(values: Any) -> tuple[np.ndarray, list[str]]:
    """The different words of a column in the order of the alphabet, and for each row the index of its own."""
    import pandas as pd

    codes, found = pd.factorize(values)  # this never copies a word that is repeated
    again, words = pd.factorize(np.array([str(word).strip() for word in found], dtype=object), sort=True)
    return again[codes], list(words)


def _measure(table: Table, j: int, words: bool) -> tuple[np.ndarray, list[str]]:
    """A column as numbers; where it may hold words and holds nothing else, their indices, and the words."""
    values = table.frame[j]
    if values.dtype.kind in NUMERIC:
        return values.to_numpy(), []
    codes, levels = _find_words(values)
    if all(level.lower() in TRUTH for level in levels):
        return np.array([TRUTH[level.lower()] for level in levels])[codes], []
    place = column(j, table.names)
    date = next(filter(DATE.fullmatch, levels), None)
    if date is not None:
        raise Fault(place, f"it holds dates ({quote(date)}): convert them to numbers, or leave it out with --drop")
    good = np.array([is_number(level, table.decimal) for level in levels])
    if good.all():  # whole numbers beyond 64 bits, and parquet's decimals
        return np.array([float(level.replace(table.decimal, ".")) for level in levels])[codes], []
    if not words or good.any() or any(map(ALMOST.fullmatch, levels)):
        i = int(np.argmin(good[codes]))
        cell = levels[codes[i]]
        other = "," if table.decimal == "." else "."
        hint = f" (in a csv --decimal {other} reads it)" if is_number(cell, other) else ""
        raise Fault(table.place(i, j), f"{quote(cell)} is not a number{hint}")
    if len(levels) == 1:
        raise Fault(place, f"it has the same word ({quote(levels[0])}) in every row: leave it out with --drop")
    if len(levels) > MAX_LEVELS or len(levels) == len(values):
        every = "a different one in every row" if len(levels) == len(values) else f"more than {MAX_LEVELS}"
        raise Fault(place, f"{len(levels)} different words, {every}; leave the column out with --drop")
    return codes, levels
