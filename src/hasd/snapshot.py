"""All that a run knows between two iterations, taken out and put back: a run that goes on from it is the same run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arrays import Array
from .bounds import Bounds
from .loop import Outcome
from .methods.base import Problem, State
from .oracle import Evaluation
from .result import Status
from .trace import COLUMNS, Recorder


@dataclass(frozen=True)
class Memory:
    """What a run knows beside its state: the best points so far, and what is proved."""

    smallest: tuple[float, Evaluation]  # least dual norm of a gradient, and where
    best: Evaluation | None  # lowest f evaluated with its gradient
    lowest: tuple[float, Array | None]  # lowest f of the points evaluated without one
    lower: float  # the best lower bound, for this radius
    upper: float  # the best value
    where: Array  # its point
    blur: float  # what a gradient may be off by
    radius: float | None  # an l_2 bound on ||x_0 - x*||
    withdrawn: str  # why nothing is certified after all

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, outcome: Outcome) -> Memory:
        """What is known now."""
        oracle = problem.oracle
        proved = (bounds.lower, bounds.upper, bounds.x, bounds.blur, bounds.radius, bounds.withdrawn)
        return cls(outcome.smallest, oracle.best, oracle.lowest, *proved)

    def restore(self, problem: Problem, bounds: Bounds) -> None:
        """Know it again; a lower bound for a smaller radius than now is asked for says nothing."""
        problem.oracle.best, problem.oracle.lowest = self.best, self.lowest
        bounds.upper, bounds.x, bounds.blur, bounds.withdrawn = self.upper, self.where, self.blur, self.withdrawn
        if self.radius is None or (bounds.radius is not None and bounds.radius <= self.radius):
            bounds.lower = self.lower


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

    @classmethod
    def of(cls, problem: Problem, recorder: Recorder, outcome: Outcome) -> Snapshot:
        """The run as it is now."""
        return cls(
            outcome.state,
            Memory.of(problem, recorder.bounds, outcome),
            problem.oracle.source.counts,
            problem.oracle.recorded,
            np.array(recorder.table, dtype=np.float64).reshape(-1, len(COLUMNS)),
            None if recorder.pending is None else recorder.pending[1],
            recorder.stride,
            recorder.seconds,
        )

    def restore(self, problem: Problem, recorder: Recorder) -> Outcome:
        """The run as it was."""
        self.memory.restore(problem, recorder.bounds)
        problem.oracle.source.resume(self.counts)
        problem.oracle.recorded = self.recorded
        recorder.table = [tuple(row) for row in self.rows.tolist()]
        recorder.pending = None if self.pending is None else (self.state, self.pending)
        recorder.stride, recorder.seconds = self.stride, self.seconds
        return Outcome(self.state, self.memory.smallest, Status.MAXITER)


def continued(state: State, problem: Problem, recorder: Recorder) -> State:
    """Where ``resume=res.state`` begins: with the memory of the run it came from, but counts and a trace of its own."""
    memory: Memory | None = state.memory
    if memory is None:
        return state
    memory.restore(problem, recorder.bounds)
    return replace(state, memory=None)
