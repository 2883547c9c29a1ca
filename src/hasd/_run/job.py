"""One call of `minimize`: what it is about, and pictures of its run, taken of all parts at once and put back."""

from __future__ import annotations

import re
import weakref
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._math.arrays import Array, convert_like, library
from .._math.geometry import Geometry, Lp
from .._version import VERSION
from ..objectives.base import Objective
from .problem import Method, Problem
from .record import Picture, Run, State, fields_of, restore_fields
from .stopping import Tolerances
from .trace import Recorder

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The memory address in an object's default repr, which differs between equal objects."""


@dataclass(frozen=True)
class Job:
    """What one call of `minimize` is about."""

    problem: Problem
    method: Method
    x0: Array  # the start, in whose library and precision x is handed back
    recorder: Recorder  # with the bounds
    wanted: Tolerances
    goal: str  # what a run that ends at a limit returns the best point by

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The settings that two runs must share to be one."""
        return {
            "version": VERSION,
            "method": ADDRESS.sub("", repr(self.method)) if is_dataclass(self.method) else self.method.name,
            "p": repr(self.problem.geometry.p),
            "L": self.problem.L,
            "mu": self.problem.mu,
            "dimension": self.x0.shape[0],
            "dtype": str(self.x0.dtype),
            "library": library(self.x0),
            "geometry": _fingerprint(self.problem.geometry, self.x0),
        }

    def take_picture(self, run: Run) -> State:
        """The run as it stands: its state, with a picture of what else it knows.

        Only references are copied: a trace grows by rows and never loses one.
        """
        bounds, trace = fields_of(self.recorder.bounds), self.recorder.picture()
        return run.state.with_fields(picture=Picture(fields_of(run), bounds, trace, self.configuration))

    def state_for_result(self, run: Run, fun: Any) -> State:
        """The last state as a result carries it: with what ``resume=`` needs, without the trace."""
        objective, bounds = weakref.ref(fun) if isinstance(fun, Objective) else None, fields_of(self.recorder.bounds)
        picture = Picture(fields_of(run), bounds, {}, self.configuration, objective)
        return run.state.with_fields(counts=self.problem.oracle.counts, picture=picture)

    def restore(self, state: State) -> Run:
        """The run as it was.  A state from a checkpoint brings its counts and its trace, one from a result does not."""
        oracle, picture = self.problem.oracle, state.picture
        if picture is None:  # states of `hasd.iterate` carry no picture
            return Run.at(replace(state), oracle)
        run = Run.at(state.with_fields(picture=None), oracle)
        restore_fields(run, picture.run)
        restore_fields(oracle, run.known)
        self.recorder.bounds.restore(picture.bounds)
        if picture.trace:
            self.recorder.restore(run.state, picture.trace)
            run.complete = True
        return run


def _fingerprint(geometry: Geometry, x0: Array) -> str:
    """Text that tells a user's geometry from others: its class, and both norms of one fixed vector."""
    name = type(geometry).__qualname__
    if type(geometry) is Lp:
        return name
    uneven = convert_like(np.cos(np.arange(1.0, x0.shape[0] + 1.0)), x0)
    return f"{name} with norms {float(geometry.norm(uneven)):.6g} and {float(geometry.dual_norm(uneven)):.6g}"
