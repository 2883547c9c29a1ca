"""When a run ends: small criteria, each `state -> Status | None`.  Budgets on evaluations and time are the oracle's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from .._math.estimate import rounding
from .._math.evaluation import Evaluation
from .bounds import Bounds
from .loop import Criterion
from .problem import Problem
from .record import State
from .status import Status

DEFAULT_TOL = 1e-6
"""The relative tolerance on the gradient where the user gives none."""


@dataclass(frozen=True)
class Tolerances:
    """What the user asked for: a small gradient, a small certified gap, or both."""

    tol: float  # relative to the gradient at x_0; 0: not asked for
    gtol: float  # absolute; 0: not asked for
    bounds: Bounds  # with gap_tol; negative: not asked for
    is_default: bool = False  # whether nobody asked for this tol: then f must have come to rest, too

    @cached_property
    def gap(self) -> bool:
        """Whether a gap is asked for."""
        return self.bounds.gap_tol >= 0.0

    @cached_property
    def gradient(self) -> bool:
        """Whether a gradient is asked for."""
        return max(self.tol, self.gtol) > 0.0

    @property
    def success(self) -> Status:
        """The status of a run that met them."""
        return Status.GAP if self.gap else Status.CONVERGED

    def __call__(self, state: State) -> Status | None:
        """Whether they are met.  A gap alone may be that of any point so far; g = 0 always ends a run."""
        if self.gap and not self.gradient:
            return Status.GAP if self.bounds.gap <= self.bounds.gap_tol and not self.bounds.withdrawn else None
        if not self._has_small_gradient(state.grad_norm, state.grad_norm0) or self._is_falling(state):
            return None
        return self.success if not self.gap or self.bounds.is_closed_at(state.at, state.origin) else None

    def are_met(self, problem: Problem, state: State, e: Evaluation) -> bool:
        """Whether the returned evaluation meets them; cached images or a finer precision may have said otherwise."""
        if not e.finite or (self.gap and not self.bounds.is_closed_at(e, state.origin)):
            return False
        if e.norm2 == 0.0 or (self.gap and not self.gradient):
            return True
        return self._has_small_gradient(problem.dual_norm(e), state.grad_norm0)

    def _is_falling(self, state: State) -> bool:
        """Whether f still falls beside its own size: after a steep start, a small part of the first gradient is large.

        A fall that the digits of f(x_0) would not show does not count.  A run that can make no further step ends with
        success all the same.
        """
        if not (self.is_default and state.grad_norm > 0.0):
            return False
        e = state.at
        return state.left > max(self.tol * abs(e.f), rounding(state.first, e.f, eps=e.eps))

    def _has_small_gradient(self, grad_norm: float, grad_norm0: float) -> bool:
        """||g||_{p*} <= max(tol ||g_0||_{p*}, gtol)."""
        return grad_norm <= max(self.tol * grad_norm0, self.gtol)


def iterations(maxiter: float) -> Criterion:
    """At most so many iterations."""

    def criterion(state: State) -> Status | None:
        return Status.MAXITER if state.iteration >= maxiter else None

    return criterion
