"""The rate of Nemirovskii & Nesterov in R_p: an estimate sequence whose prox term is a power of the l_p norm.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm, with a known R >= ||x_0 - x*||_p.
Algorithm.  With c = sigma^{2/p} T^{-(p-2)/p}/L, T the number of iterations that are planned, A_0 = 0 and s_0 = 0,
            y_t = (A_t x_t + a v_t)/A_{t+1},   x_{t+1} = y_t - s_p(g_t)/L,   g_t = grad f(y_t),
            s_{t+1} = s_t + a g_t,   v_{t+1} = x_0 - R sign(s_{t+1}) |s_{t+1}/R|^{1/(p-1)},   A_{t+1} = A_t + a = a^2/c:
            v_t is the minimiser of psi_t = ||x - x_0||_p^p/(p R^{p-2}) + sum a [f(y) + <g, x - y>].  sigma = sigma_p is
            the least |1 + t|^p - |t|^p - p |t|^{p-2} t.  For p = inf the prox term has p = max(2, ln d) and d^{1/p} R.
Guarantee.  A_t f(x_t) <= min psi_t + (p - 2)/(2p) R^2 t/T for all t, beyond T as well, hence
            f(x_T) - f* <= R^2/(2 A_T) <= 2 sigma^{-2/p} L R^2/T^{(p+2)/p}, R in l_p.
Note.       A run may go on after T iterations: it converges, but its guarantee then falls only like 1/t (p > 2).
            For p = 2 it is the estimate sequence of `estimate-sequence`, whatever T and R are.
Reference.  Nemirovskii & Nesterov, Optimal methods of smooth convex minimization (1985), for the rate; the form with an
            estimate sequence, its constant and its certificate are derived in docs/theory.md.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 50.0]))
>>> res = hasd.minimize(f, [1.0, 1.0], method="nemirovskii-nesterov", p=4, T=100, R=1.2)
>>> res.success, res.certificate.assumes
(True, 'f is convex; R = 1.2 >= ||x_0 - x*||_4')
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from .._checks import number, whole_number
from .._math.ball import EVERYWHERE, Ball, BallBound
from .._math.estimate import increment
from .._math.geometry import Lp, largest_gain
from ..theory import prox_convexity, prox_exponent
from .base import Evaluation, Problem, State, first_state
from .estimate_sequence import coupled_step


@dataclass(frozen=True, repr=False)
class NemirovskiiState(State):
    """A state with what its prox term needs."""

    ball: Ball = EVERYWHERE  # where a minimiser is, by the word of the user
    exponent: float = 2.0  # p of the prox term; finite
    reach: float = math.inf  # R in that norm
    pace: float = 1.0  # L a^2/A_{t+1} = sigma^{2/p} T^{-(p-2)/p}
    dual: float = 0.0  # ||s_t||_{p*}, in the norm of the run
    minimum: float = 0.0  # min psi_t

    @property
    def psi(self) -> float:
        """psi*_t, with the prox term of this method; that of `estimate` is 1/2 ||. - x_0||_2^2."""
        return self.minimum

    @property
    def bound(self) -> BallBound:
        """The lower bounds on f* that the cuts prove: for an l_2 radius, and for R."""
        return BallBound(**vars(super().bound), dual=self.dual, ball=self.ball)


@dataclass(frozen=True)
class NemirovskiiNesterov:
    """An estimate sequence with an l_p prox term, planned for T iterations from within R of a minimiser.

    ``T``: the number of iterations for which the guarantee is best.  ``R``: a bound on ||x_0 - x*||_p; the certificate
    ``res.gap`` assumes it.
    """

    T: int = field(metadata={"what": "the number of iterations that are planned"})
    R: float = field(metadata={"what": "a bound on ||x_0 - x*||_p"})
    name: str = "nemirovskii-nesterov"
    default_p: float = math.inf
    needs_lp: ClassVar[bool] = True
    state_classes: ClassVar[tuple[type, ...]] = (NemirovskiiState, BallBound)

    def __post_init__(self) -> None:
        """Refuse what is no number of iterations and no radius."""
        object.__setattr__(self, "T", int(whole_number("T", self.T, least=1, finite=True)))
        object.__setattr__(self, "R", number("R", self.R, least=0.0, strict=True))

    def assumes(self, geometry: Any) -> str:
        """What the certificate rests on beside convexity."""
        return f"R = {self.R:g} >= ||x_0 - x*||_{geometry.p:g}"

    def init(self, problem: Problem, start: Evaluation) -> NemirovskiiState:
        """No cuts yet; the cuts will carry no mu, which the method does not use."""
        p, d = problem.geometry.p, start.x.shape[0]
        q = prox_exponent(p, d)
        plan = {
            "ball": Ball(self.R, largest_gain(p, d)),
            "exponent": q,
            "reach": self.R * float(d) ** (1.0 / q - 1.0 / p),  # ||x||_q <= d^{1/q - 1/p} ||x||_p
            "pace": prox_convexity(q) * float(self.T) ** (2.0 / q - 1.0),
            "note": "" if p < math.inf else f"The prox term of {self.name} has p = {q:.6g} in place of inf.",
        }
        return NemirovskiiState(**first_state(problem, start), **plan)

    def step(self, problem: Problem, state: State) -> NemirovskiiState:
        """Couple at y with the minimiser of psi_t, cut at y."""
        assert isinstance(state, NemirovskiiState)
        estimate, prox = state.estimate, Lp(state.exponent)
        # R sign(s) |s/R|^{1/(p-1)} is the steepest-descent map of s with R in the place of its dual norm
        to_v = prox.steepest(estimate.away, state.reach) - (state.x - estimate.center)

        def rule(L: float) -> tuple[float, float]:
            a = increment(estimate.weight, L / state.pace)
            return a, estimate.share(a)

        after = coupled_step(problem, state, rule, to_v)
        away, R, power = after.estimate.away, state.reach, prox.dual_norm(after.estimate.away)
        cuts = after.estimate.psi + 0.5 * after.estimate.reach * after.estimate.reach
        minimum = cuts - R * power * (power / R) ** (prox.dual - 1.0) / prox.dual
        return after.with_fields(rho=math.nan, dual=problem.geometry.dual_norm(away), minimum=minimum)
