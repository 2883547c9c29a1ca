"""Where values come from: a user's callable or one of our objectives, each with exact counts of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.optimize import approx_fprime

from .._checks import show_value
from .._math.arrays import (
    Array,
    as_numpy,
    convert_like,
    copy_of,
    detach,
    is_foreign,
    library,
    namespace,
    resolution,
    to_host,
    to_numpy,
)
from .._math.doubt import Doubt, Sizes, doubt_of_differences, doubt_of_function
from .._math.evaluation import Evaluation, sizes_of
from .capabilities import traits_of_objective
from .status import Status, Stop


class Source(Protocol):
    """Where values come from: a user's callable or one of our objectives, with its own counts."""

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

    def charge(self) -> None:
        """Count one evaluation of both without making it."""
        ...

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        ...

    def price(self, x: Array) -> int:
        """How many evaluations value and gradient together are counted as."""
        ...

    def sharpen(self, e: Evaluation) -> Evaluation | None:
        """The same evaluation with less doubt; None where that cannot be had."""
        ...

    @property
    def precision(self) -> float:
        """The relative error of its values beyond that of x's own numbers."""
        ...

    @property
    def by_curvature(self) -> bool:
        """Whether its rounding is judged by the curvature that is seen, and not by its data."""
        ...

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """What f and g may be off by; image: as in `Objective.doubt`."""
        ...


def refuse_late(deadline: float) -> None:
    """Stop where the clock has reached the deadline."""
    if time.perf_counter() >= deadline:
        raise Stop(Status.TIME)


def as_scalar(value: Any, name: str = "fun") -> float:
    """What the user's function returned, as a float; anything but one real number is an error."""
    if type(value) is float:
        return value
    if isinstance(value, tuple):
        hint = "; does fun return f and g? Give jac=True" if name == "fun" else ""
        raise TypeError(f"{name} must return one number, got a tuple of {len(value)}{hint}")
    value = detach(value)
    array = value if is_foreign(value) else as_numpy(value, f"what {name} returns")
    if math.prod(array.shape) != 1:
        raise TypeError(f"{name} must return one number, got an array of shape {tuple(array.shape)}")
    if not _is_real(array):
        raise TypeError(f"{name} must return one real number, got {show_value(value)}")
    return float(namespace(array).reshape(array, ()))


def _is_real(array: Array) -> bool:
    """Whether its numbers are real."""
    if type(array) is np.ndarray:
        return array.dtype.kind in "buif"
    return bool(namespace(array).isdtype(array.dtype, ("bool", "integral", "real floating")))


def _is_floating(array: Any) -> bool:
    """Whether it is an array of real numbers that are not whole."""
    if isinstance(array, np.ndarray):
        return array.dtype.kind == "f"
    return is_foreign(array) and bool(namespace(detach(array)).isdtype(array.dtype, "real floating"))


def as_gradient(value: Any, x: Array) -> Array:
    """What the user's jac returned, as a fresh vector shaped like x (callers may reuse their buffer)."""
    if type(value) is type(x) is np.ndarray and value.dtype == x.dtype and value.shape == x.shape:
        return value.copy()
    value = detach(value)
    array = value if is_foreign(value) else as_numpy(value, "what jac returns")
    if library(array) != library(x):
        array = to_host(array)
    if not _is_real(array):
        raise TypeError(f"jac must return an array of real numbers, got dtype {array.dtype}")
    shape = tuple(array.shape) or (1,)  # SciPy takes a number for the gradient of one variable
    if shape != tuple(x.shape):
        raise ValueError(f"jac must return an array of shape {tuple(x.shape)}, as x0 has, got shape {shape}")
    if type(x) is np.ndarray:
        return _narrow_copy(array, x.dtype).reshape(shape)
    return copy_of(namespace(x).reshape(convert_like(array, x), shape))


def _narrow_copy(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy in that type.  Nonzero entries stay nonzero: a gradient of 0 would say that x is a minimiser."""
    with np.errstate(all="ignore"):  # an entry too large for the type becomes inf, and the trial is rejected
        narrow = np.array(array, dtype=dtype)
    if array.dtype != dtype and (lost := (narrow == 0.0) & (array != 0.0)).any():
        narrow[lost] = np.copysign(np.finfo(dtype).smallest_subnormal, array[lost])
    return narrow


def _step(size: Any, eps: float) -> Any:
    """The step of the finite difference in a variable of that size."""
    return math.sqrt(eps) * np.maximum(1.0, size)


@dataclass
class BlackBox:
    """A user's function.  It is handed a copy of x, so that it may write into its argument."""

    fun: Callable[..., Any]
    jac: Callable[..., Any] | bool | None  # True: fun returns (f, g); None: finite differences
    args: tuple[Any, ...] = ()
    nfev: int = 0
    njev: int = 0
    precision: float = 0.0  # a black box is taken to be as good as its argument, or as the gradient that it returns
    errstate: Any = field(default_factory=np.geterr)  # the caller's, for the caller's own code
    by_curvature: ClassVar[bool] = True

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """The doubt of a user's function, with what finite differences add."""
        if self.jac is not None:
            return doubt_of_function(e.f, e.norm2, e.size, e.x.shape[0], e.eps)
        at = sizes_of(e, self.precision)
        return doubt_of_differences(at, _step(0.0, at.eps), _step(at.top, at.eps))

    def sharpen(self, e: Evaluation) -> None:
        """None: a user's function cannot be evaluated more accurately."""

    def price(self, x: Array) -> int:
        """Evaluations of fun that value and gradient together take."""
        return x.shape[0] + 1 if self.jac is None else 1

    def _call(self, function: Callable[..., Any], x: Array) -> Any:
        with np.errstate(**self.errstate):
            return function(copy_of(x), *self.args)

    @property
    def counts(self) -> tuple[int, int, int]:
        """(nfev, njev, 0): a black box has no products to count."""
        return self.nfev, self.njev, 0

    def resume(self, counts: tuple[int, int, int]) -> None:
        """Go on counting from there."""
        self.nfev, self.njev, _ = counts

    def charge(self) -> None:
        """One evaluation of value and gradient."""
        self.nfev += 1
        self.njev += 1

    def value(self, x: Array) -> float:
        """f(x); where fun returns the gradient too, it is counted and dropped."""
        if self.jac is True:
            return self.value_and_grad(x)[0]
        self.nfev += 1
        return as_scalar(self._call(self.fun, x))

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f(x) and grad f(x)."""
        if self.jac is True:
            self.charge()
            pair = self._call(self.fun, x)
            try:
                f, g = pair
            except (TypeError, ValueError):
                raise TypeError("with jac=True, fun must return the pair (f, g)") from None
            return as_scalar(f), self._gradient(g, x)
        f = self.value(x)
        if callable(self.jac):
            self.njev += 1
            return f, self._gradient(self._call(self.jac, x), x)
        g = as_gradient(self._differences(x, f, deadline), x)
        self.njev += 1
        return f, g

    def _gradient(self, value: Any, x: Array) -> Array:
        """The gradient in x's type; where it came in a coarser one, so is the function taken to be computed."""
        if getattr(value, "dtype", x.dtype) != x.dtype and _is_floating(value):
            self.precision = max(self.precision, resolution(detach(value)))
        return as_gradient(value, x)

    def _differences(self, x: Array, f: float, deadline: float) -> Array:
        """The gradient by forward differences: one more evaluation for each variable."""
        start = to_numpy(x).astype(np.float64)
        step = _step(np.abs(start), resolution(x))
        step = to_numpy(convert_like(start + step, x)) - start  # the step as x's precision rounds it
        known = [f]  # SciPy asks for f(x) first, which is known

        def value(y: np.ndarray) -> float:
            if known:
                return known.pop()
            refuse_late(deadline)
            try:
                return self.value(convert_like(y, x))
            except StopIteration as error:
                raise _Carried(error) from error

        try:
            with np.errstate(invalid="ignore"):  # inf - inf near a pole gives a NaN slope, and the trial is rejected
                return approx_fprime(start, value, step)
        except _Carried as carried:
            raise carried.error from None


class _Carried(Exception):
    """Carries a StopIteration of the user's through SciPy, whose loops would take it for their own end."""

    def __init__(self, error: StopIteration):
        super().__init__()
        self.error = error


@dataclass
class ObjectiveSource:
    """One of our objectives, on a copy that counts for this run alone."""

    objective: Any
    nfev: int = 0
    njev: int = 0
    mu: float = 0.0  # strong convexity that the user vouches for
    precision: float = field(init=False)  # that of products with the objective's matrix
    by_curvature: bool = field(init=False)  # true where its data do not tell

    def __post_init__(self) -> None:
        """Count from zero, whatever the caller did with the objective before."""
        self.objective = self.objective.counted()
        self.precision = getattr(self.objective, "precision", 0.0)
        self.by_curvature = self.objective.doubt(Sizes(0.0, 0.0, 0.0, 0.0, 1, 0.0)) is None

    def doubt(self, e: Evaluation, image: float | None = None) -> Doubt:
        """The doubt from the objective's data; where these do not tell, as for any function."""
        known = self.objective.doubt(sizes_of(e), image)
        if known is None:
            return doubt_of_function(e.f, e.norm2, e.size, e.x.shape[0], e.eps)
        return self._doubt_for_cuts(known)

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

    def price(self, x: Array) -> int:
        """One evaluation gives both."""
        return 1

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

    def charge(self) -> None:
        """One evaluation of value and gradient."""
        self.nfev += 1
        self.njev += 1

    def value_and_grad(self, x: Array, deadline: float = math.inf) -> tuple[float, Array]:
        """f(x) and grad f(x), in one evaluation."""
        self.charge()
        return self.objective.value_and_grad(x)
