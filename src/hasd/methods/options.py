"""Checks of options: one sentence each, naming the option and what is wanted.

Numbers that need not be whole go through `hasd.objectives.operators.as_scalar`.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False: "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def word(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse what is not one of these words."""
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, got {value!r}")


def whole(name: str, value: Any, least: int) -> None:
    """Refuse an option that is not a whole number, or too small a one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
