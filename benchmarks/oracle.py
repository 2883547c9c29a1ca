"""The oracle every peer is given: counted, timed, watched, and stopped where the last target is reached."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.curvature import with_hessian
from benchmarks.problems import Problem


class Ended(Exception):
    """Raised through a peer to end its run."""


@dataclass
class History:
    """Values with the work and the seconds at which they were known, in order."""

    values: list[float] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, value: float, work: int, seconds: float) -> None:
        """One value more."""
        self.values.append(value)
        self.work.append(work)
        self.seconds.append(seconds)

    def crossing(self, value: float) -> tuple[int, float] | None:
        """Work and seconds when a value that small was first known; None where it never was."""
        below = np.flatnonzero(np.asarray(self.values) <= value)
        return (self.work[below[0]], self.seconds[below[0]]) if below.size else None

    @property
    def spent(self) -> tuple[int, float]:
        """Work and seconds when the run ended."""
        return (self.work[-1], self.seconds[-1]) if self.work else (0, 0.0)

    @property
    def best(self) -> float:
        """The smallest value."""
        return min((value for value in self.values if not math.isnan(value)), default=math.inf)


class Watched:
    """The problem as a peer sees it.  The clock stands still while the oracle writes its history."""

    def __init__(self, problem: Problem, goal: float, cap: float):
        """Nothing is evaluated yet; the clock starts here."""
        self.problem = problem
        f = problem.objective
        self.objective: Any = f.with_own_counter() if problem.black_box else with_hessian(f)
        self.goal = goal
        self.cap = cap
        self.evaluations = 0
        self.history = History()
        self.capped = False
        self.paused = 0.0
        self.started = time.perf_counter()

    @property
    def work(self) -> int:
        """Products with the matrix, or evaluations where those are what is counted."""
        return self.evaluations if self.problem.black_box else self.objective.nprod

    def fun_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f and its gradient."""
        value, g = self.objective.value_and_grad(x)
        self.evaluations += 1
        self.note(value)
        return value, g

    def hessp(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The Hessian at x times p."""
        self._check_cap(time.perf_counter())
        return self.objective.hessp(x, p)

    def note(self, value: float) -> None:
        """Write down a value that the solver now knows, and end the run where it is enough."""
        now = time.perf_counter()
        self.history.add(value, self.work, now - self.started - self.paused)
        if value <= self.goal:
            raise Ended
        self._check_cap(now)
        self.paused += time.perf_counter() - now

    def _check_cap(self, now: float) -> None:
        if now - self.started - self.paused > self.cap:
            self.capped = True
            raise Ended
