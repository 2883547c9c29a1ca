"""A progress bar for one run, through tqdm: how much of the way to its target, or of its budget, is done."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .record import State
from .status import Status
from .stopping import Tolerances
from .trace import Recorder

RUNNING = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}"
ENDED = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
"""tqdm's formats: a run that has ended has no time left to estimate."""
NEARLY = 0.99
"""The largest share that is shown before a target is met: 100% is for success."""


def share_of_way(first: float, now: float, target: float) -> float:
    """How much of the way from `first` down to `target` is done, on a logarithmic scale.

    >>> round(share_of_way(1.0, 1e-2, 1e-8), 6), share_of_way(1.0, 1.0, 1e-8), share_of_way(1.0, 0.0, 0.0)
    (0.25, 0.0, 1.0)
    """
    if now <= target:
        return 1.0
    if not (0.0 < target < now < first < math.inf):
        return 0.0
    return (math.log(first) - math.log(now)) / (math.log(first) - math.log(target))


def share_of_budget(*spent: tuple[float, float]) -> float:
    """How much of the budget is spent, from pairs of what is spent and its limit: that of the limit which is nearest.

    >>> share_of_budget((10, 100), (3.0, 4.0), (5, math.inf))
    0.75
    """
    return min(max((one / limit if limit > 0.0 else 1.0 for one, limit in spent), default=0.0), 1.0)


class Bar:
    """The bar of one run: it never goes back, and ends with the status.  Without a target or budget it is a counter."""

    def __init__(self, name: str, wanted: bool, has_end: bool) -> None:
        """Open tqdm's bar, which is imported only where one is wanted."""
        self.name, self.has_end, self.bar, self.begun = name, has_end, None, False
        if wanted:
            try:
                from tqdm.auto import tqdm
            except ImportError as error:
                raise ImportError("progress=True needs tqdm: pip install 'hasd[progress]'") from error
            # smoothing=0: the time left follows from the share that is done and the time that it took
            known: dict[str, Any] = {"total": 1.0, "bar_format": RUNNING, "smoothing": 0.0} if has_end else {}
            self.bar = tqdm(desc=name, unit="it", miniters=0, **known)

    def show(self, share: float, nit: int, text: str) -> None:
        """Show how much is done after so many iterations."""
        if self.bar is None:
            return
        done = share if self.has_end else nit
        if not self.begun:  # what an earlier run has done, from which this one goes on, took it no time
            self.bar.initial, self.begun = done, True
        self.bar.set_postfix_str(f"{nit} it, {text}" if self.has_end else text, refresh=False)
        self.bar.update(max(done - self.bar.n, 0))

    def end(self, status: Status, nit: int, text: str) -> None:
        """Close it: full where the run succeeded, and otherwise where it is."""
        if self.bar is None:
            return
        self.bar.set_description_str(f"{self.name}, {status.word}", refresh=False)
        self.bar.bar_format = ENDED if self.has_end else None
        self.show(1.0 if status.success else self.bar.n, nit, text)
        self.close()

    def close(self) -> None:
        """Leave it as it is."""
        if self.bar is not None:
            self.bar.close()


def describe(fun: float, gap: float, otherwise: str = "") -> str:
    """What a bar says of a point: its value, and the certified gap or what is known instead."""
    return f"f={fun:.6g} " + (f"gap<={gap:.1e}" if math.isfinite(gap) else otherwise)


@dataclass
class Way:
    """How much of a run is done: of the way to what was asked for, or without a target of the budget."""

    wanted: Tolerances
    limits: tuple[float, float, float]  # iterations, evaluations, seconds
    began: float = field(default_factory=time.perf_counter)
    first_gap: float = math.inf  # the first that is certified

    @property
    def has_target(self) -> bool:
        """Whether a positive tolerance is to be reached."""
        return self.wanted.gradient or self.wanted.bounds.gap_tol > 0.0

    @property
    def has_end(self) -> bool:
        """Whether it is known at all where a run ends."""
        return self.has_target or min(self.limits) < math.inf

    def share(self, state: State, nfev: int) -> float:
        """The share that is done; where gradient and gap are asked for, of what is further behind."""
        if not self.has_target:
            spent = (state.iteration, nfev, time.perf_counter() - self.began)
            return share_of_budget(*zip(spent, self.limits, strict=True))
        wanted, bounds, shares = self.wanted, self.wanted.bounds, [NEARLY]
        if wanted.gradient:
            target = max(wanted.tol * state.grad_norm0, wanted.gtol)
            shares.append(share_of_way(state.grad_norm0, state.grad_norm, target))
        if bounds.gap_tol > 0.0 and bounds.can_certify:
            self.first_gap = bounds.gap if math.isinf(self.first_gap) else self.first_gap
            shares.append(share_of_way(self.first_gap, bounds.gap, bounds.gap_tol))
        return min(shares) if len(shares) > 1 else 0.0


def record_with_bar(recorder: Recorder, way: Way, bar: Bar) -> Callable[[State], None]:
    """The recorder, followed by the bar where there is one."""
    if bar.bar is None:
        return recorder

    def observe(state: State) -> None:
        recorder(state)
        value = state.at.f if math.isnan(state.fun) else state.fun
        text = describe(value, recorder.bounds.gap_of(value, state.at), f"|g|={state.grad_norm:.1e}")
        bar.show(way.share(state, recorder.oracle.counts[0]), state.iteration, text)

    return observe
