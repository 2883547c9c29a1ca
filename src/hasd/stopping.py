"""When a run ends: small criteria, each `state -> Status | None`.  Budgets on evaluations and time are the oracle's."""

from __future__ import annotations

from .loop import Criterion
from .methods.base import State
from .result import Status


def gradient_within(tol: float, gtol: float) -> Criterion:
    """||g||_{p*} <= max(tol ||g_0||_{p*}, gtol), where the step took its gradient.  g = 0 always ends a run."""

    def criterion(state: State) -> Status | None:
        return Status.CONVERGED if state.grad_norm <= max(tol * state.grad_norm0, gtol) else None

    return criterion


def iterations(maxiter: float) -> Criterion:
    """At most so many iterations."""

    def criterion(state: State) -> Status | None:
        return Status.MAXITER if state.iteration >= maxiter else None

    return criterion
