"""One call of hasd.minimize on one problem, and what the checks find."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import localcontext
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

import hasd
from benchmarks.soak import problems, settings
from benchmarks.soak.checks import CHECKS, Truth
from benchmarks.soak.exact import DIGITS, exact
from benchmarks.soak.problems import KINDS, Problem

RAISES = "raises"
"""The name of what is found where minimize or a claim of the result raises, or warns."""
RUNS_A_PROBLEM = 6
"""A reference costs more than a run; these share it."""


@dataclass
class Run:
    """A call, its result, and what is wrong with it."""

    problem: Problem
    settings: dict[str, Any]
    seed: tuple[int, int]  # of the generator that drew it, and which of its problems
    res: Any = None  # None where minimize raised
    found: dict[str, str] = field(default_factory=dict)  # by the name of the check

    @property
    def method(self) -> str:
        """The method asked for."""
        return self.settings["method"]

    @property
    def certified(self) -> bool:
        """Whether the run knows a radius, in l_2 or as the R of its method, or a strong convexity."""
        return "radius" in self.settings or "R" in self.settings or self.settings.get("mu", self.problem.ridge) > 0.0

    @property
    def gap_tol(self) -> float:
        """What status 14 promises."""
        return self.settings.get("gap_tol", math.inf)

    @cached_property
    def truth(self) -> Truth:
        """What the result is held against."""
        problem, reference = self.problem, self.problem.reference
        assert reference is not None
        evaluate = getattr(problem.fun, "value_and_grad", problem.fun)
        with localcontext(DIGITS):
            gap = problem.exact.value(exact(self.res.x)) - reference.minimum
        return Truth(gap, evaluate, reference.minimum, reference.radius, not self.certified, self.gap_tol)

    def execute(self) -> Run:
        """Call minimize and every check; a warning is an error."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                self.res = hasd.minimize(self.problem.fun, self.problem.x0, **self.settings)
                for check in CHECKS:
                    if sentence := check(self.res, self.truth):
                        self.found[check.__name__] = sentence
            except Exception as error:
                self.found[RAISES] = f"{type(error).__name__}: {error}"
        return self

    def converged_in_truth(self) -> bool:
        """Whether the exact gradient meets the tolerance that status 0 speaks of."""
        geometry, f = hasd.Lp(self.res.p), self.problem.exact
        with localcontext(DIGITS):
            here, start = (f.derivatives(exact(x))[0].astype(float) for x in (self.res.x, self.problem.x0))
        return geometry.dual_norm(here) <= self.settings["tol"] * geometry.dual_norm(start)


def runs_of_a_problem(seed: int, number: int) -> Iterator[Run]:
    """The runs of one problem, which has a generator of its own; the kinds take turns."""
    rng = np.random.default_rng([seed, number])
    problem = problems.draw(rng, KINDS[number % len(KINDS)])
    for _ in range(RUNS_A_PROBLEM):
        yield Run(problem, settings.draw(rng, problem), (seed, number)).execute()


def runs(seed: int) -> Iterator[Run]:
    """Runs without end, the same for the same seed."""
    for number in count():
        yield from runs_of_a_problem(seed, number)
