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
from .._run.progress import NEARLY, Bar, describe, share_of_budget, share_of_way
from .._run.report import Result
from .._run.status import Status, Stop
from .._scipy_style import summary
from ..objectives._operators import float_settings, settings_of_caller


@dataclass
class Session:
    """It keeps the rows of the trace; `callback` is called with ``intermediate_result=``, a `Result` of each row.

    As a context it takes a Stop that is raised inside for the end of the run; `result` ends the progress bar.
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
    aim: float  # the relative gap or the error to reach
    began: float = field(default_factory=time.perf_counter)
    called: float = 0.0  # seconds spent in the callback
    rows: list[tuple[float, ...]] = field(default_factory=list)
    status: Status = Status.PRECISION  # why the run ended
    nit: int = 0  # iterations that are done
    stage: tuple[int, int, float] | None = None  # stages that are done, how many there are, the aim of this one
    first: float = math.inf  # the gap or error at the first row of the stage
    errstate: Any = field(default_factory=settings_of_caller)  # the caller's, for the callback

    def __post_init__(self) -> None:
        """Refuse limits, callbacks and flags that are none; open the bar where one is wanted."""
        check_flags(progress=self.progress, disp=self.disp)
        self.steps = inputs.count("maxiter", self.most if self.maxiter is None else self.maxiter, least=0)
        self.deadline = self.began + inputs.seconds(self.time_limit)
        if self.callback is not None:
            inputs.callback(self.callback)
        has_limit = self.maxiter is not None or self.deadline < math.inf
        self.bar = Bar(self.name, self.progress, has_end=self.aim > 0.0 or has_limit)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(self.deadline - time.perf_counter(), 0.0)

    @property
    def seconds(self) -> float:
        """The seconds that the solver has taken."""
        return time.perf_counter() - self.began - self.called

    @property
    def message(self) -> str:
        """Why the run ended, in words."""
        return self.messages.get(self.status, self.status.message)

    def last(self, column: str) -> float:
        """The newest entry of a column of the trace; -inf before the first."""
        return self.rows[-1][1 + self.columns.index(column)] if self.rows else -math.inf

    def begin_stage(self, number: int, count: int, aim: float) -> None:
        """Begin one of several stages, each with its own aim."""
        self.stage, self.first = (number, count, aim), math.inf

    def note(self, *row: float, left: float, steps: int | None = None, **more: Any) -> None:
        """Keep and report one more row of the trace; Stop where the callback raises StopIteration.

        `left` is the gap or error that has to fall to the aim, and `steps` is what maxiter limits, if that is not nit.
        The callback gets fun, lower, gap and nit, and whatever else is given, which it may change.
        """
        self.rows.append((self.seconds, *row))
        told = dict(zip(self.columns, row, strict=True))
        fun, lower = told["fun"], told.get("lower", 0.0)
        seen = Result({"fun": fun, "lower": lower, "gap": fun - lower, "nit": self.nit} | more)
        share = self._share(left, seen.nit if steps is None else steps)
        self.bar.show(share, seen.nit, describe(fun, seen.gap, f"error={left:.1e}"))
        if self.callback is not None:
            begun = time.perf_counter()
            try:
                with float_settings(self.errstate):
                    self.callback(intermediate_result=seen)
            except StopIteration as stop:
                raise Stop(Status.CALLBACK) from stop
            finally:
                self.called += time.perf_counter() - begun

    def _share(self, left: float, steps: int) -> float:
        """How much of the run is done: of the way to the aim over all stages, or without an aim of the budget."""
        if self.aim > 0.0:
            number, count, aim = self.stage or (0, 1, self.aim)
            self.first = left if math.isinf(self.first) else self.first
            return min((number + share_of_way(self.first, left, aim)) / count, NEARLY)
        limit, seconds = math.inf if self.maxiter is None else self.steps, self.deadline - self.began
        return share_of_budget((steps, limit), (time.perf_counter() - self.began, seconds))

    def result(self, *, fun: float, lower: float, nprod: int, **fields: Any) -> Result:
        """The result: these fields, and those that follow from them and from the run; a summary where one is wanted."""
        names = ("seconds", *self.columns)
        trace = dict(zip(names, np.reshape(self.rows, (-1, len(names))).T.copy(), strict=True))
        status, seconds = self.status, self.seconds
        ended = {"success": status.success, "status": status.code, "message": self.message}
        spent = {"nit": self.nit, "nfev": nprod, "nprod": nprod, "seconds": seconds, "trace": trace}
        res = Result(fun=fun, lower=lower, **({"gap": fun - lower} | ended | spent | fields))
        self.bar.end(status, self.nit, describe(fun, res.gap))
        if self.disp:
            print(summary(res))
        return res

    def __enter__(self) -> Session:
        """The bar is open already."""
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        """Take a Stop for the end of the run; close the bar after any other error, as there will be no result."""
        if isinstance(error, Stop):
            self.status = error.status
        elif error is not None:
            self.bar.close()
        return isinstance(error, Stop)
