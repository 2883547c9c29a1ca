"""SciPy's truncated Newton method."""

from __future__ import annotations

from typing import Any

from benchmark_utils.solvers import ScipySolver


class Solver(ScipySolver):
    """Newton-CG with products of the exact Hessian: two products with A each."""

    name = "Newton-CG"
    requirements = ["scipy", "threadpoolctl"]
    method = "Newton-CG"
    second_order = True

    def options(self) -> dict[str, Any]:
        """No tolerance on steps."""
        return {"xtol": 0.0}
