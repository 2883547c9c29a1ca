"""One record of a run: the states of its method, where it stands, and a picture of everything it knows.

Each part of a run keeps what it knows in fields of its own: the oracle the best points, the bounds what is proved, the
recorder the trace, and `Run` where the method stands.  A `Picture` is made of those fields by name; a checkpoint is a
picture written down, and ``res.state`` carries one along for ``resume=``.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .._math.arrays import Array
from .._math.estimate import Estimate, EstimateBound
from .._math.evaluation import Bend, Evaluation
from .certificate import Cut
from .convexity import Convexity
from .layout import Layout
from .status import Status


@dataclass(frozen=True)
class Picture:
    """What a run knew between two iterations, beside its state."""

    run: dict[str, Any]  # fields of `Run`, with those of the oracle
    bounds: dict[str, Any]  # fields of the bounds
    trace: dict[str, Any]  # fields of the recorder, and the counts; empty where a result's state carries the picture
    configuration: dict[str, Any]  # what a run that goes on must share with this one
    objective: weakref.ReferenceType[Any] | None = None  # one of ours, as its data are fixed; a callable may change

    def __getstate__(self) -> dict[str, Any]:
        """Its fields without the objective, which another process does not share."""
        return {**self.__dict__, "objective": None}


KEPT = (Evaluation, Bend, EstimateBound, Cut, Convexity)
"""Classes that the fields of a picture hold."""


def fields_of(part: Any) -> dict[str, Any]:
    """What a part of a run knows: the fields that its class names in `kept`."""
    return {name: getattr(part, name) for name in part.kept}


def restore_fields(part: Any, known: Mapping[str, Any]) -> None:
    """Put those fields back."""
    for name in part.kept:
        setattr(part, name, known[name])


S = TypeVar("S", bound="State")


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
    first: float = math.nan  # f(x_0) of the run
    left: float = 0.0  # an estimate of how far f may still fall, from the last step
    trials: float = math.nan  # coupling points (or stepsizes) tried
    certificates: tuple[EstimateBound, ...] = field(default=())  # of epochs before a restart
    note: str = ""  # what the user should be told about this run
    method: str = ""  # whose state it is
    counts: tuple[int, int, int] = (0, 0, 0)  # nfev, njev, nprod by then: of states of `iterate` and of results
    picture: Picture | None = None  # of a result's state: what its run knew beside it, for ``resume=``

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

    @property
    def bound(self) -> EstimateBound:
        """The lower bound on f* that psi_t proves."""
        return self.estimate.certificate(self.origin)

    @property
    def shown(self) -> tuple[Array, float]:
        """The point that traces and callbacks show, with its value; NaN: it is evaluated for them."""
        return self.x, self.fun

    def for_method(self) -> State:
        """A state of `iterate` as its method made it, with x as a vector."""
        return self.with_fields(x=self.__dict__.get("_vector", self.x))

    def __getstate__(self) -> dict[str, Any]:
        """Its fields without the function that evaluates `fun`, which only this process has."""
        return {"fun": math.nan, **{name: value for name, value in self.__dict__.items() if name != "_ask"}}

    def with_fields(self: S, **fields: Any) -> S:
        """A copy with these fields changed; `dataclasses.replace` does the same several times more slowly."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, **fields)
        return twin

    def for_user(self, counts: tuple[int, int, int], ask: Callable[[Array], float], layout: Layout) -> State:
        """A copy with the counts so far and x in the user's layout.

        A value that the method had no need of is evaluated when it is read.
        """
        twin = self.with_fields(counts=counts, x=layout.restore(self.x), _vector=self.x, _ask=ask)
        if math.isnan(self.fun):
            del twin.__dict__["fun"]
        return twin

    if not TYPE_CHECKING:  # a type checker would take every name for known

        def __getattr__(self, name: str) -> float:
            """`fun`, where it was left open: Python asks here for what is not among the fields."""
            if name != "fun" or "_ask" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return self.__dict__.setdefault("fun", self.__dict__["_ask"](self.__dict__["_vector"]))


@dataclass
class Run:
    """Where a run stands: the last state, the evaluated point of smallest gradient, and why it ended."""

    state: State
    smallest: tuple[float, Evaluation]  # dual norm of the gradient, and where
    first: float  # f(x_0)
    known: dict[str, Any]  # what the oracle knew when the state was made: a step that is broken off is made again
    status: Status = Status.MAXITER
    moved: bool = False  # whether this call has made a step
    complete: bool = False  # whether the state has been recorded, and the callback has had it
    kept: ClassVar[tuple[str, ...]] = ("smallest", "first", "known")

    @classmethod
    def at(cls, state: State, oracle: Any) -> Run:
        """A run that has seen nothing but this state."""
        return cls(state, (state.grad_norm, state.at), state.at.f, fields_of(oracle))

    def move(self, state: State, oracle: Any) -> None:
        """Take the next state."""
        self.state, self.complete, self.known, self.moved = state, False, fields_of(oracle), True
        if state.grad_norm < self.smallest[0]:
            self.smallest = (state.grad_norm, state.at)
