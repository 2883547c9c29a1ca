"""What can be wrong with a file, as one printable line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

SHOWN = 80
"""How many characters of a file's text an error shows."""
LARGEST = 1e100
"""A number whose square, summed over any number of rows, is still finite."""
LISTED = 12
"""Names that an error lists."""


class Fault(Exception):
    """What a reader found and where; the funnel adds the file's name."""

    def __init__(self, place: str, text: str):
        """Keep place and text."""
        super().__init__(place, text)
        self.place, self.text = place, text


class FileProblem(Exception):
    """A file that cannot be used: which one, where in it, and what is wrong.  One line, always printable.

    >>> print(FileProblem("data.csv", "line 3", "has 2 cells where line 1 has 5"))
    data.csv: line 3: has 2 cells where line 1 has 5
    """

    def __init__(self, path: str, place: str, text: str):
        """Keep the three parts."""
        super().__init__(path, place, text)
        self.path, self.place, self.text = path, place, text

    def __str__(self) -> str:
        """The parts that say something, joined by colons."""
        return ": ".join(make_printable(part) for part in (self.path or "''", self.place, self.text) if part)


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


def name_list(names: Any) -> str:
    """The first names of a list.

    >>> name_list(["A", "b"])
    "'A', 'b'"
    """
    names = list(names)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(quote(str(name)) for name in names[:LISTED]) + more or "none"


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


def first_bad_index(values: np.ndarray) -> tuple[int, ...] | None:
    """The index of the first number that cannot be computed with; None where all can.  No temporary unless one can't.

    >>> first_bad_index(np.array([[1.0, 2.0], [3.0, np.nan]]))
    (1, 1)
    """
    if values.size == 0 or (values.min() >= -LARGEST and values.max() <= LARGEST):  # NaN spreads to both ends
        return None
    return tuple(int(i) for i in np.unravel_index(int(np.argmin(np.abs(values) <= LARGEST)), values.shape))


def describe_bad(value: float) -> str:
    """What is wrong with that number.

    >>> describe_bad(np.nan), describe_bad(1e300)
    ('nan; numbers must be finite', '1e+300; numbers above 1e+100 overflow in the computation')
    """
    why = f"above {LARGEST:g} overflow in the computation" if math.isfinite(value) else "must be finite"
    return f"{value:g}; numbers {why}"
