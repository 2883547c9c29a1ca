"""One call of `minimize`: what it is about, pictures of its run, and the earlier run that it goes on from.

A picture is taken of all parts of a run at once, and put back into them.  A state of another function, norm or constant
would certify bounds that are false for this one: whatever differs is refused with the reason.
"""

from __future__ import annotations

import math
import re
import weakref
from dataclasses import dataclass, is_dataclass, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from .._math.arrays import Array, convert_like, library, to_host
from .._math.geometry import Geometry, Lp, label_of, norm2
from .._math.shaped_norms import Blocks, Schatten
from .._version import VERSION
from ..objectives.base import Objective
from .layout import VECTOR, Layout
from .problem import Method, Problem
from .record import Picture, Run, State, fields_of, restore_fields
from .stopping import Tolerances
from .trace import Recorder

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The memory address in an object's default repr, which differs between equal objects."""
SAME = 1e-6
"""Relative difference of values that another machine's rounding, or a little noise, may make."""


@dataclass(frozen=True)
class Job:
    """What one call of `minimize` is about."""

    problem: Problem
    method: Method
    x0: Array  # the start, in whose library and precision x is handed back
    recorder: Recorder  # with the bounds
    wanted: Tolerances
    goal: str  # what a run that ends at a limit returns the best point by
    layout: Layout = VECTOR  # how the user's x is laid out

    @cached_property
    def configuration(self) -> dict[str, Any]:
        """The settings that two runs must share to be one."""
        return {
            "version": VERSION,
            "method": ADDRESS.sub("", repr(self.method)) if is_dataclass(self.method) else self.method.name,
            "p": repr(label_of(self.problem.geometry)),
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

    def restore(self, where: str, state: State, fun: Any) -> Run:
        """The run as it was.  A state from a checkpoint brings its counts and its trace, one from a result does not."""
        oracle, picture = self.problem.oracle, state.picture
        run = Run.at(replace(state, picture=None), oracle)
        if picture is not None:  # states of `hasd.iterate` carry none
            restore_fields(run, picture.run)
            restore_fields(oracle, run.known)
            self.recorder.bounds.restore(picture.bounds)
            if picture.trace:
                self.recorder.restore(run.state, picture.trace)
                run.complete = True
        self._refuse_other_start(where, state.origin)
        if picture is None or picture.objective is None or picture.objective() is not fun:
            self._refuse_other_function(where, run)
        return run

    def refuse_other(self, where: str, saved: dict[str, Any]) -> None:
        """Raise a ValueError that names the first setting in which the saved run differs from this one."""
        for name, value in self.configuration.items():
            if saved.get(name) != value:
                raise ValueError(f"{where} is of another run: its {name} is {saved.get(name)}, this one's is {value}")

    def _refuse_other_start(self, where: str, origin: Array) -> None:
        """Refuse an x0 that is not the saved run's x_0, from which distances and tolerances are measured."""
        own, given = to_host(convert_like(origin, self.x0)), to_host(self.x0)
        if not np.array_equal(own, given):
            i = int(np.flatnonzero(own != given)[0])
            at = f"x0{self.layout.index_of(i)}"
            raise ValueError(f"{where} is of a run from another x0: its {at} is {own[i]}, this one's is {given[i]}")

    def _refuse_other_function(self, where: str, run: Run) -> None:
        """Compare f where the run last knew it: the same data, and the same function, give the same value.

        Near a minimum of value 0, f is nothing but rounding.  Differences are therefore compared with f at x_0, and
        with what f changes by when x changes by a relative `SAME`, and with what both values may be off by.
        """
        state, e = run.state, run.state.at
        again = self.problem.oracle.record(e.x)
        size = max(abs(e.f), abs(again.f), abs(run.first))
        most = SAME * (size + e.norm2 * max(norm2(e.x), norm2(e.x - state.origin))) + e.df() + again.df()
        if not abs(again.f - e.f) <= most:
            raise ValueError(f"{where} is of another function: at its point f was {e.f!r}, and is {again.f!r} now")


def _fingerprint(geometry: Geometry, x0: Array) -> str:
    """Text that tells a norm from others: ours by their parts, a user's by its class and its norms of one vector."""
    name = type(geometry).__qualname__
    if isinstance(geometry, Blocks):
        sizes = [math.prod(shape) for shape in geometry.shape]
        parts = zip(geometry.parts, sizes, strict=True)
        return f"{name} of {', '.join(_fingerprint(part, x0[:size]) for part, size in parts)}"
    if type(geometry) is Schatten or (type(geometry) is Lp and geometry.weights is None):
        return f"{name} of shape {geometry.shape}" if geometry.shape else name
    if type(geometry) is Lp and geometry.weights is not None:
        return f"{name} with weights of checksum {crc32(geometry.weights.tobytes()):08x}"
    uneven = convert_like(np.cos(np.arange(1.0, x0.shape[0] + 1.0)), x0)
    return f"{name} with norms {float(geometry.norm(uneven)):.6g} and {float(geometry.dual_norm(uneven)):.6g}"
