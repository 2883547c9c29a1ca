"""The one model of rounding: how far a computed value and a computed gradient may be from the true ones.

Two rules make up the whole model, with u = eps/2 the unit roundoff of the numbers that were used:

* A sum of n terms is off by at most (4 + sqrt(n)) u times the sum of their sizes (`roundings` has it in units of eps).
  Errors add up like a random walk (Higham & Mary 2019); the 4 makes the rule safe for a few terms as well.
* An objective of this package says from its data what its sums are made of (`Objective.doubt`).  A user's function is
  taken to be as good as one that is computed from the entries of x with the curvature that was seen: its value is off
  by some roundings of |f| + ||g|| ||x|| + B ||x||^2, its gradient by as many of ||g|| + B ||x|| + sqrt(2 B |f|), where
  B is the largest curvature ||g - g'||/||x - x'|| between evaluated points.  The root is for gradients of parts that
  cancel: those of non-negative functions that sum to f, of curvature B together, have norms that sum to at most that.
  Other cancellation inside the user's own code cannot be seen: for a user's function the model is an assumption.

A lower bound is charged with the doubt of everything it is made of, and an accusation (not convex, unbounded, a radius
too small) must exceed it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

EPS = 2.0**-52
OPERATIONS = 4.0
"""Sums as long as x, one after the other, that a user's function is taken to make."""


def roundings(terms: float) -> float:
    """How many eps the sum of so many terms may be off by, relative to the sum of their sizes.

    >>> roundings(16), roundings(10_000)
    (4.0, 52.0)
    """
    return 0.5 * (4.0 + math.sqrt(terms))


class Doubt(NamedTuple):
    """What an evaluation may be off by, for the curvature B that the run has seen:

        |f - true f| <= value + B value_bend,        ||g - true g||_2 <= true + B slope_bend + sqrt(B) slope_root.

    Lower bounds are made of f + <g, . - x>, which lies below the function up to value + slope ||. - x||.  There `slope`
    may be smaller than `true`: where f and g are exact at an image near the true one, the curvature between the two
    makes the gradient differ, but the cut is still one of a convex function.
    """

    value: float = 0.0
    slope: float = 0.0  # in l_2
    true: float = 0.0
    value_bend: float = 0.0  # for each unit of curvature B that the run has seen; 0 where the data say it all
    slope_bend: float = 0.0
    slope_root: float = 0.0
    image: float = 0.0  # what each entry of a cached image Ax - b may be off by
    shift: float = math.inf  # f(x) minus the cut's value at x, both true: `slope` and this serve in place of `true`


CERTAIN = Doubt()
"""The doubt of exact numbers: none."""


class Sizes(NamedTuple):
    """The sizes of an evaluation, which is all that its doubt depends on beside the data."""

    f: float  # the value
    g: float  # ||g||_2
    x: float  # ||x||_2
    top: float  # max|x|
    d: int  # how many entries x has
    eps: float  # the resolution of their numbers


def smallest_number(eps: float) -> float:
    """The smallest positive number of that resolution (float32 or float64): underflow loses at most this much."""
    return 2.0**-149 if eps > 2.0**-50 else 2.0**-1074


def underflow_loss(at: Sizes) -> float:
    """What sums of products of small numbers may lose to underflow: the smallest number for each product."""
    return at.d * smallest_number(at.eps)


def doubt_of_function(f: float, g: float, x: float, d: int, eps: float) -> Doubt:
    """The doubt of a user's function of d variables, from the sizes of its value, its gradient and its argument.

    >>> doubt_of_function(f=1.0, g=1.0, x=0.0, d=16, eps=EPS).value == 16.0 * EPS
    True
    """
    unit, lost = OPERATIONS * roundings(d) * eps, d * smallest_number(eps)
    value, slope = unit * (abs(f) + g * x) + lost, unit * g + lost
    return Doubt(value, slope, slope, unit * x * x + lost, unit * x, unit * math.sqrt(2.0 * abs(f)))


def doubt_of_differences(at: Sizes, shortest: float, longest: float) -> Doubt:
    """The doubt where the gradient is made of finite differences: noise, and half a step's worth of curvature."""
    doubt, root = doubt_of_function(at.f, at.g, at.x, at.d, at.eps), math.sqrt(at.d)
    noisy = root * 2.0 / shortest
    slope = doubt.slope + noisy * doubt.value
    slope_bend = doubt.slope_bend + noisy * doubt.value_bend + 0.5 * root * longest
    return doubt._replace(slope=slope, true=slope, slope_bend=slope_bend)
