"""The problems that ``hasd solve`` knows, and the settings each of them takes, which are its options too."""

from __future__ import annotations

from argparse import BooleanOptionalAction
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from .options import memory, names, number, whole_number

PROBLEMS = {
    "minimax": "min over x of max_i |<a_i, x> - b_i|",
    "lp": "min over x of (sum_i |<a_i, x> - b_i|^q)^(1/q), q = --power",
    "logistic": "min over x of mean_i log(1 + exp(-y_i <a_i, x>)) + ridge/2 ||x||^2",
    "lse": "min over x of alpha log sum_i exp((<a_i, x> - b_i)/alpha) + ridge/2 ||x||^2",
    "transport": "min over plans P with marginals a and b of <C, P> + reg sum P log P",
}
FITS, SMOOTH = ("minimax", "lp", "logistic", "lse"), ("logistic", "lse")
positive = partial(number, least=5e-324, what="finite number above 0")
not_negative = partial(number, least=0.0, what="finite number of at least 0")
exponent = partial(number, least=2.0, what="finite number of at least 2")
norm = partial(number, least=2.0, what="number from 2 to inf", finite=False)


def option(text: str, problems: Iterable[str] = PROBLEMS, kind: Any = None, metavar: Any = None, **how: Any) -> Any:
    """A setting of these problems that the command takes as an option; ``how`` is for argparse."""
    given = {"help": text, "type": kind, "metavar": metavar, "default": None, **how}
    arguments = {name: value for name, value in given.items() if value is not None}
    return field(default=given["default"], metadata={"problems": problems, "argparse": arguments})


@dataclass(frozen=True)
class Settings:
    """What the user asked for; None leaves it to the solver."""

    problem: str
    target: str | None = option("what b or y is: a column by name or index, or an array", FITS, metavar="COLUMN")
    columns: tuple[str, ...] | None = option("use these columns only, by name or index", FITS, names, "A,B,...")
    drop: tuple[str, ...] | None = option("leave these columns out", FITS, names, "A,B,...")
    missing: str | None = option(
        "a row with an empty cell: refuse the file (default), or drop the row", FITS, choices=("refuse", "drop")
    )
    intercept: bool | None = option("add a column of ones (default: no)", FITS[:3], action=BooleanOptionalAction)
    relative: bool | None = option(
        "minimax: residuals relative to the target (default: no)", ("minimax",), action=BooleanOptionalAction
    )
    power: float | None = option("lp: the power of the loss (default: 4)", ("lp",), exponent, "Q")
    norm: float | None = option("logistic, lse: the geometry (default: the method chooses)", SMOOTH, norm, "P")
    reg: float | None = option(
        "transport: the entropy's weight (default: 1%% of the costs' range)", ("transport",), positive
    )
    alpha: float | None = option("lse: the smoothing (default: 1)", ("lse",), positive)
    ridge: float | None = option("logistic, lse: weight of ||x||^2/2 (default: 0)", SMOOTH, not_negative)
    tol: float | None = option(
        "what to reach: the relative gap (minimax 1e-9, lp 1e-8), the gradient's norm over that at 0 (logistic, lse "
        "1e-8), the error of the marginals (transport 1e-6)",
        kind=not_negative,
    )
    time_limit: float | None = option("for solving; reading is not counted", kind=not_negative, metavar="SECONDS")
    maxiter: int | None = option("iterations at most; minimax: linear programs", kind=whole_number, metavar="N")
    header: str = option("csv: does the first line hold names?", choices=("auto", "yes", "no"), default="auto")
    decimal: str | None = option("csv: . or , (default: see below)", choices=(".", ","), metavar="SIGN")
    max_memory: float = option(
        "refuse files whose numbers take more (default: 4G)", kind=memory, metavar="SIZE", default=4.0 * 2**30
    )
    progress: bool = False  # whether to show a progress bar

    def misplacement(self) -> str | None:
        """A sentence about a setting that this problem does not have; None where all fit."""
        for one in fields(self):
            problems = one.metadata.get("problems", PROBLEMS)
            if getattr(self, one.name) is not None and self.problem not in problems:
                *others, last = problems
                those = f"{', '.join(others)} and {last}" if others else last
                return f"--{one.name} is for {those}, not for {self.problem}"
        return None

    def limits(self) -> dict[str, Any]:
        """The limits that were given, for the solvers that have their own defaults, and whether to show a bar."""
        given = {"time_limit": self.time_limit, "maxiter": self.maxiter, "progress": self.progress}
        return {name: value for name, value in given.items() if value is not None}
