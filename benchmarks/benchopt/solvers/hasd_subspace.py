"""hasd's method on cached images."""

from __future__ import annotations

from benchmark_utils.solvers import HasdSolver


class Solver(HasdSolver):
    """`method="hasd-subspace"`: Newton over the span of the last directions, on cached images of A."""

    name = "hasd-subspace"
    requirements = ["scipy", "threadpoolctl"]
    method = "hasd-subspace"
