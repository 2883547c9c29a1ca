"""HASD as an `optimistix.AbstractMinimiser`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

try:
    import equinox as eqx
    import optimistix as optx
except ImportError as error:
    raise ImportError('hasd.jax.HASD needs optimistix: pip install "hasd[jax]"') from error

from .._math.geometry import Lp
from .._run.status import Status
from . import inputs
from .state import RUNNING, HASDState, Setting, initial_state
from .step import advance
from .trees import Scalar, Tree, norm, select

Function = Callable[[Tree, Any], tuple[Scalar, Any]]
"""What optimistix makes of the user's function: (x, args) -> f(x), aux."""
DERIVATIVES: dict[str, Callable[..., Any]] = {"bwd": jax.grad, "fwd": jax.jacfwd}
"""By the names that optimistix has for them."""


@dataclass(frozen=True)
class DualNorm:
    """||.||_{p*}; equal for equal p, so that an equal solver is no other program."""

    p: float

    def __call__(self, g: Tree) -> Scalar:
        """The dual norm of a pytree."""
        return norm(g, Lp(self.p).dual)


class HASD(optx.AbstractMinimiser):
    """Hyper-Accelerated Steepest Descent in the l_p norm, for ``optimistix.minimise(f, HASD(...), x0, args)``.

    A step of optimistix is one evaluation of f and its gradient, so ``max_steps`` is a budget of evaluations; f alone
    is evaluated once more after the last step.  ``solution.value`` is the point whose gradient met the tolerance; if
    none did, it is the iterate x_t or the lowest point evaluated, whichever is lower.  ``solution.stats`` has

    - ``fun``: f at ``solution.value``;
    - ``iterations``: t;
    - ``weight``, ``U``: A_t and U_t, for which f* >= U_t - R^2/(2 A_t), where R is the l_2 distance to a minimiser from
      the start (that of the last epoch, if L is found with restarts); so ``fun`` - f* <= ``fun`` - U_t + R^2/(2 A_t).
      Where a declared L is true, f(x_t) <= U_t;
    - ``L``: the constant of the last step, larger than the declared one if gradients showed that to be too small;
    - ``grad_norm``: ||grad f(y_t)||_{p*} at the newest point y_t, which is ``solution.value`` if the status is 0;
    - ``status``: a code of `hasd.Status`.

    ``options={"autodiff_mode": "fwd"}`` takes gradients by forward differentiation, for functions that JAX cannot
    differentiate backwards; "bwd" is what happens without it.

    ``solution.result`` is ``nonlinear_max_steps_reached`` if the budget was spent (status 10), ``nonfinite`` if f or
    its gradient was NaN or infinite at the start (12) or in twenty trials in a row (3), and ``nonlinear_divergence`` if
    f took the value -inf (13).  A run that ends at machine precision before the tolerance is met (2) has
    ``successful``, because optimistix has no code for that, and no further progress is possible.

    Parameters
    ----------
    L : number or array of shape (), optional
        The smoothness constant w.r.t. the l_p norm; it may be traced.  None finds it on the way.
    p : float
        The exponent of the norm, 2 <= p <= inf; it is compiled into the program.
    mu : number or array of shape ()
        The strong convexity w.r.t. l_2; it may be traced.
    rtol, atol : float
        A run ends when ||grad f(y_t)||_{p*} <= max(rtol ||grad f(x_0)||_{p*}, atol).
    raise_L, restart : bool
        As in `hasd.methods.hasd`.  raise_L says whether a declared L is raised if gradients show that it is too small.
        restart says whether a run that finds L begins a new epoch at the lowest point when f has stopped falling.

    Examples
    --------
    >>> import jax.numpy as jnp, optimistix as optx
    >>> def f(x, b):
    ...     return jnp.sum(jnp.cosh(x["u"] - b)) + jnp.sum(x["w"] ** 2)
    >>> start = {"u": jnp.zeros(2), "w": jnp.ones((2, 2))}
    >>> solution = optx.minimise(f, HASD(p=3, rtol=1e-3), start, jnp.array([1.0, 2.0]))
    >>> bool(jnp.abs(solution.value["u"] - jnp.array([1.0, 2.0])).max() < 1e-2), int(solution.stats["status"])
    (True, 0)
    """

    L: jax.Array | None
    p: float = eqx.field(static=True)
    mu: jax.Array
    rtol: float
    atol: float
    norm: Callable[[Any], Any] = eqx.field(static=True)
    raise_L: bool = eqx.field(static=True)
    restart: bool = eqx.field(static=True)

    def __init__(
        self,
        L: Any = None,
        p: float = float("inf"),
        *,
        mu: Any = 0.0,
        rtol: float = 1e-6,
        atol: float = 0.0,
        raise_L: bool = True,
        restart: bool = True,
    ) -> None:
        """Check and keep; numbers become arrays, so that another L is no other program."""
        self.p = inputs.exponent(p)
        inputs.check_constants(L, mu)
        self.L = None if L is None else jnp.asarray(L, float)
        self.mu = jnp.asarray(mu, float)
        self.rtol, self.atol = inputs.tolerance("rtol", rtol), inputs.tolerance("atol", atol)
        self.norm = DualNorm(self.p)
        self.raise_L, self.restart = bool(raise_L), bool(restart)

    def init(
        self, fn: Function, y: Tree, args: Any, options: Any, f_struct: Any, aux_struct: Any, tags: Any
    ) -> HASDState:
        """Nothing is evaluated yet."""
        return initial_state(y, self.L)

    def step(
        self, fn: Function, y: Tree, args: Any, options: Any, state: HASDState, tags: Any
    ) -> tuple[Tree, HASDState, Any]:
        """One evaluation and what follows from it."""
        mode = options.get("autodiff_mode", "bwd")
        if mode not in DERIVATIVES:
            raise ValueError(f'autodiff_mode must be "fwd" or "bwd", got {mode!r}')

        def value_and_all(x: Tree) -> tuple[Scalar, tuple[Scalar, Any]]:
            f, aux = fn(x, args)
            return f, (f, aux)

        g, (f, aux) = DERIVATIVES[mode](value_and_all, has_aux=True)(state.y)
        setting = Setting(Lp(self.p), self.mu.astype(state.L.dtype), self.L is not None, self.raise_L, self.restart)
        state = advance(setting, state, state.y, f, g)
        return state.x, state, aux

    def terminate(
        self, fn: Function, y: Tree, args: Any, options: Any, state: HASDState, tags: Any
    ) -> tuple[Scalar, optx.RESULTS]:
        """By the gradient's dual norm, or where the method cannot go on."""
        lost = (state.status == Status.NONFINITE.code) | (state.status == Status.NONFINITE_START.code)
        unbounded = state.status == Status.UNBOUNDED.code
        result = optx.RESULTS.where(lost, optx.RESULTS.nonfinite, optx.RESULTS.successful)
        result = optx.RESULTS.where(unbounded, optx.RESULTS.nonlinear_divergence, result)
        return self._has_converged(state) | (state.status != RUNNING), result

    def _has_converged(self, state: HASDState) -> Scalar:
        tolerance = jnp.maximum(self.rtol * state.grad_norm0, self.atol)
        return state.grad_norm <= tolerance  # NaN before the first evaluation

    def postprocess(
        self, fn: Function, y: Tree, aux: Any, args: Any, options: Any, state: HASDState, tags: Any, result: Any
    ) -> tuple[Tree, Any, dict[str, Any]]:
        """Choose the point to return, and compute the auxiliary output there."""
        converged, best = self._has_converged(state), state.best
        f = fn(y, args)[0].astype(best.f.dtype)
        y, fun = select(f <= best.f, (y, f), (best.x, best.f))
        y, fun = select(converged, (state.at.x, state.at.f), (y, fun))
        if jax.tree.leaves(aux):
            _, aux = fn(y, args)
        # optimistix itself ends a run where x is not finite, and at its limit on steps.
        lost = jnp.where(state.evaluations == 0, Status.NONFINITE_START.code, Status.NONFINITE.code)
        broken_off = jnp.where(result == optx.RESULTS.nonfinite, lost, Status.MAXFUN.code)
        status = jnp.where(state.status == RUNNING, broken_off, state.status)
        stats = {
            "fun": fun,
            "iterations": state.iteration,
            "weight": state.estimate.weight,
            "U": state.U,
            "L": state.L,
            "grad_norm": state.grad_norm,
            "status": jnp.where(converged, Status.CONVERGED.code, status).astype(jnp.int32),
        }
        return y, aux, stats
