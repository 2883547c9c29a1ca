"""What a method is given, what it returns, and the shape of a method."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from .._math.arrays import Array
from .._math.estimate import Certificate, Estimate
from .._math.evaluation import Evaluation
from .._math.geometry import Geometry
from .oracle import Oracle


@dataclass(frozen=True)
class Problem:
    """What a method is given."""

    oracle: Oracle  # f, counted
    geometry: Geometry  # the norm of the steepest step
    L: float | None = None  # declared smoothness in that norm; None: backtrack
    mu: float = 0.0  # strong convexity w.r.t. l_2

    @property
    def bounded_below(self) -> bool:
        """Whether f is known to have a lower bound, so that it can only seem to fall without end."""
        return getattr(self.objective, "bounded_below", False)

    @property
    def objective(self) -> Any:
        """The objective behind the oracle, for methods that use its structure; None for a black box."""
        return getattr(self.oracle.source, "objective", None)


@dataclass(frozen=True, repr=False)
class State:
    """Iterate t of a method and the step that made it."""

    iteration: int  # t
    x: Array  # x_t
    fun: float  # f(x_t); NaN where the method had no need of it; states of `iterate` evaluate it when it is read
    at: Evaluation  # the evaluation whose gradient the step used (t = 0: at x_0)
    grad_norm: float  # its dual norm
    grad_norm0: float  # the same at x_0 of the run, for the relative tolerance
    origin: Array  # x_0 of the run, from which the user's radius is measured
    L: float  # smoothness constant the step relied on; NaN before the first backtracking
    estimate: Estimate  # psi_t
    L_next: float = math.nan  # where the next backtracking starts; NaN: anywhere
    rho: float = math.nan  # the search's stand-in for 1/gain^2
    theta: float = math.nan  # A_t/A_{t+1}
    gain: float = math.nan  # ||g||_{p*}/||g||_2
    trials: float = math.nan  # coupling points (or stepsizes) tried
    certificates: tuple[Certificate, ...] = field(default=())  # of epochs before a restart
    note: str = ""  # what the user should be told about this run
    method: str = ""  # whose state it is
    counts: tuple[int, int, int] = (0, 0, 0)  # nfev, njev, nprod by then: of states of `iterate` and of results
    memory: Any = None  # of a result's state: what its run knew beside it, for ``resume=``

    def __repr__(self) -> str:
        return f"<state of {self.method or 'a method'} at iteration {self.iteration}>"

    @property
    def nfev(self) -> int:
        """Evaluations that the method had asked for by then."""
        return self.counts[0]

    @property
    def njev(self) -> int:
        """Gradients that it had asked for."""
        return self.counts[1]

    @property
    def nprod(self) -> int:
        """Products with A that it had asked for."""
        return self.counts[2]

    @property
    def weight(self) -> float:
        """A_t."""
        return self.estimate.weight

    @property
    def psi(self) -> float:
        """psi*_t."""
        return self.estimate.psi

    def __getstate__(self) -> dict[str, Any]:
        """Its fields: whom to ask for a value is known in this process only."""
        return {name: value for name, value in self.__dict__.items() if name != "_ask"}

    def telling(self, oracle: Oracle) -> State:
        """The same state with the counts so far, that asks the oracle for its value when it is read."""
        twin = copy.copy(self)
        twin.__dict__.update(_ask=oracle.record_value, counts=oracle.counts)
        return twin


class _Value:
    """`State.fun`: a value that the method had no need of is evaluated when it is read, where the state can ask."""

    def __get__(self, state: State | None, owner: type) -> Any:
        if state is None:
            raise AttributeError("fun")  # a class has no value
        known: float = state.__dict__["fun"]
        if math.isnan(known) and "_ask" in state.__dict__:
            known = state.__dict__["fun"] = state.__dict__["_ask"](state.x)
        return known

    def __set__(self, state: State, value: float) -> None:
        state.__dict__["fun"] = value


State.fun = _Value()  # type: ignore[assignment]


S = TypeVar("S", bound=State)


@runtime_checkable
class Method(Protocol):
    """The shape of a method."""

    @property
    def name(self) -> str:
        """What the registry and the result call it."""
        ...

    @property
    def default_p(self) -> float:
        """The exponent used when the caller names none."""
        ...

    def init(self, problem: Problem, start: Evaluation) -> State:
        """The state at t = 0."""
        ...

    def step(self, problem: Problem, state: State) -> State:
        """The next state."""
        ...
