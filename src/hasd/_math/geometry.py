"""Norms: the l_p geometry in which a step is steepest, and what it costs to change it.

The steepest-descent map s = s_p(g) of the l_p norm is the vector with

    <g, s> = ||g||_{p*}^2   and   ||s||_p = ||g||_{p*},         p* = p/(p-1),

in coordinates s[i] = ||g||_{p*}^{(p-2)/(p-1)} sign(g[i]) |g[i]|^{1/(p-1)} (Lemma 1, Eq. (update)).  p = 2 gives
g itself, p = inf gives ||g||_1 sign(g).  Everything is computed on u = g / max|g|, so that entries of 1e-300 and
of 1e+300 both work and scaling g by a power of two scales the answer exactly.  Norms are kept, never their squares.

With weights, ||x|| = ||W x||_p for W = diag(weights).  As x -> W x is an isometry to l_p, the dual norm is
||W^{-1} g||_{p*}, the steepest-descent map W^{-1} s_p(W^{-1} g), and sigma = p* - 1 as in l_p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.linalg.blas import ddot

from .._checks import check_shape, is_number, show_value
from .arrays import Array, as_numpy, convert_like, detach, largest_size, namespace, resolution, to_host, vanishes

ndarray, DOUBLE, sqrt = np.ndarray, np.dtype(np.float64), math.sqrt
"""Looked up once: inner products and norms of short vectors are asked for a dozen times in an iteration."""
SAFE, SAFE_SINGLE = 1e-200, 1e-25
"""Squares between this and its inverse are free of underflow and overflow; the same in float32."""
SAFE_INVERSE = 1.0 / SAFE_SINGLE
POWER, POWER_SINGLE = 1000, 100
"""A vector is scaled by powers of two up to this, or their inverses, to a size where its squares are safe."""
FAINT, LIFT = 2.0**-800, 2.0**900
"""Where all of a function's numbers are below FAINT, their products with steps may underflow.  Multiplied by LIFT they
cannot; as it is a power of two, no digit of them changes."""
ONE_THREAD = 10_000
"""Vectors of so many entries or fewer are multiplied by SciPy's BLAS, whose functions begin sooner than NumPy's.  For
longer ones it would use threads, others than NumPy's (`_math.cholesky` says why that is to be avoided)."""
WEIGHTS, WEIGHTS_SINGLE = 1e100, 1e18
"""Weights lie between this and its inverse, so that no square of one underflows or overflows; the same in float32."""


@runtime_checkable
class Geometry(Protocol):
    """What a method asks of a norm; write a class with these names to bring your own.

    The guarantees need only that ``steepest`` and the two norms belong together:
    <g, steepest(g)> = dual_norm(g)^2 and norm(steepest(g)) = dual_norm(g).  A class may have further attributes:

    - ``dual_convexity``: the sigma >= 0 for which half the squared dual norm is sigma-strongly convex in the dual norm.
      It makes ``hasd`` faster; 0, which is always true, is taken without it.
    - ``least_gain``: the least dual_norm(g)/||g||_2 over all g.  ``linear-coupling`` and ``estimate-sequence`` take 1
      without it, and guarantee their rate only if no gain is below that.
    - ``shape``: of the array that x stands for, or a list of shapes; x0 may then be such an array, or a list of arrays.
    - ``label``: what the result reports as ``res.p`` in place of ``p``.
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
    if type(x) is not ndarray:
        squared = dot(x, x)
    elif x.dtype == DOUBLE and x.ndim == 1 and 0 < len(x) <= ONE_THREAD:
        squared = ddot(x, x)
    else:  # unlike ndarray.dot, vdot does not warn of an overflow, which is dealt with below
        squared = float(np.vdot(x, x))
    if SAFE_SINGLE < squared < SAFE_INVERSE:  # safe in either precision: no scaling is needed
        return sqrt(squared)
    double = (type(x) is ndarray and x.dtype == DOUBLE) or resolution(x) <= 2.0**-52
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
    if type(x) is ndarray and type(y) is ndarray:  # the common case, without the namespace's overhead
        if x.dtype == DOUBLE == y.dtype and x.ndim == y.ndim == 1 and 0 < len(x) == len(y) <= ONE_THREAD:
            return ddot(x, y)
        return float(x.dot(y))
    return float(namespace(x).vecdot(x, y))


def power_norm(x: Array, q: float) -> float:
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


@dataclass(frozen=True, eq=False, repr=False)
class Lp:
    """The l_p norm on R^d, 2 <= p <= inf; with weights, the norm ||W x||_p with W = diag(weights).

    Parameters
    ----------
    p : float
        The exponent, 2 <= p <= inf.
    weights : array_like, optional
        Positive numbers between 1e-100 and 1e100, one for each entry of x.  The norm is
        (sum_i (w_i |x_i|)^p)^{1/p}, and max_i w_i |x_i| at p = inf: for every p, the weights multiply the entries
        before the norm is taken.  If L of f(x) = F(W x) is wanted, it is the L of F in l_p.  A gain
        ||g||_*/||g||_2 may be below 1 here; it is at least 1/max(w).
    shape : tuple of int, optional
        The shape of x, if x is not a vector; the norm is that of all its entries.  Weights bring their own shape.

    Examples
    --------
    >>> import numpy as np
    >>> norm, g = Lp(float("inf")), np.array([3.0, -1.0])
    >>> norm.dual_norm(g), norm.steepest(g)
    (4.0, array([ 4., -4.]))
    >>> norm = Lp(float("inf"), weights=[1.0, 2.0])
    >>> norm.norm(g), norm.dual_norm(g), norm.steepest(g)
    (3.0, 3.5, array([ 3.5 , -1.75]))
    """

    p: float
    weights: Any = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse exponents outside [2, inf]: below 2 the analysis does not hold.  Weights are copied."""
        if type(self.p) is not float and not is_number(self.p):
            raise TypeError(f"p must be a number between 2 and inf, got {show_value(self.p)}")
        if not self.p >= 2.0:
            raise ValueError(f"p must satisfy 2 <= p <= inf, got {self.p!r}")
        object.__setattr__(self, "p", float(self.p))
        if self.shape is not None:
            object.__setattr__(self, "shape", check_shape("shape", self.shape))
        if self.weights is not None:
            weights = _checked_weights(self.weights)
            if self.shape not in (None, weights.shape):
                raise ValueError(f"weights must have the shape {self.shape}, got {weights.shape}")
            object.__setattr__(self, "weights", weights)
            object.__setattr__(self, "shape", weights.shape)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        same = (self.p, self.shape) == (other.p, other.shape)
        return same and (self.weights is other.weights or np.array_equal(self.weights, other.weights))

    def __hash__(self) -> int:
        return hash((self.p, self.shape))

    def __repr__(self) -> str:
        more = f", shape={self.shape}" if self.shape is not None else ""
        return f"Lp(p={self.p!r}{more if self.weights is None else f', weights={show_value(self.weights)}'})"

    @property
    def label(self) -> Any:
        """p, or with weights "weighted l_p"."""
        return self.p if self.weights is None else f"weighted l_{self.p:g}"

    @property
    def dual(self) -> float:
        """p* = p/(p-1), between 1 and 2."""
        return 1.0 if self.p == math.inf else self.p / (self.p - 1.0)

    @property
    def dual_convexity(self) -> float:
        """sigma = p* - 1: half the squared dual norm is sigma-strongly convex in the dual norm."""
        return self.dual - 1.0

    @property
    def least_gain(self) -> float:
        """The least ||g||_*/||g||_2: 1, or with weights 1/max(w), as ||W x||_p <= ||W x||_2 <= max(w) ||x||_2."""
        return 1.0 if self.weights is None else 1.0 / float(self.weights.max())

    def norm(self, x: Array) -> float:
        """||x||_p; with weights, ||W x||_p."""
        x = as_vector(x, self.shape)
        return power_norm(x if self.weights is None else x * self._weights_like(x), self.p)

    def dual_norm(self, g: Array) -> float:
        """||g||_{p*}; with weights, ||W^{-1} g||_{p*}.  It is positive where g is not 0, though it may underflow."""
        g = as_vector(g, self.shape)
        if self.weights is None:
            return power_norm(g, self.dual)
        return power_norm(g / self._weights_like(g), self.dual) or (0.0 if vanishes(g) else math.ulp(0.0))

    def steepest(self, g: Array, dual_norm: float | None = None) -> Array:
        """s_p(g), or W^{-1} s_p(W^{-1} g); zero maps to zero.  The dual norm of g may be given where it is known."""
        if self.weights is None:
            return g if self.p == 2.0 else _steepest(self, g, g, None, dual_norm)
        flat = as_vector(g)
        w = self._weights_like(flat)
        s = _steepest(self, flat, flat / w, w, dual_norm) / w
        return s if s.shape == g.shape else namespace(g).reshape(s, g.shape)

    def _weights_like(self, x: Array) -> Array:
        """The weights as a vector in x's library and precision."""
        flat = self.weights.reshape(-1)
        return convert_like(flat if type(x) is np.ndarray else flat.copy(), x)  # PyTorch takes no read-only array


def as_vector(x: Any, shape: tuple[int, ...] | None = None) -> Array:
    """All entries of x, one after the other; x has that shape, or is a vector already, or a list of numbers.

    >>> as_vector([3, 4]).tolist()
    [3.0, 4.0]
    """
    if type(x) is np.ndarray and x.ndim == 1 and x.dtype.kind == "f" and shape is None:
        return x  # the common case, without the namespace's overhead
    if not hasattr(x, "ndim"):
        x = as_numpy(x, "x")
    if shape is not None and tuple(x.shape) not in (shape, (math.prod(shape),)):
        raise ValueError(f"this norm is for arrays of shape {shape}, or vectors of {math.prod(shape)}, got {x.shape}")
    xp = namespace(x)
    if not xp.isdtype(x.dtype, "real floating"):
        x = xp.astype(x, xp.float64)
    return x if x.ndim == 1 else xp.reshape(x, (-1,))


def _checked_weights(given: Any) -> np.ndarray:
    """The weights as a fresh array in float64 that cannot be written to."""
    array = as_numpy(to_host(detach(given)), "weights")
    if array.dtype.kind not in "iuf" or array.ndim == 0:
        raise TypeError(f"weights must be an array of real numbers, got {show_value(given)}")
    if array.size == 0:
        raise ValueError("weights must not be empty")
    out = np.array(array, dtype=np.float64)
    wrong = ~((out >= 1.0 / WEIGHTS) & (out <= WEIGHTS))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = ", ".join(map(str, place))
        raise ValueError(f"weights must be between 1e-100 and 1e100, but weights[{where}] is {float(out[place])!r}")
    out.flags.writeable = False
    return out


def _steepest(lp: Lp, g: Array, z: Array, w: Array | None, dual_norm: float | None) -> Array:
    """s_p(z), where z is g, or g/w for weights w."""
    top = largest_size(z)
    if lp.p == 2.0 or top == 0.0 or not math.isfinite(top):
        return z
    xp = namespace(g)
    dual_norm = power_norm(z, lp.dual) if dual_norm is None else dual_norm
    if lp.p == math.inf:
        return dual_norm * xp.sign(g)
    q = 1.0 / (lp.p - 1.0)
    u = xp.abs(z) / top
    s = (top * (dual_norm / top) ** (1.0 - q)) * (xp.sign(g) * u**q)
    faint = u < 1024.0 * float(xp.finfo(g.dtype).smallest_normal)
    if bool(xp.any(faint)):  # u may have underflowed; |g|^q, w^q and ||g||^{1-q} apart never do, as 0 < q <= 1
        root = xp.abs(g) ** q if w is None else xp.abs(g) ** q / w**q
        s = xp.where(faint, xp.sign(g) * (root * dual_norm ** (1.0 - q)), s)
    return s


def is_euclidean(geometry: Geometry) -> bool:
    """Whether the norm is known to be l_2.

    >>> is_euclidean(Lp(2.0)), is_euclidean(Lp(2.0, weights=[1.0, 2.0])), is_euclidean(Lp(3.0))
    (True, False, False)
    """
    return bool(getattr(geometry, "is_euclidean", type(geometry) is Lp and geometry.label == 2.0))


def least_gain(geometry: Geometry) -> float | None:
    """The least gain of any gradient; None where the geometry does not say.

    >>> least_gain(Lp(3.0)), least_gain(Lp(3.0, weights=[1.0, 4.0]))
    (1.0, 0.25)
    """
    known = getattr(geometry, "least_gain", None)
    return None if known is None else float(known)


def label_of(geometry: Geometry) -> Any:
    """What the result reports as ``res.p``."""
    return getattr(geometry, "label", geometry.p)


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
