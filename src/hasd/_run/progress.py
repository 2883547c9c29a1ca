"""A progress bar for one run, through tqdm."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from .loop import Observer
from .record import State
from .trace import Recorder


def open_bar(total: int | None, name: str) -> Any:
    """tqdm's bar, imported only when it is needed."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install 'hasd[progress]'") from error
    return tqdm(total=total, desc=name, unit="it")


@contextmanager
def recorder_with_bar(recorder: Recorder, wanted: bool, maxiter: float, name: str) -> Iterator[Observer]:
    """The recorder, where it is wanted with a bar: iterations, value, gradient norm, certified gap."""
    if not wanted:
        yield recorder
        return
    with closing(open_bar(None if math.isinf(maxiter) else int(maxiter), name)) as bar:

        def observe(state: State) -> None:
            recorder(state)
            bar.update(state.iteration - bar.n)
            value = state.at.f if math.isnan(state.fun) else state.fun
            gap = f" gap<={recorder.bounds.gap_of(value, state.at):.1e}" if recorder.bounds.can_certify else ""
            bar.set_postfix_str(f"f={value:.6g} |g|={state.grad_norm:.1e}{gap}", refresh=False)

        yield observe
