"""Pictures of a run: taken of all its parts at once, and put back into them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..objectives.base import Objective
from .oracle import Oracle
from .record import Picture, Run, State, fields_of, restore_fields
from .trace import Recorder


@dataclass(frozen=True)
class Album:
    """Takes pictures of one run's parts, and puts earlier ones back."""

    oracle: Oracle
    recorder: Recorder
    settings: Callable[[], dict[str, Any]]  # what a run that goes on must share with this one, asked for when needed

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The settings of this run."""
        return self.settings()

    def take(self, run: Run) -> Picture:
        """The run as it stands.  Only references are copied: a trace grows by rows and never loses one."""
        oracle = {**fields_of(self.oracle), "counts": self.oracle.source.counts}
        bounds = fields_of(self.recorder.bounds)
        if bounds["convexity"] is not None:
            bounds["convexity"] = replace(bounds["convexity"])
        return Picture(fields_of(run), oracle, bounds, self.recorder.picture(), self.configuration)

    def state_for_result(self, run: Run, fun: Any) -> State:
        """The last state as a result carries it: with what ``resume=`` needs, without the trace."""
        objective = weakref.ref(fun) if isinstance(fun, Objective) else None
        now = self.take(run)
        picture = replace(now, trace={}, objective=objective, oracle={**now.oracle, **run.before})
        return replace(run.state, counts=self.oracle.counts, picture=picture)

    def restore(self, state: State, picture: Picture) -> Run:
        """The run as it was, its counts and its trace included."""
        run = self.go_on(state, picture)
        self.oracle.recorded = picture.oracle["recorded"]
        self.oracle.source.resume(picture.oracle["counts"])
        self.recorder.restore(state, picture.trace)
        run.complete = True
        return run

    def go_on(self, state: State, picture: Picture | None) -> Run:
        """A run that goes on from a result's state, with counts and a trace of its own."""
        run = Run.at(replace(state, picture=None))
        if picture is not None:  # states of `hasd.iterate` carry no picture
            restore_fields(run, picture.run)
            restore_fields(self.oracle, {**picture.oracle, "recorded": self.oracle.recorded})
            self.recorder.bounds.restore(picture.bounds)
        return run
