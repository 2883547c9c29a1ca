"""HASD in its tight form: the cut is taken at the coupling point y.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm; mu-strongly convex w.r.t. l_2 where mu > 0.
Algorithm.  y = theta x_t + (1 - theta) v_t,   g = grad f(y),   x_{t+1} = y - s_p(g)/L,
            psi_{t+1} = psi_t + a [f(y) + <g, . - y> + (mu/2)||. - y||^2],   v_{t+1} = argmin psi_{t+1}.
            Declared L:    L rho a^2 = A_{t+1} kappa_{t+1} with 1 <= rho r(g)^2 <= 2, found by the search on rho; one
                           evaluation per trial, at y.
            Backtracked L: f(x_{t+1}) is evaluated too, and a is the largest root of (A_t + a) f(x_{t+1}) <= min psi_{t+1};
                           rho := A_{t+1} kappa_{t+1}/(L a^2) is then read off and predicts the next coupling point.
Guarantee.  A_t f(x_t) <= min psi_t for all t, hence f(x_T) - f* <= R^2/(2 A_T) <= 4 L R^2/(G^2 T^2), where G is the mean
            of r(g) = ||g||_{p*}/||g||_2 over the run, taken at y_t, and R = ||x_0 - x*||_2.  With mu > 0 the weights grow
            geometrically, A_{t+1} >= A_t/(1 - sqrt(mu/(L rho))): no restarts.
Proof.      f(x_{t+1}) <= f(y) - ||g||_{p*}^2/(2L), and the exact recursion of psi* loses a^2 ||g||_2^2/(2 kappa_{t+1}), which
            is at most A_{t+1} ||g||_{p*}^2/(2L) as soon as rho >= 1/r(g)^2.
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

from ..estimate import Estimate, increment, observed_smoothness
from ..oracle import Evaluation
from ..result import Status, Stop
from ..search import NONFINITE_LIMIT, Ending, Found, search
from .base import Descent, Problem, State, descend, first_state, gain_at

WINDOW = (1.0, 2.0)
"""1 <= rho r^2 keeps the invariant, rho r^2 <= 2 the rate."""
AIM = 1.2
"""Where in the window the search aims: nearer to 1 is a larger weight, but misses cost a trial."""

Trial = tuple[float, Evaluation]
"""The weight a and the evaluation at the coupling point it leads to."""


@dataclass(frozen=True)
class HASD:
    """The tight form of Hyper-Accelerated Steepest Descent.

    ``raise_L``: a declared L that consecutive gradients disprove is raised, and the result says so.  ``rho``: fix rho
    instead of searching it (rho = 1 is Nesterov's estimate sequence); for equivalences and experiments.
    """

    raise_L: bool = True
    rho: float | None = None
    name: str = "hasd"
    default_p: float = math.inf

    def __post_init__(self) -> None:
        """Refuse a rho that is not positive."""
        if self.rho is not None and not self.rho > 0.0:
            raise ValueError(f"rho must be positive, got {self.rho!r}")

    def init(self, problem: Problem, start: Evaluation) -> State:
        """psi_0 = 1/2 ||x - x_0||^2."""
        return State(**first_state(problem, start, problem.mu))

    def step(self, problem: Problem, state: State) -> State:
        """One iteration."""
        if state.at.norm2 == 0.0:
            raise Stop(Status.CONVERGED)
        if problem.L is None:
            return self._backtracked(problem, state)
        return self._declared(problem, state)

    def _declared(self, problem: Problem, state: State) -> State:
        """The search on rho; repeated with a larger L where the new gradient disproves the old one."""
        L, estimate, note, trials = state.L, state.estimate, state.note, 0
        while True:
            found = self._search(problem, replace(state, estimate=estimate), L)
            trials += found.trials
            if found.payload is None:
                raise Stop(Status.NONFINITE)
            a, e = found.payload
            seen = (
                observed_smoothness(problem.geometry, state.at, e)
                if self.raise_L and state.iteration
                else 0.0
            )
            if seen <= L * (1.0 + 1e-9):
                break
            L = max(seen, 1.1 * L)
            estimate = estimate.rescaled(problem.oracle.value(state.x))
            note = f"The declared L = {problem.L:g} is too small for this function; it was raised to {L:.6g}."
        if found.ending is Ending.JUMP:
            note = "The search for rho met a jump; the safe side was taken."
        step = descend(problem, e, L)
        return self._next(problem, state, estimate, step, a, e, found.u, trials, note)

    def _search(self, problem: Problem, state: State, L: float) -> Found[Trial]:
        """rho with 1 <= rho r(g(y_rho))^2 <= 2, from the last one."""
        estimate = state.estimate

        def residual(rho: float) -> tuple[float, Trial]:
            a = increment(estimate.weight, max(L * rho, 2.0 * estimate.mu), estimate.mu)
            e = problem.oracle.evaluate(estimate.couple(state.x, a))
            if not e.finite:
                return math.nan, (a, e)
            return (rho * gain_at(problem, e) ** 2 if e.norm2 > 0.0 else AIM), (a, e)

        if self.rho is not None:
            c, trial = residual(self.rho) if estimate.weight > 0.0 else (1.0, self._first(state, L, self.rho))
            return Found(self.rho, c, trial if trial[1].finite else None, 1, Ending.FOUND)
        if estimate.weight == 0.0 and state.iteration == 0:  # y_0 = x_0 for every rho: read it off
            rho = 1.0 / gain_at(problem, state.at) ** 2
            return Found(rho, 1.0, self._first(state, L, rho), 1, Ending.FOUND)
        return search(residual, AIM / state.gain**2, WINDOW, target=AIM)

    @staticmethod
    def _first(state: State, L: float, rho: float) -> Trial:
        mu = state.estimate.mu
        return increment(0.0, max(L * rho, 2.0 * mu), mu), state.at

    def _backtracked(self, problem: Problem, state: State) -> State:
        """The largest certified weight; y anew with a larger rho while the weight falls short of the predicted one."""
        estimate, mu = state.estimate, state.estimate.mu
        L = state.L_next
        rho = state.rho if state.iteration else 1.0 / gain_at(problem, state.at) ** 2
        for trials in range(1, NONFINITE_LIMIT + 1):
            if state.iteration == 0:
                e = state.at
            else:
                predicted = increment(estimate.weight, max(L * rho, 2.0 * mu), mu)
                e = problem.oracle.evaluate(estimate.couple(state.x, predicted))
            if not e.finite:
                rho *= 4.0
                continue
            if e.norm2 == 0.0:
                return replace(state, iteration=state.iteration + 1, x=e.x, fun=e.f, at=e, grad_norm=0.0)
            step = descend(problem, e, L)
            safe = 1.0 / gain_at(problem, e) ** 2
            predicted = increment(estimate.weight, max(step.L * max(rho, safe), 2.0 * mu), mu)
            a = estimate.largest_root(e, step.f)
            if a >= 0.5 * predicted:
                break
            if (
                rho >= safe and L >= step.L
            ):  # at rounding level: trust the weight rule where the root cannot be seen
                a = predicted
                break
            L, rho = step.L, max(2.0 * rho, safe)
        else:
            raise Stop(Status.NONFINITE)
        A = estimate.weight + a
        rho = A * (1.0 + mu * A) / (step.L * a) / a
        return self._next(problem, state, estimate, step, a, e, rho, trials, state.note)

    def _next(
        self,
        problem: Problem,
        state: State,
        estimate: Estimate,
        step: Descent,
        a: float,
        e: Evaluation,
        rho: float,
        trials: int,
        note: str,
    ) -> State:
        return replace(
            state,
            iteration=state.iteration + 1,
            x=step.x,
            fun=step.f,
            at=e,
            grad_norm=problem.geometry.dual_norm(e.g),
            L=step.L,
            L_next=step.L_next,
            estimate=estimate.cut(a, e),
            rho=rho,
            theta=1.0 - estimate.share(a),
            gain=gain_at(problem, e),
            trials=trials,
            note=note,
        )
