"""hasd's quasi-Newton method."""

from __future__ import annotations

from benchmark_utils.solvers import HasdSolver


class Solver(HasdSolver):
    """`method="hasd-qn"`: a quasi-Newton step in the certified sequence, for any function."""

    name = "hasd-qn"
    requirements = ["scipy", "threadpoolctl"]
    method = "hasd-qn"
