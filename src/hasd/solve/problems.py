"""From data and settings to a solution: one function a problem, each a call of the library."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy.special import expit

from .data import Cost, Pair
from .settings import Settings
from .waiting import show_waiting

ROWS = 1000
"""Rows of the trace, about: enough for a figure, however long the run."""
GRADIENT_TOL, MINIMAX_TOL, LP_TOL, TRANSPORT_TOL = 1e-8, 1e-9, 1e-8, 1e-6
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


@dataclass(frozen=True)
class FileSolution:
    """What a solver found, with what only its problem knows about it."""

    res: Any  # an OptimizeResult
    lower: float  # -inf where nothing is certified
    proves: str  # what the lower bound means
    method: str
    why: str  # that method
    tol: float
    nprod: int
    scale: float = 0.0  # the gap is relative to the value, or to this where it is larger
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # for solution.npz
    scalars: dict[str, Any] = field(default_factory=dict)  # for solution.json, beside those above
    notes: tuple[str, ...] = ()
    value_label: str = "value"  # in the figure
    attained: bool = True  # False where it is proved that no x is best
    size: str = ""  # of the data, for people
    seconds: float = 0.0
    predictions: dict[str, np.ndarray] = field(default_factory=dict)  # for predictions.csv, a column each

    @property
    def fun(self) -> float:
        """The value."""
        return float(self.res.fun)

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
    began = time.perf_counter()
    solver: dict[str, Callable[[Any, Settings], FileSolution]] = {
        "minimax": _minimax,
        "lp": _lp,
        "logistic": _logistic,
        "lse": _lse,
        "transport": _transport,
    }
    alive = settings.progress and settings.problem not in ("logistic", "lse")  # those two have a bar
    with (
        np.errstate(all="ignore"),
        warnings.catch_warnings(),
        show_waiting(alive, settings.problem, settings.time_limit),
    ):
        warnings.simplefilter("ignore")  # the result reports what the warnings would
        found = solver[settings.problem](data, settings)
    res = found.res
    return replace(
        found,
        lower=-math.inf if math.isnan(found.lower) else found.lower,
        size=_size(data, settings),
        seconds=time.perf_counter() - began,
        arrays=found.arrays | _arrays(res),
        scalars=found.scalars | {"tol": found.tol, "status": int(res.status), "message": res.message},
        notes=data.notes + found.notes,
        predictions=_predict(found.arrays["x"], data, settings) if isinstance(data, Pair) else {},
    )


def _minimax(data: Pair, settings: Settings) -> FileSolution:
    from ..problems._chebyshev import chebyshev

    tol = MINIMAX_TOL if settings.tol is None else settings.tol
    res = chebyshev(_matrix(data, settings), data.b, gap_rtol=tol, **settings.limits())
    return FileSolution(
        res,
        float(res.lower),
        "no x has a largest residual below the lower bound",
        "exchange",
        "the smoothed maximum by hasd finds the rows that matter, linear programs on those rows the exact answer",
        tol,
        int(res.nprod),
        arrays=_fit(res.x, data, settings),
        scalars={"rank": int(res.rank), "linear_programs": int(res.nlp), "active_rows": len(res.active)},
    )


def _lp(data: Pair, settings: Settings) -> FileSolution:
    from ..problems._lp_fit import lp_fit

    tol = LP_TOL if settings.tol is None else settings.tol
    power = 4.0 if settings.power is None else settings.power
    res = lp_fit(_matrix(data, settings), data.b, power=power, gap_rtol=tol, **settings.limits())
    return FileSolution(
        res,
        float(res.lower),
        "no x has a residual norm below the lower bound",
        str(res.method),
        f"from least squares to power {power:g} in stages, each started at the last one's answer",
        tol,
        int(res.nprod),
        arrays=_fit(res.x, data, settings),
        scalars={"power": power},
    )


def _logistic(data: Pair, settings: Settings) -> FileSolution:
    from ..objectives import Logistic
    from .separable import SeparationWatch

    ridge = settings.ridge or 0.0
    notes = ("The ridge holds the intercept too.",) if ridge and settings.intercept else ()
    A = _matrix(data, settings)
    f = Logistic(A, data.b, ridge=ridge)
    if ridge > 0.0:  # a ridge guarantees a minimiser
        return _solve_smooth(f, data, settings, {"ridge": ridge}, notes)
    watch = SeparationWatch(A, data.b, math.inf if settings.time_limit is None else settings.time_limit)
    found = _solve_smooth(f, data, settings, {"ridge": ridge}, notes, watch)
    watch.finish(found.res.x, found.tol)
    found = replace(found, nprod=found.nprod + watch.nprod)
    if watch.direction is None:
        return found
    found.res.success, found.res.message = False, SEPARATED
    return replace(found, attained=False, arrays=found.arrays | {"separator": watch.direction})


def _lse(data: Pair, settings: Settings) -> FileSolution:
    from ..objectives import LogSumExp

    ridge, alpha = settings.ridge or 0.0, 1.0 if settings.alpha is None else settings.alpha
    f = LogSumExp(_matrix(data, settings), data.b, alpha=alpha, ridge=ridge)
    return _solve_smooth(f, data, settings, {"ridge": ridge, "alpha": alpha}, ())


def _solve_smooth(
    f: Any,
    data: Pair,
    settings: Settings,
    scalars: dict[str, Any],
    notes: tuple[str, ...],
    callback: Callable[[np.ndarray], None] | None = None,
) -> FileSolution:
    """minimize, and afterwards the best lower bound on the minimum: the dual's, or the run's own with a ridge."""
    from .._minimize import minimize
    from .._run.status import Status

    tol = GRADIENT_TOL if settings.tol is None else settings.tol
    given = settings.limits() | {"tol": tol, "callback": callback}
    progress = settings.progress and find_spec("tqdm") is not None
    res = minimize(f, np.zeros(f.dimension), p=settings.norm, progress=progress, trace=ROWS, **given)
    before = f.nprod
    if not res.trace["fun"].size:  # no time for an evaluation, or none possible at x = 0
        res.fun, res.jac = f.value_and_grad(res.x)
        res.trace |= {"seconds": np.zeros(1), "fun": np.array([res.fun]), "lower": np.array([math.nan])}
    late = res.status == Status.TIME.code
    gaps = [f.duality_gap(res.x, iterations=LATE if late else 100), res.gap if f.ridge > 0.0 else math.inf]
    gap = min((gap for gap in gaps if not math.isnan(gap)), default=math.inf)
    chosen = res.reason
    return FileSolution(
        res,
        float(res.fun) - max(gap, 0.0),
        "no x has a value below the lower bound" + ("" if f.ridge > 0.0 else FAR),
        str(res.method),
        chosen if settings.norm is None else f"the norm was given: p = {res.p:g}",
        tol,
        int(res.nprod + f.nprod - before),
        scale=abs(float(res.trace["fun"][0])),
        arrays=_fit(res.x, data, settings) | {"gradient": res.jac},
        scalars=scalars | {"p": str(res.p), "gradient_norm": float(np.linalg.norm(res.jac))},
        notes=notes,
    )


def _transport(data: Cost, settings: Settings) -> FileSolution:
    from ..problems._transport import transport

    tol = TRANSPORT_TOL if settings.tol is None else settings.tol
    reg, notes = (settings.reg, ()) if settings.reg is not None else _default_reg(data)
    res = transport(data.C, data.a, data.b, reg, error_tol=tol, **settings.limits())
    # Before the end no plan has the right marginals: the trace's fun bounds nothing.
    res.trace["fun"] = np.full_like(res.trace["lower"], res.fun)
    return FileSolution(
        res,
        float(res.lower),
        "no plan with these marginals has a regularised cost below the lower bound",
        str(res.method),
        "Newton's method on the dual where the plan is sparse, from a large reg down to the one asked for",
        tol,
        round(res.npass),
        arrays={"u": res.u, "v": res.v, "plan": res.plan()},
        scalars={"reg": reg, "cost": float(res.cost), "marginal_error": float(res.marginal_error)},
        value_label="value of the plan, made at the end",
        notes=notes,
    )


def _default_reg(data: Cost) -> tuple[float, tuple[str]]:
    """The regularisation where none is given, and the note that says so."""
    reg = REG * float(data.C.max() - data.C.min())
    if reg > 0.0:
        return reg, (f"--reg was not given: {reg:.6g}, {REG:.0%} of the costs' range.",)
    return 1.0, ("--reg was not given: 1, as all costs are the same.",)


def _matrix(data: Pair, settings: Settings) -> Any:
    """A, with a column of ones where an intercept is asked for."""
    if not settings.intercept:
        return data.A
    ones = np.ones((data.A.shape[0], 1))
    if isinstance(data.A, np.ndarray):
        return np.hstack((data.A, ones))
    from scipy.sparse import csr_array, hstack

    return csr_array(hstack((data.A, csr_array(ones)), format="csr"))


def _fit(x: np.ndarray, data: Pair, settings: Settings) -> dict[str, np.ndarray]:
    """The coefficients, the intercept apart, and the names they go with; the rows, where some were left out."""
    coefficients = x[:-1] if settings.intercept else x
    names = data.columns or [f"x{j}" for j in range(len(coefficients))]
    out = {"x": x, "coef": coefficients, "intercept": np.asarray(x[-1] if settings.intercept else 0.0)}
    out["columns"] = np.array(names, dtype=str)
    return out if data.rows is None else out | {"rows": data.rows}


def _predict(x: np.ndarray, data: Pair, settings: Settings) -> dict[str, np.ndarray]:
    """What x says of each row: <a_i, x> and how far it is from b_i, or the probability of the label that became +1."""
    rows = np.arange(len(data.b)) if data.rows is None else data.rows
    with np.errstate(all="ignore"):
        product = _matrix(data, settings) @ x
        if settings.problem != "logistic":
            return {"row": rows, "target": data.b, "prediction": product, "residual": product - data.b}
        labels = np.array(data.classes or ("-1", "1"))[(data.b > 0.0).astype(int)]
        return {"row": rows, "label": labels, "probability": expit(product)}


def _arrays(res: Any) -> dict[str, np.ndarray]:
    """The arrays that prove a solver's answer, those that it has."""
    names = ("active", "signs", "multipliers", "residual", "dual")
    return {name: np.asarray(res[name]) for name in names if name in res}


def _size(data: Pair | Cost, settings: Settings) -> str:
    if isinstance(data, Cost):
        return f"{data.C.shape[0]} x {data.C.shape[1]} costs"
    n, d = data.A.shape
    kind = "dense" if isinstance(data.A, np.ndarray) else f"sparse, {data.A.nnz} entries"
    intercept = "with intercept" if settings.intercept else "no intercept"
    return f"{n} rows, {d} columns, {kind}; target: {data.target}; {intercept}"
