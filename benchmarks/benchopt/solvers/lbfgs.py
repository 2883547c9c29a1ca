"""SciPy's L-BFGS-B."""

from __future__ import annotations

from typing import Any

from benchmark_utils.solvers import UNLIMITED, ScipySolver


class Solver(ScipySolver):
    """L-BFGS-B with `memory` pairs; SciPy's default is 10."""

    name = "L-BFGS-B"
    requirements = ["scipy", "threadpoolctl"]
    parameters = {"memory": [10]}
    method = "L-BFGS-B"

    def options(self) -> dict[str, Any]:
        """No tolerance on values or gradients."""
        return {"ftol": 0.0, "gtol": 0.0, "maxfun": UNLIMITED, "maxls": 50, "maxcor": self.memory}
