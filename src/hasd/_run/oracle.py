"""The counted first-order oracle.

A method asks for an `Evaluation` (x, f, g) or for a value, and passes the evaluation along; nothing is looked up by
comparing points.  Counts are exact: what the method asked for (`nfev`, `njev`, `nprod`) and what only the record
asked for (`nrecord`) add up to what the user's function saw.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from .._math.arrays import Array, resolution
from .._math.evaluation import NO_BEND, Bend, Change, Evaluation, is_finite
from .._math.geometry import norm2
from .sources import Source, refuse_late
from .status import Status, Stop


@dataclass
class Oracle:
    """What a method sees of the function, with the budgets."""

    source: Source
    maxfun: float = math.inf
    deadline: float = math.inf  # on time.perf_counter()
    recorded: tuple[int, int, int] = (0, 0, 0)  # what only the record asked for
    best: Evaluation | None = None  # lowest finite f the method evaluated with its gradient
    lowest: tuple[float, Array | None] = (math.inf, None)  # lowest finite f of the points evaluated without one
    bend: Bend = NO_BEND  # the curvature seen, by which the rounding of a user's function is judged
    newest: Change | None = None  # the change that was asked for last
    kept: ClassVar[tuple[str, ...]] = ("best", "lowest", "bend")

    @property
    def counts(self) -> tuple[int, int, int]:
        """(nfev, njev, nprod) asked for by the method."""
        nfev, njev, nprod = self.source.counts
        off = self.recorded
        return nfev - off[0], njev - off[1], nprod - off[2]

    @property
    def nrecord(self) -> int:
        """Evaluations made for the record alone."""
        return self.recorded[0]

    @property
    def is_out_of_time(self) -> bool:
        """Whether no time is left."""
        return time.perf_counter() >= self.deadline

    def _check_budget(self, x: Array | None = None) -> None:
        """Stop where value and gradient at x (None: one evaluation) would go beyond a limit."""
        if self.maxfun < math.inf:
            price = 1 if x is None else self.source.price(x)
            if self.counts[0] + price > self.maxfun:
                raise Stop(Status.MAXFUN)
        if self.deadline < math.inf:
            refuse_late(self.deadline)

    def evaluate(self, x: Array) -> Evaluation:
        """f and g at x, counted against the budget."""
        self.newest = None  # it holds vectors, and is about older evaluations than those to come
        if self.maxfun < math.inf or self.deadline < math.inf:
            self._check_budget(x)
        return self._take_in(self.evaluation(x, *self.source.value_and_grad(x, self.deadline)))

    def settle(self, x: Array) -> Evaluation:
        """The same at the point that the objective offers in place of x: some of its variables at their best values."""
        self.newest = None
        if self.maxfun < math.inf or self.deadline < math.inf:
            self._check_budget(x)
        return self._take_in(self.evaluation(*self.source.settle(x, self.deadline)))

    def _take_in(self, e: Evaluation) -> Evaluation:
        """The evaluation, after its part in what the oracle knows."""
        if e.f == -math.inf:
            raise Stop(Status.UNBOUNDED)
        if e.finite and (self.best is None or e.f < self.best.f):
            self.best = e
        self.see(e)
        return e

    def change(self, before: Evaluation, after: Evaluation) -> Change:
        """From one evaluation to another: computed once, as steps, curvature and convexity are all about the newest."""
        newest = self.newest
        if newest is None or newest.before is not before or newest.after is not after:
            newest = self.newest = Change.between(before, after)
        return newest

    def value(self, x: Array) -> float:
        """f at x, counted against the budget; NaN at infinity, where no minimum is attained."""
        self._check_budget()
        f = self.source.value(x)
        if f == -math.inf:
            raise Stop(Status.UNBOUNDED)
        if not is_finite(x):
            return math.nan
        if f < self.lowest[0]:
            self.lowest = (f, x)
        return f

    def evaluation(self, x: Array, f: float, g: Array, image: float | None = None) -> Evaluation:
        """The function at x, with the precision it was computed in and what it may be off by."""
        precision, slope, size = self.source.precision, norm2(g), norm2(x)
        e = object.__new__(Evaluation)  # a frozen class is slow to fill by its own means
        known = e.__dict__  # with the cached properties that are asked for in any case
        known.update(x=x, f=f, g=g, precision=precision, norm2=slope, size=size, eps=max(resolution(x), precision))
        if math.isfinite(f) and math.isfinite(slope) and math.isfinite(size):
            known["finite"] = True
        known["doubt"] = self.source.doubt(e, image)
        if image is not None:  # a method made it from an operator's images
            self.see(e)
        return e

    def charge(self) -> None:
        """Count one evaluation that a method makes by itself, on images it keeps."""
        self._check_budget()
        self.source.charge()

    def record(self, x: Array) -> Evaluation:
        """f and g at x for the record: outside the method's counts and budget."""
        return self._call_for_record(lambda: self.evaluation(x, *self.source.value_and_grad(x)))

    def see(self, e: Evaluation) -> None:
        """Learn of the curvature between the last evaluation and this one."""
        if self.source.by_curvature and e.finite and e is not self.bend.last:
            last = self.bend.last
            self.bend = Bend(last=e) if last is None else self.bend.with_change(self.change(last, e))

    def probe(self, e: Evaluation) -> None:
        """Evaluate a user's function at a second point, where it was at one only, so that some curvature is seen."""
        if e.finite and self.source.by_curvature and self.bend.pairs == 0 and not self.is_out_of_time:
            step = e.eps ** (1.0 / 3.0) * max(1.0, e.size) / math.sqrt(e.x.shape[0])
            there = self.record(e.x + step)
            self.bend = Bend(last=e).with_evaluation(there) if there.finite else self.bend

    def sharpen(self, e: Evaluation) -> Evaluation | None:
        """The same evaluation with less doubt, where the objective can: for the record, and at most once a run."""
        return self._call_for_record(lambda: self.source.sharpen(e))

    def record_value(self, x: Array) -> float:
        """f at x for the record."""
        return self._call_for_record(lambda: self.source.value(x))

    def _call_for_record(self, call: Callable[[], Any]) -> Any:
        before = self.source.counts
        try:
            return call()
        finally:
            after = self.source.counts
            a, b, c = (old + new - was for old, new, was in zip(self.recorded, after, before, strict=True))
            self.recorded = (a, b, c)
