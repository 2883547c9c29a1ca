"""SciPy's nonlinear conjugate gradients."""

from __future__ import annotations

from typing import Any

from benchmark_utils.solvers import ScipySolver


class Solver(ScipySolver):
    """Polak-Ribiere with a strong Wolfe line search."""

    name = "CG"
    requirements = ["scipy", "threadpoolctl"]
    method = "CG"

    def options(self) -> dict[str, Any]:
        """No tolerance on gradients."""
        return {"gtol": 0.0}
