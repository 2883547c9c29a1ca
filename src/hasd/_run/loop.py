"""The only outer loop: record, callback, stop?, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .._math.evaluation import Evaluation
from .state import Method, Problem, State
from .status import Status, Stop

if TYPE_CHECKING:
    from .._resume.snapshot import Mark

Criterion = Callable[[State], Status | None]
Observer = Callable[[State], None]


def states(problem: Problem, method: Method, start: Evaluation | State) -> Iterator[State]:
    """The method's states, from t = 0 (an evaluation) or from a state of an earlier run, until a step raises Stop."""
    state = start if isinstance(start, State) else _begun(problem, method, start)
    while True:
        yield state
        state = _following(problem, method, state)


def _begun(problem: Problem, method: Method, start: Evaluation) -> State:
    """The state at t = 0."""
    with np.errstate(all="ignore"):  # inf and NaN are seen to
        return replace(method.init(problem, start), method=method.name)


def _following(problem: Problem, method: Method, state: State) -> State:
    """The next state; Stop where there is none."""
    if state.grad_norm == 0.0:
        raise Stop(Status.CONVERGED)
    try:
        with np.errstate(all="ignore"):
            return method.step(problem, state)
    except Stop as stop:
        if stop.status is Status.UNBOUNDED and problem.bounded_below:  # no method overrules what is known
            raise Stop(Status.PRECISION) from None
        raise


@dataclass
class Outcome:
    """Where a run stands: the last state, the evaluated point of smallest gradient, and why it ended."""

    state: State
    smallest: tuple[float, Evaluation]  # dual norm of the gradient, and where
    first: float  # f(x_0)
    status: Status = Status.MAXITER
    mark: Mark | None = None  # the run when it last was between two iterations
    settled: bool = False  # whether that is now: the state is recorded, and the callback has had it

    @classmethod
    def at(cls, state: State) -> Outcome:
        """A run that has seen nothing but this state."""
        return cls(state, (state.grad_norm, state.at), state.at.f)

    def move(self, state: State) -> None:
        """Take the next state."""
        self.state, self.settled = state, False
        if state.grad_norm < self.smallest[0]:
            self.smallest = (state.grad_norm, state.at)


@dataclass(frozen=True)
class Watch:
    """What happens between two iterations, in this order."""

    record: Observer
    callback: Observer | None
    criteria: Sequence[Criterion]
    settle: Callable[[Outcome], None] | None = None  # marks the run as it stands, whatever becomes of the next step
    save: Callable[[Outcome], None] | None = None  # writes it to disk, where that is due
    keep_interrupted: bool = False  # whether Ctrl-C ends the run with what there is, or is raised

    def __call__(self, outcome: Outcome, first: bool) -> bool:
        """Whether the run ends here.  A state that comes from a checkpoint is settled; the first is not called back."""
        state = outcome.state
        if not outcome.settled:
            self.record(state)
            try:
                if self.callback is not None and not first:
                    self.callback(state)
            finally:
                if self.settle is not None:
                    self.settle(outcome)
                outcome.settled = True
        for criterion in self.criteria:
            if (status := criterion(state)) is not None:
                outcome.status = status
                return True
        if self.save is not None:
            self.save(outcome)
        return False


def run(problem: Problem, method: Method, start: Evaluation | Outcome, watch: Watch) -> Outcome:
    """Run until a criterion, the callback, a budget or the method itself ends it; or go on with an earlier outcome.

    No generator: Python would turn a StopIteration of the user's function into an error of its own.
    """
    outcome = start if isinstance(start, Outcome) else Outcome.at(_begun(problem, method, start))
    first = True
    try:
        while not watch(outcome, first):
            outcome.move(_following(problem, method, outcome.state))
            first = False
    except Stop as stop:
        outcome.status = stop.status
    except KeyboardInterrupt:
        if not watch.keep_interrupted:
            raise
        outcome.status = Status.INTERRUPTED
    return outcome
