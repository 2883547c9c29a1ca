"""What a loss phi tells of itself at a point, and what is asked of one; `losses` has those the package brings."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .._math.geometry import dot
from ._operators import Matrix, Vector, quiet
from ._smoothness import Smoothness


class Curvature(NamedTuple):
    """phi''(z) = Diag(diagonal) - rank_one rank_one^T, positive semidefinite.

    ``rank_one`` is None for a separable loss.  Factors such as 1/alpha and 1/n are in both already.

    >>> import numpy as np
    >>> Curvature(np.array([2.0, 3.0]), None).times(np.array([1.0, 1.0]))
    array([2., 3.])
    """

    diagonal: Vector
    rank_one: Vector | None

    def times(self, W: Vector) -> Vector:
        """phi''(z) W for a vector, or for a matrix of columns: two passes over n a column."""
        product = self.diagonal * W if W.ndim == 1 else self.diagonal[:, None] * W
        if self.rank_one is None:
            return product
        along = self.rank_one @ W
        return product - (self.rank_one * along if W.ndim == 1 else self.rank_one[:, None] * along[None, :])


class Expansion(NamedTuple):
    """phi near a point, from one pass: phi'' = scale (Diag(diagonal) - rank_one rank_one^T); vectors may be shared."""

    value: float
    slope: Vector
    diagonal: Vector
    rank_one: Vector | None = None
    scale: float = 1.0
    places: Vector | None = None  # of the entries that are not 0 in all three vectors, if they are few and known

    @property
    def curvature(self) -> Curvature:
        """phi'' with the scale multiplied in."""
        r = self.rank_one
        return Curvature(self.scale * self.diagonal, None if r is None else math.sqrt(self.scale) * r)


class ClassExpansion(NamedTuple):
    """A loss of K numbers a row near a point z, K x n as one vector: phi'' is a K x K block for each row,

        share_i (Diag(p_i) - p_i p_i^T),  p_i the probabilities of row i,

    minus, where an intercept for each class is minimised over, what moving the best intercepts takes away.
    """

    value: float
    slope: Vector
    probabilities: Vector  # K x n
    shares: Vector  # of the rows
    inverse: Any = None  # of the curvature in the intercepts, K x K, for slopes of sum 0; None where there are none
    places: None = None  # as in `Expansion`: here no entry is known to be 0

    def follow(self, direction: Vector) -> Vector:
        """The derivative of the best intercepts, whose sum is 0, where z moves along the direction."""
        change = self.inverse @ self._plain(direction).sum(axis=1)
        return change.mean() - change

    def times(self, direction: Vector) -> Vector:
        """phi''(z) times a vector."""
        V = direction.reshape(self.probabilities.shape)
        return self._plain(V if self.inverse is None else V + self.follow(V)[:, None]).ravel()

    def bend(self, direction: Vector) -> float:
        """The second derivative along a vector."""
        product = self._plain(direction)
        along = dot(product.reshape(-1), direction)
        if self.inverse is None:
            return along
        sums = product.sum(axis=1)
        return along - float(sums @ self.inverse @ sums)

    def _plain(self, direction: Vector) -> Vector:
        """The blocks of the rows times a vector, K x n."""
        P = self.probabilities
        V = direction.reshape(P.shape)
        product = P * V
        product = P * (V - product.sum(axis=0))
        product *= self.shares
        return product


if TYPE_CHECKING:  # each space of images knows which of the two its points hold
    AnyExpansion = Any
else:  # and checkpoints read here what a point may hold
    AnyExpansion = Expansion | ClassExpansion


class Loss(Protocol):
    """A convex function phi of the image z = Ax - b; write a subclass to minimise one of your own with ``Affine``.

    A subclass needs only one method: ``expand``, or ``value_and_slope`` where the second derivative is not at hand.
    What it does not have is made from what it has, or done without.  ``smoothness`` gives a constant to methods that
    want one.  ``conjugate(u)``, the largest <u, z> - phi(z) over z, gives a duality gap.  ``doubt(value, rows, dz)``
    and ``bounded_below`` say what is known of rounding and of the minimum.  `check_loss` tests all of them.

    >>> import numpy as np
    >>> from hasd.objectives import Affine, Loss
    >>> class Quartic(Loss):
    ...     def value_and_slope(self, z):
    ...         return float(np.sum(z**4)), 4.0 * z**3
    >>> Affine(Quartic(), np.eye(2), b=[1.0, 2.0]).value_and_grad([0.0, 0.0])
    (17.0, array([ -4., -32.]))
    """

    @quiet
    def value(self, z: Vector) -> float:
        """phi(z)."""
        return self.value_and_slope(z)[0]

    @quiet
    def value_and_slope(self, z: Vector) -> tuple[float, Vector]:
        """phi(z) and phi'(z), the latter in an array of its own."""
        return self.expand(z)[:2]

    @quiet
    def curvature(self, z: Vector) -> Curvature:
        """phi''(z) as a diagonal minus a rank-one matrix."""
        return self.expand(z).curvature

    def expand(self, z: Vector) -> Expansion:
        """phi(z), phi'(z) and phi''(z) together, for less than the sum of their costs."""
        raise NotImplementedError(f"{type(self).__name__} has no expand(z), which knows its second derivative")

    def smoothness(self, A: Matrix | None, p: float) -> Smoothness:
        """The declared L_p of x -> phi(Ax - b); inf where there is none, or none is known."""
        return Smoothness(math.inf, exact=False)


def has_curvature(loss: Any) -> bool:
    """Whether a loss knows its second derivative.

    >>> class Quartic(Loss):
    ...     def value_and_slope(self, z):
    ...         return float((z**4).sum()), 4.0 * z**3
    >>> has_curvature(Quartic())
    False
    """
    return has_its_own(loss, "expand")


def has_its_own(loss: Any, name: str) -> bool:
    """Whether a loss has a method of this name that is not the one of `Loss`."""
    found = getattr(loss, name, None)
    return found is not None and getattr(found, "__func__", found) is not getattr(Loss, name)


def refuse_what_is_no_loss(loss: Any) -> None:
    """Say what an object lacks to be a loss."""
    if isinstance(loss, type):
        raise TypeError(f"loss must be an object, got the class {loss.__name__}: write {loss.__name__}(...)")
    missing = [name for name in ("value", "value_and_slope", "smoothness") if not callable(getattr(loss, name, None))]
    name = type(loss).__name__
    if missing:
        raise TypeError(f"loss must be a hasd.objectives.Loss, or have its methods; {name} has no {', '.join(missing)}")
    if not (has_its_own(loss, "value_and_slope") or has_curvature(loss)):
        raise TypeError(f"loss must define expand(z), or value_and_slope(z) at least; {name} has neither")
