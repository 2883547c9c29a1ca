"""Random calls of hasd.minimize whose promises (mu, L, radius) are all true."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import hasd
from benchmarks.soak.problems import Problem, Rng

NORMS = (2.0, 2.5, 3.0, 10.0, math.inf)
ITERATIONS, EVALUATIONS = 300, 20_000
"""The longest run; and no search may be endless."""
FAVOURITES = ("auto", "hasd-qn", "hasd-subspace", "hasd-newton", "hasd-cg", "hasd-cg")
"""Drawn more often: what users get by default, and what few functions can be given to."""


def draw(rng: Rng, problem: Problem) -> dict[str, Any]:
    """Keywords for hasd.minimize."""
    assert problem.reference is not None
    settings: dict[str, Any] = {"jac": True} if problem.callable else {}
    if problem.mu > 0.0 and rng.random() < 0.5:
        settings["mu"] = problem.mu
    settings["method"] = str(rng.choice(applicable(problem, settings)))
    planned = settings["method"] == "nemirovskii-nesterov"
    if planned:  # the l_2 radius bounds the distance in every l_p
        reach = problem.reference.radius * float(rng.choice([1.0 + 1e-15, 2.0]))
        settings |= {"T": int(rng.integers(1, ITERATIONS)), "R": reach if reach > 0.0 else 1.0}
    if rng.random() < 0.6:
        settings["p"] = float(rng.choice(NORMS))
        smoothness = problem.smoothness(settings["p"])
        if rng.random() < 0.5 and settings.get("mu", problem.ridge) <= smoothness < math.inf and smoothness > 0.0:
            settings["L"] = smoothness
    if rng.random() < 0.6:
        settings["radius"] = problem.reference.radius * float(rng.choice([1.0 + 1e-15, 2.0]))
    certified = planned or "radius" in settings or settings.get("mu", problem.ridge) > 0.0
    if certified and rng.random() < 0.5:
        fall = float(problem.reference.start - problem.reference.minimum)
        settings["gap_tol"] = max(fall, 0.0) * float(10.0 ** rng.uniform(-16, -1))
    settings["tol"] = float(rng.choice([0.0, 1e-4, 1e-8, 1e-12], p=(0.5, 0.1, 0.2, 0.2)))
    settings["maxiter"] = ITERATIONS if rng.random() < 0.5 else int(np.exp(rng.uniform(0.0, math.log(ITERATIONS))))
    settings["maxfun"] = EVALUATIONS
    return settings


def applicable(problem: Problem, settings: dict[str, Any]) -> list[str]:
    """The methods that take such a function."""
    images = None if problem.callable or not hasattr(problem.fun, "images") else problem.fun.images()
    barred = set()
    if images is None:
        barred.add("hasd-subspace")
    if images is None or not problem.fun.has_hessian:
        barred.add("hasd-newton")
    if images is None or not images.constant:
        barred.add("hasd-cg")
    if settings.get("mu", problem.ridge) == 0.0:
        barred.add("hasd-restart")
    names = ["auto", *hasd.method_names(), *FAVOURITES]
    return [name for name in names if name not in barred]
