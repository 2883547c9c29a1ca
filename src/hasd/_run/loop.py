"""The only outer loop: record, callback, stop?, step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .._math.evaluation import Evaluation
from ..objectives._operators import float_settings, quiet, settings_of_caller
from .problem import Method, Problem
from .record import Run, State
from .status import Status, Stop

Criterion = Callable[[State], Status | None]
Observer = Callable[[State], None]


def states(problem: Problem, method: Method, start: Evaluation | State) -> Iterator[State]:
    """The method's states, from t = 0 (an evaluation) or from a state of an earlier run, until a step raises Stop."""
    state = start if isinstance(start, State) else first_state(problem, method, start)
    while True:
        problem.oracle.newest = None  # a caller may keep the generator for long, and it holds vectors
        yield state
        state = quiet(next_state)(problem, method, state)


@quiet  # inf and NaN are checked for where they matter
def first_state(problem: Problem, method: Method, start: Evaluation) -> State:
    """The state at t = 0."""
    return replace(method.init(problem, start), method=method.name)


def next_state(problem: Problem, method: Method, state: State) -> State:
    """The next state; Stop where there is none.  The caller silences NumPy's warnings."""
    if state.grad_norm == 0.0:
        raise Stop(Status.CONVERGED)
    try:
        return method.step(problem, state)
    except Stop as stop:
        if stop.status is Status.UNBOUNDED and problem.bounded_below:  # the objective is known to be bounded below
            raise Stop(Status.PRECISION) from None
        raise


@dataclass(frozen=True)
class Watch:
    """What happens between two iterations, in this order."""

    record: Observer
    callback: Observer | None
    criteria: Sequence[Criterion]
    saver: Any = None  # takes a picture of the run, whatever becomes of the next step, and writes it where that is due
    keep_interrupted: bool = False  # whether Ctrl-C ends the run with what there is, or is raised
    errstate: Any = field(default_factory=settings_of_caller)  # the caller's, for the callback

    def __call__(self, run: Run) -> bool:
        """Whether the run ends here.  A state from a checkpoint is recorded already; the first gets no callback."""
        state = run.state
        if not run.complete:
            self.record(state)
        try:
            if self.callback is not None and run.moved:
                with float_settings(self.errstate):
                    self.callback(state)
        finally:
            if self.saver is not None:
                self.saver.take_picture(run)
            run.complete = True
        for criterion in self.criteria:
            if (status := criterion(state)) is not None:
                run.status = status
                return True
        if self.saver is not None:
            self.saver.write_if_due()
        return False


@quiet
def follow(problem: Problem, method: Method, start: Evaluation | Run, watch: Watch) -> Run:
    """Run until a criterion, the callback, a budget or the method itself ends it; or go on with an earlier run.

    No generator: Python would turn a StopIteration of the user's function into an error of its own.
    """
    run = start if isinstance(start, Run) else Run.at(first_state(problem, method, start), problem.oracle)
    try:
        while not watch(run):
            run.move(next_state(problem, method, run.state), problem.oracle)
    except Stop as stop:
        run.status = stop.status
    except KeyboardInterrupt:
        if not watch.keep_interrupted:
            raise
        run.status = Status.INTERRUPTED
    return run
