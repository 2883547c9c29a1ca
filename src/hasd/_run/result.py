"""From the end of a run to the result: one point, and everything that is said of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from .._math.arrays import Array, convert_like, copy_of, namespace
from .._math.evaluation import Evaluation
from .._math.geometry import label_of
from ..objectives._operators import quiet
from .capabilities import traits_of_method
from .certificate import Certificate, cut_at
from .gradient_check import Findings, check_gradient
from .job import Job
from .problem import Problem
from .record import Run
from .report import Result
from .status import Status


@quiet
def result(job: Job, run: Run, why: str) -> Result:
    """The result of a run."""
    problem, bounds, state = job.problem, job.recorder.bounds, run.state
    e = _round_to_precision_of(job.x0, _choose_answer(job, run), problem)
    problem.oracle.see(e)
    claims = run.status in (Status.CONVERGED, Status.GAP, Status.PRECISION)
    stood = run.status is Status.MAXITER and state.iteration > 0  # it may have stood still all the time
    if stood or e.norm2 == 0.0 or claims:
        problem.oracle.probe(e)
    if (e.finite and e.norm2 == 0.0) or claims:
        run.status = job.wanted.success if job.wanted.are_met(problem, state, e) else Status.PRECISION
    if run.status is Status.UNBOUNDED and bounds.can_certify:  # the radius was that of a minimiser, and there is none
        bounds.withdrawn = "Without a minimum there is no gap: nothing is certified."
    stuck, withdrawn = run.status is Status.PRECISION, bool(bounds.withdrawn)
    is_asked = stuck or (withdrawn and not run.status.success)
    misfit, kink = _check_gradient(problem, e, bounds.bend) if is_asked else Findings()
    if stuck:
        run.status = Status.GRADIENT if misfit else Status.NONCONVEX if bounds.is_nonconvex else Status.PRECISION
    estimates = (*state.certificates, state.bound, bounds.certificate)
    cut, convex = cut_at(e, state.origin, problem.mu), problem.traits.convex
    rests = bounds.radius, withdrawn, bounds.bend, convex, state.L, bounds.assumed
    gap = Certificate(cut, (*estimates, bounds.cut), *rests)
    if bounds.can_certify and gap.contradicts(bounds.radius):  # only the returned point shows it
        bounds.withdraw(max(gap.proved_lower(bounds.radius), e.f - cut.gap(bounds.radius, bounds.bend)), e.f)
        gap = replace(gap, withdrawn=True)
    kink = kink if stuck else ""
    sizes = _sizes_of_gradients(problem.dual_norm(e), state.grad_norm0) if run.status is Status.CONVERGED else ""
    notes = " ".join(filter(None, (sizes, misfit, kink, bounds.withdrawn, state.note, why, problem.traits.note)))
    gap = _sharpen_certificate(problem, e, state.origin, gap) if bounds.can_certify else gap
    end = {"nit": state.iteration, "L": state.L, "weight": state.weight, "psi": state.psi}
    return _build(job, e, run.status, notes, gap, **end)


def _sizes_of_gradients(last: float, first: float) -> str:
    """How large the dual norm of the gradient is, and was at x_0."""
    return f"It is {last:.3g}, and was {first:.3g} at x0."


@quiet
def no_run(job: Job, start: Evaluation, status: Status) -> Result:
    """The result where the run cannot start from x0."""
    certificate = Certificate(cut_at(start, start.x, job.problem.mu), (), withdrawn=True)
    note = _name_nonfinite(job, start) if status is Status.NONFINITE_START else ""
    return _build(job, start, status, note, certificate, nit=0, L=job.problem.L, weight=0.0, psi=0.0)


def _name_nonfinite(job: Job, start: Evaluation) -> str:
    """Which number at x0 is not finite."""
    if not math.isfinite(start.f):
        return f"The value is {start.f}."
    finite = namespace(start.g).isfinite(start.g)
    place = int(namespace(finite).nonzero(~finite)[0][0])
    return f"Entry {job.layout.index_of(place)} of the gradient is {float(start.g[place])}."


def _sharpen_certificate(problem: Problem, e: Evaluation, origin: Array, gap: Certificate) -> Certificate:
    """The certificate with less rounding, where most of its gap is rounding and exceeds the last digits of f."""
    if not (2.0 * gap.charge() > gap.gap() > 2.0 * e.eps * abs(e.f)) or problem.oracle.is_out_of_time:
        return gap
    sharper = problem.oracle.sharpen(e)
    return gap if sharper is None else replace(gap, cut=cut_at(sharper, origin, gap.mu), proofs=(*gap.proofs, gap.cut))


def _check_gradient(problem: Problem, e: Evaluation, bend: float) -> Findings:
    """What is wrong with a user's function where a run is stuck."""
    oracle = problem.oracle
    has_own_gradient = problem.objective is None and getattr(oracle.source, "jac", None) is not None
    can_be_checked = has_own_gradient and e.finite and not oracle.is_out_of_time
    return check_gradient(oracle.record_value, e, bend) if can_be_checked else Findings()


def _choose_answer(job: Job, run: Run) -> Evaluation:
    """The point to return: the one that met the tolerance, or the best one by the goal.  Never worse than x0.

    A point that was evaluated on cached images is evaluated again, from x.
    """
    problem, state, record = job.problem, run.state, job.problem.oracle.record
    finish = traits_of_method(job.method).finish
    if run.status is Status.GAP and not job.wanted.gradient and (there := record(job.wanted.bounds.best)).finite:
        return there
    if run.status.success or job.goal == "gradient":
        return finish(problem, state.at if run.status.success else run.smallest[1])
    best, (lowest, where) = problem.oracle.best, problem.oracle.lowest
    below_best = best is None or lowest < best.f
    if where is not None and below_best and not lowest >= state.fun:  # which may be NaN
        there = record(where)
        if there.finite:
            return there
    last = finish(problem, state.at) if state.at.x is state.x else record(state.x)
    if best is None or best.x is last.x or (last.finite and last.f <= best.f):
        lowest_known = last
    else:
        lowest_known = finish(problem, best)
    return _flattest_point(problem, run, lowest_known) if run.status is Status.PRECISION else lowest_known


def _flattest_point(problem: Problem, run: Run, e: Evaluation) -> Evaluation:
    """The point of smallest gradient, where its value is the lowest up to rounding; otherwise e, the lowest point.

    A run that ends at machine precision has wandered among such points, and their gradients differ by far more than
    their values do.
    """
    if run.smallest[1].x is e.x:
        return e
    flat = problem.oracle.record(run.smallest[1].x)
    bend = problem.oracle.bend.largest
    same = flat.finite and flat.f - e.f <= flat.df(bend) + e.df(bend) and flat.f <= run.first
    return flat if same and flat.norm2 < e.norm2 else e


def _round_to_precision_of(x0: Array, e: Evaluation, problem: Problem) -> Evaluation:
    """The evaluation at x rounded to x0's precision, where the method worked in a finer one; at x0 if f is lower."""
    if e.x.dtype == x0.dtype:
        return e
    rounded = problem.oracle.record(convert_like(e.x, x0))
    if e.finite and not rounded.f <= e.f:  # near a minimiser rounding may undo all progress
        start = problem.oracle.record(x0)
        return start if start.f < rounded.f or not rounded.finite else rounded
    return rounded


def _build(job: Job, e: Evaluation, status: Status, note: str, certificate: Certificate, **end: Any) -> Result:
    """The fields that every result has; the gap is the one at x under the run's own radius and mu."""
    oracle, columns = job.problem.oracle, job.recorder.columns()
    counts = dict(zip(("nfev", "njev", "nprod"), oracle.counts, strict=True))
    return Result(
        x=job.layout.restore(copy_of(e.x)),
        fun=e.f,
        gap=certificate.gap() if certificate.needs_no_radius else math.inf,
        lower=certificate.lower() if certificate.needs_no_radius else -math.inf,
        certificate=certificate,
        jac=job.layout.restore(copy_of(e.g)),
        **counts,
        nrecord=oracle.nrecord,
        status=status.code,
        success=status.success,
        message=f"{status.message} {note}".strip(),
        method=job.method.name,
        p=label_of(job.problem.geometry),
        **end,
        seconds=job.recorder.seconds,
        trace=columns,
        state=None,
    )
