"""The optimised form with gradients of mini-batches: the arithmetic of one step, in plain numbers.

A step is that of `hasd._math.pair` with mu = 0 and beta = 0, with L taken from the learning rate, gamma as the proof
gives it without values of f, and a floor tau under the share of the newest cut.  From (A, x, v), c = L/s^2 and y:

    1. a' = the positive root of c a'^2 = p* A + a',  gamma = min(1, r^2 c/L),  a = gamma a',   r the gain at y,
    2. x <- x + ((gamma A + a)/(A + a)) (y - s_p(g)/L - x),   v <- v - a g,   A <- A + a,   c <- L/r^2,
    3. A <- min(A, (1 - tau) (p* (1 - tau) + tau)/(c tau^2)),
    4. y <- x + (a'/(A + a')) (v - x),   a' the root of 1. for the new A and c.

Step 3 makes a'/(A + a') >= tau in step 4: this share falls as A grows, and at a' = tau B, A = (1 - tau) B the equation
of step 1 says c tau^2 B = p* (1 - tau) + tau.  With tau = 0 nothing is cut, and the steps are those of method ``hasd``.

All coordinates may have one norm, or each tensor its own.  For one norm over n coordinates everything is measured in
means, ||x||_p = (mean |x|^p)^{1/p}, so that a learning rate means the same for models of all sizes: the constant in
l_p is then L = n^{1 - 2/p}/lr.  With one norm a tensor n counts as 1, and L = 1/lr.

The functions take numbers, or arrays of numbers with their `sqrt` and `minimum`: PyTorch and JAX give their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from .pair import planned_weight

Function = Callable[..., Any]

LEAST_RATE = 1e-20
"""A learning rate in an array counts as this much at least where there is coupling, which divides by it."""


def dual_exponent(p: float) -> float:
    """p* = p/(p-1).

    >>> dual_exponent(2.0), dual_exponent(math.inf)
    (2.0, 1.0)
    """
    return 1.0 if p == math.inf else p / (p - 1.0)


def step_factor(lr: Any, p: float, count: int, dual_norm: Any, unit: bool) -> Any:
    """What sign(g) |g|^{1/(p-1)} is multiplied by in a steepest step: s_p(g)/L, or with `unit` a step of norm lr.

    >>> step_factor(lr=0.5, p=2.0, count=9, dual_norm=7.0, unit=False)  # gradient descent
    0.5
    >>> step_factor(0.5, math.inf, 9, 7.0, unit=True)  # sign descent
    0.5
    >>> step_factor(0.5, math.inf, 7, 7.0, unit=False)  # lr times the mean of |g|
    0.5
    """
    power = 0.0 if p == math.inf else 1.0 / (p - 1.0)
    if unit:
        return lr * count ** (1.0 / p) * dual_norm**-power
    return lr * count ** (2.0 / p - 1.0) * dual_norm ** (1.0 - power)


def needs_dual_norm(p: float, unit: bool) -> bool:
    """Whether `step_factor` depends on the dual norm: gradient and sign descent do without it.

    >>> needs_dual_norm(2.0, unit=False), needs_dual_norm(math.inf, unit=False)
    (False, True)
    """
    return p != (math.inf if unit else 2.0)


def gradient_factor(p: float, count: int, dual_norm: Any, unit: bool) -> Any:
    """What the gradient is multiplied by before a step: 1, or with `unit` the inverse of its (mean) dual norm.

    >>> gradient_factor(math.inf, 8, 2.0, unit=True)
    4.0
    """
    return count ** (1.0 - 1.0 / p) / dual_norm if unit else 1.0


def smoothness_for(lr: Any, p: float, count: int) -> Any:
    """L = n^{1 - 2/p}/lr, the constant for which lr makes steps of 1/L.

    >>> smoothness_for(0.5, math.inf, 10), smoothness_for(0.5, 2.0, 10)
    (20.0, 2.0)
    """
    return count ** (1.0 - 2.0 / p) / lr


def largest_weight(c: Any, sigma: float, floor: Any) -> Any:
    """The largest A for which a'/(A + a') >= floor.

    >>> c, sigma, floor = 4.0, 1.0, 0.1
    >>> A = largest_weight(c, sigma, floor)
    >>> a = planned_weight(A, 1.0, 0.0, c, sigma)
    >>> math.isclose(a / (A + a), floor)
    True
    """
    return (1.0 - floor) * ((1.0 + sigma) * (1.0 - floor) + floor) / (c * floor * floor)


class Coupling(NamedTuple):
    """What the estimate sequence keeps between two steps."""

    weight: Any  # A
    c: Any  # L/s^2, with which y was planned


class CoupledStep(NamedTuple):
    """The numbers that a step moves x, v and y by."""

    weight: Any  # a: v moves by -a g
    mix: Any  # x moves towards y - s_p(g)/L by this share
    share: Any  # the next y is x + share (v - x)
    coupling: Coupling


def coupled_step(
    old: Coupling, L: Any, gain: Any, sigma: float, floor: Any, sqrt: Function = math.sqrt, minimum: Function = min
) -> CoupledStep:
    """One step, for the gain r at y; at the first step A = 0 and c = L/r^2.

    >>> first = coupled_step(Coupling(0.0, 2.0), L=2.0, gain=1.0, sigma=1.0, floor=0.0)
    >>> first.weight, first.mix, first.coupling.weight
    (0.5, 1.0, 0.5)
    """
    A, c = old
    gamma = minimum(gain * gain * (c / L), 1.0)
    a = gamma * planned_weight(A, 1.0, 0.0, c, sigma, sqrt=sqrt)
    mix, A, c = (gamma * A + a) / (A + a), A + a, L / (gain * gain)
    if not (isinstance(floor, float | int) and floor == 0.0):  # an array may hold 0, for which nothing is cut
        A = minimum(A, largest_weight(c, sigma, floor))
    planned = planned_weight(A, 1.0, 0.0, c, sigma, sqrt=sqrt)
    return CoupledStep(a, mix, planned / (A + planned), Coupling(A, c))


def first_or_later_step(
    old: Coupling, L: Any, gain: Any, sigma: float, floor: Any, where: Function, sqrt: Function, minimum: Function
) -> CoupledStep:
    """`coupled_step` on arrays: c = 0 is a first step; a gradient of 0, whose gain is NaN, keeps the gain of the plan.

    >>> import numpy as np
    >>> old, L, gain = Coupling(np.array([0.0, 1.0]), np.array([0.0, 0.5])), np.full(2, 2.0), np.array([1.0, np.nan])
    >>> step = first_or_later_step(old, L, gain, 1.0, 0.1, np.where, np.sqrt, np.minimum)
    >>> step.mix.tolist(), step.coupling.c.tolist()
    ([1.0, 1.0], [2.0, 0.5])
    """
    if not isinstance(gain, float):
        planned = sqrt(L / where(old.c > 0.0, old.c, L))
        gain = where(gain == gain, gain, planned)  # NaN equals nothing, not even itself
    c = where(old.c > 0.0, old.c, L / (gain * gain))
    return coupled_step(old._replace(c=c), L, gain, sigma, floor, sqrt, minimum)
