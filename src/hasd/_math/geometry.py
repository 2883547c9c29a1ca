"""Norms: the l_p geometry in which a step is steepest, and what it costs to change it.

The steepest-descent map s = s_p(g) of the l_p norm is the vector with

    <g, s> = ||g||_{p*}^2   and   ||s||_p = ||g||_{p*},         p* = p/(p-1),

in coordinates s[i] = ||g||_{p*}^{(p-2)/(p-1)} sign(g[i]) |g[i]|^{1/(p-1)} (Lemma 1, Eq. (update)).  p = 2 gives
g itself, p = inf gives ||g||_1 sign(g).  Everything is computed on u = g / max|g|, so that entries of 1e-300 and
of 1e+300 both work and scaling g by a power of two scales the answer exactly.  Norms are kept, never their squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .._checks import is_number, show_value
from .arrays import Array, largest_size, namespace, resolution

SAFE, SAFE_SINGLE = 1e-200, 1e-25
"""Squares between this and its inverse are free of underflow and overflow; the same in float32."""
POWER, POWER_SINGLE = 1000, 100
"""A vector is scaled by powers of two up to this, or their inverses, to a size where its squares are safe."""
FAINT, LIFT = 2.0**-800, 2.0**900
"""Where all of a function's numbers are below FAINT, their products with steps may underflow.  Multiplied by LIFT they
cannot; as it is a power of two, no digit of them changes."""


@runtime_checkable
class Geometry(Protocol):
    """What a method asks of a norm; write a class with these names to bring your own (weights, groups).

    The guarantees need only that ``steepest`` and the two norms belong together:
    <g, steepest(g)> = dual_norm(g)^2 and norm(steepest(g)) = dual_norm(g).  A further attribute `dual_convexity`, the
    sigma >= 0 for which half the squared dual norm is sigma-strongly convex in the dual norm, makes ``hasd`` faster.
    """

    @property
    def p(self) -> Any:
        """What the result reports as ``res.p``: the exponent, or any label."""

    def norm(self, x: Array) -> float:
        """The norm in which f is smooth."""

    def dual_norm(self, g: Array) -> float:
        """The dual norm, in which gradients are measured."""

    def steepest(self, g: Array) -> Array:
        """The steepest-descent map."""


def norm2(x: Array) -> float:
    """The Euclidean norm, free of overflow and underflow.

    >>> import numpy as np
    >>> norm2(np.array([3e300, 4e300]))
    5e+300
    """
    # unlike ndarray.dot, vdot does not warn of an overflow, which is dealt with below
    squared = float(np.vdot(x, x)) if type(x) is np.ndarray else dot(x, x)
    if SAFE_SINGLE < squared < 1.0 / SAFE_SINGLE:  # safe in either precision: no scaling is needed
        return math.sqrt(squared)
    double = (type(x) is np.ndarray and x.dtype == np.float64) or resolution(x) <= 2.0**-52
    safe = SAFE if double else SAFE_SINGLE
    if safe < squared < 1.0 / safe:
        return math.sqrt(squared)
    top = largest_size(x)
    if top == 0.0 or not math.isfinite(top):
        return top
    # Scaled by a power of two, the norm of 2^k x is 2^k times that of x to the last bit.
    scale = unit(top, POWER if double else POWER_SINGLE)
    u = x * scale
    return math.sqrt(dot(u, u)) / scale


def unit(size: float, most: int = POWER) -> float:
    """The power of two, up to 2^most or its inverse, that brings a number of this size between 1/2 and 1.

    >>> unit(5.0), unit(0.0)
    (0.125, 1.0)
    """
    return 2.0 ** min(max(-math.frexp(size)[1], -most), most)


def lift(*sizes: float) -> float:
    """What to multiply numbers of these sizes by so that their products with steps do not underflow: 1, or `LIFT`.

    >>> lift(1.0, -1e-300), lift(2.0**-996) == 2.0**900
    (1.0, True)
    """
    return LIFT if max(map(abs, sizes)) < FAINT else 1.0


def dot(x: Array, y: Array) -> float:
    """<x, y> as a Python float."""
    if type(x) is np.ndarray and type(y) is np.ndarray:  # the common case, without the namespace's overhead
        return float(x.dot(y))
    return float(namespace(x).vecdot(x, y))


def _power_norm(x: Array, q: float) -> float:
    """||x||_q for 1 <= q <= inf, scaled by max|x|."""
    if q == 2.0:
        return norm2(x)
    top = largest_size(x)
    if top == 0.0 or not math.isfinite(top) or q == math.inf:
        return top
    xp = namespace(x)
    u = xp.abs(x) / top
    total = float(xp.sum(u if q == 1.0 else u**q))
    return top * total ** (1.0 / q)


@dataclass(frozen=True)
class Lp:
    """The l_p norm on R^d, 2 <= p <= inf.

    >>> import numpy as np
    >>> geometry, g = Lp(float("inf")), np.array([3.0, -1.0])
    >>> geometry.dual_norm(g), geometry.steepest(g)
    (4.0, array([ 4., -4.]))
    """

    p: float

    def __post_init__(self) -> None:
        """Refuse exponents outside [2, inf]: below 2 the analysis does not hold."""
        if type(self.p) is not float and not is_number(self.p):
            raise TypeError(f"p must be a number between 2 and inf, got {show_value(self.p)}")
        if not self.p >= 2.0:
            raise ValueError(f"p must satisfy 2 <= p <= inf, got {self.p!r}")

    @property
    def dual(self) -> float:
        """p* = p/(p-1), between 1 and 2."""
        return 1.0 if self.p == math.inf else self.p / (self.p - 1.0)

    @property
    def dual_convexity(self) -> float:
        """sigma = p* - 1: half the squared dual norm is sigma-strongly convex in the dual norm."""
        return self.dual - 1.0

    def norm(self, x: Array) -> float:
        """||x||_p."""
        return _power_norm(x, self.p)

    def dual_norm(self, g: Array) -> float:
        """||g||_{p*}."""
        return _power_norm(g, self.dual)

    def steepest(self, g: Array, dual_norm: float | None = None) -> Array:
        """s_p(g); zero maps to zero.  The dual norm of g may be given where it is known."""
        top = largest_size(g)
        if self.p == 2.0 or top == 0.0 or not math.isfinite(top):
            return g
        xp = namespace(g)
        dual_norm = self.dual_norm(g) if dual_norm is None else dual_norm
        if self.p == math.inf:
            return dual_norm * xp.sign(g)
        q = 1.0 / (self.p - 1.0)
        u = xp.abs(g) / top
        s = (top * (dual_norm / top) ** (1.0 - q)) * (xp.sign(g) * u**q)
        faint = u < 1024.0 * float(xp.finfo(g.dtype).smallest_normal)
        if bool(xp.any(faint)):  # u may have underflowed; |g|^q and ||g||^{1-q} apart never do, as 0 < q <= 1
            s = xp.where(faint, xp.sign(g) * (xp.abs(g) ** q * dual_norm ** (1.0 - q)), s)
        return s


def gain(geometry: Geometry, g: Array) -> float:
    """r(g) = ||g||_{p*} / ||g||_2, at least 1 in l_p: the geometry gain; 1 at g = 0.

    >>> import numpy as np
    >>> gain(Lp(float("inf")), np.ones(16))
    4.0
    """
    euclidean = norm2(g)
    return geometry.dual_norm(g) / euclidean if euclidean > 0.0 else 1.0


def largest_gain(p: float, d: int) -> float:
    """The largest possible gain, d^{1/2 - 1/p}: reached where all entries are equal in size.

    >>> largest_gain(float("inf"), 100)
    10.0
    """
    return float(d) ** (0.5 - 1.0 / p)


def convert_smoothness(L: float, source: float, target: float, d: int) -> float:
    """A smoothness constant for the l_target norm from one for the l_source norm (section 2.1 of the paper).

    Downwards (target <= source) L itself serves; upwards it grows by d^{2/source - 2/target}.

    >>> convert_smoothness(3.0, source=2, target=float("inf"), d=10)
    30.0
    >>> convert_smoothness(3.0, source=float("inf"), target=2, d=10)
    3.0
    """
    if target <= source:
        return L
    return L * float(d) ** (2.0 / source - 2.0 / target)
