"""HASD in its optimised form: one gradient an iteration, no search, the constant 2/p*.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm; mu-strongly convex w.r.t. l_2 where mu > 0.
Algorithm.  With c = L/s^2, s the gain ||g||_{p*}/||g||_2 of the last gradient (at t = 0 of the first), repeat
            1. a' = the positive root of c a'^2 = (kappa + mu a') (p* A + a'),  y = the coupling of x and v for a',
            2. g = grad f(y), r its gain, gamma = min(1, r^2/s^2), a = gamma a' kappa/(kappa + mu a' (1 - gamma)),
            3. x~ = y - s_p(g)/L, U~ = f(y) - ||g||_{p*}^2/(2L),
               (x, U) <- ((1 - gamma) A (x, U) + (gamma A + a) (x~, U~))/(A + a),
            4. psi <- psi + a [f(y) + <g, . - y> + (mu/2) ||. - y||^2],  v = argmin psi,  A <- A + a.
            Every new gradient tests the last step (property P, `hasd._math.pair`).  Where L proves too small, the step
            is made again with a larger L, and the new gradient is used all the same, at a point that is then not quite
            the coupling point.  L = None begins with a guess, and lowers L again where the gradients allow it.  Then
            gamma is the largest damping that keeps the invariant, whatever L made the older steps.
Guarantee.  (One epoch: declared L, or restart=False; with restarts it holds from each epoch's own start.)
            A_t U_t <= min psi_t for all t.  With a declared L, f(x_t) <= U_t, hence f(x_T) - f* <= R^2/(2 A_T) <=
            2 L R^2/(p* Gamma^2 T^2), where Gamma is the mean of min(s, r^2/s) over the run and R = ||x_0 - x*||_2; with
            mu > 0 the weights grow geometrically.  The lower bounds on f* never depend on L.
            In any norm the same holds with its dual norm, its constant L, and 1 + sigma for p*.
Proof.      docs/theory.md, "The optimised form" and "Any norm".
Reference.  Bai & Bullins, Faster Acceleration for Steepest Descent (COLT 2025) for the l_p step with l_2 prox; OGM
            (Drori & Teboulle 2014; Kim & Fessler 2016; Park, Park & Ryu 2023) for the pair (x, U) at p = 2; Carmon,
            Hausler, Jambulapati, Jin & Sidford (2022) for damping in place of a search.

>>> import numpy as np, hasd
>>> f = hasd.objectives.SymmetricSoftmax(np.eye(3), np.array([1.0, 2.0, 3.0]), alpha=0.1)
>>> res = hasd.minimize(f, np.zeros(3), method="hasd", p=float("inf"), L=f.smoothness(float("inf")))
>>> res.success, bool(np.all(abs(res.x - [1, 2, 3]) < 1e-3))
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from .._checks import check_flags
from .._math.arrays import Array, largest_size
from .._math.doubt import roundings
from .._math.estimate import Estimate
from .._math.evaluation import Evaluation
from .._math.geometry import norm2
from .._math.pair import (
    UNCLEAR,
    UNPLANNED,
    BoundedPoint,
    Damping,
    Difference,
    WeightPlan,
    compare,
    damp,
    damped_weight,
    damping_rule,
    dual_convexity,
    plan_weight,
    smoothness_asked,
    step_with_cut,
)
from .._math.search import NONFINITE_LIMIT
from .._run.problem import Problem
from .._run.record import State
from .._run.status import Status, Stop
from .base import advance, first_length, first_state, is_exhausted

KEPT = 32
"""Certificates of past epochs that a state carries along."""
STALL = 0.1
"""An epoch ends when f(y) has not fallen for this share of its iterations, and for 2 - sigma of them at least."""
LOWER, LOWER_FIRST = 0.9, 0.25
"""What an L that was found may fall to in an iteration; the second while it has not risen yet, as the guess that a run
begins with may be far too large."""
RAISE = 1.5
"""By how much an L that was found rises at least: with less, the next gradients ask for more again."""
CORRECT = 1.1
"""The same for an L that was declared."""
MOST = 32.0
"""By how much L rises at once at most, since points far away may ask for more than the next steps need."""
TRIALS = 200
"""The most constants that are tried in one iteration."""


@dataclass(frozen=True, repr=False)
class OptimisedState(State):
    """`at` is the evaluation at the next point y_t, whose cut is not yet part of psi_t."""

    excess: float = 0.0  # A_t (U_t - f(y_t)); x_t and U_t have property P
    slack: float = 0.0  # psi*_t - A_t U_t >= 0, with what stronger cuts add
    plan: WeightPlan = UNPLANNED  # what y_t was coupled with
    gamma: float = math.nan  # the damping of the last step
    cut: Evaluation | None = None  # the newest cut of psi_t
    best: Evaluation | None = None  # the lowest coupling point of this epoch
    idle: int = 0  # iterations since there was a lower one
    began: int = 0  # the iteration at which the epoch began
    start: Evaluation | None = None  # where the epoch began
    fell: float = math.inf  # by how much f fell in the epoch before
    least: float = 0.0  # the weight that the epoch must reach before it may end
    has_risen: bool = False  # whether L has been raised in this run

    @property
    def U(self) -> float:
        """U_t; NaN where an epoch begins."""
        return self.at.f + self.excess / self.weight if self.weight > 0.0 else math.nan

    @property
    def shown(self) -> tuple[Array, float]:
        """y_t, which is evaluated already: traces and callbacks cost nothing."""
        return self.at.x, self.at.f


class Made(NamedTuple):
    """What an iteration makes of the newest evaluation with some L, before the next point is evaluated."""

    pair: BoundedPoint
    estimate: Estimate
    gamma: float
    plan: WeightPlan  # for the next point

    def seen_from(self, difference: Difference) -> Made:
        """The same, after the evaluation at the next point."""
        return self._replace(pair=self.pair.seen_from(difference, self.estimate.weight))


@dataclass(frozen=True)
class HASDMethod:
    """The optimised form of Hyper-Accelerated Steepest Descent.

    ``raise_L``: a declared L that gradients disprove is raised, and the result says so.  ``restart``: where L is found,
    begin a new epoch at the lowest coupling point once f has stopped falling.  ``stronger_cuts``: plan the
    weights as if every cut were stronger by ||g||_{p*}^2/(2L), which a declared L allows at mu = 0, because grad f(x*)
    = 0; at p = 2 this is OGM.  It saves less than one iteration, and the certificate makes no use of it, so that
    nothing that is certified ever depends on L.
    """

    raise_L: bool = True
    restart: bool = True
    stronger_cuts: bool = False
    name: str = "hasd"
    default_p: float = math.inf
    state_classes = (OptimisedState,)

    def __post_init__(self) -> None:
        """Refuse flags that are not True or False."""
        check_flags(raise_L=self.raise_L, restart=self.restart, stronger_cuts=self.stronger_cuts)

    def init(self, problem: Problem, start: Evaluation) -> OptimisedState:
        """psi_0 = 1/2 ||x - x_0||^2."""
        return OptimisedState(**first_state(problem, start, problem.mu), best=start, start=start)

    def step(self, problem: Problem, state: State) -> OptimisedState:
        """One iteration: the cut at `state.at`, and the evaluation at the next coupling point."""
        assert isinstance(state, OptimisedState)
        if self.restart and problem.L is None and _is_stalled(problem, state):
            state = _new_epoch(state)
        return _Step(self, problem, state).make()


@dataclass(frozen=True)
class _Step:
    """One iteration, which tries constants until the next evaluation agrees with one."""

    method: HASDMethod
    problem: Problem
    state: OptimisedState

    @property
    def e(self) -> Evaluation:
        """y_t, where the cut is taken."""
        return self.state.at

    @cached_property
    def direction(self) -> Array:
        """s_p(g)."""
        return self.problem.steepest(self.e)

    @cached_property
    def sigma(self) -> float:
        """That of the norm."""
        return dual_convexity(self.problem.geometry)

    @property
    def bonus(self) -> float:
        """beta: 1 where cuts are stronger, otherwise 0."""
        return float(self.method.stronger_cuts and self.problem.L is not None and self.problem.mu == 0.0)

    def make(self, nonfinite: int = 0) -> OptimisedState:
        """The next state, after so many trials that were not finite; each of them multiplies L by 4, for this step."""
        L = self._first_constant()
        for trials in range(1, TRIALS):
            made = self._use(L)
            if made.estimate.weight == 0.0 or (nonfinite > 2 and self.state.weight > 0.0):  # the epoch leads nowhere
                return _Step(self.method, self.problem, replace(_new_epoch(self.state), L_next=L)).make(nonfinite)
            there = self.problem.oracle.evaluate(made.estimate.couple(made.pair.x, made.plan.weight))
            if not there.finite:
                nonfinite += 1
                if nonfinite == NONFINITE_LIMIT:
                    raise Stop(Status.NONFINITE)
                L = 4.0 * L
                continue
            seen = compare(self.e, there)
            needed, made = self._constant_needed(there, L, seen), made.seen_from(seen)
            if needed > L and not self._is_carried(made, there, L):
                L = self._raise(L, needed)
                made = self._use(L).seen_from(seen)
                made = made._replace(plan=made.plan._replace(coupled=False))
                if made.estimate.weight > 0.0 and self._damp(made, there, L).gamma > 0.0:
                    return self._next_state(made, there, L, L / 4.0**nonfinite, trials)
            else:
                return self._next_state(made, there, L, self._lower(L / 4.0**nonfinite, needed), trials)
        raise Stop(Status.PRECISION)

    def _first_constant(self) -> float:
        """The L to begin with."""
        problem, e, N = self.problem, self.e, self.problem.dual_norm(self.e)
        known = self.state.L_next if problem.L is None else max(self.state.L_next, problem.L)
        if math.isnan(known):
            return max(N / first_length(problem, e.x), math.ulp(0.0))
        if is_exhausted(problem, e, known):
            raise Stop(Status.PRECISION)
        return known

    def _use(self, L: float) -> Made:
        """The pair and the estimate with the cut at e, for that L, and the plan for the next point."""
        state, e, estimate = self.state, self.e, self.state.estimate
        old = Made(BoundedPoint(state.x, state.excess, state.slack), estimate, math.nan, state.plan)
        if estimate.weight == 0.0:
            old = old._replace(plan=self._plan(estimate, L))
        damping = self._damp(old, e, L)
        a = damped_weight(damping.gamma or 1.0, old.plan.weight, estimate.kappa, estimate.mu)
        pair, cut = step_with_cut(old.pair, e.x - self.direction / L, estimate, e, a, damping, self.bonus)
        return Made(pair, cut, damping.gamma, self._plan(cut, L))

    def _plan(self, estimate: Estimate, L: float) -> WeightPlan:
        """The plan for the next point, where the gain is guessed to be the one at e."""
        return plan_weight(estimate, L / self.problem.gain(self.e) ** 2, self.sigma, self.bonus)

    def _damp(self, made: Made, e: Evaluation, L: float) -> Damping:
        """gamma for the cut at e."""
        return damp(made.estimate, made.pair, e, self.problem.dual_norm(e), L, made.plan, self.sigma, self.bonus)

    def _constant_needed(self, there: Evaluation, L: float, seen: Difference) -> float:
        """The least L that the gradients at e and there allow, as far as rounding lets it be seen."""
        problem, e, bend = self.problem, self.e, self.problem.oracle.bend.largest
        if problem.L is not None and not self.method.raise_L:
            return L
        norms, D, doubt = (problem.dual_norm(e), problem.dual_norm(there)), seen.bregman, seen.noise
        asked = smoothness_asked(problem.geometry, e, there, self.direction / L, norms, L, seen.up)
        if problem.L is not None:  # a declared L is not called wrong for what rounding explains
            apart, terms = norm2(e.x - there.x), sum(norm * (norm / L) for norm in norms)
            sums = roundings(e.x.shape[0]) * e.eps * (there.norm2 * apart + terms)
            doubt += seen.up * (e.df(bend) + there.df(bend) + there.dg(bend) * apart + sums)
            doubt += 0.0 if seen.by_values else D  # it is known to be between 0 and 2 D
        if asked > D + doubt:
            return L * (asked / D) if D > 0.0 else math.inf
        return min(L, L * max(asked / D, 0.0)) if UNCLEAR * seen.noise < D else L

    def _is_carried(self, made: Made, there: Evaluation, L: float) -> bool:
        """Whether an L that was found does no harm though it is too small for property P.

        That is so where f falls below its lowest value by a quarter of what a step of 1/L promises, and the next cut
        gets the weight that was planned.  Where f is nearly linear over long distances, this L is far below the others.
        """
        if self.problem.L is not None:
            return False
        N, seen = self.problem.dual_norm(self.e), compare(self.state.best or self.e, there)
        if not seen.fall > 0.125 * (seen.up * N) * (N / L):
            return False
        return self._damp(made, there, L).gamma >= damping_rule(self.problem.gain(there), L, made.plan)

    def _raise(self, L: float, needed: float) -> float:
        """A larger constant; where steps vanish the run ends."""
        if largest_size(self.direction / L) <= self.e.eps**2 * largest_size(self.e.x):
            raise Stop(Status.PRECISION)
        return max((RAISE if self.problem.L is None else CORRECT) * L, min(needed, MOST * L))

    def _lower(self, L: float, needed: float) -> float:
        """The constant for the next step, where this one was enough; a declared one stays."""
        if self.problem.L is not None:
            return L
        return min(L, max((LOWER if self.state.has_risen else LOWER_FIRST) * L, needed))

    def _next_state(self, made: Made, there: Evaluation, L: float, L_next: float, trials: int) -> OptimisedState:
        """The next state."""
        problem, state, note = self.problem, self.state, self.state.note
        if problem.L is not None and L_next > max(problem.L, state.L_next):
            note = f"The declared L = {problem.L:g} is too small for this function; it was raised to {L_next:.6g}."
            note += " The rate that it promised does not hold."
        lower = state.best is None or compare(state.best, there).fall > 0.0
        return advance(
            problem,
            state,
            there,
            made.estimate,
            trials,
            x=made.pair.x,
            fun=math.nan,
            L=L,
            L_next=L_next,
            rho=made.plan.c / L,
            note=note,
            excess=made.pair.excess,
            slack=made.pair.slack,
            plan=made.plan,
            gamma=made.gamma,
            cut=self.e,
            best=there if lower else state.best,
            idle=0 if lower else state.idle + 1,
            has_risen=state.has_risen or state.L_next < L,
        )


def _is_stalled(problem: Problem, state: OptimisedState) -> bool:
    """Whether f has stopped falling, in an epoch that has reached more weight than the one before it.

    At p = 2 (sigma = 1) nothing is damped, and f(y) rises only where momentum overshoots: one rise is enough.
    """
    patience = max(2.0 - dual_convexity(problem.geometry), STALL * (state.iteration - state.began))
    return state.idle >= patience and state.weight >= state.least


def _fall(e: Evaluation, other: Evaluation) -> float:
    """f at e minus f at the other."""
    seen = compare(e, other)
    return seen.fall / seen.up


def _new_epoch(state: OptimisedState) -> OptimisedState:
    """A new epoch at the lowest coupling point; what the old one certified is kept.

    Where f is mu-strongly convex and epochs reach e^2/mu, f falls by a factor e^2 - 1 less in each than in the one
    before.  Where it does not, epochs are too short, and the next must reach twice the weight.
    """
    best = state.best or state.at
    fell = 0.0 if state.start is None else _fall(state.start, best)
    return replace(
        state,
        x=best.x,
        at=best,
        excess=0.0,
        slack=0.0,
        plan=UNPLANNED,
        estimate=Estimate.around(best.x, state.estimate.mu),
        idle=0,
        began=state.iteration,
        start=best,
        fell=fell,
        least=2.0 * state.weight if fell * (math.e**2 - 1.0) > state.fell else state.least,
        certificates=(*state.certificates, state.estimate.certificate(state.origin))[-KEPT:],
    )
