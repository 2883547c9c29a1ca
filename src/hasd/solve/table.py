"""Text tables: comma, semicolon, tab or blanks between the cells, with or without a line of names."""

from __future__ import annotations

import csv
import itertools
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from .contents import Request, Table, column, find_column
from .faults import Fault, quoted, told, within
from .lines import Line, is_number, lines

DELIMITERS = ("\t", ";", ",")
"""In this order: a comma beside semicolons or tabs is a decimal comma.  Blanks are what is left."""

Split = Callable[[str], list[str]]


def read_table(path: str, request: Request) -> Table:
    """A text table as numbers; the target's cells may be two words where the request says labels."""
    stream = lines(path, request.limit)
    first = list(itertools.islice(stream, 2))
    if not first:
        raise Fault("", "no rows: the file is empty but for blanks and comments")
    split = _splitter([text for _, text in reversed(first)])
    names, label = _layout(first, split, request)
    rows = itertools.chain(first if names is None else first[1:], stream)
    return _Rows(names, label, request.limit).read(rows, split)


def _splitter(samples: list[str]) -> Split:
    """How lines are cut into cells, by the first sample that tells: the second line, as names may hold anything."""
    delimiter = next((one for line in samples for one in DELIMITERS if one in line), None)

    def split(text: str) -> list[str]:
        if '"' in text:
            try:
                return next(csv.reader([text], delimiter=delimiter or " ", skipinitialspace=True, strict=True))
            except (csv.Error, StopIteration) as error:
                raise Fault("", f"quotes that cannot be read: {told(error)}") from None
        return text.split(delimiter)

    return split


def _cells(line: Line, split: Split) -> list[str]:
    try:
        return split(line[1])
    except Fault as fault:
        raise Fault(f"line {line[0]}", fault.text) from None


def _layout(first: list[Line], split: Split, request: Request) -> tuple[tuple[str, ...] | None, int | None]:
    """The names, where the first line holds them, and the column that may hold words."""
    cells = [cell.strip() for cell in _cells(first[0], split)]
    names = tuple(cells) if _is_header(first[0][0], cells, request) else None
    if request.cost:
        return names, None
    target = find_column(request.target, names, len(cells))
    return names, target if request.labels else None


def _is_header(number: int, cells: list[str], request: Request) -> bool:
    """A header has no number in it, a row nothing else; what is half of each is refused, never guessed."""
    if request.header != "auto":
        return request.header == "yes"
    if request.target is not None and request.target in cells and not is_number(request.target):
        return True
    word = _word_column(request, len(cells))
    looked_at = [(j, cell) for j, cell in enumerate(cells) if j != word]
    words = [(j, cell) for j, cell in looked_at if not is_number(cell)]
    if len(words) in (0, len(looked_at)):
        return bool(words)
    j, cell = words[0]
    what = f"{_no_number(cell)}, though other cells hold numbers (names? then --header yes)"
    raise Fault(f"line {number}, {column(j, None)}", what)


def _no_number(cell: str) -> str:
    """What is wrong with a cell that is none.

    >>> _no_number("1,5")
    "'1,5' is not a number (write decimals with a point)"
    """
    if not cell.strip():
        return "the cell is empty"
    hint = " (write decimals with a point)" if is_number(cell.replace(",", ".")) else ""
    return f"{quoted(cell.strip())} is not a number{hint}"


def _word_column(request: Request, width: int) -> int | None:
    """The column that may hold a word in any row, where that is known before the names are."""
    if not request.labels or width < 2:
        return None
    try:
        return find_column(request.target, None, width)
    except Fault:  # the target is given by name
        return None


class _Rows:
    """Collects the rows as numbers, eight bytes each."""

    def __init__(self, names: tuple[str, ...] | None, label: int | None, limit: float):
        self.names, self.label, self.limit = names, label, limit
        self.width = 0 if names is None else len(names)
        self.values, self.numbers = array("d"), array("q")
        self.classes: dict[str | float, str] = {}  # a label's value, and how the file spells it

    def read(self, rows: Iterator[Line], split: Split) -> Table:
        """All of them, as a table."""
        for line in rows:
            cells = _cells(line, split)
            self._check_width(line[0], cells, rows)
            if self.label is not None:
                cells[self.label] = self._code(line[0], cells[self.label])
            self._append(line, cells)
        if not self.numbers:
            raise Fault("", "no rows below the names")
        values = np.frombuffer(self.values, dtype=np.float64).reshape(len(self.numbers), self.width)
        numbers = self.numbers
        return Table(values, self.names, self._two_classes(values), lambda i: f"line {numbers[i]}")

    def _check_width(self, number: int, cells: list[str], rest: Iterator[Line]) -> None:
        self.width = self.width or len(cells)
        if len(cells) != self.width:
            cut = "; is the file cut off there?" if len(cells) < self.width and next(rest, None) is None else ""
            there = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
            raise Fault(f"line {number}", f"{there} where the first line has {self.width}{cut}")

    def _append(self, line: Line, cells: list[str]) -> None:
        """One row; the cell that is no number is looked for only where there is one."""
        number, text = line
        within(8.0 * (len(self.values) + len(cells)), self.limit, f"line {number}")
        try:
            self.values.extend(map(float, cells))
            bad = "_" in text and any("_" in cell for cell in cells)
        except ValueError:
            bad = True
        if bad:
            j = next(j for j, cell in enumerate(cells) if not is_number(cell))
            raise Fault(f"line {number}, {column(j, self.names)}", _no_number(cells[j]))
        self.numbers.append(number)

    def _code(self, number: int, cell: str) -> str:
        """A label as the number of its class, in order of appearance; a number that is written in two ways is one."""
        spelled = cell.strip()
        key = float(spelled) if is_number(spelled) else spelled
        assert self.label is not None
        place = f"line {number}, {column(self.label, self.names)}"
        if not spelled or key != key:
            raise Fault(place, "the label is missing")
        if key not in self.classes:
            if len(self.classes) == 2:
                two = " and ".join(quoted(one) for one in self.classes.values())
                raise Fault(place, f"a third label {quoted(spelled)} beside {two}; logistic needs two classes")
            self.classes[key] = spelled
        return str(list(self.classes).index(key))

    def _two_classes(self, values: np.ndarray) -> tuple[str, str] | None:
        """The spellings, the lower number (or, with words, the first in the alphabet) first: it becomes -1."""
        if self.label is None:
            return None
        if len(self.classes) == 1:
            one = quoted(*self.classes.values())
            raise Fault(column(self.label, self.names), f"only one value ({one}); logistic needs two classes")
        low, high = self.classes
        swap = low > high if isinstance(low, float) and isinstance(high, float) else str(low) > str(high)
        first, second = self.classes.values()
        if swap:
            values[:, self.label] = 1.0 - values[:, self.label]
        return (second, first) if swap else (first, second)
