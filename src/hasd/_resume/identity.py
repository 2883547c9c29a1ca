"""What a run that goes on must have in common with the one it goes on from, be that a file or a state.

A state of another function, norm or constant would certify bounds that are false for this one.  Whatever differs is
refused with the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._math.arrays import Array, convert_like, to_host
from .._math.geometry import norm2
from .._run.problem import Problem
from .._run.record import Run

SAME = 1e-6
"""Relative difference of values that another machine's rounding, or a little noise, may make."""


def refuse_other(where: str, saved: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise a ValueError that names the first setting in which the saved run differs from this one."""
    for name, value in now.items():
        if saved.get(name) != value:
            raise ValueError(f"{where} is of another run: its {name} is {saved.get(name)}, this one's is {value}")


def refuse_other_start(where: str, origin: Array, x0: Array) -> None:
    """Refuse an x0 that is not the saved run's x_0, from which distances and tolerances are measured."""
    own, given = to_host(convert_like(origin, x0)), to_host(x0)
    if not np.array_equal(own, given):
        i = int(np.flatnonzero(own != given)[0])
        raise ValueError(f"{where} is of a run from another x0: its x0[{i}] is {own[i]}, this one's is {given[i]}")


def refuse_other_function(where: str, run: Run, problem: Problem) -> None:
    """Compare f where the run last knew it: the same data, and the same function, give the same value.

    Near a minimum of value 0, f is nothing but rounding.  Differences are therefore compared with f at x_0, and with
    what f changes by when x changes by a relative `SAME`.
    """
    state, e = run.state, run.state.at
    now = problem.oracle.record(e.x).f
    size = max(abs(e.f), abs(now), abs(run.first))
    if not abs(now - e.f) <= SAME * (size + e.norm2 * max(norm2(e.x), norm2(e.x - state.origin))):
        raise ValueError(f"{where} is of another function: at its point f was {e.f!r}, and is {now!r} now")
