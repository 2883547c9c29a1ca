"""HASD as a ``torch.optim.Optimizer``: the core's method, one iteration a step, on all parameters as one vector."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .. import _inputs as inputs
from .._math.arrays import to_numpy
from .._math.estimate import EstimateBound
from .._math.evaluation import NO_BEND, Bend, Evaluation
from .._math.geometry import Lp, convert_smoothness
from .._resume import packing
from .._run import loop
from .._run.capabilities import ObjectiveTraits, traits_of_method
from .._run.certificate import Cut, cut_at
from .._run.oracle import Oracle
from .._run.problem import Method, Problem
from .._run.record import State
from .._run.sources import BlackBox
from .._run.status import Status, Stop
from ..methods import make
from .flat import ClosureFunction, Flat, as_real
from .misuse import find_noise, find_nonconvexity, is_due

Kept = tuple[State, Evaluation | None, tuple[float, Any], Bend]
"""A run between two steps: the state, the best points, and the curvature seen."""
KEY: Any = "hasd"
"""Where the state is kept: it belongs to all parameters, so no single one's entry will do."""
COARSE = (torch.float16, torch.bfloat16)
"""Types that are worked on in float32, to which the parameters are rounded."""
USELESS = "lr has no effect without L, because the constant is then found on the way: leave lr out, or give L"
SHARED = ("p", "L", "mu", "method", "maximize", "options")
"""Settings that cannot differ between groups: there is one norm and one estimate sequence across them."""


class HASD(torch.optim.Optimizer):
    """Accelerated steepest descent in the l_p norm of all parameters together, for a convex loss without noise.

    A step needs a closure, as for ``torch.optim.LBFGS``: it clears the gradients, computes the loss, calls ``backward``
    and returns the loss.  With method "hasd", `step` calls it once, at the coupling point y that follows the new
    iterate; the first step calls it at the start too, and a step is repeated if the loss is not finite or L is much too
    small.  Other methods call it once to a few times.  The gradients are cleared before each call.  The loss must be a
    function of the parameters alone, without minibatches or dropout.  When `step` returns, the parameters hold the
    iterate x, not y.  If you change them between steps, add a group, or change ``weight_decay`` or ``mu``, the method
    starts anew from the new parameters.

    In the 2nd, 4th, 8th, 16th, ... step a point of the step before is evaluated twice more.  If its value has changed,
    a warning names `StochasticHASD`, and nothing is certified from then on; nor is it where values contradict
    convexity.  `note` then says why.

    Parameters
    ----------
    params : iterable
        Tensors or groups, as everywhere in ``torch.optim``.
    lr : float, optional
        If L is given, the constant used is L/lr with the smallest lr of the groups, so that schedulers work; None is 1.
        Without L, the constant is found on the way and lr has no effect, so it is refused; a scheduler then changes
        nothing, except that lr = 0 stops all moves.  With method "hasd" a given constant never falls, so a later lr can
        only shorten the steps.
    p : float, optional
        The norm, 2 <= p <= inf; None lets the method choose (inf for "hasd").
    L : float, optional
        The smoothness constant of the loss in that norm; None finds one on the way.
    mu : float
        The strong convexity of the loss w.r.t. l_2.
    weight_decay : float
        Adds (weight_decay/2) ||x||^2 to the loss, and the least of the groups' to mu; `step` returns the loss without.
    method : str
        "hasd", or any of `hasd.method_names()` that works for a plain function; "hasd-qn" if p does not matter.
    maximize : bool
        Maximise a concave objective instead.
    **options
        Options of the method.

    Examples
    --------
    >>> import torch
    >>> from hasd.torch import HASD
    >>> x = torch.zeros(5, dtype=torch.float64, requires_grad=True)
    >>> optimizer = HASD([x], p=float("inf"))
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = torch.sum((x - 1) ** 2)
    ...     loss.backward()
    ...     return loss
    >>> for _ in range(20):
    ...     loss = optimizer.step(closure)
    >>> bool(abs(x - 1).max() < 1e-6), optimizer.bound(radius=3.0) <= 0.0
    (True, True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | None = None,
        *,
        p: float | None = None,
        L: float | None = None,
        mu: float = 0.0,
        weight_decay: float = 0.0,
        method: str = "hasd",
        maximize: bool = False,
        **options: Any,
    ):
        """Check the settings; nothing is evaluated."""
        if method == "auto":
            method = "hasd" if p is not None or L is not None else "hasd-qn"
        chosen = make(method, options, HASD)
        if L is None and lr is not None:
            raise ValueError(USELESS)
        rate = 1.0 if lr is None else inputs.number("lr", float(lr), least=0.0)
        constant = None if L is None else inputs.number("L", L, least=0.0, strict=True)
        geometry = inputs.geometry(p, chosen.default_p)
        if geometry != Lp(geometry.p):
            raise TypeError(f"p must be a number between 2 and inf, got {p!r}; hasd.torch.minimize takes other norms")
        convexity = inputs.strong_convexity(mu, None, constant, geometry)
        convexity += inputs.number("weight_decay", weight_decay, least=0.0)
        inputs.check_requirements(chosen, traits_of_method(chosen), ObjectiveTraits(), None, convexity)
        shared = {"p": geometry.p, "L": L, "mu": mu, "method": method, "maximize": maximize, "options": options}
        super().__init__(params, {"lr": rate, "weight_decay": weight_decay, **shared})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters; its norm and method must be those of the others."""
        if "lr" in param_group and param_group.get("L", self.defaults["L"]) is None:
            raise ValueError(USELESS)
        super().add_param_group(param_group)
        try:
            for name in SHARED:
                self._shared_setting(name)
            inputs.number("weight_decay", self.param_groups[-1]["weight_decay"], least=0.0)
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Make one iteration; return what the closure returned at its first call.

        The parameters stay where they are at machine precision, if the loss is not finite, or if lr = 0; `status` then
        says why.  If a gradient was 0, they are set to the point where it was, and stay there.
        """
        if closure is None:
            raise TypeError(
                "step needs a closure that clears the gradients, computes the loss, calls backward on it and returns "
                "it, as torch.optim.LBFGS does"
            )
        flat = Flat(self._parameters())
        x = flat.gather()
        maximize, _, *decays = self._terms()
        function = ClosureFunction(flat, closure, bool(maximize), decays)
        source = BlackBox(function, jac=True)
        run = self._unpack()
        if run is not None and not flat.holds(run[0].x):  # the parameters have been changed since
            run = None
        old, best, lowest, bend = run or (None, None, (math.inf, None), NO_BEND)
        oracle = Oracle(source, best=best, lowest=lowest, bend=bend)
        try:
            state, why = self._advance(oracle, x, old)
            if function.first is None:
                source.value(x)
            note, noisy = self._find_misuse(oracle, best, old, state, function.first)
        except BaseException:
            flat.scatter(x)
            raise
        flat.scatter(x if state is None else state.x)
        steps = self._kept.get("steps", 0) + 1
        kept: dict[str, Any] = {"nfev": self.nfev + source.nfev, "status": why, "steps": steps}
        kept |= {"note": note, "noisy": noisy, "terms": self._terms()}
        if state is not None:
            kept |= self._pack((state, oracle.best, oracle.lowest, oracle.bend))
        self.state[KEY] = kept
        return function.first

    def _advance(self, oracle: Oracle, x: torch.Tensor, state: State | None) -> tuple[State | None, str]:
        """The state after one iteration; where none can be made, the old state and the reason."""
        rate = min(float(group["lr"]) for group in self.param_groups)
        if rate == 0.0:
            return state, "The learning rate is 0."
        method = self._method()
        problem = self._problem(oracle, rate)
        try:
            start = state or oracle.evaluate(x)
            if not isinstance(start, State) and not start.finite:
                return None, Status.NONFINITE_START.message
            states = loop.states(problem, method, start)
            state = next(states)
            return next(states), ""
        except Stop as stop:
            if stop.status is Status.CONVERGED and state is not None:  # the gradient is 0 at y, which need not be x
                state = state.with_fields(x=state.at.x, fun=state.at.f)
            return state, stop.status.message

    def _find_misuse(
        self, oracle: Oracle, best: Evaluation | None, old: State | None, new: State | None, loss: Any
    ) -> tuple[str, bool]:
        """Why the closure is no convex function of the parameters, and whether it is noisy, which a warning says.

        Noise is looked for after a contradiction to convexity as well, as it may be the reason.
        """
        if self._kept.get("noisy") or old is None or new is None:
            return self.note, self._kept.get("noisy", False)
        kinds = {p.dtype for p in self._parameters()} | ({loss.dtype} if torch.is_tensor(loss) else set())
        step, violation = self._kept.get("steps", 0) + 1, ""
        if not (self.note or new is old or kinds & set(COARSE)):
            violation = find_nonconvexity(best, old.at, new.at, step, oracle.bend.largest)
        if violation or is_due(step):
            eps = max(torch.finfo(kind).eps for kind in kinds if kind.is_floating_point or kind.is_complex)
            for _ in range(2):
                if noise := find_noise(old.at, oracle.source.value(old.at.x), eps):
                    warnings.warn(noise, RuntimeWarning, stacklevel=5)
                    return noise, True
        return self.note or violation, False

    def _terms(self) -> list[float]:
        """What is added to the loss or known of it, on which all that a run keeps depends."""
        decays = [float(group["weight_decay"]) for group in self.param_groups for _ in group["params"]]
        return [float(self._shared_setting("maximize")), float(self._shared_setting("mu")), *decays]

    def _problem(self, oracle: Oracle, rate: float) -> Problem:
        """The loss with its decay, which adds to mu and to L."""
        L, geometry = self._shared_setting("L"), inputs.geometry(self._shared_setting("p"), self._method().default_p)
        most = max(group["weight_decay"] for group in self.param_groups)
        size = sum(as_real(p.detach()).numel() for p in self._parameters())
        constant = None if L is None else L / rate + convert_smoothness(most, 2.0, geometry.p, size)
        return Problem(oracle, geometry, constant, self._convexity())

    def _convexity(self) -> float:
        """mu, with the least decay."""
        return self._shared_setting("mu") + min(group["weight_decay"] for group in self.param_groups)

    def _method(self) -> Method:
        return make(self._shared_setting("method"), self._shared_setting("options"), HASD)

    def _parameters(self) -> list[torch.Tensor]:
        return [p for group in self.param_groups for p in group["params"]]

    def _shared_setting(self, name: str) -> Any:
        """A setting that all groups agree on."""
        if any(name not in group for group in self.param_groups):
            raise ValueError(f"the state that was loaded is not of this optimizer: its groups have no {name!r}")
        first, *rest = (group[name] for group in self.param_groups)
        if any(other != first for other in rest):
            raise ValueError(f"{name} must be the same in all groups: there is one norm across them")
        return first

    def _pack(self, run: Kept) -> dict[str, Any]:
        """Tensors, numbers and strings only: what ``torch.save`` and ``torch.load`` carry over bit for bit."""
        tree, arrays = packing.pack(run, packing.state_classes(self._method()))
        return {
            "tree": json.dumps(tree),
            "arrays": [torch.from_numpy(a.copy()) if isinstance(a, np.ndarray) else a for a in arrays],
            "small": [i for i, a in enumerate(arrays) if isinstance(a, np.ndarray)],
            "grad_norm": run[0].grad_norm,
        }

    def _unpack(self) -> Kept | None:
        """The run as the last step left it; None where that left none, or was about another function."""
        if "tree" not in self._kept or self._kept.get("terms") != self._terms():
            return None
        small, device = set(self._kept["small"]), self._parameters()[0].device
        arrays = [to_numpy(a) if i in small else a.to(device) for i, a in enumerate(self._kept["arrays"])]
        packed = packing.Packed(json.loads(self._kept["tree"]), arrays)
        return packing.unpack(packed, packing.state_classes(self._method()))

    @property
    def _kept(self) -> dict[str, Any]:
        """What the last step left behind; empty before the first."""
        return self.state.get(KEY, {})

    @property
    def nfev(self) -> int:
        """Calls of the closure so far."""
        return self._kept.get("nfev", 0)

    @property
    def status(self) -> str:
        """Why the last step did not move the parameters; empty if it did."""
        return self._kept.get("status", "")

    @property
    def note(self) -> str:
        """Why nothing is certified any more; empty while the closure looks like a convex function."""
        return self._kept.get("note", "")

    @property
    def grad_norm(self) -> float:
        """The dual norm of the gradient that the last step computed; NaN before the first."""
        return self._kept.get("grad_norm", math.nan)

    def bound(self, radius: float | None = None) -> float:
        """A certified lower bound on the minimum (with ``maximize``, an upper bound on the maximum).

        ``radius`` is an l_2 bound on the distance to a minimiser from the point where the method started, or started
        anew because something was changed.  It may be None if mu > 0.  Nothing is certified if parameters are
        float16 or bfloat16, because the loss is then known at rounded points only, or if there is a `note`.
        """
        sign = -1.0 if self._shared_setting("maximize") else 1.0
        coarse = any(p.dtype in COARSE for p in self._parameters())
        run = None if coarse or self.note else self._unpack()
        if run is None:
            return -sign * math.inf
        mu = self._convexity()
        if radius is None and mu == 0.0:
            raise ValueError("bound needs radius, an l_2 bound on the distance to a minimiser, because mu = 0")
        if radius is not None:
            inputs.number("radius", radius, least=0.0)
        state, _, _, seen = run
        proofs: tuple[EstimateBound | Cut, ...] = (
            *state.certificates,
            state.estimate.certificate(state.origin),
            cut_at(state.at, state.origin, mu),
        )
        bend = max(seen.largest, mu, 0.0 if seen.pairs else state.L)  # L if nothing was seen
        return sign * max(proof.lower(radius, bend) for proof in proofs)
