"""minimize(): check the input, choose the method, run, build the result."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from scipy.optimize import OptimizeResult

from . import inputs, loop, stopping
from .geometry import norm2
from .methods import make
from .methods.base import Method, Problem, State
from .oracle import Evaluation, Oracle
from .progress import Progress
from .result import Gap, Status, Stop, build
from .trace import Recorder

DEFAULT_MAXITER = 100_000
"""Where the caller sets no limit at all."""


def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    *,
    method: str | Method = "auto",
    jac: Any = None,
    p: Any = None,
    L: float | None = None,
    mu: float | None = None,
    tol: float = 1e-6,
    gtol: float | None = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    trace: bool | int = True,
    goal: str = "value",
    resume: State | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimise a smooth convex function by accelerated steepest descent in the l_p norm.

    Parameters
    ----------
    fun : callable or objective
        ``fun(x, *args) -> float``, or with ``jac=True`` ``-> (float, gradient)``, or one of `hasd.objectives`.
    x0 : array_like
        The start; never changed.
    args : tuple
        Further arguments for fun and jac.
    method : str or method object
        One of `hasd.methods()`; "auto" is "hasd".
    jac : callable, True or None
        The gradient; None takes finite differences through SciPy: len(x0) + 1 evaluations each, slow.
    p : float or geometry
        The norm, 2 <= p <= inf; None lets the method choose (inf for HASD).  Or an object with ``norm``, ``dual_norm``
        and ``steepest``.
    L : float, optional
        Smoothness of f in that norm; None finds it by backtracking.
    mu : float, optional
        Strong convexity w.r.t. l_2; None takes the objective's ridge, 0 for a callable.
    tol, gtol : float
        Stop when ||g||_{p*} <= max(tol ||g_0||_{p*}, gtol).  With tol=0 and no gtol only g = 0, machine precision or a
        limit ends the run.
    maxiter, maxfun, time_limit : optional
        Limits on iterations (100000 where no limit at all is given), evaluations and seconds.
    callback : callable, optional
        As in SciPy: ``callback(x)`` or ``callback(*, intermediate_result)``; raising StopIteration ends the run.
    progress : bool
        Show a progress bar (needs tqdm).
    trace : bool or int
        Record a row per iteration; a number keeps about that many rows; False none.
    goal : {"value", "gradient"}
        What a run that ends at a limit returns: the best point by value, or by the gradient's dual norm.
    resume : state, optional
        ``res.state`` of an earlier run of the same method on the same function: go on from there.
    **options
        Options of the method, e.g. ``search="bisect"`` (hasd-paper), ``momentum=0.9`` (heavy-ball).

    Returns
    -------
    scipy.optimize.OptimizeResult
        x, fun, jac (all of one point), nit, nfev, njev, nrecord, nprod, status, success, message, method, p, L,
        weight (A_T), psi, gap, state, trace.  ``res.gap(radius)`` bounds f(x) - f* for any l_2 bound ``radius`` on
        ||x_0 - x*||.

    Examples
    --------
    >>> import numpy as np, hasd
    >>> rosen_free = lambda x: (np.sum((x - 1) ** 4) + np.sum(x**2), 4 * (x - 1) ** 3 + 2 * x)
    >>> res = hasd.minimize(rosen_free, np.zeros(5), jac=True)
    >>> res.success, res.gap(radius=2.0) < 1e-3
    (True, True)
    """
    x_start = inputs.start(x0)
    source = inputs.source(fun, jac, args, x_start)
    chosen = _method(method, options)
    smoothness = None if L is None else inputs.number("L", L, least=0.0, strict=True)
    mu = inputs.strong_convexity(mu, fun, smoothness)
    if getattr(chosen, "needs_mu", False) and mu == 0.0:
        raise ValueError(f"method {chosen.name!r} needs mu > 0: give mu=, or an objective with a ridge")
    geometry = inputs.geometry(p, chosen.default_p)
    tol = inputs.number("tol", tol, least=0.0)
    gtol = 0.0 if gtol is None else inputs.number("gtol", gtol, least=0.0)
    limit = inputs.count("maxiter", maxiter, least=0)
    budget = inputs.count("maxfun", maxfun, least=1)
    seconds = math.inf if time_limit is None else inputs.number("time_limit", time_limit, least=0.0, finite=False)
    if math.isinf(limit) and math.isinf(budget) and math.isinf(seconds):
        limit = DEFAULT_MAXITER
    if goal not in ("value", "gradient"):
        raise ValueError(f"goal must be 'value' or 'gradient', got {goal!r}")
    rows = math.inf if trace is True else inputs.count("trace", int(trace), least=0)

    oracle = Oracle(source, budget, time.perf_counter() + seconds)
    problem = Problem(oracle, geometry, smoothness, mu)
    recorder = Recorder(oracle, rows)
    call = _callback(inputs.callback(callback), oracle)
    criteria = [stopping.gradient_within(tol, gtol), stopping.iterations(limit)]
    start = resume if resume is not None else _first(oracle, x_start)
    with Progress(progress, limit, chosen.name) as bar:

        def observe(state: State) -> None:
            recorder(state)
            bar(state)

        if isinstance(start, Evaluation) and not start.finite:
            return _unstarted(problem, chosen, start)
        outcome = loop.run(problem, chosen, start, criteria, observe, call)
    return _result(problem, chosen, outcome, recorder, goal)


def iterate(
    fun: Any,
    x0: Any,
    args: Any = (),
    *,
    method: str | Method = "auto",
    jac: Any = None,
    p: Any = None,
    L: float | None = None,
    mu: float | None = None,
    **options: Any,
) -> Iterator[State]:
    """The states of a method, one by one, for those who want the loop themselves.

    States are immutable.  The iterator ends where the method cannot go on (g = 0, machine precision); it knows no
    tolerance: break when you have seen enough.

    Examples
    --------
    >>> import numpy as np, hasd
    >>> f = hasd.objectives.Quadratic(np.diag([1.0, 10.0]))
    >>> for state in hasd.iterate(f, [1.0, 1.0], method="hasd", p=2):
    ...     if state.grad_norm < 1e-3:
    ...         break
    >>> bool(f(state.x) < 1e-5)
    True
    """
    x_start = inputs.start(x0)
    source = inputs.source(fun, jac, args, x_start)
    chosen = _method(method, options)
    smoothness = None if L is None else inputs.number("L", L, least=0.0, strict=True)
    mu = inputs.strong_convexity(mu, fun, smoothness)
    oracle = Oracle(source)
    problem = Problem(oracle, inputs.geometry(p, chosen.default_p), smoothness, mu)
    try:
        yield from loop.states(problem, chosen, oracle.evaluate(x_start))
    except Stop:
        return


def _method(method: str | Method, options: dict[str, Any]) -> Method:
    if isinstance(method, str):
        return make("hasd" if method == "auto" else method, options)
    if not isinstance(method, Method):
        raise TypeError(f"method must be a name or an object with init and step, got {method!r}")
    if options:
        raise TypeError(f"unknown option {next(iter(options))!r}: a method object carries its own options")
    return method


def _first(oracle: Oracle, x: Any) -> Evaluation:
    try:
        return oracle.evaluate(x)
    except Stop as stop:  # -inf at x0, or no time at all: nothing to start from
        return Evaluation(x, -math.inf if stop.status is Status.UNBOUNDED else math.nan, x * math.nan)


def _callback(given: Callable[..., Any] | None, oracle: Oracle) -> Callable[[State], None] | None:
    """The user's callback in SciPy's two forms; StopIteration becomes our Stop."""
    if given is None:
        return None
    wants_result = set(inspect.signature(given).parameters) == {"intermediate_result"}

    def call(state: State) -> None:
        try:
            if wants_result:
                fun = oracle.record_value(state.x) if math.isnan(state.fun) else state.fun
                given(intermediate_result=OptimizeResult(x=state.x.copy(), fun=fun))
            else:
                given(state.x.copy())
        except StopIteration as stop:
            raise Stop(Status.CALLBACK) from stop

    return call


def _unstarted(problem: Problem, method: Method, start: Evaluation) -> OptimizeResult:
    status = Status.UNBOUNDED if start.f == -math.inf else Status.NONFINITE_START
    nfev, njev, nprod = problem.oracle.counts
    return build(
        status=status,
        x=start.x,
        fun=start.f,
        jac=start.g,
        nit=0,
        nfev=nfev,
        njev=njev,
        nrecord=0,
        nprod=nprod,
        method=method.name,
        p=problem.geometry.p,
        L=problem.L,
        weight=0.0,
        psi=0.0,
        gap=Gap(start.f, math.nan, problem.mu, ()),
        state=None,
        trace=None,
    )


def _returned(problem: Problem, outcome: loop.Outcome, goal: str) -> Evaluation:
    """The point handed back: the one that met the tolerance, or the best one by the goal.  Never worse than x0."""
    state = outcome.state
    if outcome.status.success:
        return state.at
    if goal == "gradient":
        return outcome.smallest.at
    last = state.at if state.at.x is state.x else problem.oracle.record(state.x)
    best = problem.oracle.best
    return best if best is not None and not last.f <= best.f else last


def _result(problem: Problem, method: Method, outcome: loop.Outcome, recorder: Recorder, goal: str) -> OptimizeResult:
    state = outcome.state
    e = _returned(problem, outcome, goal)
    columns = recorder.columns() if recorder.rows > 0 else None
    nfev, njev, nprod = problem.oracle.counts
    certificates = (*state.certificates, state.estimate.certificate(state.origin))
    return build(
        status=outcome.status,
        note=state.note,
        x=e.x,
        fun=e.f,
        jac=e.g,
        nit=state.iteration,
        nfev=nfev,
        njev=njev,
        nrecord=problem.oracle.nrecord,
        nprod=nprod,
        method=method.name,
        p=problem.geometry.p,
        L=state.L,
        weight=state.weight,
        psi=state.psi,
        gap=Gap(e.f, norm2(e.g), problem.mu, certificates),
        state=state,
        trace=columns,
    )
