"""hasd with nothing chosen by the user."""

from __future__ import annotations

from benchmark_utils.solvers import HasdSolver


class Solver(HasdSolver):
    """`hasd.minimize(f, x0)`: the method is chosen by what a product with A costs."""

    name = "hasd"
    requirements = ["scipy", "threadpoolctl"]
    method = "auto"
