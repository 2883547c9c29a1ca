"""The options' types for argparse: each makes a value of a text, or refuses it in a sentence."""

from __future__ import annotations

import csv
import math
from argparse import ArgumentTypeError
from pathlib import Path

UNITS = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}
"""Of memory, in bytes."""


def folder(text: str) -> Path:
    """A folder; '' would be the current one and is refused."""
    if not text:
        raise ArgumentTypeError("must name a folder, got ''")
    return Path(text)


def names(text: str) -> tuple[str, ...]:
    """Names between commas; one that has a comma in it is quoted.

    >>> names('age,"dose, mg"')
    ('age', 'dose, mg')
    """
    try:
        found = tuple(name.strip() for name in next(csv.reader([text], skipinitialspace=True), []))
    except csv.Error:
        found = ()
    if not found or not all(found):
        raise ArgumentTypeError(f"must be columns between commas, got {text!r}")
    return found


def number(text: str, least: float, what: str, finite: bool = True) -> float:
    """A number from ``least`` on; ``what`` describes it."""
    value = _float(text)
    if not least <= value or (finite and value == math.inf):
        raise ArgumentTypeError(f"must be a {what}, got {text!r}")
    return value


def whole_number(text: str, least: int = 1) -> int:
    """A whole number, 1 or more, or 0 or more; a huge one is cut to a number that no run reaches."""
    if not (text.isascii() and text.isdecimal()) or (least and not text.strip("0")):
        raise ArgumentTypeError(f"must be a whole number of at least {least}, got {text!r}")
    return int(text) if len(text) < 19 else 10**18


def memory(text: str) -> float:
    """Bytes, with K, M, G or T for the powers of 1024.

    >>> memory("500M") == 500 * 2**20
    True
    """
    plain = text.upper().removesuffix("B").removesuffix("I")
    unit = plain[-1:] if plain[-1:] in UNITS else ""
    value = _float(plain.removesuffix(unit)) * UNITS.get(unit, 1.0)
    if not 0.0 < value < math.inf:
        raise ArgumentTypeError(f"must be a size such as 500M or 4G, got {text!r}")
    return value


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
