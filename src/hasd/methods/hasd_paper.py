"""HASD as published: Algorithm 1 of the paper with its constants.

Problem.    min f(x), f convex and L-smooth w.r.t. the l_p norm.
Algorithm.  Find rho > 0 such that, with a^2 = (A_t + a)/(18 L rho), y = (A_t x_t + a v_t)/A_{t+1} and
            x_{t+1} = argmin <grad f(y), x - y> + L ||x - y||_p^2 = y - s_p(grad f(y))/(2L),
            1/2 <= rho r(grad f(x_{t+1}))^2 <= 2,   r(g) = ||g||_{p*}/||g||_2;
            then psi_{t+1} = psi_t + a [f(x_{t+1}) + <grad f(x_{t+1}), . - x_{t+1}>].
            search="warm" starts from the last rho; search="bisect" is the paper's cold bisection on theta in [0, 1].
            weights="lemma" takes the rule that the proof of Lemma 2 prints, a^2 = (A_t + A_{t+1})/(18 L rho).
Guarantee.  A_t f(x_t) + B_t <= min psi_t with B_t = sum A_{i+1} ||grad f(x_{i+1})||_{p*}^2/(18 L) (Lemma 2), hence
            f(x_T) - f* <= 324 L R^2/(G^2 T^2) as printed; the same proof unrounded gives 72 in place of 324.
            With weights="lemma" the same holds for B_t = sum a_{i+1} ||grad f(x_{i+1})||_{p*}^2/(18 L), and 36 for 72.
Note.       At p = inf the residual can jump over the window; the search then takes the side that keeps Lemma 2.
            L is backtracked on Lemma 1's <grad f(x+), y - x+> >= ||grad f(x+)||_{p*}^2/(9L): all that the proof uses.
Reference.  Bai & Bullins, Faster Acceleration for Steepest Descent (COLT 2025), Algorithm 1, Lemmas 1-3, Theorem 1.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 4.0]))
>>> res = hasd.minimize(f, [1.0, 1.0], method="hasd-paper", p=2, L=4.0, tol=1e-3)
>>> res.success
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._checks import check_words
from .._math.estimate import increment, rounding
from .._math.geometry import dot, lift
from .._math.search import NONFINITE_LIMIT, Ending, Found, search
from .base import Evaluation, Problem, State, Status, Stop, advance, first_length, first_state, is_exhausted

CONSTANT = 18.0
"""a^2 = A_{t+1}/(18 L rho): Algorithm 1."""
PROGRESS = 9.0
"""<grad f(x+), y - x+> >= ||grad f(x+)||_{p*}^2/(9L): Lemma 1."""
WINDOW = (0.5, 2.0)
"""1/2 <= rho r^2 <= 2: Algorithm 1, line 3."""
SEARCHES = ("warm", "bisect")
RULES = {"algorithm": 1.0, "lemma": 2.0}
"""18 L rho a^2 = k A_t + a, by the name of the rule: A_{t+1} in Algorithm 1, A_t + A_{t+1} in the proof of Lemma 2."""


Trial = tuple[float, Evaluation, float, float]
"""One rho tried: its weight, the evaluation at x_{t+1}, the L of that step and the factor in it that is due to
non-finite trials."""


@dataclass(frozen=True)
class HASDPaper:
    """Algorithm 1.

    ``search``: how rho is searched.  ``weights``: the rule of Algorithm 1, or the one that the proof of Lemma 2 prints.
    """

    search: str = "warm"
    weights: str = "algorithm"
    name: str = "hasd-paper"
    default_p: float = math.inf

    def __post_init__(self) -> None:
        """Refuse an unknown search, and an unknown rule."""
        check_words(search=(self.search, SEARCHES), weights=(self.weights, tuple(RULES)))

    def init(self, problem: Problem, start: Evaluation) -> State:
        """A_0 = 0, psi_0 = 1/2 ||x - x_0||^2."""
        return State(**first_state(problem, start))

    def step(self, problem: Problem, state: State) -> State:
        """One iteration of the for loop."""
        found = self._first_trial(problem, state) if state.weight == 0.0 else self._search(problem, state)
        if found.payload is None:
            raise Stop(Status.NONFINITE)
        a, e, L, spoilt = found.payload
        L_next = problem.L or 0.9 * L / spoilt  # L falls slowly; Lemma 1's inequality raises it again
        jumped = "The search for rho met a jump of the residual; the side that keeps Lemma 2 was taken."
        note = jumped if found.ending is Ending.JUMP else state.note
        own = {"L": L, "L_next": L_next, "rho": found.u, "note": note}
        return advance(problem, state, e, state.estimate.cut(a, e), found.trials, **own)  # line 4

    def _first_trial(self, problem: Problem, state: State) -> Found[Trial]:
        """A_0 = 0: y_0 = x_0 and x_1 do not depend on rho, so rho_0 is read off x_1."""
        e, L, spoilt = self._descend(problem, state.at, state.L_next)
        rho = 1.0 / problem.gain(e) ** 2
        return Found(rho, 1.0, (increment(0.0, CONSTANT * L * rho), e, L, spoilt), 1, Ending.FOUND)

    def _search(self, problem: Problem, state: State) -> Found[Trial]:
        """Line 3: rho and x_{t+1} that fit each other."""
        estimate, start, rule = state.estimate, state.at, RULES[self.weights]

        def residual(rho: float) -> tuple[float, Trial]:
            L, spoilt = state.L_next, 1.0
            while True:
                a = increment(rule * estimate.weight, CONSTANT * L * rho)
                y = problem.oracle.evaluate(estimate.couple(state.x, a))
                if not y.finite:
                    return math.nan, (a, y, L, spoilt)
                e, enough, factor = self._descend(problem, y, L)
                spoilt *= factor
                if enough <= L or problem.L is not None:
                    break
                L = enough
            return (rho * problem.gain(e) ** 2 if e.norm2 > 0.0 else 1.0), (a, e, L, spoilt)

        if self.search == "warm":
            return search(residual, 1.0 / problem.gain(start) ** 2, WINDOW)

        size = CONSTANT * state.L_next * estimate.weight  # of order 1, whatever the scale of f is

        def rho_of(theta: float) -> float:  # theta = A_t/A_{t+1}
            return theta * (1.0 + (rule - 1.0) * theta) / (size * (1.0 - theta) ** 2)

        def theta_of(rho: float) -> float:  # A_t/(A_t + a) for the rule's a, which itself may overflow
            z = size * rho
            return 2.0 * z / (2.0 * z + 1.0 + math.sqrt(1.0 + 4.0 * rule * z))

        def bisect(low: float, high: float) -> float:
            return rho_of(0.5 * (theta_of(low) + theta_of(high)))

        return search(residual, rho_of(0.5), WINDOW, bisect=bisect)

    def _descend(self, problem: Problem, y: Evaluation, L: float) -> tuple[Evaluation, float, float]:
        """x+ = y - s_p(g)/(2L), an L for which Lemma 1 holds, and the factor in it due to non-finite trials."""
        geometry = problem.geometry
        if math.isnan(L):
            L = problem.dual_norm(y) / (2.0 * first_length(problem, y.x))
        L = max(L, math.ulp(0.0))  # an L that underflowed to 0 is taken for the smallest number
        s, nonfinite, spoilt = problem.steepest(y), 0, 1.0
        if is_exhausted(problem, y, 2.0 * L):
            raise Stop(Status.PRECISION)
        while nonfinite < NONFINITE_LIMIT:
            e = problem.oracle.evaluate(y.x - s / (2.0 * L))  # Eq. (update)
            if e.finite and (problem.L is not None or self._progress(problem, y, e, L)):
                return e, L, spoilt
            if e.finite and geometry.norm(s / L) <= y.eps * y.eps * geometry.norm(y.x):
                raise Stop(Status.PRECISION)
            if e.finite:
                nonfinite, L = 0, 2.0 * L
            else:
                nonfinite, L, spoilt = nonfinite + 1, 4.0 * L, 4.0 * spoilt
        raise Stop(Status.NONFINITE)

    @staticmethod
    def _progress(problem: Problem, y: Evaluation, e: Evaluation, L: float) -> bool:
        """Lemma 1, Eq. (gradnorm), up to rounding."""
        N = problem.dual_norm(e)
        up = lift(y.f, e.f, N)
        noise = rounding(up * y.f, up * e.f) * 2.0**-20
        return dot(e.g, up * (y.x - e.x)) >= (up * N) * (N / (PROGRESS * L)) - noise
