"""Checks of a method's own options that are no numbers: one sentence each, naming the option and what is wanted.

Numbers go through `hasd.objectives.operators.as_scalar` and, where they are whole, through `whole`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False: "no" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")


def word(name: str, value: Any, known: tuple[str, ...]) -> None:
    """Refuse what is not one of these words."""
    if not (isinstance(value, str) and value in known):
        raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
