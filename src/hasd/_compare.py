"""compare(): several methods on one problem at equal evaluation budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ._checks import whole_number
from ._minimize import minimize
from ._run.problem import Method


@dataclass(frozen=True, repr=False)
class Comparison:
    """The results of `compare` by label, as a table (`rows`) or a plot."""

    results: dict[str, OptimizeResult]
    budget: int

    def __repr__(self) -> str:
        """One line for each method."""
        width = max(len(str(label)) for label in self.results)
        return "\n".join(
            f"{row['method']!s:>{width}}: fun {row['fun']:.8g}, {row['above_best']:.3g} above the best, "
            f"{row['nfev']} evaluations, {row['nit']} iterations"
            for row in self.rows()
        )

    @property
    def best(self) -> float:
        """The lowest value that any method recorded."""
        return min(float(np.nanmin([res.fun, *res.trace["fun"]])) for res in self.results.values())

    def rows(self) -> list[dict[str, Any]]:
        """One row for each method: what it reached with the budget."""
        return [
            {
                "method": label,
                "fun": res.fun,
                "above_best": res.fun - self.best,
                "nfev": res.nfev,
                "nit": res.nit,
            }
            for label, res in self.results.items()
        ]

    def plot(self, ax: Any = None, *, reference: float | None = None) -> Any:
        """Plot f(x_t) - reference (by default the best value seen) against evaluations; needs matplotlib."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError("plotting needs matplotlib: pip install 'hasd[plot]'") from error
        ax = plt.subplots(layout="constrained")[1] if ax is None else ax
        floor = self.best if reference is None else reference
        for label, res in self.results.items():
            gap = res.trace["fun"] - floor
            shown = gap > 0
            ax.semilogy(res.trace["nfev"][shown], gap[shown], label=label)
        ax.set_xlabel("function evaluations")
        ax.set_ylabel("f(x) − best value seen" if reference is None else "f(x) − reference")
        ax.legend()
        return ax


def compare(
    fun: Any, x0: Any, methods: str | Iterable[str] | Mapping[str, str | Method], budget: int, **common: Any
) -> Comparison:
    """Run several methods on one problem, each until it has asked for `budget` evaluations.

    `methods` is a list of names, or a mapping from labels to names or method objects.  Further keywords are passed to
    `minimize` for every method.

    Examples
    --------
    >>> import numpy as np, hasd
    >>> f = hasd.objectives.Quadratic(np.diag(np.arange(1.0, 50.0)))
    >>> both = hasd.compare(f, np.ones(49), ["gradient-descent", "agd"], budget=100, L=49.0, p=2)
    >>> [row["method"] for row in sorted(both.rows(), key=lambda row: row["fun"])]
    ['agd', 'gradient-descent']
    """
    methods = [methods] if isinstance(methods, str) else methods
    named = dict(methods) if isinstance(methods, Mapping) else {name: name for name in methods}
    if not named:
        raise ValueError("methods must name at least one method")
    for own in ("trace", "maxfun", "method"):
        if own in common:
            raise TypeError(f"compare sets {own} itself; it must not be given")
    whole_number("budget", budget, least=1)
    settings = {"tol": 0.0, **common, "maxfun": budget}
    return Comparison({label: minimize(fun, x0, method=name, **settings) for label, name in named.items()}, budget)
