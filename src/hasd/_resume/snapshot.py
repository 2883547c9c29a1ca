"""All that a run knows between two iterations, taken out and put back: a run that goes on from it is the same run."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from .._math.arrays import Array
from .._math.doubt import Doubt
from .._math.estimate import Certificate
from .._math.evaluation import Bend, Evaluation
from .._run.bounds import Bounds
from .._run.certificate import Cut
from .._run.convexity import Convexity
from .._run.loop import Outcome
from .._run.state import Problem, State
from .._run.trace import COLUMNS, Recorder
from ..objectives.base import Objective


@dataclass(frozen=True)
class Memory:
    """What a run knows beside its state: the best points so far, what is proved, and what convexity is judged by."""

    smallest: tuple[float, Evaluation]  # least dual norm of a gradient, and where
    first: float  # f(x_0)
    best: Evaluation | None  # lowest f evaluated with its gradient
    lowest: tuple[float, Array | None]  # lowest f of the points evaluated without one
    lower: float  # the best lower bound, for this radius
    upper: float  # the best value
    where: Array  # its point
    doubt: Doubt  # what it may be off by
    certificate: Certificate | None  # the estimate that gave the best lower bound of its kind
    cut: Cut | None  # the point whose own cut did
    near: tuple[float, Array]  # the least gap that the slope at a point proves by itself, and the point
    radius: float | None  # an l_2 bound on ||x_0 - x*||
    withdrawn: str  # why nothing is certified after all
    convexity: Convexity | None  # the evaluations that new ones are held against
    bend: Bend  # the curvature that was seen

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, outcome: Outcome) -> Memory:
        """What was known when the state was complete: of a step that was broken off, nothing."""
        if outcome.mark is not None and outcome.settled:
            return outcome.mark.memory
        return cls(
            outcome.smallest,
            outcome.first,
            problem.oracle.best,
            problem.oracle.lowest,
            bounds.lower,
            bounds.upper,
            bounds.x,
            bounds.doubt,
            bounds.certificate,
            bounds.cut,
            (bounds.near, bounds.near_x),
            bounds.radius,
            bounds.withdrawn,
            None if bounds.convexity is None else replace(bounds.convexity),
            problem.oracle.bend,
        )

    def restore(self, problem: Problem, bounds: Bounds) -> None:
        """Know it again; a lower bound for a smaller radius than now is asked for says nothing."""
        problem.oracle.best, problem.oracle.lowest, problem.oracle.bend = self.best, self.lowest, self.bend
        bounds.upper, bounds.x, bounds.doubt, bounds.withdrawn = self.upper, self.where, self.doubt, self.withdrawn
        bounds.certificate, bounds.cut = self.certificate, self.cut
        bounds.bent = bounds.bend
        if self.radius is None or (bounds.radius is not None and bounds.radius <= self.radius):
            bounds.lower, (bounds.near, bounds.near_x) = self.lower, self.near
        else:
            bounds.charge_anew()
        if bounds.convexity is not None and self.convexity is not None:
            bounds.convexity = replace(self.convexity)


@dataclass(frozen=True)
class Snapshot:
    """A run after an iteration has been recorded and before the next begins."""

    state: State
    memory: Memory
    counts: tuple[int, int, int]  # nfev, njev, nprod, those for the record among them
    recorded: tuple[int, int, int]  # those for the record
    rows: np.ndarray[Any, Any]  # the trace
    pending: tuple[float, ...] | None  # the newest row, where thinning passed it over
    stride: int  # of the thinning
    seconds: float  # of work

    def restore(self, problem: Problem, recorder: Recorder) -> Outcome:
        """The run as it was."""
        self.memory.restore(problem, recorder.bounds)
        problem.oracle.source.resume(self.counts)
        problem.oracle.recorded = self.recorded
        recorder.table = [tuple(row) for row in self.rows.tolist()]
        recorder.pending = None if self.pending is None else (self.state, self.pending)
        recorder.stride, recorder.seconds = self.stride, self.seconds
        outcome = Outcome(self.state, self.memory.smallest, self.memory.first)
        outcome.mark, outcome.settled = Mark.of(problem, recorder, outcome), True
        return outcome


class Mark(NamedTuple):
    """The same at the price of a few references, for every iteration: rows are added to a table, never taken away."""

    state: State
    memory: Memory
    counts: tuple[int, int, int]
    recorded: tuple[int, int, int]
    table: list[tuple[float, ...]]
    length: int  # of the table then
    pending: tuple[float, ...] | None
    stride: int
    seconds: float

    @classmethod
    def of(cls, problem: Problem, recorder: Recorder, outcome: Outcome) -> Mark:
        """The run as it is now."""
        return cls(
            outcome.state,
            Memory.of(problem, recorder.bounds, outcome),
            problem.oracle.source.counts,
            problem.oracle.recorded,
            recorder.table,
            len(recorder.table),
            None if recorder.pending is None else recorder.pending[1],
            recorder.stride,
            recorder.seconds,
        )

    def snapshot(self) -> Snapshot:
        """The run as it was then."""
        rows = np.array(self.table[: self.length], dtype=np.float64).reshape(-1, len(COLUMNS))
        told = (self.counts, self.recorded, rows, self.pending, self.stride, self.seconds)
        return Snapshot(self.state, self.memory, *told)


class Remembered(NamedTuple):
    """What ``res.state`` carries along: the settings of its run, what the run knew, and which objective it was of."""

    configuration: dict[str, Any]
    memory: Memory
    objective: weakref.ReferenceType[Any] | None = None  # one of ours, whose data stay; callables may have changed

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process has another objective."""
        return Remembered, (self.configuration, self.memory)

    def of_objective(self, fun: Any) -> bool:
        """Whether the run is known to be of this one, without asking for a value."""
        return self.objective is not None and self.objective() is fun


def remembering(state: State, configuration: dict[str, Any], fun: Any) -> State:
    """The state of a result, which has its memory, with the settings and the function too."""
    objective = weakref.ref(fun) if isinstance(fun, Objective) else None
    return replace(state, memory=Remembered(configuration, state.memory, objective))


def continued(state: State, problem: Problem, recorder: Recorder) -> Outcome:
    """Where ``resume=res.state`` begins: with the memory of the run it came from, but counts and a trace of its own."""
    remembered: Remembered | None = state.memory
    if remembered is None:  # of `hasd.iterate`
        return Outcome.at(state)
    memory = remembered.memory
    memory.restore(problem, recorder.bounds)
    return Outcome(replace(state, memory=None), memory.smallest, memory.first)
