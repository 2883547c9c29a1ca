"""What the user gives: checked where it is known, left alone where JAX traces it."""

from __future__ import annotations

import math
import numbers
from typing import Any

import jax
import numpy as np

from .._math.geometry import Lp


def exponent(p: Any) -> float:
    """p as a float; it is compiled in, and cannot be traced.

    >>> exponent(1.5)
    Traceback (most recent call last):
        ...
    ValueError: p must satisfy 2 <= p <= inf, got 1.5
    """
    if isinstance(p, jax.core.Tracer):
        known = "p must be a number that is known when the program is compiled, got a traced array"
        raise TypeError(f'{known}; with optax.inject_hyperparams say static_args="p"')
    return Lp(known_number("p", p)).p


def check_constants(L: Any, mu: Any) -> None:
    """Refuse an L that is known not to be a positive number (None stands for backtracking), and such a mu below 0."""
    if L is not None and not 0.0 < (known := known_number("L", L, traced=1.0)) < math.inf:
        raise ValueError(f"L must be positive and finite, got {known!r}")
    if not 0.0 <= (known := known_number("mu", mu, traced=0.0)) < math.inf:
        raise ValueError(f"mu must be at least 0 and finite, got {known!r}")


def tolerance(name: str, value: Any) -> float:
    """A tolerance as a float, as optimistix keeps it: another value is compiled again."""
    known = known_number(name, value)
    if not known >= 0.0:
        raise ValueError(f"{name} must be a known number of at least 0, got {value!r}")
    return known


def known_number(name: str, value: Any, traced: float = math.nan) -> float:
    """The number, or `traced` where JAX traces it.  Anything but one real number is refused."""
    if isinstance(value, jax.Array | np.ndarray):
        if value.shape != () or value.dtype.kind not in "iuf":
            raise TypeError(f"{name} must be one real number, got an array of shape {value.shape}, {value.dtype}")
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return traced if isinstance(value, jax.core.Tracer) else float(value)
