"""The loss of several classes: its rows have a number for each class, and its curvature is a block for each row."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .._checks import check_flags
from .._math.arrays import to_host
from .._math.doubt import EPS, roundings
from .._math.geometry import convert_smoothness, dot
from . import _norms as norms
from ._images import BLOCK, Basis, Image, Images, LocalImages, Point, Small, weighted_gram
from ._loss import ClassExpansion, Loss
from ._operators import Matrix, Vector, apply, as_data, precision, quiet, row_blocks
from ._smoothness import Smoothness
from .affine import Affine
from .losses import SLACK, shares, x_log_x

LOOKS = 200
"""Intercepts that are tried before a point is given up."""
NEAR = 2.0**-6
"""Newton's step to the best intercepts is so short at the end: the curvature is then known to a few percent."""
LEAST_CURVATURE = 1e-150
"""A class with less curvature than this has none: its inverse would overflow beside that of another."""
FAR = 4.0
"""Newton's steps to the best intercepts are cut to this length, or to twice that of the last one if that is more: the
curvature is another one further away."""


@dataclass(frozen=True, eq=False)
class MultinomialLoss(Loss):
    """phi(z) = sum_i s_i [log sum_k exp(z_ki) - z_{y_i i}], z being K x n, written as one vector; s_i as in Logistic.

    With ``intercept`` it is the least of it over z_ki + c_k, the intercepts c_k of the classes.

    >>> loss = MultinomialLoss(np.array([0, 2]), classes=3)
    >>> bool(np.isclose(loss.value(np.zeros(6)), math.log(3)))
    True
    """

    bounded_below: ClassVar[bool] = True

    y: Vector  # labels from 0 to K - 1
    classes: int | None = None  # K; None: as many as the labels say
    weights: Any = None  # positive, divided by their sum
    intercept: bool = False
    own: Any = field(init=False)  # where the numbers of the rows' own classes are in the vector K x n
    odds: Any = field(init=False)  # the best intercepts for z = 0, whose sum is 0: logarithms of the classes' shares
    spread: float = field(init=False)  # by how much these differ at most

    def __post_init__(self) -> None:
        """Refuse labels that are no classes, and intercepts of classes that no row has."""
        given = as_data(self.y, None, "y")
        y = given.astype(np.intp)
        if not (np.array_equal(y, given) and y.min() >= 0):
            raise ValueError("y must hold the labels 0, 1, ... of the classes")
        counts = np.bincount(y, minlength=2 if self.classes is None else int(self.classes))
        if self.classes is not None and len(counts) > self.classes:
            raise ValueError(f"y must hold labels below classes = {self.classes}, got {y.max()}")
        if self.intercept and not counts.all():
            raise ValueError(f"y must hold every label where there is an intercept, and no row has {counts.argmin()}")
        even = np.full(len(y), 1.0 / len(y))
        weights = even if self.weights is None else shares(self.weights, y)
        odds = np.log(np.bincount(y, weights=weights)) if self.intercept else np.zeros(len(counts))
        own = y * len(y) + np.arange(len(y))
        kept = {"y": y, "classes": len(counts), "weights": weights, "own": own}
        kept |= {"odds": odds - odds.mean(), "spread": float(odds.max() - odds.min())}
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def expand_plain(self, z: Vector) -> ClassExpansion:
        """The loss at z, with no intercepts; exact to the last digits where it is nearly 0.

        All is relative to the number t = 0 of the row's own class: with m the largest t, r the sum of exp(t - m) of the
        other classes and s = r + exp(-m), the loss is m + log s and the probabilities of the others are exp(t - m)/s.
        """
        own = self.own
        P = z.reshape(self.classes, -1) - z[own]
        m = P.max(axis=0)
        P -= m
        np.exp(P, out=P)
        flat = P.reshape(-1)  # the same numbers: an index into a vector takes a third of the time of a pair of them
        flat[own] = 0.0
        r, least = P.sum(axis=0), np.exp(-m)
        s = r + least
        value = dot(self.weights, m + np.log1p(r + np.expm1(-m)))
        P /= s
        slope = (self.weights * P).reshape(-1)
        slope[own] = -self.weights * (r / s)
        flat[own] = least / s
        return ClassExpansion(value, slope, P, self.weights)

    def settle(self, z: Vector, known: ClassExpansion | None = None) -> tuple[Vector, ClassExpansion]:
        """z with the best intercepts added, and phi expanded there; its value is NaN where none were found.

        As for one intercept (`hasd.objectives._intercept`): Newton's method, and the slope that belongs to its next
        step.  Where z is too large for it, and the curvature nearly 0, it starts from twice the intercepts of z/2.
        known: the loss expanded at z, with no intercepts added.
        """
        if not self.intercept:
            return z, known or self.expand_plain(z)
        there, e = self._search(z if known or z.any() else np.repeat(self.odds, len(self.y)), known)
        if math.isnan(e.value) and FAR < np.abs(z).max() < math.inf:
            halved, half = self.settle(0.5 * z)
            if not math.isnan(half.value):
                there, e = self._search(2.0 * halved)
        return there, e

    def _search(self, z: Vector, known: ClassExpansion | None = None) -> tuple[Vector, ClassExpansion]:
        """Newton's method for the intercepts; the value is NaN where it does not end."""
        e, far = known or self.expand_plain(z), FAR
        for _ in range(LOOKS):
            g = e.slope.reshape(e.probabilities.shape).sum(axis=1)
            inverse = _inverse(e)
            c = -inverse @ g
            c -= c.mean()
            if np.isfinite(c).all():
                best = self._expand_at_best(e, g, c)
                if best is not None:
                    return z, best._replace(inverse=inverse)
            elif g.any():  # no curvature is left: along the slope
                c = -far * (g / np.abs(g).max())
            length = float(np.abs(c).max())
            if not (math.isfinite(e.value) and 0.0 < length < math.inf):
                break
            t = min(1.0, far / length)
            there, found = self._add_intercepts(z, t * c)
            while not found.value <= e.value and t * length > NEAR:
                t *= 0.5
                there, found = self._add_intercepts(z, t * c)
            far = max(FAR, 2.0 * t * length)  # where the loss is nearly straight, the way is long
            z, e = there, found
        return z, e._replace(value=math.nan)

    def _expand_at_best(self, e: ClassExpansion, g: Vector, c: Vector) -> ClassExpansion | None:
        """The expansion at the best intercepts, up to a Newton step c; None where that is not yet rounding.

        Its slope has sums of 0, and no longer g.  The step must be short, or g be rounding by itself, as in the tail
        of an exponential every step is of length 1.
        """
        faint = 2.0 * len(g) * EPS * roundings(len(self.y)) * min(1.0, e.value)
        if not (-float(c @ g) <= EPS * e.value and (np.abs(c).max() <= NEAR or np.abs(g).sum() <= faint)):
            return None
        bent = e.probabilities * (c[:, None] - c @ e.probabilities)
        bent *= e.shares
        slope = e.slope + bent.ravel()
        rest = slope.reshape(bent.shape).sum(axis=1)
        return e._replace(slope=slope) if np.abs(rest).sum() <= faint else None

    def _add_intercepts(self, z: Vector, c: Vector) -> tuple[Vector, ClassExpansion]:
        """z with intercepts added, and the loss there."""
        there = (z.reshape(len(c), -1) + c[:, None]).ravel()
        return there, self.expand_plain(there)

    @quiet
    def shift(self, z: Vector) -> Vector:
        """The best intercepts, whose sum is 0."""
        there, _ = self.settle(z)
        c = (there - z).reshape(self.classes, -1)[:, 0]
        return c - c.mean()

    def expand(self, z: Vector) -> ClassExpansion:  # type: ignore[override]
        """All three, at the best intercepts if there are any."""
        return self.settle(z)[1]

    @quiet
    def curvature(self, z: Vector) -> ClassExpansion:  # type: ignore[override]
        """The expansion, which has ``times``."""
        return self.expand(z)

    @quiet
    def conjugate(self, u: Vector) -> float:
        """phi*(u) = sum_i s_i sum_k q_ki log q_ki, q_i = u_i/s_i + e_{y_i} on the simplex, inf beyond.

        With intercepts also inf where the sums of u over the rows are not 0.
        """
        Q = u.reshape(self.classes, -1)
        if self.intercept and not (abs(Q.sum(axis=1)) <= SLACK * np.abs(Q).sum()).all():
            return math.inf
        Q = Q / self.weights
        Q.reshape(-1)[self.own] += 1.0
        if not (Q.min() >= -SLACK and (abs(Q.sum(axis=0) - 1.0) <= SLACK).all()):
            return math.inf
        return dot(self.weights, x_log_x(np.maximum(Q, 0.0)).sum(axis=0))

    def image_doubt(self, size: float) -> float:
        """What differences of entries of z, of this size, lose to rounding.

        Intercepts follow z: by a sum over the edges of a tree of classes, two of them differ by at most 2 (K - 1) times
        what z moves by more than for z = 0, where they are the logarithms of the classes' shares.
        """
        return EPS * (2.0 * int(self.classes or 0) * size + self.spread) if self.intercept else EPS * size

    def doubt(self, value: float, rows: int, dz: float) -> tuple[float, float, float]:
        """The slope of a row has size 2 s (1 - p_y), at most 2 s times its loss; moving z by dz raises it by e^{2 dz}.

        The slope itself changes by at most s dz, and 4 s (1 - p_y) dz.  With intercepts, these follow z by at most
        2 K dz; and where the sums of the slope are off, cuts are off by as much times the intercepts' way.
        """
        K = float(self.classes or 0)
        reach, factor = (2.0 * K * dz, 2.0 * K) if self.intercept else (dz, 1.0)
        moved = min(1.0, max(value, math.ulp(0.0)) * math.exp(min(2.0 * reach, 700.0)))
        own = EPS * (roundings(rows) + roundings(K) + 8.0) * 2.0 * value
        return 2.0 * dz * moved + own, 2.0 * factor * min(1.0, value), reach * min(1.0, 4.0 * moved)

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """lambda_max(A^T A) max s_i/2 in l_2, times (dK)^{1-2/p}: an upper bound, as the blocks are below s_i/2."""
        assert A is not None  # Multinomial does not take the identity
        M = norms.entries(A)
        euclidean = 0.5 * float(self.weights.max()) * norms.squared_spectral_norm(A if M is None else M)
        d = A.shape[1] * int(self.classes or 0)
        return Smoothness(convert_smoothness(euclidean, source=2.0, target=p, d=d), exact=False)


class Multinomial(Affine):
    """f(W) = 1/n sum_i [log sum_k exp(<a_i, w_k>) - <a_i, w_{y_i}>] + ridge/2 ||W||^2, labels y_i = 0, ..., K - 1.

    x is W, d x K, flattened: ``x.reshape(d, K)`` has a column for each class.  A product with A is one with all K
    columns at once.  With positive ``weights`` the mean is a weighted one; ``classes`` is K where labels may be
    missing.  With ``intercept=True`` it is f(W) = min over c of the same with <a_i, w_k> + c_k, a function of W alone,
    in which c has no ridge; ``best_intercept(x)`` is that c.  f is NaN where none is found, as may happen where A W has
    entries in the thousands.  L_p <= (lambda_max(A^T A) max_i s_i/2 + ridge)
    (dK)^{1-2/p} with the shares s_i = 1/n of the rows, or those of the weights.  A is an array, a SciPy sparse matrix
    or a LinearOperator; tensors become arrays.

    >>> f = Multinomial([[1.0], [2.0], [0.0]], y=[0, 1, 2])
    >>> value, gradient = f.value_and_grad(np.zeros(3))
    >>> round(value, 9), gradient.round(9), f.nprod
    (1.098612289, array([ 0.        , -0.33333333,  0.33333333]), 2)
    """

    loss: MultinomialLoss

    def __init__(
        self,
        A: Matrix,
        y: npt.ArrayLike,
        ridge: float = 0.0,
        weights: npt.ArrayLike | None = None,
        intercept: bool = False,
        classes: int | None = None,
    ) -> None:
        """Check and keep the data."""
        check_flags(intercept=intercept)
        make = partial(MultinomialLoss, classes=classes, weights=weights, intercept=intercept)
        super().__init__(make, to_host(A), y, ridge)
        self.classes = int(self.loss.classes or 0)
        assert self.A is not None  # it was not allowed to be the identity
        n, d = self.A.shape
        self.rows, self.dimension = n * self.classes, d * self.classes

    def forward(self, x: Vector) -> Vector:
        """A W, K x n as one vector; one product."""
        self.nprod += 1
        return _times_rows(self.A, x.reshape(-1, self.classes).T).ravel()

    def adjoint(self, u: Vector) -> Vector:
        """A^T U, d x K as one vector; one product."""
        self.nprod += 1
        return _times_rows(self._AT, u.reshape(self.classes, -1)).T.ravel()

    def images(self) -> Images:
        """The space of images A W, or A W + c with the best c."""
        return ClassImages(self)

    def best_intercept(self, x: npt.ArrayLike) -> Vector:
        """The intercepts that belong to x, whose sum is 0; one product."""
        return self.loss.shift(self.image(self._point(x))) if self.loss.intercept else np.zeros(self.classes)


@dataclass(frozen=True)
class ClassImages(LocalImages):
    """Images with a number for each class and row, K x n as one vector."""

    objective: Any

    @property
    def settles(self) -> bool:
        """Whether there are intercepts."""
        return bool(self.loss.intercept)

    def _point(self, z: Vector, known: ClassExpansion | None = None) -> Point:
        there, expansion = self.loss.settle(z, known)
        return Point(there, expansion.value, expansion)

    def along(self, point: Point, direction: Image) -> Image:
        """What z moves along, with its intercepts."""
        e: ClassExpansion = point.expansion
        if e.inverse is None:
            return direction
        return (direction.reshape(e.probabilities.shape) + e.follow(direction)[:, None]).ravel()

    def move(self, point: Point, direction: Image, t: float) -> tuple[Point, float]:
        """The loss at z + t direction, and its derivative along the direction."""
        z = direction * t
        z += point.z
        e = self.loss.expand_plain(z)
        return Point(z, e.value, e), dot(e.slope, direction)

    def settle(self, point: Point) -> Point:
        """The best intercepts are added."""
        return self._point(point.z, point.expansion)

    def bend(self, point: Point, direction: Image) -> float:
        """The second derivative along the direction."""
        return point.expansion.bend(direction)

    def bends(self, basis: Basis, point: Point) -> Small:
        """The Hessian of phi in the coordinates of the basis: variances of its entries, row by row."""
        e: ClassExpansion = point.expansion
        K, n = e.probabilities.shape
        W, H, C = basis.columns.T.reshape(-1, K, n), np.zeros((basis.k, basis.k)), np.zeros((basis.k, K))
        for part in row_blocks((n, K), BLOCK):
            P = e.probabilities[:, part]
            V = W[:, :, part] - np.einsum("jki,ki->ji", W[:, :, part], P)[:, None, :]
            weights = P * e.shares[part]
            C += np.einsum("jki,ki->jk", V, weights)
            V *= np.sqrt(weights)
            V = V.reshape(basis.k, -1)
            H += V @ V.T
        return H if e.inverse is None else H - C @ e.inverse @ C.T

    def hessian(self, point: Point) -> Small:
        """A^T Diag(s p_k (delta_kl - p_l)) A for every pair of classes k, l, by no products that are counted.

        The blocks of a row of blocks sum to 0: those on the diagonal follow from the others, and nothing cancels.
        """
        e, A = point.expansion, self.objective.A
        d, K = A.shape[1], self.objective.classes
        H, C = np.zeros((d, K, d, K)), np.zeros((d, K, K))
        for k, other in combinations(range(K), 2):
            weights = e.shares * e.probabilities[k] * e.probabilities[other]
            for whole, part in ((H, weighted_gram(A, weights)), (C, apply(A.T, weights))):
                whole[:, k, ..., other] = whole[:, other, ..., k] = -part
                whole[:, k, ..., k] += part
                whole[:, other, ..., other] += part
        H, C = H.reshape(d * K, d * K), C.reshape(d * K, K)
        return H if e.inverse is None else H - C @ e.inverse @ C.T


@quiet
def _times_rows(A: Any, rows: Vector) -> Vector:
    """A times each of the rows, as rows: the order in which BLAS needs no more than half the time for a dense A."""
    if isinstance(A, np.ndarray):
        return (rows.astype(precision(A), copy=False) @ A.T).astype(np.float64, copy=False)
    return apply(A, rows.T).T


def _inverse(e: ClassExpansion) -> Vector:
    """The inverse of the curvature M in the intercepts, for slopes that sum to 0; NaN where there is none.

    M is the Laplacian of a graph of classes.  It is brought to a diagonal of 1, as a class that is told apart from all
    others has hardly any curvature of its own.  M takes equal intercepts to 0, so a matrix of rank one is added that
    does not; slopes that sum to 0 do not see it.
    """
    M = e.probabilities @ (-e.shares * e.probabilities).T
    M.flat[:: len(M) + 1] = 0.0
    own = -M.sum(axis=1)
    M.flat[:: len(M) + 1] = own
    if own.min() > LEAST_CURVATURE:
        d = np.sqrt(own)
        scale = d[:, None] * d
        with suppress(np.linalg.LinAlgError):
            inverse = np.linalg.inv(M / scale + scale / own.sum()) / scale
            if np.isfinite(inverse).all():
                return inverse
    return np.full(M.shape, math.nan)
