"""One call of a solver, whichever: its limits, its trace, what the user is told on the way, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _inputs as inputs
from .._checks import check_flags
from .._run.progress import open_bar
from .._run.report import Result
from .._run.status import Status, Stop
from .._scipy_style import summary


@dataclass
class Session:
    """It keeps the rows of the trace; `callback` is called with ``intermediate_result=``, a `Result` of each row.

    As a context it closes the progress bar, whatever happens inside, and a Stop raised there ends the run.
    """

    name: str
    columns: tuple[str, ...]  # of the trace, after the seconds
    messages: dict[Status, str]  # where this solver has other words than the status
    most: int  # iterations where the caller sets no limit
    maxiter: float | None
    time_limit: float | None
    callback: Callable[..., Any] | None
    progress: bool
    disp: bool
    began: float = field(default_factory=time.perf_counter)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    status: Status = Status.PRECISION  # why the run ended
    nit: int = 0  # iterations that are done

    def __post_init__(self) -> None:
        """Refuse limits, callbacks and flags that are none; open the bar where one is wanted."""
        check_flags(progress=self.progress, disp=self.disp)
        self.steps = inputs.count("maxiter", self.most if self.maxiter is None else self.maxiter, least=0)
        self.deadline = self.began + inputs.seconds(self.time_limit)
        if self.callback is not None:
            inputs.callback(self.callback)
        self.bar = open_bar(None, self.name) if self.progress else None

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def message(self) -> str:
        """Why the run ended, in words."""
        return self.messages.get(self.status, self.status.message)

    def last(self, column: str) -> float:
        """The newest entry of a column of the trace; -inf before the first."""
        return self.rows[-1][1 + self.columns.index(column)] if self.rows else -math.inf

    def note(self, *row: float, **more: Any) -> None:
        """Keep and report one more row of the trace; Stop where the callback raises StopIteration.

        The callback gets fun, lower, gap and nit, and whatever else is given, which it may change.
        """
        self.rows.append((time.perf_counter() - self.began, *row))
        told = dict(zip(self.columns, row, strict=True))
        fun, lower = told["fun"], told.get("lower", 0.0)
        if self.bar is not None:
            self.bar.update(1)
            self.bar.set_postfix_str(f"fun={fun:.6g} lower={lower:.6g}", refresh=False)
        if self.callback is not None:
            try:
                seen = {"fun": fun, "lower": lower, "gap": fun - lower, "nit": self.nit}
                self.callback(intermediate_result=Result(seen | more))
            except StopIteration as stop:
                raise Stop(Status.CALLBACK) from stop

    def result(self, *, fun: float, lower: float, nprod: int, **fields: Any) -> Result:
        """The result: these fields, and those that follow from them and from the run; a summary where one is wanted."""
        names = ("seconds", *self.columns)
        trace = dict(zip(names, np.reshape(self.rows, (-1, len(names))).T.copy(), strict=True))
        status, seconds = self.status, time.perf_counter() - self.began
        ended = {"success": status.success, "status": status.code, "message": self.message}
        spent = {"nit": self.nit, "nfev": nprod, "nprod": nprod, "seconds": seconds, "trace": trace}
        res = Result(fun=fun, lower=lower, gap=fun - lower, **(ended | spent | fields))
        if self.disp:
            print(summary(res))
        return res

    def __enter__(self) -> Session:
        """The bar is open already."""
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        """Close the bar; take a Stop for the end of the run."""
        if self.bar is not None:
            self.bar.close()
        if isinstance(error, Stop):
            self.status = error.status
        return isinstance(error, Stop)
