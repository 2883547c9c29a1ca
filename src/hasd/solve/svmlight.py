"""svmlight / libsvm text: a number, then index:value pairs with rising indices; sparse."""

from __future__ import annotations

import itertools
import operator
import re
from array import array

import numpy as np

from .contents import Request, Sparse
from .faults import Fault, bad, first_bad, quoted, size, within
from .lines import is_number, lines

ROW = re.compile(r"\s*([^\s:]+)(?:\s+qid:[0-9]+)?((?:\s+[0-9]{1,18}:[^\s:_]+)*)\s*")
PAIR = re.compile(r"[0-9]{1,18}:[^\s:_]+")
VECTORS = 64
"""Dense vectors of the columns' length that a solver may hold: what the largest index is measured by."""


def read_svmlight(path: str, request: Request) -> Sparse:
    """The rows as a CSR array.  Indices count from 1, or from 0 where a 0 occurs."""
    rows = _Rows(request.limit)
    for number, line in lines(path, request.limit):
        rows.append(number, line.split("#", 1)[0])
    return rows.sparse()


class _Rows:
    """Collects the rows: sixteen bytes an entry."""

    def __init__(self, limit: float):
        self.limit = limit
        self.target, self.values = array("d"), array("d")
        self.indices, self.starts = array("q"), array("q", [0])
        self.numbers = array("q")  # the rows' lines
        self.smallest, self.largest = 1, -1

    def append(self, number: int, line: str) -> None:
        """One row."""
        match = ROW.fullmatch(line)
        if match is None:
            raise _diagnosed(number, line)
        parts = match[2].replace(":", " ").split()
        indices = list(map(int, parts[0::2]))
        within(16.0 * (len(self.values) + len(indices)), self.limit, f"line {number}")
        try:
            self.target.append(float(match[1]))
            self.values.extend(map(float, parts[1::2]))
        except ValueError:
            raise _diagnosed(number, line) from None
        self._check_indices(number, indices)
        self.numbers.append(number)
        self.indices.extend(indices)
        self.starts.append(len(self.indices))

    def _check_indices(self, number: int, indices: list[int]) -> None:
        if not indices:
            return
        if not all(map(operator.lt, indices, indices[1:])):
            one, two = next((one, two) for one, two in itertools.pairwise(indices) if one >= two)
            raise Fault(f"line {number}", f"index {two} after {one}: indices must rise")
        if 8.0 * VECTORS * indices[-1] > self.limit:
            what = f"index {indices[-1]}: vectors of that length exceed the limit of {size(self.limit)} (--max-memory)"
            raise Fault(f"line {number}", what)
        self.smallest, self.largest = min(self.smallest, indices[0]), max(self.largest, indices[-1])

    def sparse(self) -> Sparse:
        """All of them."""
        from scipy.sparse import csr_array

        if not self.target:
            raise Fault("", "no rows: the file is empty but for blanks and comments")
        if self.largest < 0:
            raise Fault("", "no index:value pair in any row; a table? then --format csv")
        target, values = (np.frombuffer(numbers, dtype=np.float64) for numbers in (self.target, self.values))
        starts = np.frombuffer(self.starts, dtype=np.int64)
        self._check_numbers(target, values, starts)
        base = self.smallest  # 0 where a 0 occurs, else 1
        indices = np.frombuffer(self.indices, dtype=np.int64) - base
        columns = self.largest + 1 - base
        matrix = csr_array((values, indices, starts), shape=(len(target), columns))
        notes = ("Indices count from 0 in this file.",) if base == 0 else ()
        return Sparse(matrix, target, notes)

    def _check_numbers(self, target: np.ndarray, values: np.ndarray, starts: np.ndarray) -> None:
        place = first_bad(target)
        if place is not None:
            raise Fault(f"line {self.numbers[place[0]]}", f"the row's number is {bad(target[place])}")
        place = first_bad(values)
        if place is not None:
            row = int(np.searchsorted(starts, place[0], side="right")) - 1
            what = f"the value of index {self.indices[place[0]]} is {bad(values[place])}"
            raise Fault(f"line {self.numbers[row]}", what)


def _diagnosed(number: int, line: str) -> Fault:
    """What the row should not have had."""
    place = f"line {number}"
    label, *pairs = line.split() or [""]
    if not is_number(label):
        return Fault(place, f"{quoted(label)} where the row's number (its label or target) should be")
    for pair in pairs:
        index, _, value = pair.partition(":")
        if index.startswith("-") and index[1:].isdecimal():
            return Fault(place, f"{quoted(pair)} has a negative index")
        if not PAIR.fullmatch(pair):
            return Fault(place, f"{quoted(pair)} is not index:value")
        if not is_number(value):
            return Fault(place, f"{quoted(pair)}: {quoted(value)} is not a number")
    return Fault(place, "not a row of index:value pairs")
