"""minimize(): check the input, choose the method, run, build the result."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from . import _inputs as inputs
from . import _scipy_style as scipy_style
from ._checks import check_flags, check_words, parameters, unknown_name_message
from ._math.arrays import Array, convert_like, to_float64
from ._math.evaluation import Evaluation
from ._resume import checkpoint as checkpoints
from ._run import loop, stopping
from ._run.capabilities import traits_of_method
from ._run.job import Job
from ._run.layout import Layout
from ._run.oracle import Oracle
from ._run.problem import Method, Problem
from ._run.progress import Bar, Way, describe, record_with_bar
from ._run.record import Run, State
from ._run.report import Result
from ._run.result import no_run, result
from ._run.status import Status, Stop
from ._run.trace import Recorder
from ._scipy_methods import scipy_name
from .methods import choose, make
from .objectives._operators import quiet


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
    tol: float | None = None,
    gtol: float | None = None,
    maxiter: int | None = None,
    maxfun: int | None = None,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    trace: bool | int = True,
    goal: str = "value",
    gap_tol: float | None = None,
    radius: float | None = None,
    resume: State | str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
    interrupt: str = "raise",
    disp: bool = False,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    **options: Any,
) -> Result:
    """Minimise a smooth convex function by accelerated steepest descent in the l_p norm.

    `minimize` can also be passed to SciPy as a method:
    ``scipy.optimize.minimize(f, x0, jac=g, method=hasd.minimize, options={"p": 3})`` takes the same steps as
    ``hasd.minimize(f, x0, jac=g, p=3)``.  SciPy's own argument ``tol`` works too.

    Parameters
    ----------
    fun : callable or objective
        ``fun(x, *args) -> float``, or with ``jac=True`` ``-> (float, gradient)``, or one of `hasd.objectives`.
    x0 : array_like
        The start, a vector; it is never changed.  If p is a norm that knows its shape, x0 may be an array of this shape
        or a list of arrays: fun gets x in this form and returns its gradient in it, and x is handed back in it.
    args : tuple
        Further arguments for fun and jac.
    method : str or method object
        One of `hasd.method_names()`, "auto", or an object of your own.  "auto" takes `hasd` if p or L is given,
        and `hasd-qn` if fun is a callable.  For functions of Ax - b it takes `hasd-newton` if there are no more than
        1000 variables, and otherwise `hasd-cg` for quadratics, `hasd-subspace` if products with A are the main cost,
        and `hasd-qn` if they are cheap.  ``res.method`` says which it
        took, and ``res.reason`` why.
    jac : callable, True or None
        The gradient as a function; True if fun returns it too; None for finite differences, which are slow:
        each takes len(x0) + 1 evaluations.
    p : float or geometry
        The norm: an exponent, 2 <= p <= inf, or a norm such as `hasd.Lp` with weights, `hasd.Schatten`, `hasd.Blocks`,
        or any object with ``norm``, ``dual_norm`` and ``steepest``.  None lets the method choose (inf for HASD).
    L : float, optional
        The smoothness constant of f in that norm; None finds it on the way.
    mu : float, optional
        The strong convexity of f w.r.t. l_2; None takes the objective's ridge, or 0 for a callable.
    tol, gtol : float
        Stop when the dual norm of the gradient is ||g||_{p*} <= max(tol ||g_0||_{p*}, gtol), where g_0 is the gradient
        at x0.  tol=None stands for 0 if gtol or gap_tol is given.  Otherwise it stands for 1e-6, and the run goes on as
        long as f seems to have more than 1e-6 of its own size to fall, as it may have after a very steep start.  With
        tol=0 and no gtol, the run ends only when g = 0, at a gap within gap_tol, at machine precision, or at a limit.
    maxiter, maxfun, time_limit : optional
        Limits on iterations (100000 if no limit at all is given), evaluations and seconds, those of the callback
        included.  The method begins no evaluation beyond them, not even inside finite differences; only the gradient at
        the returned point may still be taken.
    callback : callable, optional
        As in SciPy: ``callback(x)`` or ``callback(*, intermediate_result)``, a `Result` with x, fun, gap,
        lower and nit; raising StopIteration ends the run.
    progress : bool
        Show a progress bar (needs tqdm): the share of the way to tol, gtol or gap_tol on a logarithmic scale, or where
        none of them is positive the share of maxiter, maxfun and time_limit that is spent, whichever is furthest.  A
        successful run ends at 100%; every run ends with its status.
    trace : bool or int
        True records a row per iteration, a number keeps about that many rows, and False records none.
    goal : {"value", "gradient"}
        What a run that ends at a limit returns: the best point by value, or by the gradient's dual norm.
    gap_tol, radius : float, optional
        Stop when the certified bound on f(x) - f* is at most gap_tol; if tol or gtol is given too, stop when both hold.
        This needs ``radius``, an l_2 bound on ||x_0 - x*||, or strong convexity (a ridge, or mu).
    resume : path or state, optional
        A checkpoint, or ``res.state`` of an earlier run of the same method on the same function.  The run continues
        from there, bit for bit as if it had never stopped.  Give the x0 of the first run: ``maxiter``, ``tol`` and
        ``radius`` still refer to the start of that run.  From a checkpoint, ``maxfun``, all counts and the trace
        continue too.  A checkpoint or state of another run or function raises a ValueError.
    checkpoint, checkpoint_every : path and int, optional
        Write the run to this npz file every ``checkpoint_every`` iterations and at its end; the previous checkpoint is
        kept beside it.  An existing file that is not a checkpoint is not overwritten.
    interrupt : {"raise", "return"}
        What Ctrl-C does.  "raise" raises KeyboardInterrupt and leaves the last checkpoint as it is.  "return" writes a
        checkpoint and returns the best point so far; a second Ctrl-C during that time raises KeyboardInterrupt.
    disp : bool
        Print a summary at the end, as SciPy does.
    hess, hessp : optional
        Accepted because SciPy passes them; they are ignored, and ``res.message`` says so.
    bounds, constraints : optional
        Accepted because SciPy passes them; a ValueError unless they exclude nothing.
    **options
        Options of the method, e.g. ``search="bisect"`` (hasd-paper), ``momentum=0.9`` (heavy-ball).

    Returns
    -------
    hasd.Result
        It has the fields that every solver returns (x, fun, gap, lower, success, status, message, method, nit, nfev,
        nprod, seconds, trace); gap and lower hold for the radius and mu of the run.  It also has ``reason``, why "auto"
        took the method; ``jac``, the gradient at x; ``njev``, the gradients taken; ``nrecord``, the evaluations made
        only for the record; ``p`` and ``L``; ``weight`` and ``psi``, the sum A_T of the weights of the run's lower
        bounds on f and the minimum of its estimate function; ``state``, for ``resume=``; and ``certificate``, whose
        ``gap(radius)`` bounds f(x) - f* for any l_2 bound ``radius`` on ||x_0 - x*||.  The codes 0 (converged), 1
        (maxiter), 2 (machine precision), 3 (not finite) and 99 (StopIteration) of ``status`` mean what they mean in
        SciPy; `hasd.Status` lists all.

    Examples
    --------
    >>> import numpy as np, hasd
    >>> bowl = lambda x: (np.sum((x - 1) ** 4) + np.sum(x**2), 4 * (x - 1) ** 3 + 2 * x)
    >>> res = hasd.minimize(bowl, np.zeros(5), jac=True)
    >>> res.success, res.certificate.gap(radius=2.0) < 1e-3
    (True, True)
    """
    fun, jac = scipy_style.take_over(fun, jac, bounds, constraints, options)
    layout = inputs.layout(x0, p)
    start = inputs.start(x0, layout)
    chosen, reason = _method(minimize, method, options, fun, p, L)
    problem, images = _problem(start, layout, fun, jac, args, chosen, p, L, mu)
    is_default = tol is None and gtol is None and gap_tol is None
    default_tol = stopping.DEFAULT_TOL if is_default else 0.0
    tol = default_tol if tol is None else inputs.number("tol", tol, least=0.0)
    gtol = 0.0 if gtol is None else inputs.number("gtol", gtol, least=0.0)
    limit, budget, seconds = inputs.limits(maxiter, maxfun, time_limit)
    check_flags(progress=progress, disp=disp)
    check_words(goal=(goal, ("value", "gradient")), interrupt=(interrupt, ("raise", "return")))
    assumed = traits_of_method(chosen).assumes(problem.geometry)
    gaps = inputs.bounds(gap_tol, radius, problem, images, assumed)
    rows = inputs.rows(trace)
    path, every = (None, 0) if checkpoint is None else inputs.checkpoint(checkpoint, checkpoint_every)

    oracle = problem.oracle
    oracle.maxfun, oracle.deadline = budget, time.perf_counter() + seconds
    wanted = stopping.Tolerances(tol, gtol, gaps, is_default)
    job = Job(problem, chosen, start, Recorder(oracle, gaps, rows), wanted, goal, layout)
    call = None if callback is None else scipy_style.callback(inputs.callback(callback), job.recorder, start, layout)
    begun, file = (_first_evaluation(oracle, start, images), None) if resume is None else _resume(resume, fun, job)
    if isinstance(begun, tuple):
        res = no_run(job, *begun)
    else:
        saver = None if path is None else checkpoints.Saver(path, every, job)
        if saver is not None and isinstance(begun, Run) and file == path:  # it is on disk already
            saver.written, saver.whole = begun.state.iteration, True
        way = Way(job.wanted, (math.inf if maxiter is None else limit, budget, seconds))
        with closing(Bar(chosen.name, progress, way.has_end)) as bar:
            criteria = (job.wanted, stopping.iterations(limit))
            record = record_with_bar(job.recorder, way, bar)
            watch = loop.Watch(record, call, criteria, saver, interrupt == "return")
            run = loop.follow(problem, chosen, begun, watch)

            def finish() -> Result:
                """Write the end of the run, then build the result, which may take evaluations."""
                if saver is not None:
                    saver.write_now()
                unused = problem.L is not None and traits_of_method(chosen).keeps_images
                note = f"Ignored: L, because {chosen.name} finds its step lengths itself." if unused else ""
                res = result(job, run, f"{scipy_style.ignored_note(hess, hessp)} {note}".strip())
                res.state = job.state_for_result(run, fun)
                return res

            patient = interrupt == "return" and run.status is not Status.INTERRUPTED
            try:
                res = finish()
            except KeyboardInterrupt:  # the first Ctrl-C shall not abort the run; a second one is raised
                if not patient:
                    raise
                res = finish()
            bar.end(run.status, res.nit, describe(res.fun, res.gap))
    res.reason = reason
    if disp:
        print(scipy_style.summary(res))
    return res


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
    """Yield the states of a method one by one, so that you can write the loop yourself.

    States are immutable and have the counts so far (``nfev``, ``njev``, ``nprod``).  If the method itself did not need
    the value f(x_t), reading ``state.fun`` evaluates it; this evaluation is not counted.  The iterator ends when the
    method cannot go on (g = 0, machine precision).  It has no tolerance: leave the loop when the state is good enough.

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
    layout = inputs.layout(x0, p)
    start = inputs.start(x0, layout)
    chosen, _ = _method(iterate, method, options, fun, p, L)
    problem, images = _problem(start, layout, fun, jac, args, chosen, p, L, mu)
    begun = _first_evaluation(problem.oracle, start, images)
    return iter(()) if isinstance(begun, tuple) else _until_stop(problem, layout, loop.states(problem, chosen, begun))


def _until_stop(problem: Problem, layout: Layout, states: Iterator[State]) -> Iterator[State]:
    """The states with their counts, ended quietly where the method cannot go on."""
    try:
        for state in states:
            yield state.for_user(problem.oracle.counts, problem.oracle.record_value, layout)
    except Stop:
        return


def _method(caller: Any, method: Any, options: dict[str, Any], fun: Any, p: Any, L: Any) -> tuple[Method, str]:
    """The method, and why "auto" took it: where p or L is given, the method that uses them."""
    if (theirs := scipy_name(method)) is not None:
        raise ValueError(f"{theirs} is a method of SciPy: here 'auto' takes its place, and hasd.compare runs both")
    if isinstance(method, str):
        name, why = method, ""
        if method == "auto":
            name, why = ("hasd", "p or L was given") if p is not None or L is not None else choose(fun)
        return make(name, options, caller), why
    if isinstance(method, type) or not isinstance(method, Method):
        raise TypeError(f"method must be a name or an object with name, default_p, init and step, got {method!r}")
    if options:
        carried = "the options of a method object are set where it is made"
        raise TypeError(unknown_name_message("option", next(iter(options)), parameters(caller), carried))
    return method, ""


def _problem(
    x0: Array, layout: Layout, fun: Any, jac: Any, args: Any, method: Method, p: Any, L: Any, mu: Any
) -> tuple[Problem, bool]:
    """What the method is given, and whether it will work on images, in float64.  Nothing is evaluated."""
    smoothness = None if L is None else inputs.number("L", L, least=0.0, strict=True)
    geometry, traits = inputs.geometry(p, method.default_p), traits_of_method(method)
    inputs.check_geometry(geometry, x0, method, traits)
    convexity = inputs.strong_convexity(mu, fun, smoothness, geometry)
    problem = Problem(Oracle(inputs.source(fun, jac, args, x0, convexity, layout)), geometry, smoothness, convexity)
    inputs.check_requirements(method, traits, problem.traits, fun, convexity)
    return problem, traits.keeps_images and problem.traits.has_images


def _resume(resume: Any, fun: Any, job: Job) -> tuple[Run, Path | None]:
    """The earlier run to go on with, and the file that holds it, if one does."""
    file = None
    if isinstance(resume, str | os.PathLike):
        path = inputs.path("resume", resume)
        state, newest = checkpoints.read(path, job)
        where, file = str(path), path if newest else None
    else:
        where, state = "resume", inputs.state_to_resume(resume, job.method, job.x0)
        if state.picture is not None:
            job.refuse_other(where, state.picture.configuration)
    return job.restore(where, state, fun), file


def _first_evaluation(oracle: Oracle, x0: Array, images: bool) -> Evaluation | tuple[Evaluation, Status]:
    """The evaluation at x0; with a status where the run cannot start there."""
    try:
        e = oracle.evaluate(to_float64(x0) if images else x0)
    except Stop as stop:  # -inf at x0, or no budget at all
        value = -math.inf if stop.status is Status.UNBOUNDED else math.nan
        return Evaluation(x0, value, x0 * math.nan), stop.status
    return e if e.finite else (Evaluation(x0, e.f, quiet(convert_like)(e.g, x0)), Status.NONFINITE_START)
