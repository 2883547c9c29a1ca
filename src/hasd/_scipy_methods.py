"""SciPy's methods on the counted oracle of ours, so that `compare` can set them beside our own."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.optimize

from . import _inputs as inputs
from ._math.arrays import Array, convert_like, copy_of, to_numpy
from ._math.evaluation import Evaluation
from ._run.capabilities import traits_of_objective
from ._run.certificate import Certificate, cut_at
from ._run.oracle import Oracle
from ._run.report import Result
from ._run.status import Status, Stop

SCIPY_METHODS = ("CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP")
"""Those of ``scipy.optimize.minimize`` that use gradients and need no Hessian; they are run without bounds."""
WITH_GTOL = ("CG", "BFGS", "L-BFGS-B", "TNC")
"""Those that have an option of that name."""
LIMITS = {"L-BFGS-B": ("maxiter", "maxfun"), "TNC": ("maxfun",)}
"""What their own limits are called, where not ``maxiter`` alone."""
NO_LIMIT = 2**31 - 1
"""More than any run takes, and the most that all of them accept: the limits of the oracle end a run."""
COLUMNS = ("iteration", "fun", "grad_norm", "nfev", "nprod", "seconds", "lower", "upper")
"""The columns of a trace that these runs have: a row for each evaluation; nothing is certified, lower is NaN."""


def scipy_name(method: Any) -> str | None:
    """SciPy's method of that name, in upper or lower case; None where it has none.

    >>> scipy_name("l-bfgs-b"), scipy_name("hasd")
    ('L-BFGS-B', None)
    """
    known = {name.lower(): name for name in SCIPY_METHODS}
    return known.get(method.lower()) if isinstance(method, str) else None


@dataclass
class _Watch:
    """The function as SciPy sees it: value and gradient at once, each evaluation counted and recorded."""

    oracle: Oracle
    start: Array  # whose library and precision the function is given
    most: float  # iterations
    began: float = field(default_factory=time.perf_counter)
    nit: int = 0
    rows: list[tuple[float, ...]] = field(default_factory=list)

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        e = self.oracle.evaluate(convert_like(np.array(x), self.start))  # a copy: SciPy reuses its own
        nfev, _, nprod = self.oracle.counts
        upper = math.nan if self.oracle.best is None else self.oracle.best.f
        seconds = time.perf_counter() - self.began
        self.rows.append((self.nit, e.f, e.norm2, nfev, nprod, seconds, math.nan, upper))
        if len(self.rows) == 1 and not e.finite:
            raise Stop(Status.NONFINITE_START)
        self._check_iterations()
        return e.f, to_numpy(e.g).astype(np.float64)

    def count(self, x: Any) -> None:
        """SciPy's callback: one more iteration is done."""
        self.nit += 1
        self._check_iterations()

    def _check_iterations(self) -> None:
        if self.nit >= self.most:
            raise Stop(Status.MAXITER)

    def columns(self) -> dict[str, np.ndarray]:
        """The trace."""
        data = np.reshape(self.rows, (-1, len(COLUMNS))).T
        whole = ("iteration", "nfev", "nprod")
        return {
            name: column.astype(np.int64) if name in whole else column.copy()
            for name, column in zip(COLUMNS, data, strict=True)
        }


def minimize_by_scipy(
    fun: Any,
    x0: Any,
    method: str,
    *,
    args: Any = (),
    jac: Any = None,
    p: Any = None,
    tol: float | None = None,
    gtol: float | None = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    time_limit: float | None = None,
    **options: Any,
) -> Result:
    """Run one of `SCIPY_METHODS` as ``scipy.optimize.minimize`` does; the options and tolerances are those of SciPy.

    The limits are those of `hasd.minimize`, and so is p, of which only the shape counts: x0 may have it.  At a limit, x
    is the best point that was evaluated; otherwise it is SciPy's answer, with SciPy's message.  ``success`` says that
    SciPy reports success for a tolerance above 0.
    """
    layout = inputs.layout(x0, p)
    start = inputs.start(x0, layout)
    oracle = Oracle(inputs.source(fun, jac, args, start, layout=layout))
    most, oracle.maxfun, seconds = inputs.limits(maxiter, maxfun, time_limit)
    oracle.deadline = time.perf_counter() + seconds
    options |= {} if gtol is None or method not in WITH_GTOL else {"gtol": gtol}
    watch = _Watch(oracle, start, most)
    unlimited = dict.fromkeys(LIMITS.get(method, ("maxiter",)), NO_LIMIT)
    try:
        with np.errstate(all="ignore"):  # the user's own code has the caller's settings
            found = scipy.optimize.minimize(
                watch,
                to_numpy(start).astype(np.float64),
                jac=True,
                method=method,
                tol=tol,
                callback=watch.count,
                options=unlimited | options,
            )
    except Stop as stop:
        seconds, status, message = time.perf_counter() - watch.began, stop.status, stop.status.message
        e = oracle.best or Evaluation(start, math.nan, start * math.nan)
    else:
        seconds, message, watch.nit = time.perf_counter() - watch.began, str(found.message), int(found.nit)
        e = oracle.record(convert_like(found.x, start))
        has_tolerance = tol is None or tol > 0.0 or any(name.endswith("tol") for name in options)
        converged = e.finite and found.success and (has_tolerance or e.norm2 == 0.0)
        status = Status.CONVERGED if converged else Status.PRECISION if e.finite else Status.NONFINITE
    res = _result(watch, e, method=method, seconds=seconds, status=status, message=message)
    res.update(x=layout.restore(res.x), jac=layout.restore(res.jac))
    return res


def _result(watch: _Watch, e: Evaluation, *, status: Status, **told: Any) -> Result:
    """The fields that every result has; nothing is certified, but the certificate answers for a radius."""
    oracle = watch.oracle
    nfev, njev, nprod = oracle.counts
    if e.finite:  # what the value may be off by is judged by the curvature that was seen
        oracle.see(e)
        oracle.probe(e)
    bend = oracle.bend.largest if oracle.source.by_curvature else 0.0
    convex = traits_of_objective(getattr(oracle.source, "objective", None)).convex
    certificate = Certificate(cut_at(e, watch.start), (), withdrawn=not e.finite, bend=bend, convex=convex)
    return Result(
        x=copy_of(e.x),
        fun=e.f,
        gap=math.inf,
        lower=-math.inf,
        certificate=certificate,
        jac=copy_of(e.g),
        success=status.success,
        status=status.code,
        nit=watch.nit,
        nfev=nfev,
        njev=njev,
        nprod=nprod,
        nrecord=oracle.nrecord,
        trace=watch.columns(),
        **told,
    )
