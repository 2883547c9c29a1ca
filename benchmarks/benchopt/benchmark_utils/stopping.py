"""When a run ends.

benchopt's default, `SufficientProgressCriterion`, ends a run after three evaluations in a row without a new best value.
An accelerated method is not monotone: it may stay above its best value, even above its start, for hundreds of
iterations and go on to the minimum from there.  Stopped on the way, it is reported as converged.

Here a run ends where the gradient is small, or where the values do not move any more, up or down.
"""

from __future__ import annotations

import math
from typing import Any

from benchopt.stopping_criterion import StoppingCriterion


class Settled(StoppingCriterion):
    """Ends a run where the gradient is small, or where the value has come to rest.

    * ||grad f|| <= tol times that at the start: for a convex f the gap is then below tol times R times that norm.
    * All values since a `factor`-th of the iterations are the same but for eps of what was gained or of the value
      itself, and there were `least` iterations: machine precision.

    Slow or oscillating runs are ended by benchopt's own limits on time and evaluations, and reported as such.

    >>> rows = [{"stop_val": t, "objective_value": 1.0, "objective_grad_norm": 1.0} for t in (0, 1, 2, 3, 4)]
    >>> Settled().check_convergence(rows)[0], Settled(least=3).check_convergence(rows)[0]
    (False, True)
    """

    def __init__(
        self,
        tol: float = 1e-9,
        eps: float = 1e-13,
        factor: float = 4.0,
        least: int = 200,
        strategy: str | None = None,
        key_to_monitor: str = "value",
        minimize: bool = True,
    ) -> None:
        """Keep the settings; benchopt makes a copy for every run from what is handed to its constructor."""
        self.tol, self.eps, self.factor, self.least = tol, eps, factor, least
        super().__init__(
            tol=tol,
            eps=eps,
            factor=factor,
            least=least,
            strategy=strategy,
            key_to_monitor=key_to_monitor,
            minimize=minimize,
        )

    def check_convergence(self, objective_list: list[dict[str, Any]]) -> tuple[bool, float]:
        """Whether to end, and how far the gradient has come, on a scale of logarithms."""
        first, last = objective_list[0], objective_list[-1]
        start, norm = first["objective_grad_norm"], last["objective_grad_norm"]
        if norm <= self.tol * start:
            return True, 1.0
        progress = min(1.0, max(0.0, math.log(norm / start) / math.log(self.tol)))
        return last["stop_val"] >= self.least and self._at_rest(objective_list), progress

    def _at_rest(self, objective_list: list[dict[str, Any]]) -> bool:
        """Whether the latest values agree."""
        since = objective_list[-1]["stop_val"] / self.factor
        latest = [row["objective_value"] for row in objective_list if row["stop_val"] >= since]
        start, lowest = objective_list[0]["objective_value"], min(latest)
        return max(latest) - lowest <= self.eps * max(start - lowest, abs(lowest))
