"""From data and settings to a solution: one function a problem, each a call of the library."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.special import expit

from .._minimize import minimize
from .._run.status import Status
from ..objectives import Logistic, LogSumExp
from ..problems import chebyshev, lp_fit, transport
from .data import Cost, Pair
from .separable import SeparationWatch
from .settings import Settings

ROWS = 1000
"""Rows of the trace, about: enough for a figure, however long the run."""
REG = 0.01
"""The default regularisation of transport, as a part of the costs' range."""
SEPARATED = (
    "No x is best: a direction separates the labels, and the value falls for ever along it; --ridge gives a best x."
)
"""A logistic loss without a minimiser."""
LATE = 10
"""Steps towards the certificate where the time is up already."""
FAR = ", unless it is over 100 times as large as this x and its Newton step"
"""What the certificate without a ridge has to leave out: see ``Affine.duality_gap``."""
PROOFS = ("active", "signs", "multipliers", "residual", "dual", "u", "v")
"""The arrays that prove a solver's answer; each solver has some of them."""


@dataclass(frozen=True)
class FileSolution:
    """What a solver found, with what only its problem knows about it."""

    res: Any  # a Result
    proves: str  # what the lower bound means
    why: str  # the method
    scale: float = 0.0  # the gap is relative to the value, or to this where it is larger
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # for solution.npz
    scalars: dict[str, Any] = field(default_factory=dict)  # for solution.json, beside those of the result
    notes: tuple[str, ...] = ()
    attained: bool = True  # False where it is proved that no x is best
    tol: float = 0.0
    size: str = ""  # of the data, for people
    seconds: float = 0.0
    predictions: dict[str, np.ndarray] = field(default_factory=dict)  # for predictions.csv, a column each

    @property
    def fun(self) -> float:
        """The value."""
        return float(self.res.fun)

    @property
    def lower(self) -> float:
        """The lower bound; -inf where nothing is certified."""
        return -math.inf if math.isnan(self.res.lower) else float(self.res.lower)

    @property
    def gap(self) -> float:
        """The value minus the bound."""
        return self.fun - self.lower

    @property
    def solved(self) -> bool:
        """Whether the solver says so, or the gap is within the tolerance."""
        within = self.tol * max(abs(self.fun), self.scale)
        return self.attained and math.isfinite(self.fun) and (bool(self.res.success) or self.gap <= within)

    @property
    def message(self) -> str:
        """How the run ended."""
        return str(self.res.message)


def solve(data: Pair | Cost, settings: Settings) -> FileSolution:
    """Solve the problem that the settings name."""
    began, size = time.perf_counter(), _size(data, settings)
    solver, usual = SOLVERS[settings.problem]
    tol = usual if settings.tol is None else settings.tol
    if isinstance(data, Pair) and settings.intercept:
        data = replace(data, A=_add_ones(data.A))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the result reports what the warnings would
        found = solver(data, settings, tol)
        res = found.res
        fit, predictions = _fit(res.x, data, settings) if isinstance(data, Pair) else ({}, {})
    return replace(
        found,
        arrays=fit | found.arrays | {name: np.asarray(res[name]) for name in PROOFS if name in res},
        scalars=found.scalars | {"tol": tol, "status": int(res.status), "message": res.message},
        notes=data.notes + found.notes,
        tol=tol,
        size=size,
        seconds=time.perf_counter() - began,
        predictions=predictions,
    )


def _minimax(data: Pair, settings: Settings, tol: float) -> FileSolution:
    res = chebyshev(data.A, data.b, gap_rtol=tol, **settings.limits())
    return FileSolution(
        res,
        "no x has a largest residual below the lower bound",
        "the smoothed maximum by hasd finds the rows that matter, linear programs on those rows the exact answer",
        scalars={"rank": int(res.rank), "linear_programs": int(res.nlp), "active_rows": len(res.active)},
    )


def _lp(data: Pair, settings: Settings, tol: float) -> FileSolution:
    power = 4.0 if settings.power is None else settings.power
    return FileSolution(
        lp_fit(data.A, data.b, power=power, gap_rtol=tol, **settings.limits()),
        "no x has a residual norm below the lower bound",
        f"from least squares to power {power:g} in stages, each started at the last one's answer",
        scalars={"power": power},
    )


def _logistic(data: Pair, settings: Settings, tol: float) -> FileSolution:
    f = Logistic(data.A, data.b, ridge=settings.ridge or 0.0)
    if f.ridge > 0.0:  # a ridge guarantees a minimiser
        notes = ("The ridge holds the intercept too.",) if settings.intercept else ()
        return replace(_solve_smooth(f, settings, tol), notes=notes)
    watch = SeparationWatch(data.A, data.b, math.inf if settings.time_limit is None else settings.time_limit)
    found = _solve_smooth(f, settings, tol, callback=watch)
    watch.finish(found.res.x, tol)
    found.res.nprod += watch.nprod
    if watch.direction is None:
        return found
    found.res.success, found.res.message = False, SEPARATED
    return replace(found, attained=False, arrays=found.arrays | {"separator": watch.direction})


def _lse(data: Pair, settings: Settings, tol: float) -> FileSolution:
    alpha = 1.0 if settings.alpha is None else settings.alpha
    found = _solve_smooth(LogSumExp(data.A, data.b, alpha=alpha, ridge=settings.ridge or 0.0), settings, tol)
    return replace(found, scalars=found.scalars | {"alpha": alpha})


def _solve_smooth(f: Any, settings: Settings, tol: float, **given: Any) -> FileSolution:
    """minimize, and afterwards the best lower bound on the minimum: the dual's, or the run's own with a ridge."""
    res = minimize(f, np.zeros(f.dimension), p=settings.norm, tol=tol, trace=ROWS, **settings.limits(), **given)
    before = f.nprod
    if not res.trace["fun"].size:  # no time for an evaluation, or none possible at x = 0
        res.fun, res.jac = f.value_and_grad(res.x)
        res.trace |= {"seconds": np.zeros(1), "fun": np.array([res.fun]), "lower": np.array([math.nan])}
    late = res.status == Status.TIME.code
    gap = np.fmin(f.duality_gap(res.x, iterations=LATE if late else 100), res.gap if f.ridge > 0.0 else math.inf)
    res.lower = res.fun - max(gap, 0.0)
    res.nprod += f.nprod - before
    return FileSolution(
        res,
        "no x has a value below the lower bound" + ("" if f.ridge > 0.0 else FAR),
        res.reason if settings.norm is None else f"the norm was given: p = {res.p:g}",
        scale=abs(float(res.trace["fun"][0])),
        arrays={"gradient": res.jac},
        scalars={"ridge": f.ridge, "p": str(res.p), "gradient_norm": float(np.linalg.norm(res.jac))},
    )


def _transport(data: Cost, settings: Settings, tol: float) -> FileSolution:
    reg, notes = (settings.reg, ()) if settings.reg is not None else _default_reg(data)
    res = transport(data.C, data.a, data.b, reg, error_tol=tol, **settings.limits())
    # Before the end no plan has the right marginals: the trace's fun bounds nothing.
    res.trace["fun"] = np.full_like(res.trace["lower"], res.fun)
    return FileSolution(
        res,
        "no plan with these marginals has a regularised cost below the lower bound",
        "Newton's method on the dual where the plan is sparse, from a large reg down to the one asked for",
        arrays={"plan": res.plan()},
        scalars={"reg": reg, "cost": float(res.cost), "marginal_error": float(res.marginal_error)},
        notes=notes,
    )


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


SOLVERS: dict[str, tuple[Callable[[Any, Settings, float], FileSolution], float]] = {
    "minimax": (_minimax, 1e-9),
    "lp": (_lp, 1e-8),
    "logistic": (_logistic, 1e-8),
    "lse": (_lse, 1e-8),
    "transport": (_transport, 1e-6),
}
"""The function of each problem, and its tolerance where none is given."""
