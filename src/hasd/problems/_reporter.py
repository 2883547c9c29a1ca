"""What a user is told while a solver works: a progress bar, a callback, a summary at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._inputs import callback as check_callback
from .._run.progress import open_bar
from .._run.report import Result
from .._run.status import Status, Stop
from .._scipy_style import summary


@dataclass
class Reporter:
    """It is told every row of the trace; `callback` is called with ``intermediate_result=``, a `Result` of that row.

    As a context it closes the progress bar, whatever happens inside.
    """

    name: str
    callback: Callable[..., Any] | None = None
    progress: bool = False
    disp: bool = False
    rows: int = 0

    def __post_init__(self) -> None:
        """Refuse what cannot be called; open the bar where one is wanted."""
        if self.callback is not None:
            check_callback(self.callback)
        self.bar = open_bar(None, self.name) if self.progress else None

    def tell(self, fun: float, lower: float) -> None:
        """Report one more row; Stop where the callback raises StopIteration."""
        self.rows += 1
        if self.bar is not None:
            self.bar.update(1)
            self.bar.set_postfix_str(f"fun={fun:.6g} lower={lower:.6g}", refresh=False)
        if self.callback is not None:
            try:
                self.callback(intermediate_result=Result(fun=fun, lower=lower, gap=fun - lower, nit=self.rows - 1))
            except StopIteration as stop:
                raise Stop(Status.CALLBACK) from stop

    def summarise(self, res: Result) -> Result:
        """Print the summary where one is wanted, and return the result."""
        if self.disp:
            print(summary(res))
        return res

    def __enter__(self) -> Reporter:
        """The bar is open already."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()
