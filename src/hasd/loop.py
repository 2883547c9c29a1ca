"""The only outer loop: record, callback, stop?, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .methods.base import Method, Problem, State
from .oracle import Evaluation
from .result import Status, Stop

Criterion = Callable[[State], Status | None]
Observer = Callable[[State], None]


def states(problem: Problem, method: Method, start: Evaluation | State) -> Iterator[State]:
    """The method's states, from t = 0 (an evaluation) or from a state of an earlier run, until a step raises Stop."""
    if isinstance(start, State):
        state = start
    else:
        with np.errstate(all="ignore"):  # inf and NaN are seen to
            state = replace(method.init(problem, start), method=method.name)
    while True:
        yield state
        if state.grad_norm == 0.0:
            raise Stop(Status.CONVERGED)
        with np.errstate(all="ignore"):
            state = method.step(problem, state)


@dataclass
class Outcome:
    """Where a run stands: the last state, the evaluated point of smallest gradient, and why it ended."""

    state: State
    smallest: tuple[float, Evaluation]  # dual norm of the gradient, and where
    status: Status


def run(
    problem: Problem,
    method: Method,
    start: Evaluation | State,
    criteria: Sequence[Criterion],
    record: Observer,
    callback: Observer | None,
) -> Outcome:
    """Run until a criterion, the callback, a budget or the method itself ends it."""
    outcome: Outcome | None = None
    try:
        for state in states(problem, method, start):
            first = outcome is None
            outcome = outcome or Outcome(state, (state.grad_norm, state.at), Status.MAXITER)
            outcome.state = state
            if state.grad_norm < outcome.smallest[0]:
                outcome.smallest = (state.grad_norm, state.at)
            record(state)
            if callback is not None and not first:
                callback(state)
            for criterion in criteria:
                if (status := criterion(state)) is not None:
                    outcome.status = status
                    return outcome
    except Stop as stop:
        assert outcome is not None, "init takes no evaluations beyond the one it is given"
        outcome.status = stop.status
    assert outcome is not None
    return outcome
