"""Nesterov's accelerated gradient descent, hasd's."""

from __future__ import annotations

from benchmark_utils.solvers import HasdSolver


class Solver(HasdSolver):
    """`method="agd"`: L found by backtracking, the ridge used as strong convexity."""

    name = "AGD"
    requirements = ["scipy", "threadpoolctl"]
    method = "agd"
