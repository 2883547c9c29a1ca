"""The one gate every bound passes its arguments through, and the ceiling they share."""

from __future__ import annotations

import math

_RANGES = (
    ("L mu eps constant A gap Gamma alpha kappa", lambda x: 0.0 < x < math.inf, "be positive and finite"),
    ("R grad_norm step_norm first_gain weight_sum moved", lambda x: 0.0 <= x < math.inf, "be nonnegative and finite"),
    ("N error noise sigma", lambda x: 0.0 <= x < math.inf, "be nonnegative and finite"),
    ("G window guess gain", lambda x: 1.0 <= x < math.inf, "be at least 1 and finite"),
    ("T t d n", lambda x: 1.0 <= x < math.inf and x == math.floor(x), "be a whole number, at least 1"),
    ("psi U f slope", math.isfinite, "be finite"),
    ("p", lambda x: x >= 2.0, "satisfy 2 <= p <= inf"),
    ("factor", lambda x: 0.0 < x < 1.0, "lie strictly between 0 and 1"),
)
_RULES = {name: (holds, demand) for names, holds, demand in _RANGES for name in names.split()}


def check(**arguments: float) -> None:
    """Raise ValueError naming the first argument outside the range its symbol has everywhere in the theory.

    L-smoothness in l_p implies L-smoothness in l_2, so mu <= L whenever both are given.

    >>> check(L=1.0, p=float("inf"), G=1.0)
    >>> check(G=0.5)
    Traceback (most recent call last):
    ...
    ValueError: G must be at least 1 and finite, got 0.5
    """
    for name, value in arguments.items():
        holds, demand = _RULES[name]
        if not holds(value):
            raise ValueError(f"{name} must {demand}, got {value!r}")
    if "mu" in arguments and "L" in arguments and arguments["mu"] > arguments["L"]:
        raise ValueError(f"mu must not exceed L, got mu={arguments['mu']!r} and L={arguments['L']!r}")


def ceiling(x: float) -> int:
    """ceil(x), at least 1, forgiving the rounding of a product that should have been whole.

    >>> ceiling(36.000000000000007), ceiling(36.1), ceiling(0.0)
    (36, 37, 1)
    """
    nearest = round(x)
    return max(1, nearest if math.isclose(x, nearest, rel_tol=1e-12) else math.ceil(x))
