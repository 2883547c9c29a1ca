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


@dataclass(frozen=True)
class Watch:
    """What happens between two iterations, in this order."""

    record: Observer
    callback: Observer | None
    criteria: Sequence[Criterion]
    save: Callable[[Outcome], None] | None = None  # the run as it stands, before the next iteration
    keep_interrupted: bool = False  # whether Ctrl-C ends the run with what there is, or is raised

    def __call__(self, outcome: Outcome, fresh: bool, first: bool) -> bool:
        """Whether the run ends here.  A state that comes from a checkpoint (not fresh) has been recorded before."""
        state = outcome.state
        if fresh:
            self.record(state)
            if self.callback is not None and not first:
                self.callback(state)
        for criterion in self.criteria:
            if (status := criterion(state)) is not None:
                outcome.status = status
                return True
        if self.save is not None:
            self.save(outcome)
        return False


def run(problem: Problem, method: Method, start: Evaluation | State | Outcome, watch: Watch) -> Outcome:
    """Run until a criterion, the callback, a budget or the method itself ends it; or go on with an earlier outcome."""
    outcome = start if isinstance(start, Outcome) else None
    fresh = outcome is None
    try:
        for state in states(problem, method, start.state if isinstance(start, Outcome) else start):
            first = outcome is None
            outcome = outcome or Outcome(state, (state.grad_norm, state.at), Status.MAXITER)
            outcome.state = state
            if state.grad_norm < outcome.smallest[0]:
                outcome.smallest = (state.grad_norm, state.at)
            if watch(outcome, fresh, first):
                return outcome
            fresh = True
    except Stop as stop:
        assert outcome is not None, "init takes no evaluations beyond the one it is given"
        outcome.status = stop.status
    except KeyboardInterrupt:
        if outcome is None or not watch.keep_interrupted:
            raise
        outcome.status = Status.INTERRUPTED
    assert outcome is not None
    return outcome
