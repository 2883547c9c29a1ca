"""HASD itself: accelerated steepest descent in an l_p norm."""

from __future__ import annotations

from typing import Any

from benchmark_utils.solvers import HasdSolver


class Solver(HasdSolver):
    """`method="hasd"`: steepest steps in l_p, L found by backtracking."""

    name = "hasd-lp"
    requirements = ["scipy", "threadpoolctl"]
    parameters = {"p": [float("inf")]}
    method = "hasd"

    def settings(self) -> dict[str, Any]:
        """The norm; the command line hands over `p=inf` as a word."""
        return {"p": float(self.p)}
