"""Where values come from: a user's callable or one of our objectives, each with exact counts of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .._math.arrays import Array, convert_like, copy_of, namespace, resolution, to_numpy
from .._math.doubt import Doubt, Sizes, doubt_of_differences, doubt_of_function
from .._math.evaluation import Evaluation, sizes_of
from ..objectives._operators import float_settings, settings_of_caller
from .capabilities import traits_of_objective
from .layout import VECTOR, Layout
from .returned import as_array, as_gradient, as_scalar
from .status import Status, Stop


class Source(Protocol):
    """Where values come from, with its own counts; taken for a user's function where it does not say otherwise."""

    precision: float  # the relative error of its values beyond that of x's own numbers
    by_curvature: bool  # whether its rounding is judged by the curvature that is seen, and not by its data

    @property
    def counts(self) -> tuple[int, int, int]:
        """(nfev, njev, nprod) so far."""
        ...

    def value(self, x: Array) -> float:
        """f(x)."""
        ...

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f(x) and grad f(x); where that takes several evaluations, none begins after the deadline."""
        ...

    def settle(self, x: Array, deadline: float = math.inf) -> tuple[Array, float, Array]:
        """A point at least as good as x that costs no more, with f and grad f there; x itself where none is known."""
        return (x, *self.value_and_grad(x, deadline))

    def charge(self) -> None:
        """Count one evaluation of both without making it."""
        ...

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        ...

    def price(self, x: Array) -> int:
        """How many evaluations value and gradient together are counted as."""
        return 1

    def sharpen(self, e: Evaluation) -> Evaluation | None:
        """The same evaluation with less doubt; None where that cannot be had."""
        return None

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """What f and g may be off by; image: as in `Objective.doubt`."""
        return doubt_of_function(e.f, e.norm2, e.size, e.x.shape[0], e.eps)


def refuse_late(deadline: float) -> None:
    """Stop where the clock has reached the deadline."""
    if time.perf_counter() >= deadline:
        raise Stop(Status.TIME)


def _step(size: Any, eps: float) -> Any:
    """The step of the finite difference in a variable of that size."""
    return math.sqrt(eps) * np.maximum(1.0, size)


@dataclass(kw_only=True)
class CountingSource(Source):
    """A source that counts its own evaluations."""

    nfev: int = 0
    njev: int = 0
    precision: float = 0.0
    by_curvature: bool = True

    def charge(self) -> None:
        """One evaluation of value and gradient."""
        self.nfev += 1
        self.njev += 1


@dataclass
class BlackBox(CountingSource):
    """A user's function.  It is handed a copy of x in the user's layout, so that it may write into its argument.

    It is taken to be as precise as its argument, or as the values and gradients that it returns.
    """

    fun: Callable[..., Any]
    jac: Any  # a callable; True: fun returns (f, g); None: finite differences
    args: tuple[Any, ...] = ()
    layout: Layout = VECTOR  # how the user's x is laid out
    errstate: Any = field(default_factory=settings_of_caller)  # the caller's, for the caller's own code

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """The doubt of a user's function, with what finite differences add."""
        if self.jac is not None:
            return doubt_of_function(e.f, e.norm2, e.size, e.x.shape[0], e.eps)
        at = sizes_of(e, self.precision)
        return doubt_of_differences(at, _step(0.0, at.eps), _step(at.top, at.eps))

    def price(self, x: Array) -> int:
        """Evaluations of fun that value and gradient together take."""
        return x.shape[0] + 1 if self.jac is None else 1

    @property
    def counts(self) -> tuple[int, int, int]:
        """(nfev, njev, 0): a black box has no products to count."""
        return self.nfev, self.njev, 0

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        self.nfev, self.njev, _ = counts

    def value(self, x: Array) -> float:
        """f(x); where fun returns the gradient too, it is counted and dropped."""
        if self.jac is True:
            return self.value_and_grad(x)[0]
        self.nfev += 1
        return self._scalar(self._call(self.fun, x), x)

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f(x) and grad f(x)."""
        if self.jac is True:
            self.nfev += 1
            self.njev += 1
            pair = self._call(self.fun, x)
            try:
                f, g = pair
            except (TypeError, ValueError):
                raise TypeError("with jac=True, fun must return the pair (f, g)") from None
            return self._scalar(f, x), self._gradient(g, x)
        f = self.value(x)
        if self.jac is None:
            g = as_gradient(self._differences(x, f, deadline), x)
            self.njev += 1  # not where the deadline broke it off
            return f, g
        self.njev += 1
        return f, self._gradient(self._call(self.jac, x), x)

    def _call(self, function: Callable[..., Any], x: Array) -> Any:
        """What the user's function returns at x, under the caller's settings."""
        argument = copy_of(x)
        if self.layout.shapes:
            argument = self.layout.restore(argument)
        with float_settings(self.errstate):
            return function(argument, *self.args)

    def _scalar(self, value: Any, x: Array) -> float:
        """The value as a float."""
        if type(value) is float:
            return value
        self._learn_precision(value, x, "what fun returns")
        return as_scalar(value)

    def _gradient(self, value: Any, x: Array) -> Array:
        """The gradient in x's type."""
        if self.layout.shapes:
            value = self.layout.flatten(value, "what jac returns")
        self._learn_precision(value, x, "what jac returns")
        return as_gradient(value, x)

    def _learn_precision(self, value: Any, x: Array, name: str) -> None:
        """Where a value or gradient comes in a coarser type than x, the function is taken to be computed in that."""
        if getattr(value, "dtype", x.dtype) != x.dtype:
            array = as_array(value, name)
            if namespace(array).isdtype(array.dtype, "real floating"):
                self.precision = max(self.precision, resolution(array))

    def _differences(self, x: Array, f: float, deadline: float) -> np.ndarray:
        """The gradient by forward differences: one more evaluation for each variable."""
        start = to_numpy(x).astype(np.float64)
        # each variable moved by a step, as x's precision rounds it
        moved = to_numpy(convert_like(start + _step(np.abs(start), resolution(x)), x)).astype(np.float64)
        slopes = np.empty_like(start)
        with float_settings():  # inf - inf near a pole gives a NaN slope, and the trial is rejected
            for i in range(start.size):
                refuse_late(deadline)
                y = start.copy()
                y[i] = moved[i]
                slopes[i] = (self.value(convert_like(y, x)) - f) / (moved[i] - start[i])
        return slopes


@dataclass
class ObjectiveSource(CountingSource):
    """One of our objectives, on a copy that counts for this run alone."""

    objective: Any
    mu: float = 0.0  # strong convexity that the user vouches for

    def __post_init__(self) -> None:
        """Count from zero, whatever the caller did with the objective before."""
        self.objective = self.objective.with_own_counter()
        self.precision = getattr(self.objective, "precision", 0.0)  # that of products with its matrix
        # true where its data do not tell
        self.by_curvature = self.objective.doubt(Sizes(0.0, 0.0, 0.0, 0.0, 1, 0.0)) is None

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """The doubt from the objective's data; where these do not tell, as for any function."""
        known = self.objective.doubt(sizes_of(e), image)
        return super().doubt(e) if known is None else self._doubt_for_cuts(known)

    def _doubt_for_cuts(self, doubt: Doubt) -> Doubt:
        """The doubt for cuts: with more curvature than the ridge's they need the gradient at x, not at its image."""
        return doubt._replace(slope=doubt.true, shift=math.inf) if self.mu > self.objective.ridge else doubt

    def sharpen(self, e: Evaluation) -> Evaluation | None:
        """The same evaluation with less doubt, where the objective can."""
        sharpen = traits_of_objective(self.objective).sharpen
        found = None if sharpen is None else sharpen(e.x, sizes_of(e))
        if found is None:
            return None
        f, g, doubt = found
        return Evaluation(e.x, f, g, self.precision, self._doubt_for_cuts(doubt))

    @property
    def counts(self) -> tuple[int, int, int]:
        """(nfev, njev, nprod)."""
        return self.nfev, self.njev, self.objective.nprod

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        self.nfev, self.njev, self.objective.nprod = counts

    def value(self, x: Array) -> float:
        """f(x): one product."""
        self.nfev += 1
        return self.objective(x)

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f(x) and grad f(x), in one evaluation."""
        self.charge()
        return self.objective.value_and_grad(x)

    def settle(self, x: Array, deadline: float = math.inf) -> tuple[Array, float, Array]:
        """The point that the objective offers in place of x, with f and grad f there, in one evaluation."""
        settle = traits_of_objective(self.objective).settle
        if settle is None:
            return super().settle(x, deadline)
        self.charge()
        return settle(x)
