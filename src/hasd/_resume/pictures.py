"""Pictures of a run: taken of all its parts at once, and put back into them."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .._run.record import Picture, Run, State, fields_of, restore_fields
from .._run.result import Job
from ..objectives.base import Objective
from .identity import configuration


@dataclass(frozen=True)
class Album:
    """Takes pictures of one run's parts, and puts earlier ones back."""

    job: Job

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """What a run that goes on must share with this one."""
        return configuration(self.job.problem, self.job.method, self.job.x0)

    def take(self, run: Run) -> Picture:
        """The run as it stands.  Only references are copied: a trace grows by rows and never loses one."""
        oracle, recorder = self.job.problem.oracle, self.job.recorder
        counted = {"counts": oracle.source.counts, "recorded": oracle.recorded}
        known, bounds = {**fields_of(oracle), **counted}, fields_of(recorder.bounds)
        return Picture(fields_of(run), known, bounds, recorder.picture(), self.configuration)

    def state_for_result(self, run: Run, fun: Any) -> State:
        """The last state as a result carries it: with what ``resume=`` needs, without the trace.

        What a step that was broken off has seen of the function is left out: the step is made again.
        """
        objective = weakref.ref(fun) if isinstance(fun, Objective) else None
        picture = replace(self.take(run), trace={}, objective=objective, oracle=run.known)
        return run.state.with_fields(counts=self.job.problem.oracle.counts, picture=picture)

    def restore(self, state: State) -> Run:
        """The run as it was.  A state from a checkpoint brings its counts and its trace, one from a result does not."""
        oracle, recorder, picture = self.job.problem.oracle, self.job.recorder, state.picture
        if picture is None:  # states of `hasd.iterate` carry no picture
            return Run.at(replace(state), oracle)
        restore_fields(oracle, picture.oracle)
        recorder.bounds.restore(picture.bounds)
        run = Run.at(state.with_fields(picture=None), oracle)
        restore_fields(run, picture.run)
        if picture.trace:
            oracle.recorded = picture.oracle["recorded"]
            oracle.source.resume(picture.oracle["counts"])
            recorder.restore(run.state, picture.trace)
            run.complete = True
        return run
