"""HASD + Restarting: Algorithm 2 of the paper, for strongly convex functions.

Problem.    min f(x), f L-smooth w.r.t. the l_p norm and mu-strongly convex w.r.t. l_2.
Algorithm.  Run Algorithm 1 for T iterations from x_outer, take x_T as the next x_outer, repeat.
            G_hat given:  T = ceil((36/G_hat) sqrt(L/mu)) as printed; constant=17 is the same proof unrounded.
            G_hat = None: restart once A_t >= 2/mu, which certifies the halving and needs no G_hat.
Guarantee.  f(x_outer,i+1) - f* <= (f(x_outer,i) - f*)/2: from R^2/(2 A_T) and (mu/2) R^2 <= f(x_outer,i) - f*.
Reference.  Bai & Bullins (COLT 2025), Algorithm 2 and the corollary of section 4.1.

>>> import numpy as np, hasd
>>> f = hasd.objectives.Quadratic(np.diag([1.0, 4.0]))
>>> hasd.minimize(f, [1.0, 1.0], method="hasd-restart", p=2, L=4.0, mu=1.0, tol=1e-3).success
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .._checks import number
from .._run.capabilities import traits_of_method
from .._run.problem import Method
from .base import Evaluation, Problem, State
from .hasd import HASDMethod
from .hasd_paper import HASDPaper

PERIOD = 36.0
"""T = (36/G_hat) sqrt(L/mu): Algorithm 2."""
CERTIFIED = 2.0
"""A_t >= 2/mu halves the gap."""

INNER: dict[str, Callable[[], Method]] = {"hasd-paper": HASDPaper, "hasd": partial(HASDMethod, restart=False)}


@dataclass(frozen=True, repr=False)
class RestartState(State):
    """A state of the inner method, numbered across epochs."""

    inner: State = None  # type: ignore[assignment]  # the epoch's own state
    epoch: int = 0  # i, the number of restarts so far


@dataclass(frozen=True)
class HASDRestart:
    """Algorithm 2; `inner` is "hasd-paper" (as printed), "hasd" or a method object.

    "hasd" is the optimised form; its halving is proved for a declared L.
    """

    G_hat: float | None = None
    constant: float = PERIOD
    inner: str | Method = "hasd-paper"
    name: str = "hasd-restart"
    default_p: float = math.inf
    needs_mu: bool = True

    def __post_init__(self) -> None:
        """Refuse a G_hat that is not positive (in l_p gains are at least 1), and an inner method that is unknown."""
        object.__setattr__(self, "constant", number("constant", self.constant, least=0.0, strict=True))
        if self.G_hat is not None:
            G_hat = number("G_hat", self.G_hat, least=0.0, strict=True)
            object.__setattr__(self, "G_hat", G_hat)
        known = self.inner in INNER if isinstance(self.inner, str) else isinstance(self.inner, Method)
        if not known or isinstance(self.inner, type):
            raise ValueError(f"inner must be {', '.join(INNER)} or a method object, got {self.inner!r}")
        if traits_of_method(self._method()).needs_mu:
            raise ValueError(f"inner must be a method that does not need mu, got {self.inner!r}")

    @property
    def needs_images(self) -> bool:
        """Whether the inner method needs images."""
        return traits_of_method(self._method()).needs_images

    @property
    def needs_lp(self) -> bool:
        """Whether the inner method works in l_p norms only."""
        return traits_of_method(self._method()).needs_lp

    @property
    def keeps_images(self) -> bool:
        """Whether the inner method keeps images."""
        return traits_of_method(self._method()).keeps_images

    @property
    def euclidean(self) -> bool:
        """Whether the inner method is made for l_2."""
        return traits_of_method(self._method()).euclidean

    @property
    def finish(self) -> Callable[[Problem, Evaluation], Evaluation]:
        """How the inner method hands back its answer."""
        return traits_of_method(self._method()).finish

    @property
    def state_classes(self) -> tuple[type, ...]:
        """The state classes of this method and of the inner one."""
        return (RestartState, *traits_of_method(self._method()).state_classes)

    def _method(self) -> Method:
        return INNER[self.inner]() if isinstance(self.inner, str) else self.inner

    def init(self, problem: Problem, start: Evaluation) -> RestartState:
        """x_outer,0 = x_0."""
        return _wrap(self._method().init(replace(problem, mu=0.0), start))

    def step(self, problem: Problem, state: State) -> RestartState:
        """One inner iteration, after a restart where one is due."""
        assert isinstance(state, RestartState)
        method, weakly = self._method(), replace(problem, mu=0.0)  # the inner run does not use mu
        inner, epoch, certificates = state.inner, state.epoch, state.certificates
        if self._is_due(problem, inner):
            certificates = (*certificates, inner.estimate.certificate(state.origin))
            there = inner.at if inner.at.x is inner.x else problem.oracle.evaluate(inner.x)
            at = there if there.finite and there.f <= inner.at.f else inner.at
            inner = replace(method.init(weakly, at), L=inner.L, L_next=inner.L_next, note=inner.note)
            epoch += 1
        inner = method.step(weakly, inner)
        of_run = {name: getattr(state, name) for name in ("method", "grad_norm0", "origin", "first")}
        return _wrap(inner, iteration=state.iteration + 1, certificates=certificates, epoch=epoch, **of_run)

    def _is_due(self, problem: Problem, inner: State) -> bool:
        if inner.iteration == 0:
            return False
        if self.G_hat is None:
            return inner.weight * problem.mu >= CERTIFIED
        # Iterations are whole numbers: this compares with the ceiling.
        return inner.iteration >= self.constant / self.G_hat * math.sqrt(inner.L / problem.mu)


def _wrap(inner: State, **own: Any) -> RestartState:
    """A state with the inner state's fields, except for those given here, which belong to the whole run."""
    shared = {name: getattr(inner, name) for name in State.__dataclass_fields__}
    return RestartState(**(shared | own), inner=inner)
