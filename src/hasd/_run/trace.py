"""What is recorded, and when.  Time spent on recording, and in the user's callback, is not counted."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from .bounds import Bounds
from .oracle import Oracle
from .record import State

OF_STATE = ("iteration", "fun", "grad_norm", "weight", "psi", "rho", "theta", "gain", "trials")
"""Columns that a state has under the same name: t, f(x_t), the dual norm of the gradient that the step used, A_t,
psi*_t, and what the step was like."""
COLUMNS = (*OF_STATE, "nfev", "nprod", "seconds", "lower", "upper")
"""With the evaluations that the method had asked for by then, the products with A, the seconds of work (recording
and callbacks excluded), the best certified lower bound on f* so far (NaN without a radius or mu) and the best value."""
INTEGERS = ("iteration", "nfev", "nprod")
read_state = attrgetter(*OF_STATE)


@dataclass
class Recorder:
    """An observer of the states: brings the bounds up to date, and collects a row per state.

    Where a number of rows is given, they are thinned to between that number and twice as many.
    """

    oracle: Oracle
    bounds: Bounds
    rows: float = math.inf  # about so many; 0: none
    table: list[tuple[float, ...]] = field(default_factory=list)
    pending: tuple[State, tuple[float, ...]] | None = None  # the newest state, while it is not in the table
    stride: int = 1
    seconds: float = 0.0
    resumed_at: float = field(default_factory=time.perf_counter)

    def __call__(self, state: State) -> None:
        """Take in x_t."""
        bounds = self.bounds
        bounds(state)
        self.seconds += time.perf_counter() - self.resumed_at
        if self.rows > 0:
            nfev, _, nprod = self.oracle.counts
            lower = bounds.lower if bounds.can_certify else math.nan
            self.pending = state, (*read_state(state), nfev, nprod, self.seconds, lower, bounds.upper)
            if state.iteration % self.stride == 0:
                self._append_pending()
                if len(self.table) > 2 * self.rows:  # every other row goes
                    self.stride *= 2
                    self.table = [row for row in self.table if int(row[0]) % self.stride == 0]
        self.resumed_at = time.perf_counter()

    def _append_pending(self) -> None:
        """Append the newest row.  A value that the method did not need is evaluated for the record."""
        if self.pending is not None:
            state, row = self.pending
            if math.isnan(row[1]):
                x, value = state.shown
                row = (row[0], self.oracle.record_value(x) if math.isnan(value) else value, *row[2:])
            self.table.append(row)
            self.pending = None

    def picture(self) -> dict[str, Any]:
        """What is recorded and counted so far; only references are copied."""
        told = {"table": self.table, "length": len(self.table), "pending": self.pending and self.pending[1]}
        counted = {"counts": self.oracle.source.counts, "recorded": self.oracle.recorded}
        return {**told, **counted, "stride": self.stride, "seconds": self.seconds}

    def restore(self, state: State, known: Mapping[str, Any]) -> None:
        """Go on with what an earlier run had recorded and counted up to that state."""
        self.table = [tuple(row) for row in known["table"].tolist()]
        self.pending = None if known["pending"] is None else (state, known["pending"])
        self.stride, self.seconds, self.oracle.recorded = known["stride"], known["seconds"], known["recorded"]
        self.oracle.source.resume(known["counts"])

    def columns(self) -> dict[str, np.ndarray] | None:
        """The trace: equal-length arrays, the last state always among the rows; None where nothing is recorded."""
        if self.rows == 0:
            return None
        self._append_pending()
        data = zip(*self.table, strict=True) if self.table else [()] * len(COLUMNS)
        return {
            name: np.array(values, dtype=np.int64 if name in INTEGERS else np.float64)
            for name, values in zip(COLUMNS, data, strict=True)
        }
