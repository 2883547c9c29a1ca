"""minimize(): check the input, choose the method, run, build the result."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from . import _inputs as inputs
from . import _scipy_style as scipy_style
from ._checks import check_word, parameters, unknown_name_message
from ._math.arrays import Array, convert_like, to_float64
from ._math.evaluation import Evaluation
from ._math.geometry import Geometry
from ._resume import checkpoint as checkpoints
from ._resume.identity import configuration, refuse_other, refuse_other_function, refuse_other_start
from ._run import loop, stopping
from ._run.capabilities import traits_of_method, traits_of_objective
from ._run.oracle import Oracle
from ._run.pictures import Album
from ._run.problem import Method, Problem
from ._run.progress import Progress
from ._run.record import Run, State
from ._run.report import Result
from ._run.result import no_run, result
from ._run.sources import Source
from ._run.status import Status, Stop
from ._run.trace import Recorder
from .methods import choose, make


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
        The start; it is never changed.
    args : tuple
        Further arguments for fun and jac.
    method : str or method object
        One of `hasd.method_names()`, "auto", or an object of your own.  "auto" takes `hasd` if p or L is given,
        `hasd-cg` for a quadratic in more than 128 variables, `hasd-subspace` for other functions of Ax - b if products
        with A are the main cost, and `hasd-qn` if they are cheap or if fun is a callable.  ``res.method`` says which it
        took, and ``res.reason`` why.
    jac : callable, True or None
        The gradient as a function; True if fun returns it too; None for finite differences by SciPy, which are slow:
        each takes len(x0) + 1 evaluations.
    p : float or geometry
        The norm, 2 <= p <= inf, or an object with ``norm``, ``dual_norm`` and ``steepest``.  None lets the method
        choose (inf for HASD).
    L : float, optional
        The smoothness constant of f in that norm; None finds it by backtracking.
    mu : float, optional
        The strong convexity of f w.r.t. l_2; None takes the objective's ridge, or 0 for a callable.
    tol, gtol : float
        Stop when the dual norm of the gradient is ||g||_{p*} <= max(tol ||g_0||_{p*}, gtol), where g_0 is the gradient
        at x0.  tol=None stands for 1e-6, or for 0 if gap_tol is given.  With tol=0 and no gtol, the run ends only when
        g = 0, at a gap within gap_tol, at machine precision, or at a limit.
    maxiter, maxfun, time_limit : optional
        Limits on iterations (100000 if no limit at all is given), evaluations and seconds.  The method begins no
        evaluation beyond them, not even inside finite differences; only the gradient at the returned point may still be
        taken.
    callback : callable, optional
        As in SciPy: ``callback(x)`` or ``callback(*, intermediate_result)``; raising StopIteration ends the run.
    progress : bool
        Show a progress bar (needs tqdm).
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
    scipy_style.refuse_foreign(bounds, constraints, options)
    fun, jac = scipy_style.unwrap(fun, jac)
    setup = _set_up(minimize, fun, x0, args, method, jac, p, L, mu, options)
    relative = inputs.tolerance(tol, gap_tol)
    gtol = 0.0 if gtol is None else inputs.number("gtol", gtol, least=0.0)
    limit, budget, seconds = inputs.limits(maxiter, maxfun, time_limit)
    check_word("goal", goal, ("value", "gradient"))
    check_word("interrupt", interrupt, ("raise", "return"))
    gaps = inputs.bounds(gap_tol, radius, setup.mu, setup.source, setup.convex, setup.in_double)
    rows = inputs.rows(trace)
    path, every = (None, 0) if checkpoint is None else inputs.checkpoint(checkpoint, checkpoint_every)

    problem = Problem(Oracle(setup.source, budget, time.perf_counter() + seconds), setup.geometry, setup.L, setup.mu)
    gaps.oracle = problem.oracle
    recorder = Recorder(problem.oracle, gaps, rows)
    call = None if callback is None else scipy_style.callback(inputs.callback(callback), problem.oracle, setup.x0)
    wanted = stopping.Tolerances(relative, gtol, gaps)
    album = Album(problem.oracle, recorder, partial(configuration, problem, setup.method, setup.x0))
    begun = _begin(resume, fun, setup, problem, album)
    if isinstance(begun.at, tuple):
        res = no_run(problem, setup.method, recorder, *begun.at)
    else:
        saver = _saver(path, every, begun, album, setup.method)
        with Progress(progress, limit, setup.method.name, gaps) as bar:

            def observe(state: State) -> None:
                gaps(state)
                recorder(state)
                bar(state)

            picture = None if saver is None else saver.take_picture
            criteria = (wanted, stopping.iterations(limit))
            watch = loop.Watch(observe, call, criteria, picture, saver, interrupt == "return")
            run = loop.follow(problem, setup.method, begun.at, watch)

        def finish() -> Result:
            """Write the end of the run, then build the result, which may take evaluations."""
            if saver is not None:
                saver.write_now()
            unused = f"Ignored: L, because {setup.method.name} finds its step lengths itself." if setup.L_unused else ""
            why = f"{scipy_style.ignored_note(hess, hessp)} {unused}".strip()
            bend = problem.oracle.bend
            res = result(problem, setup.method, run, recorder, wanted, setup.x0, goal, why)
            problem.oracle.bend = bend  # what the result looked at is no part of a run that goes on
            res.state = album.state_for_result(run, fun)
            return res

        patient = interrupt == "return" and run.status is not Status.INTERRUPTED
        res = _finish_despite_interrupt(finish) if patient else finish()
    res.reason = setup.why
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
    setup = _set_up(iterate, fun, x0, args, method, jac, p, L, mu, options)
    problem = Problem(Oracle(setup.source), setup.geometry, setup.L, setup.mu)
    start = _first_evaluation(problem.oracle, setup)
    return iter(()) if isinstance(start, tuple) else _until_stop(problem, loop.states(problem, setup.method, start))


def _until_stop(problem: Problem, states: Iterator[State]) -> Iterator[State]:
    """The states with their counts, ended quietly where the method cannot go on."""
    try:
        for state in states:
            yield state.with_counts(problem.oracle.counts, problem.oracle.record_value)
    except Stop:
        return


class SetUp(NamedTuple):
    """The checked input."""

    x0: Array
    source: Source
    method: Method
    why: str  # the reason, where "auto" chose
    geometry: Geometry
    L: float | None
    mu: float
    convex: bool  # by construction
    in_double: bool  # whether the method works on images, which are kept in float64
    L_unused: bool  # whether L was given to a method that has no use for it


def _set_up(
    caller: Callable[..., Any],
    fun: Any,
    x0: Any,
    args: Any,
    method: Any,
    jac: Any,
    p: Any,
    L: Any,
    mu: Any,
    options: dict[str, Any],
) -> SetUp:
    """Check the arguments that describe the problem; nothing is evaluated."""
    x_start = inputs.start(x0)
    chosen, why = _method(caller, method, options, fun, p, L)
    smoothness = None if L is None else inputs.number("L", L, least=0.0, strict=True)
    convexity = inputs.strong_convexity(mu, fun, smoothness)
    source = inputs.source(fun, jac, args, x_start, convexity)
    traits, objective = traits_of_method(chosen), traits_of_objective(getattr(source, "objective", None))
    inputs.check_requirements(chosen, traits, objective, fun, convexity)
    geometry = inputs.geometry(p, chosen.default_p)
    keeps = traits.keeps_images
    cached, unused = keeps and objective.has_images, keeps and smoothness is not None
    return SetUp(x_start, source, chosen, why, geometry, smoothness, convexity, objective.convex, cached, unused)


def _method(
    caller: Callable[..., Any], method: Any, options: dict[str, Any], fun: Any, p: Any, L: Any
) -> tuple[Method, str]:
    """The method, and why "auto" took it: where p or L is given, the method that uses them."""
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


class Begun(NamedTuple):
    """Where a run begins."""

    at: Evaluation | Run | tuple[Evaluation, Status]  # with a status where the run cannot start at x0
    file: Path | None = None  # the file that holds it, if one does


def _begin(resume: Any, fun: Any, setup: SetUp, problem: Problem, album: Album) -> Begun:
    """At x0, at an earlier run's state, or in the middle of a run that was saved."""
    if resume is None:
        return Begun(_first_evaluation(problem.oracle, setup))
    file, known = None, False
    if isinstance(resume, str | os.PathLike):
        path = inputs.path("resume", resume)
        where, found = str(path), checkpoints.read(path, album.configuration, setup.method, setup.x0)
        run, file = album.restore(found.state, found.picture), path if found.newest else None
    else:
        where, state = "resume", inputs.state_to_resume(resume, setup.method, setup.x0)
        if state.picture is not None:
            refuse_other(where, state.picture.configuration, album.configuration)
            known = state.picture.objective is not None and state.picture.objective() is fun
        run = album.go_on(state, state.picture)
    refuse_other_start(where, run.state.origin, setup.x0)
    if not known:
        refuse_other_function(where, run, problem)
    return Begun(run, file)


def _finish_despite_interrupt(finish: Callable[[], Result]) -> Result:
    """Finish a run that Ctrl-C shall not abort: after a first Ctrl-C finish once more; a second one is raised."""
    try:
        return finish()
    except KeyboardInterrupt:
        return finish()


def _saver(path: Path | None, every: int, begun: Begun, album: Album, method: Method) -> checkpoints.Saver | None:
    """What writes the run to disk, if it is to be written; a state read from that file is not written again."""
    if path is None:
        return None
    saver = checkpoints.Saver(path, every, album, method)
    if isinstance(begun.at, Run) and begun.at.complete:
        saver.take_picture(begun.at)
        if begun.file == path:
            saver.written, saver.whole = begun.at.state.iteration, True
    return saver


def _first_evaluation(oracle: Oracle, setup: SetUp) -> Evaluation | tuple[Evaluation, Status]:
    """The evaluation at x0; with a status where the run cannot start there."""
    x0 = setup.x0
    try:
        e = oracle.evaluate(to_float64(x0) if setup.in_double else x0)
    except Stop as stop:  # -inf at x0, or no budget at all
        value = -math.inf if stop.status is Status.UNBOUNDED else math.nan
        return Evaluation(x0, value, x0 * math.nan), stop.status
    return e if e.finite else (Evaluation(x0, e.f, convert_like(e.g, x0)), Status.NONFINITE_START)
