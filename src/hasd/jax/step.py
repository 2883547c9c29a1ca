"""One evaluation, and what follows from it: one step of optimistix, one update of optax."""

from __future__ import annotations

import jax.numpy as jnp

from .._run.status import Status
from . import backtracked, declared
from .state import RUNNING, EvaluationTree, HASDState, Setting
from .trees import Scalar, Tree, dual, largest_size, mix, norm, select


def advance(setting: Setting, state: HASDState, y: Tree, f: Scalar | None, g: Tree) -> HASDState:
    """The state after f and its gradient g at y; f = None where L is declared and the value is not known.

    A run that has ended stays as it is, and f = -inf ends it.
    """
    value = jnp.asarray(jnp.nan if f is None else f, state.rho.dtype)
    g = mix(lambda like, leaf: leaf.astype(like.dtype), y, g)
    norm2 = norm(g, 2.0)
    e = EvaluationTree(y, value, g, norm2, norm2 if setting.p == 2.0 else norm(g, dual(setting.p)))
    finite = (True if f is None else jnp.isfinite(value)) & jnp.isfinite(largest_size(g))
    next_state = declared.next_state if state.line is None else backtracked.next_state
    counted = state._replace(evaluations=state.evaluations + 1)
    after = select(value == -jnp.inf, counted.end(Status.UNBOUNDED), next_state(setting, counted, e, finite))
    return select(state.status == RUNNING, after, state)
