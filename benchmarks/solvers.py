"""The solvers: ours, SciPy's, accelerated gradient descent, and conjugate gradients on quadratics.

Each is a function of a problem, the value at which it may end and a cap in seconds, and returns its history.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize

import hasd
from benchmarks.oracle import Ended, History, Watched
from benchmarks.problems import Problem
from hasd._math.evaluation import Evaluation
from hasd.methods.agd import AGD, AGDState
from hasd.objectives import LeastSquares, Quadratic

UNLIMITED = 10**8
OURS, BASELINE, LINEAR_CG = "hasd", "L-BFGS-B", "linear CG"


@dataclass(frozen=True)
class Run:
    """How a solver did on a problem."""

    history: History
    capped: bool  # ended by the cap
    final: float = math.nan  # the value at the returned point, computed anew, where the solver returns one
    method: str = ""  # what was chosen, where there was a choice


Solver = Callable[[Problem, float, float], Run]

SCIPY: dict[str, tuple[str, dict[str, Any], bool]] = {
    BASELINE: ("L-BFGS-B", {"ftol": 0.0, "gtol": 0.0, "maxfun": UNLIMITED, "maxls": 50}, False),
    "L-BFGS-B m=30": ("L-BFGS-B", {"ftol": 0.0, "gtol": 0.0, "maxfun": UNLIMITED, "maxls": 50, "maxcor": 30}, False),
    "CG": ("CG", {"gtol": 0.0}, False),
    "TNC": ("TNC", {"ftol": 0.0, "gtol": 0.0, "xtol": 0.0, "maxfun": UNLIMITED}, False),
    "Newton-CG": ("Newton-CG", {"xtol": 0.0}, True),
    "trust-ncg": ("trust-ncg", {"gtol": 0.0}, True),
}
"""SciPy's method, its tolerances opened, and whether it is given Hessian products."""


def scipy_solver(name: str, problem: Problem, goal: float, cap: float) -> Run:
    """One of SciPy's minimisers."""
    method, options, hessian = SCIPY[name]
    if method != "TNC":
        options = {**options, "maxiter": UNLIMITED}
    x0 = problem.x0
    watched = Watched(problem, goal, cap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        more = {"hessp": watched.hessp} if hessian else {}
        with contextlib.suppress(Ended):
            optimize.minimize(watched.fun_and_grad, x0, jac=True, method=method, options=options, **more)
    return Run(watched.history, watched.capped)


def hasd_solver(problem: Problem, goal: float, cap: float, method: Any = "auto", **settings: Any) -> Run:
    """`hasd.minimize` as a user calls it, but for the tolerance, which is opened; read off its own trace."""

    def callback(*, intermediate_result: optimize.OptimizeResult) -> None:
        if intermediate_result.fun <= goal:
            raise StopIteration

    fun: Any = problem.objective.with_own_counter()
    if problem.black_box:
        objective = fun
        fun = lambda x: objective.value_and_grad(x)  # noqa: E731  a plain callable, whose structure nobody sees
        settings["jac"] = True
    res = hasd.minimize(
        fun, problem.x0, method=method, tol=0.0, maxiter=UNLIMITED, time_limit=cap, callback=callback, **settings
    )
    trace = res.trace
    work = trace["nfev" if problem.black_box else "nprod"]
    history = History(trace["fun"].tolist(), work.tolist(), trace["seconds"].tolist())
    return Run(history, res.status == hasd.Status.TIME.code, float(res.fun), res.method)


@dataclass(frozen=True)
class RestartedAGD:
    """Nesterov's method with backtracking, its momentum thrown away whenever f rises (O'Donoghue & Candes 2015)."""

    name: str = "agd-restart"
    default_p: float = 2.0

    def init(self, problem: hasd.Problem, start: Evaluation) -> AGDState:
        """As AGD."""
        return AGD().init(problem, start)

    def step(self, problem: hasd.Problem, state: hasd.State) -> AGDState:
        """As AGD; where f rose, the step is dropped and the next one starts from x_t without momentum."""
        new = AGD().step(problem, state)
        return replace(new, x=state.x, fun=state.fun, y=state.x, c=1.0) if new.fun > state.fun else new


def linear_cg(problem: Problem, goal: float, cap: float) -> Run:
    """Conjugate gradients: one product an iteration on a Quadratic, two (CGLS) on least squares."""
    x = problem.x0
    watched = Watched(problem, goal, cap)
    with contextlib.suppress(Ended):
        (_cgls if isinstance(problem.objective, LeastSquares) else _cg)(watched, x)
    return Run(watched.history, watched.capped)


def _cg(watched: Watched, x: np.ndarray) -> None:
    """On 1/2 <x, Hx> + <c, x>, whose value is <x, c - r>/2 with r = -(Hx + c)."""
    f: Any = watched.objective
    r = -f.c
    p, rr = r.copy(), float(r @ r)
    while rr > 0.0:
        Hp = f.forward(p)
        t = rr / float(p @ Hp)
        x, r = x + t * p, r - t * Hp
        watched.note(0.5 * float(x @ (f.c - r)))
        rr, old = float(r @ r), rr
        p = r + (rr / old) * p


def _cgls(watched: Watched, x: np.ndarray) -> None:
    """On 1/2 ||Ax - b||^2, ridge 0."""
    f: Any = watched.objective
    r = f.b.copy()
    s = f.adjoint(r)
    p, ss = s.copy(), float(s @ s)
    while ss > 0.0:
        q = f.forward(p)
        t = ss / float(q @ q)
        x, r = x + t * p, r - t * q
        watched.note(0.5 * float(r @ r))
        s = f.adjoint(r)
        ss, old = float(s @ s), ss
        p = s + (ss / old) * p


def solvers_for(problem: Problem) -> dict[str, Solver]:
    """Those that can be run on the problem, the baseline and ours first."""
    chosen: dict[str, Solver] = {BASELINE: partial(scipy_solver, BASELINE), OURS: hasd_solver}
    if isinstance(problem.objective, Quadratic | LeastSquares):
        chosen[LINEAR_CG] = linear_cg
    for name, (_, _, hessian) in SCIPY.items():
        if name != BASELINE and not (hessian and problem.black_box):
            chosen[name] = partial(scipy_solver, name)
    chosen["AGD restart"] = partial(hasd_solver, method=RestartedAGD(), mu=0.0)
    chosen["AGD"] = partial(hasd_solver, method="agd")
    return chosen
