"""The problems that ``hasd solve`` knows, and the settings each of them takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PROBLEMS = {
    "minimax": "min over x of max_i |<a_i, x> - b_i|",
    "lp": "min over x of (sum_i |<a_i, x> - b_i|^q)^(1/q), q = --power",
    "logistic": "min over x of mean_i log(1 + exp(-y_i <a_i, x>)) + ridge/2 ||x||^2",
    "lse": "min over x of alpha log sum_i exp((<a_i, x> - b_i)/alpha) + ridge/2 ||x||^2",
    "transport": "min over plans P with marginals a and b of <C, P> + reg sum P log P",
}
FITS = ("minimax", "lp", "logistic", "lse")
TAKES = {
    "power": ("lp",),
    "norm": ("logistic", "lse"),
    "reg": ("transport",),
    "alpha": ("lse",),
    "ridge": ("logistic", "lse"),
    "intercept": ("minimax", "lp", "logistic"),
    "target": FITS,
    "columns": FITS,
    "drop": FITS,
    "missing": FITS,
}
"""Settings that only some problems have; anything else takes them all."""


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None leaves it to the solver."""

    problem: str
    target: str | None = None  # the column or array that is the target; None: the last, or the usual names
    columns: tuple[str, ...] | None = None  # the only ones to use
    drop: tuple[str, ...] | None = None  # columns to leave out
    missing: str | None = None  # "drop" leaves rows with missing values out, anything else refuses them
    header: str = "auto"  # of a text table: yes, no or auto
    decimal: str | None = None  # of a text table; None: by what is there
    max_memory: float = 4 * 2**30  # bytes that the numbers may take
    power: float | None = None
    norm: float | None = None  # p of the geometry
    reg: float | None = None
    alpha: float | None = None
    ridge: float | None = None
    intercept: bool | None = None
    tol: float | None = None
    time_limit: float | None = None
    maxiter: int | None = None
    progress: bool = False  # whether to show progress

    def misplacement(self) -> str | None:
        """A sentence about a setting that this problem does not have; None where all fit."""
        for name, problems in TAKES.items():
            if getattr(self, name) is not None and self.problem not in problems:
                *others, last = problems
                those = f"{', '.join(others)} and {last}" if others else last
                return f"--{name} is for {those}, not for {self.problem}"
        return None

    def limits(self) -> dict[str, Any]:
        """The limits that were given, for the solvers that have their own defaults."""
        given = {"time_limit": self.time_limit, "maxiter": self.maxiter}
        return {name: value for name, value in given.items() if value is not None}
