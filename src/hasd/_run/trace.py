"""What is recorded, and when.  Time spent on recording is not counted."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .bounds import Bounds
from .oracle import Oracle
from .record import State

COLUMNS = (
    "iteration",  # t
    "fun",  # f(x_t)
    "grad_norm",  # dual norm of the gradient that the step used
    "weight",  # A_t
    "psi",  # psi*_t
    "rho",
    "theta",
    "gain",
    "trials",
    "nfev",  # evaluations the method had asked for by then
    "nprod",  # products with A
    "seconds",  # of work, recording excluded
    "lower",  # best certified lower bound on f* so far; NaN without a radius or mu
    "upper",  # best value so far
)
INTEGERS = ("iteration", "nfev", "nprod")


@dataclass
class Recorder:
    """Collects a row per state; thinned to between `rows` and 2 `rows` of them where a number is given."""

    oracle: Oracle
    bounds: Bounds
    rows: float = math.inf  # about so many; 0: none
    table: list[tuple[float, ...]] = field(default_factory=list)
    pending: tuple[State, tuple[float, ...]] | None = None  # the newest state, where thinning passed it over
    stride: int = 1
    seconds: float = 0.0
    resumed_at: float = field(default_factory=time.perf_counter)

    def __call__(self, state: State) -> None:
        """Record x_t; f(x_t) is evaluated outside the counts where the method did not need it."""
        self.seconds += time.perf_counter() - self.resumed_at
        if self.rows > 0:
            row = self._row(state)
            if state.iteration % self.stride == 0:
                self.table.append(self._complete(state, row))
                self.pending = None
                self._thin()
            else:
                self.pending = (state, row)
        self.resumed_at = time.perf_counter()

    def picture(self) -> dict[str, Any]:
        """What is recorded so far; only references are copied."""
        pending = None if self.pending is None else self.pending[1]
        told = {"table": self.table, "length": len(self.table), "pending": pending}
        return {**told, "stride": self.stride, "seconds": self.seconds}

    def restore(self, state: State, known: Mapping[str, Any]) -> None:
        """Go on with what an earlier run had recorded up to that state."""
        self.table = [tuple(row) for row in known["table"].tolist()]
        self.pending = None if known["pending"] is None else (state, known["pending"])
        self.stride, self.seconds = known["stride"], known["seconds"]

    def _row(self, state: State) -> tuple[float, ...]:
        nfev, _, nprod = self.oracle.counts
        step = (state.rho, state.theta, state.gain, state.trials)
        return (
            state.iteration,
            state.fun,
            state.grad_norm,
            state.weight,
            state.psi,
            *step,
            nfev,
            nprod,
            self.seconds,
            self.bounds.lower if self.bounds.known else math.nan,
            self.bounds.upper,
        )

    def _complete(self, state: State, row: tuple[float, ...]) -> tuple[float, ...]:
        if not math.isnan(state.fun):
            return row
        return (row[0], self.oracle.record_value(state.x), *row[2:])

    def _thin(self) -> None:
        if len(self.table) > 2 * self.rows:
            self.stride *= 2
            self.table = [row for row in self.table if int(row[0]) % self.stride == 0]

    def columns(self) -> dict[str, np.ndarray]:
        """The trace: equal-length arrays, the last state always among the rows."""
        if self.pending is not None:
            self.table.append(self._complete(*self.pending))
            self.pending = None
        data = zip(*self.table, strict=True) if self.table else [()] * len(COLUMNS)
        return {
            name: np.array(values, dtype=np.int64 if name in INTEGERS else np.float64)
            for name, values in zip(COLUMNS, data, strict=True)
        }
