"""HASD in its tight form: the cut is taken at the coupling point y.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm; mu-strongly convex w.r.t. l_2 where mu > 0.
Algorithm.  y = theta x_t + (1 - theta) v_t,   g = grad f(y),   x_{t+1} = y - s_p(g)/L,
            psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2],   v_{t+1} = argmin psi_{t+1}.
            Declared L:    L rho a^2 = A_{t+1} kappa_{t+1} with 1 <= rho r(g)^2 <= 2, found by the search on rho;
                           one evaluation per trial, at y.
            Backtracked L: f(x_{t+1}) is evaluated too, and a is the largest root of
                           (A_t + a) f(x_{t+1}) <= min psi_{t+1}; rho := A_{t+1} kappa_{t+1}/(L a^2) is then read off
                           and predicts the next coupling point.
Guarantee.  (One epoch: declared L, or restart=False; with restarts it holds from each epoch's own start.)
            A_t f(x_t) <= min psi_t for all t, hence f(x_T) - f* <= R^2/(2 A_T) <= 4 L R^2/(G^2 T^2), where G is the
            mean of r(g) = ||g||_{p*}/||g||_2 over the run, taken at y_t, and R = ||x_0 - x*||_2.  With mu > 0 the
            weights grow geometrically, A_{t+1} >= A_t/(1 - sqrt(mu/(L rho))): no restarts.
Proof.      f(x_{t+1}) <= f(y) - ||g||_{p*}^2/(2L), and the exact recursion of psi* loses a^2 ||g||_2^2/(2 kappa_{t+1}),
            which is at most A_{t+1} ||g||_{p*}^2/(2L) as soon as rho >= 1/r(g)^2.
Reference.  Bai & Bullins, Faster Acceleration for Steepest Descent (COLT 2025) for the l_p step with l_2 prox and
            implicit rho; AGMsDR (Nesterov, Gasnikov, Guminov, Dvurechensky 2020) for the cut at y and the largest root.

>>> import numpy as np, hasd
>>> f = hasd.objectives.SymmetricSoftmax(np.eye(3), np.array([1.0, 2.0, 3.0]), alpha=0.1)
>>> res = hasd.minimize(f, np.zeros(3), method="hasd", p=float("inf"), L=f.smoothness(float("inf")))
>>> res.success, bool(np.all(abs(res.x - [1, 2, 3]) < 1e-3))
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from .._checks import check_flags, number
from .._math.estimate import Estimate, increment, observed_smoothness
from .._math.evaluation import Evaluation
from .._math.geometry import unit
from .._math.search import NONFINITE_LIMIT, Ending, Found, search
from .._run.problem import Problem
from .._run.record import State
from .._run.status import Status, Stop
from .base import Descent, advance, descend, first_state

WINDOW = (1.0, 2.0)
"""1 <= rho r^2 keeps the invariant, rho r^2 <= 2 the rate."""
AIM = 1.2
"""Where in the window the search aims: nearer to 1 is a larger weight, but misses cost a trial."""

KEPT = 32
"""Certificates of past epochs that a state carries along."""

Trial = tuple[float, Evaluation]
"""The weight a and the evaluation at the coupling point it leads to."""


class Move(NamedTuple):
    """What one iteration decided."""

    a: float  # the weight of the new cut
    e: Evaluation  # at y_t, where the cut is taken
    step: Descent  # from y_t to x_{t+1}
    estimate: Estimate  # psi_t
    rho: float
    trials: int
    note: str


@dataclass(frozen=True)
class HASDMethod:
    """The tight form of Hyper-Accelerated Steepest Descent.

    ``raise_L``: a declared L that consecutive gradients disprove is raised, and the result says so.  ``restart``: where
    L is backtracked, begin a new epoch at x_{t+1} when f(x_{t+1}) > f(x_t) (O'Donoghue & Candes 2015): the largest
    weights push v so hard that the tail oscillates without it.  ``rho``: fix rho instead of
    searching it (rho = 1 is Nesterov's estimate sequence); for equivalences and experiments.
    """

    raise_L: bool = True
    restart: bool = True
    rho: float | None = None
    name: str = "hasd"
    default_p: float = math.inf

    def __post_init__(self) -> None:
        """Refuse flags that are not True or False, and a rho that is not positive."""
        check_flags(raise_L=self.raise_L, restart=self.restart)
        if self.rho is not None:
            object.__setattr__(self, "rho", number("rho", self.rho, least=0.0, strict=True))

    def init(self, problem: Problem, start: Evaluation) -> State:
        """psi_0 = 1/2 ||x - x_0||^2."""
        return State(**first_state(problem, start, problem.mu))

    def step(self, problem: Problem, state: State) -> State:
        """One iteration."""
        if state.at.norm2 == 0.0:
            raise Stop(Status.CONVERGED)
        move = self._move_with_declared(problem, state) if problem.L else self._move_with_backtracking(problem, state)
        step, cut = move.step, move.estimate.cut(move.a, move.e)
        own = {
            "x": step.x,
            "fun": step.f,
            "L": step.L,
            "L_next": step.L_next,
            "rho": move.rho,
            "theta": 1.0 - move.estimate.share(move.a),
            "note": move.note,
        }
        moved = advance(problem, state, move.e, cut, move.trials, **own)
        if problem.L is None and self.restart and moved.fun > state.fun:
            return _new_epoch(moved)
        return moved

    def _move_with_declared(self, problem: Problem, state: State) -> Move:
        """Search rho, and search again with a larger L while the new gradient disproves the old L."""
        L, note, trials = max(state.L, problem.L or 0.0), state.note, 0
        while True:
            found = self._search(problem, state, L)
            trials += found.trials
            if found.payload is None:
                raise Stop(Status.NONFINITE)
            a, e = found.payload
            seen = observed_smoothness(problem.geometry, state.at, e) if self.raise_L and state.iteration else 0.0
            if seen <= L * (1.0 + 1e-9):
                return Move(a, e, descend(problem, e, L), state.estimate, found.u, trials, note)
            L = max(seen, 1.1 * L)
            state = _repair_estimate(problem, state)
            note = f"The declared L = {problem.L:g} is too small for this function; it was raised to {L:.6g}."

    def _search(self, problem: Problem, state: State, L: float) -> Found[Trial]:
        """rho with 1 <= rho r(g(y_rho))^2 <= 2, from the last one.

        The residual has no sign map in it: it is continuous for every p while g != 0, so an acceptable rho exists.
        """
        estimate = state.estimate

        def residual(rho: float) -> tuple[float, Trial]:
            a = weight(estimate, L, rho)
            fresh = estimate.weight > 0.0 or state.iteration > 0  # y_0 = x_0 for every rho, evaluated already
            e = problem.oracle.evaluate(estimate.couple(state.x, a)) if fresh else state.at
            if not e.finite:
                return math.nan, (a, e)
            return (rho * problem.gain(e) ** 2 if e.norm2 > 0.0 else AIM), (a, e)

        if self.rho is not None:
            c, trial = residual(self.rho)
            return Found(self.rho, c, None if math.isnan(c) else trial, 1, Ending.FOUND)
        if state.iteration == 0:  # y_0 does not depend on rho: take the smallest admissible one
            rho = WINDOW[0] / problem.gain(state.at) ** 2
            return Found(rho, WINDOW[0], residual(rho)[1], 1, Ending.FOUND)
        return search(residual, AIM / state.gain**2, WINDOW, target=AIM)

    def _move_with_backtracking(self, problem: Problem, state: State) -> Move:
        """Take the largest certified weight; while it is below half the rule's, try y with a larger rho."""
        estimate, L = state.estimate, state.L_next
        rho = state.rho if state.iteration else 1.0 / problem.gain(state.at) ** 2
        for trials in range(1, NONFINITE_LIMIT + 1):
            y = estimate.couple(state.x, weight(estimate, L, rho)) if state.iteration else None
            e = state.at if y is None else problem.oracle.evaluate(y)
            if not e.finite:
                rho *= 4.0
                continue
            if e.norm2 == 0.0:
                return Move(0.0, e, Descent(e.x, e.f, e, L, L, trials), estimate, rho, trials, state.note)
            step = descend(problem, e, L)
            safe = 1.0 / problem.gain(e) ** 2
            rule = weight(estimate, step.L, max(rho, safe))
            a = estimate.largest_root(e, step.f)
            enough = a >= 0.5 * rule
            if enough or (rho >= safe and L >= step.L):  # then the proof gives the rule, and rounding hid it
                a = a if enough else rule
                A = estimate.weight + a
                scale = unit(A)  # as in Estimate.share
                rho = (scale * A) * (1.0 + estimate.mu * A) / (step.L * (scale * a)) / a
                return Move(a, e, step, estimate, rho, trials, state.note)
            L, rho = step.L, max(2.0 * rho, safe)
        raise Stop(Status.NONFINITE)


def _new_epoch(state: State) -> State:
    """A new epoch at x_t; what the old one certified is kept."""
    retired = state.estimate.certificate(state.origin)
    estimate = Estimate.around(state.x, state.estimate.mu)
    return replace(state, estimate=estimate, certificates=(*state.certificates, retired)[-KEPT:])


def _repair_estimate(problem: Problem, state: State) -> State:
    """Scale the cuts so that A_t f(x_t) <= min psi_t holds again: with too small an L, f(x_t) may be too high for it.

    Where no scale is enough, begin a new epoch at the best point seen.
    """
    estimate = state.estimate.rescale(problem.oracle.value(state.x))
    if estimate.weight > 0.0 or problem.oracle.best is None:
        return replace(state, estimate=estimate)
    x = problem.oracle.best.x
    return replace(state, x=x, estimate=Estimate.around(x, estimate.mu))


def weight(estimate: Estimate, L: float, rho: float) -> float:
    """a with L rho a^2 = A_{t+1} kappa_{t+1}."""
    return increment(estimate.weight, L * rho, estimate.mu)
