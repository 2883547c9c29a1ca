"""What a method is given, and the shape of a method."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from .._math.arrays import Array
from .._math.evaluation import Evaluation
from .._math.geometry import Geometry, Lp, is_euclidean
from .capabilities import ObjectiveTraits, traits_of_objective
from .oracle import Oracle
from .record import State


@dataclass(frozen=True)
class Problem:
    """What a method is given."""

    oracle: Oracle  # f, counted
    geometry: Geometry  # the norm of the steepest step
    L: float | None = None  # declared smoothness in that norm; None: backtrack
    mu: float = 0.0  # strong convexity w.r.t. l_2

    @cached_property
    def bounded_below(self) -> bool:
        """Whether f is known to have a lower bound, so that it can only seem to fall without end."""
        return self.traits.bounded_below

    @cached_property
    def objective(self) -> Any:
        """The objective behind the oracle, for methods that use its structure; None for a black box."""
        return getattr(self.oracle.source, "objective", None)

    @cached_property
    def images(self) -> Any:
        """The space of the objective's images, for methods that keep them."""
        return self.objective.images()

    @cached_property
    def traits(self) -> ObjectiveTraits:
        """What the objective says of itself."""
        return traits_of_objective(getattr(self.oracle.source, "objective", None))

    @cached_property
    def is_euclidean(self) -> bool:
        """Whether the norm is l_2, in which every evaluation knows its gradient's."""
        return is_euclidean(self.geometry)

    def dual_norm(self, e: Evaluation) -> float:
        """||g||_{p*} at an evaluation: computed once for each."""
        known = e.__dict__.get("dual_norm")
        if known is None:
            known = e.norm2 if self.is_euclidean else float(self.geometry.dual_norm(e.g))
            e.__dict__["dual_norm"] = known
        return known

    def gain(self, e: Evaluation) -> float:
        """r(g) = ||g||_{p*}/||g||_2 at an evaluation; 1 where g = 0."""
        return self.dual_norm(e) / e.norm2 if e.norm2 > 0.0 else 1.0

    def steepest(self, e: Evaluation) -> Array:
        """The steepest-descent map at an evaluation, whose dual norm is not computed again."""
        if type(self.geometry) is Lp:
            return self.geometry.steepest(e.g, self.dual_norm(e))
        return self.geometry.steepest(e.g)


@runtime_checkable
class Method(Protocol):
    """The shape of a method."""

    @property
    def name(self) -> str:
        """What the registry and the result call it."""
        ...

    @property
    def default_p(self) -> float:
        """The exponent used when the caller names none."""
        ...

    def init(self, problem: Problem, start: Evaluation) -> State:
        """The state at t = 0."""
        ...

    def step(self, problem: Problem, state: State) -> State:
        """The next state."""
        ...
