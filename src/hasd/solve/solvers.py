"""From data and settings to a solution: one function a problem, each a call of the library."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import expit

from .._math.evaluation import Evaluation, sizes_of
from .._math.geometry import norm2
from .._minimize import minimize
from .._run.status import Status
from ..objectives import Logistic, LogSumExp
from ..objectives._dual import REACH
from ..problems import chebyshev, lp_fit, transport
from .data import Cost, Pair
from .separable import SeparationWatch
from .settings import SMOOTH, Settings

ROWS = 1000
"""Rows of the trace, about: enough for a figure, however long the run."""
REG = 0.01
"""The default regularisation of transport, as a part of the costs' range."""
SEPARATED = (
    "No minimiser exists: a linear function separates the labels, and the loss always decreases along it. Give --ridge."
)
"""A logistic loss without a minimiser."""
LATE = 10
"""Steps towards the certificate where the time is up already."""
WITHIN = "no x of norm at most {:.3g} has a value below the lower bound"
"""What the certificate without a ridge says: see ``Affine.duality_gap``."""
CLOSE = "The certified gap is within the tolerance."
"""Why a problem is solved where a limit or rounding ended the run."""
ARRAYS = ("active", "signs", "multipliers", "residual", "dual", "gradient", "separator", "u", "v", "plan")
"""What proves a solver's answer, or is it; each solver has some of them."""
Found = tuple[Any, dict[str, Any], tuple[str, ...]]
"""What a solver returns: its result, numbers for solution.json, notes."""


@dataclass(frozen=True)
class FileSolution:
    """What a solver found, with what only its problem knows about it."""

    res: Any  # a Result, whose `reason` says why its method was taken
    solved: bool  # whether the solver says so, or the gap is within the tolerance
    proves: str  # what the lower bound means
    size: str  # of the data, for people
    scalars: dict[str, Any]  # for solution.json, beside those of the result
    arrays: dict[str, np.ndarray]  # for solution.npz
    predictions: dict[str, np.ndarray]  # for predictions.csv, a column each
    notes: tuple[str, ...]


def solve(data: Pair | Cost, settings: Settings) -> FileSolution:
    """Solve the problem that the settings name."""
    began, size, smooth = time.perf_counter(), _size(data, settings), settings.problem in SMOOTH
    solver, usual, proves = SOLVERS[settings.problem]
    tol = usual if settings.tol is None else settings.tol
    if isinstance(data, Pair) and settings.intercept:
        data = replace(data, A=_add_ones(data.A))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result reports what the warnings would
        res, scalars, notes = solver(data, settings, tol)
        fit, predictions = _fit(res.x, data, settings) if isinstance(data, Pair) else ({}, {})
        fun, lower, gap = float(res.fun), float(np.fmax(res.lower, -math.inf)), float(np.fmin(res.gap, math.inf))
        res.update(fun=fun, lower=lower, gap=gap, seconds=time.perf_counter() - began)
        scale = max(abs(fun), abs(res.trace["fun"][0]) if smooth else 0.0)  # what the gap is relative to
        attained = "separator" not in res and math.isfinite(fun)
        solved = bool(attained and (res.success or res.gap <= tol * scale))
        if solved and not res.success:
            res.update(status=Status.GAP.code, message=CLOSE)
        if settings.relative:
            proves = "no x has a largest relative residual below the lower bound"
        if smooth and not settings.ridge:
            proves = WITHIN.format(REACH * norm2(res.x))
    return FileSolution(
        res,
        solved,
        proves,
        size,
        scalars | {"tol": tol, "status": res.status, "message": res.message},
        fit | {name: np.asarray(res[name]) for name in ARRAYS if name in res},
        predictions,
        data.notes + notes,
    )


def _minimax(data: Pair, settings: Settings, tol: float) -> Found:
    res = chebyshev(data.A, data.b, relative=bool(settings.relative), gap_rtol=tol, **settings.limits())
    res.reason = "a smoothed maximum finds the rows that matter; linear programs on these rows give the exact answer"
    found = {"rank": int(res.rank), "linear_programs": int(res.nlp), "active_rows": len(res.active)}
    return res, found | {"relative": bool(settings.relative)}, ()


def _lp(data: Pair, settings: Settings, tol: float) -> Found:
    power = 4.0 if settings.power is None else settings.power
    res = lp_fit(data.A, data.b, power=power, gap_rtol=tol, **settings.limits())
    res.reason = f"from least squares to power {power:g} in stages, each started at the last one's answer"
    return res, {"power": power}, ()


def _logistic(data: Pair, settings: Settings, tol: float) -> Found:
    f = Logistic(data.A, data.b, ridge=settings.ridge or 0.0)
    if f.ridge > 0.0:  # a ridge guarantees a minimiser
        notes = ("The ridge penalises the intercept too.",) if settings.intercept else ()
        return *_solve_smooth(f, settings, tol), notes
    limit = math.inf if settings.time_limit is None else settings.time_limit
    watch = SeparationWatch(data.A, data.b, time.perf_counter() + limit)
    res, scalars = _solve_smooth(f, settings, tol, callback=watch)
    watch.finish(res.x, tol)
    res.nprod += watch.nprod
    if watch.direction is not None:
        res.update(success=False, status=None, message=SEPARATED, separator=watch.direction)
    return res, scalars, ()


def _lse(data: Pair, settings: Settings, tol: float) -> Found:
    alpha = 1.0 if settings.alpha is None else settings.alpha
    f = LogSumExp(data.A, data.b, alpha=alpha, ridge=settings.ridge or 0.0)
    res, scalars = _solve_smooth(f, settings, tol)
    return res, scalars | {"alpha": alpha}, ()


def _solve_smooth(f: Any, settings: Settings, tol: float, **given: Any) -> tuple[Any, dict[str, Any]]:
    """minimize, and afterwards the best bounds: those of the dual, or with a ridge the run's own.

    Both gaps count the rounding of what they are made of; the lower bound also counts what f(x) may be off by.
    """
    res = minimize(f, np.zeros(f.dimension), p=settings.norm, tol=tol, trace=ROWS, **settings.limits(), **given)
    before = f.nprod
    if not res.trace["fun"].size:  # no time for an evaluation, or none possible at x = 0
        res.fun, res.jac = f.value_and_grad(res.x)
        res.trace |= {"seconds": np.zeros(1), "fun": np.array([res.fun]), "lower": np.array([math.nan])}
    late = res.status == Status.TIME.code
    gap = np.fmin(f.duality_gap(res.x, iterations=LATE if late else 100), res.gap)
    off = f.doubt(sizes_of(Evaluation(res.x, res.fun, res.jac))).value
    least = 0.0 if isinstance(f, Logistic) else -math.inf  # no logistic loss is below 0
    lower = np.fmax(max(res.lower, least), math.nextafter(res.fun - (off + gap), -math.inf))
    res.update(lower=lower, gap=gap, nprod=res.nprod + f.nprod - before, gradient=res.jac)
    if settings.norm is not None:
        res.reason = f"the norm was given: p = {res.p:g}"
    return res, {"ridge": f.ridge, "p": str(res.p), "gradient_norm": float(np.linalg.norm(res.jac))}


def _transport(data: Cost, settings: Settings, tol: float) -> Found:
    reg, notes = (settings.reg, ()) if settings.reg is not None else _default_reg(data)
    res = transport(data.C, data.a, data.b, reg, error_tol=tol, **settings.limits())
    # Before the end no plan has the right marginals: the trace's fun bounds nothing.
    res.trace["fun"] = np.full_like(res.trace["lower"], res.fun)
    res.plan = res.plan()
    res.reason = "Newton's method on the dual where the plan is sparse, from a large reg down to the one asked for"
    return res, {"reg": reg, "cost": float(res.cost), "marginal_error": float(res.marginal_error)}, notes


def _default_reg(data: Cost) -> tuple[float, tuple[str]]:
    """The regularisation where none is given, and the note that says so."""
    reg = REG * float(np.ptp(data.C))
    if reg > 0.0:
        return reg, (f"--reg was not given: {reg:.6g}, {REG:.0%} of the costs' range.",)
    return 1.0, ("--reg was not given: 1, as all costs are the same.",)


def _add_ones(A: Any) -> Any:
    """A with one more column, of the intercept."""
    ones = np.ones((A.shape[0], 1))
    return np.hstack((A, ones)) if isinstance(A, np.ndarray) else hstack((A, csr_array(ones)), format="csr")


def _fit(x: np.ndarray, data: Pair, settings: Settings) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The coefficients, the intercept apart, with their names, and where rows were left out the others; predictions.

    A row's prediction is <a_i, x> and how far it is from b_i, or the probability of the label that became +1.
    """
    coefficients, intercept = (x[:-1], x[-1]) if settings.intercept else (x, 0.0)
    names = data.columns or [f"x{j}" for j in range(len(coefficients))]
    fit = {"x": x, "coef": coefficients, "intercept": np.asarray(intercept), "columns": np.array(names, dtype=str)}
    rows = {"row": np.arange(len(data.b)) if data.rows is None else data.rows}
    product = data.A @ x
    if settings.problem == "logistic":
        labels = np.array(data.classes or ("-1", "1"))[(data.b > 0.0).astype(int)]
        table = rows | {"label": labels, "probability": expit(product)}
    else:
        table = rows | {"target": data.b, "prediction": product, "residual": product - data.b}
    return fit if data.rows is None else fit | {"rows": data.rows}, table


def _size(data: Pair | Cost, settings: Settings) -> str:
    if isinstance(data, Cost):
        return f"{data.C.shape[0]} x {data.C.shape[1]} costs"
    n, d = data.A.shape
    kind = "dense" if isinstance(data.A, np.ndarray) else f"sparse, {data.A.nnz} entries"
    intercept = "with intercept" if settings.intercept else "no intercept"
    return f"{n} rows, {d} columns, {kind}; target: {data.target}; {intercept}"


SOLVERS: dict[str, tuple[Callable[[Any, Settings, float], Found], float, str]] = {
    "minimax": (_minimax, 1e-9, "no x has a largest residual below the lower bound"),
    "lp": (_lp, 1e-8, "no x has a residual norm below the lower bound"),
    "logistic": (_logistic, 1e-8, "no x has a value below the lower bound"),
    "lse": (_lse, 1e-8, "no x has a value below the lower bound"),
    "transport": (_transport, 1e-6, "no plan with these marginals has a regularised cost below the lower bound"),
}
"""The function of each problem, its tolerance where none is given, and what its lower bound means."""
