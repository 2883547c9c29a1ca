"""What can be wrong with a file, as one printable line."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from itertools import islice

import numpy as np

SHOWN = 80
"""How many characters of a file's text an error shows."""
LARGEST = 1e100
"""A number whose square, summed over any number of rows, is still finite."""
LISTED = 12
"""Names that an error lists."""


class Fault(Exception):
    """What a reader found: where, and what is wrong there.  The funnel adds the file's name."""


class FileProblem(Exception):
    """A file that cannot be used: which one, where in it, and what is wrong.  One line, always printable.

    >>> print(FileProblem("data.csv", "line 3", "has 2 cells where line 1 has 5"))
    data.csv: line 3: has 2 cells where line 1 has 5
    """

    def __str__(self) -> str:
        """The parts that say something, joined by colons."""
        path, place, text = self.args
        return ": ".join(make_printable(part) for part in (path or "''", place, text) if part)


def make_printable(text: str) -> str:
    r"""The text on one line: control characters, which could drive a terminal, and lone surrogates are escaped.

    >>> print(make_printable("a\n\x1b[31mb"))
    a\n\x1b[31mb
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def quote(text: str) -> str:
    """Text from a file in quotes, cut to `SHOWN` characters.

    >>> quote("x" * 1000) == "'" + "x" * SHOWN + "...'"
    True
    """
    return f"'{make_printable(text[:SHOWN])}{'...' if len(text) > SHOWN else ''}'"


def gist(error: BaseException) -> str:
    """The beginning of another library's error, which may quote the whole file.

    >>> gist(ValueError("bad\\nworse"))
    'ValueError: bad'
    """
    lines = str(error).strip()[: SHOWN + 1].splitlines()
    if not lines:
        return type(error).__name__
    return f"{type(error).__name__}: {lines[0][:SHOWN]}{'...' if len(lines[0]) > SHOWN else ''}"


def name_list(names: Collection[str]) -> str:
    """The first names of a list.

    >>> name_list(["A", "b"])
    "'A', 'b'"
    """
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quote, islice(names, LISTED))) + more or "none"


def size(number: float) -> str:
    """A number of bytes for people.

    >>> size(3 * 2**30), size(1500), size(12)
    ('3 GiB', '1.46 KiB', '12 bytes')
    """
    if number >= 2**60:  # a header may declare a number beyond any float
        return "over 2^60 bytes"
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return f"{number:.0f} bytes"


def refuse_above_limit(number: float, limit: float, place: str) -> None:
    """Refuse what would take more than the limit, before anything is allocated."""
    if number > limit:
        raise Fault(place, f"needs {size(number)} of memory, above the limit of {size(limit)} (--max-memory)")


def refuse_bad_numbers(values: np.ndarray, what: str, place: Callable[..., str]) -> None:
    """Refuse numbers that cannot be computed with; ``place`` names the one at an index.  No temporary unless there are.

    >>> refuse_bad_numbers(np.array([[1.0, 2.0], [3.0, 1e300]]), "the cell is", "row {}, column {}".format)
    Traceback (most recent call last):
        ...
    hasd.solve.faults.Fault: ('row 1, column 1', 'the cell is 1e+300; numbers above 1e+100 overflow in the computation')
    """
    if values.size == 0 or (values.min() >= -LARGEST and values.max() <= LARGEST):  # NaN spreads to both ends
        return
    index = np.unravel_index(int(np.argmin(np.abs(values) <= LARGEST)), values.shape)
    value = values[index]
    why = f"above {LARGEST:g} overflow in the computation" if math.isfinite(value) else "must be finite"
    raise Fault(place(*map(int, index)), f"{what} {value:g}; numbers {why}".strip())
