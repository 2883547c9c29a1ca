"""A progress bar for one run, through tqdm."""

from __future__ import annotations

import math
from types import TracebackType
from typing import Any

from .bounds import Bounds
from .record import State


def open_bar(total: int | None, name: str) -> Any:
    """tqdm's bar, imported only when it is needed."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install 'hasd[progress]'") from error
    return tqdm(total=total, desc=name, unit="it")


class Progress:
    """A bar that follows the states: iterations, value, gradient norm.  Does nothing where it is not wanted."""

    def __init__(self, wanted: bool, maxiter: float, name: str, bounds: Bounds):
        """Open a bar where one is wanted."""
        self.bounds = bounds
        self.bar: Any = None
        if wanted:
            self.bar = open_bar(None if math.isinf(maxiter) else int(maxiter), name)

    def __call__(self, state: State) -> None:
        """Show one more state."""
        if self.bar is not None:
            self.bar.update(state.iteration - self.bar.n)
            value = state.at.f if math.isnan(state.fun) else state.fun
            gap = f" gap<={self.bounds.gap:.1e}" if self.bounds.known else ""
            self.bar.set_postfix_str(f"f={value:.6g} |g|={state.grad_norm:.1e}{gap}", refresh=False)

    def __enter__(self) -> Progress:
        """Nothing to open."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the bar, whatever happened."""
        if self.bar is not None:
            self.bar.close()
