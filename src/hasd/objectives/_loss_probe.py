"""A loss asked at points: its answers, and what rounding may have done to them.

The allowance for rounding has two parts.  One is the model for a user's function (`doubt_of_function`): some roundings
of the sizes that value and slope are made of.  The other is measured: at points so close to each other that the loss is
a polynomial between them, what is left of its answers in differences of a higher order is noise, for instance that of
large terms that cancel, and so are digits that are 0 in all of them.  Both are multiplied by a factor for safety.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Never

import numpy as np

from .._checks import show_value
from .._math.doubt import EPS, doubt_of_function
from .._math.geometry import norm2
from ._operators import Vector

SAFE = 32.0
"""How many times the roundings of the model, and the noise measured, are allowed."""
CLOSE, ORDER = 2.0**-11, 5
"""The distance of points, in units of the width of a loss, between which it is a polynomial of a lower degree than this
order: to that power, the distance is 2^-55."""
NEIGHBOURS = 8
"""So many such points in a row."""
SPREADS = (0.0, 0.01, 0.3, 1.0, 4.0)
"""The sizes of random points, in units of the width of the loss."""
STEPS = (1e-1, 1e-2, 1e-4, 1e-6)
"""Distances over which differences are taken, in units of the size of a point."""


@dataclass(frozen=True)
class Answer:
    """Value and slope at a point, and how far rounding may have taken them from the true ones."""

    z: Vector
    value: float
    slope: Vector
    value_off: float
    slope_off: float  # in l_2

    def along(self, d: Vector) -> float:
        """The derivative along d."""
        return float(self.slope @ d)


@dataclass(frozen=True)
class Probe:
    """A loss, and where it is asked."""

    loss: Any
    rng: np.random.Generator
    rows: int
    given: Vector | None = None  # the point to stay near

    @property
    def name(self) -> str:
        """What the loss is called in messages."""
        return type(self.loss).__name__

    def refuse(self, promise: str, z: Vector, found: str) -> Never:
        """Say which promise is broken, where, and what was found there."""
        raise ValueError(f"{self.name}{promise}: at z = {show_value(z)} {found}")

    @cached_property
    def points(self) -> list[Vector]:
        """Points of several sizes around 0, or the given one and points near it."""
        width, n = self.width, self.rows
        if self.given is not None:
            return [self.given + 0.1 * width * s * self.rng.standard_normal(n) for s in SPREADS]
        return [s * width * self.rng.standard_normal(n) for s in SPREADS]

    @property
    def width(self) -> float:
        """A distance over which the loss changes: its own word, where it is smooth over small distances only, or 1."""
        return min(float(getattr(self.loss, "width", 1.0)), 1.0)

    def directions(self) -> Iterator[Vector]:
        """Two random directions and the axes, each of l_2 norm 1."""
        for d in self.rng.standard_normal((2, self.rows)):
            yield d / norm2(d)
        yield from np.eye(self.rows)

    def steps(self, z: Vector) -> Iterator[float]:
        """Distances to take differences over at z."""
        size = self.width if self.width < 1.0 else max(1.0, float(np.abs(z).max()))
        return (size * h for h in STEPS)

    def ask(self, z: Vector) -> tuple[float, Vector]:
        """Value and slope from a copy of z, in arrays of our own."""
        value, slope = self.loss.value_and_slope(z.copy())
        return float(value), np.array(slope, dtype=np.float64)

    def answer(self, z: Vector) -> Answer:
        """The answer at z, with its allowances."""
        value, slope = self.ask(z)
        step = CLOSE * self.width * self.rng.uniform(0.5, 1.0, z.size) * self.rng.choice((-1.0, 1.0), z.size)
        near = [self.ask(z + k * step) for k in range(NEIGHBOURS)]
        values, slopes = np.array([v for v, _ in near]), np.array([s for _, s in near])
        noise = max(float(np.abs(np.diff(values, ORDER)).max()), _grid(values))
        tremor = norm2(np.abs(np.diff(slopes, ORDER, axis=0)).max(axis=0))
        bend = self.curvature(z, slope)
        doubt = doubt_of_function(value, norm2(slope), norm2(z), z.size, EPS)
        value_off = doubt.value + bend * doubt.value_bend + noise
        slope_off = doubt.slope + bend * doubt.slope_bend + math.sqrt(bend) * doubt.slope_root + tremor
        return Answer(z, value, slope, SAFE * value_off, SAFE * slope_off)

    def curvature(self, z: Vector, slope: Vector) -> float:
        """The sum of the curvatures in all entries that slopes at a small distance show, to the left and right."""
        size = 1e-3 * self.width
        return max(norm2(self.ask(z + move)[1] - slope) / size for move in (size, -size))


def _grid(values: Vector) -> float:
    """The largest power of two of which all values are multiples: what a large term that cancels leaves of the digits.

    >>> _grid(np.array([1.0, 1.25, 3.5])), _grid(np.array([2.0, 2.0]))
    (0.25, 0.0)
    """
    some = values[np.isfinite(values) & (values != 0.0)]
    if not some.size or np.ptp(some) == 0.0:
        return 0.0
    digits, exponents = np.frexp(some)
    whole = np.abs(np.ldexp(digits, 53)).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(float), exponents - 53).min())
