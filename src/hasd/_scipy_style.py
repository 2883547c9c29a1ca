"""SciPy's conventions: what ``scipy.optimize.minimize(..., method=hasd.minimize)`` hands over, and what it wants back.

SciPy calls a method of one's own as ``method(fun, x0, args=, jac=, hess=, hessp=, bounds=, constraints=, callback=,
**options)`` with ``bounds=None`` and ``constraints=()`` where there are none, with its ``tol`` among the options, with
``jac=None`` for "2-point", "3-point" and "cs", and for ``jac=True`` with a function that remembers its last point.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Sized
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ._math.arrays import Array, convert_like, copy_of
from ._run.layout import Layout
from ._run.record import State
from ._run.report import Result
from ._run.status import Status, Stop
from ._run.trace import Recorder

RENAMED = {
    "maxfev": "maxfun",
    "iprint": "disp",
    "return_all": "trace or callback",
    "maxcor": "memory, which hasd-qn, hasd-newton and hasd-subspace take",
    **dict.fromkeys(("ftol", "fatol", "xtol", "xatol", "xrtol"), "tol or gtol, which look at the gradient, or gap_tol"),
}
"""Options of SciPy's methods, and what to give here."""


def take_over(fun: Any, jac: Any, bounds: Any, constraints: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """The user's own function and gradient; what SciPy's minimize takes and this one does not is refused.

    Where SciPy wrapped a function that returns (f, g), it is unwrapped, so that calls are counted exactly.
    """
    if bounds is not None and _has_finite_bound(bounds):
        raise ValueError("bounds must not be given: hasd minimises without bounds; L-BFGS-B takes them")
    if constraints is not None and not (isinstance(constraints, Sized) and len(constraints) == 0):
        raise ValueError("constraints must not be given: hasd minimises without constraints; SLSQP takes them")
    if "options" in options:
        raise TypeError("options must be given as keywords of their own: minimize(fun, x0, maxiter=100)")
    for name in options:
        if name in RENAMED:
            raise TypeError(f"unknown option {name!r}: give {RENAMED[name]}")
    kind = type(fun)  # SciPy's class is private, hence the test by name; without a match the wrapper works too
    if kind.__name__ == "MemoizeJac" and kind.__module__.startswith("scipy.") and jac == fun.derivative:
        return fun.fun, True
    return fun, jac


def _has_finite_bound(bounds: Any) -> bool:
    """Whether some bound is finite; bounds that cannot be read count as finite."""
    try:
        lower, upper = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else zip(*bounds, strict=True)
        low, high = np.array(lower, dtype=float), np.array(upper, dtype=float)  # None becomes NaN
    except (TypeError, ValueError):
        return True
    return not (np.all(np.isnan(low) | np.isneginf(low)) and np.all(np.isnan(high) | np.isposinf(high)))


def ignored_note(hess: Any, hessp: Any) -> str:
    """A sentence for the message where second derivatives were given."""
    given = [name for name, value in (("hess", hess), ("hessp", hessp)) if value is not None]
    return f"Ignored: {' and '.join(given)}, as the method is of first order." if given else ""


def callback(given: Callable[..., Any], recorder: Recorder, x0: Array, layout: Layout) -> Callable[[State], None]:
    """The user's callback in SciPy's two forms, given x as x0 is; StopIteration becomes our Stop.

    The seconds of the trace do not count what it takes.
    """
    with_result, bounds = wants_result(given), recorder.bounds

    def call(state: State) -> None:
        point, fun = state.shown
        x = layout.restore(copy_of(convert_like(point, x0)))
        tell = partial(given, x)
        if with_result:
            fun = recorder.oracle.record_value(point) if math.isnan(fun) else fun
            gap, lower = bounds.gap_of(fun, state.at), bounds.lower if bounds.can_certify else -math.inf
            tell = partial(given, intermediate_result=Result(x=x, fun=fun, gap=gap, lower=lower, nit=state.iteration))
        try:
            tell()
        except StopIteration as stop:
            raise Stop(Status.CALLBACK) from stop
        finally:
            recorder.resumed_at = time.perf_counter()

    return call


def wants_result(given: Callable[..., Any]) -> bool:
    """Whether a callback is of SciPy's newer form, which takes ``intermediate_result``."""
    try:
        return set(inspect.signature(given).parameters) == {"intermediate_result"}
    except (TypeError, ValueError):  # some built-in functions have no signature
        return False


def summary(res: OptimizeResult) -> str:
    """What ``disp=True`` prints, in SciPy's words."""
    counts = {"Iterations": "nit", "Function evaluations": "nfev", "Gradient evaluations": "njev"}
    lines = [f"Certified gap: {res.gap:.3g}"] if math.isfinite(res.gap) else []
    lines += [f"{name}: {res[field]}" for name, field in counts.items() if field in res]
    return "\n         ".join([res.message, f"Current function value: {res.fun:.6g}", *lines])
