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

from .._run.status import Status
from . import backtracked, inputs
from .state import RUNNING, HASDState, Setting, initial_state
from .step import advance
from .trees import Scalar, Tree, dual, mix, norm

Function = Callable[[Tree, Any], tuple[Scalar, Any]]
"""What optimistix makes of the user's function: (x, args) -> f(x), aux."""


@dataclass(frozen=True)
class DualNorm:
    """||.||_{p*}; equal for equal p, so that an equal solver is no other program."""

    p: float

    def __call__(self, g: Tree) -> Scalar:
        """The dual norm of a pytree."""
        return norm(g, dual(self.p))


class HASD(optx.AbstractMinimiser):
    """Hyper-Accelerated Steepest Descent in the l_p norm, for ``optimistix.minimise(f, HASD(...), x0, args)``.

    A step of optimistix is one evaluation of f (and its gradient), so ``max_steps`` is a budget of evaluations.
    ``solution.value`` is x_t; ``solution.stats`` has

    - ``iterations``: t;
    - ``weight``: A_t; f(x_t) - f* <= R^2/(2 A_t), where R is the l_2 distance to a minimiser from the start (that of
      the last epoch, if L is backtracked with restarts);
    - ``L``: the constant of the last step, larger than the declared one if gradients showed that to be too small;
    - ``grad_norm``: ||grad f(y)||_{p*} at the point y where the last step took the gradient;
    - ``status``: a code of `hasd.Status`.

    ``solution.result`` is ``nonlinear_max_steps_reached`` if the budget was spent (status 10), ``nonfinite`` if f or
    its gradient was NaN or infinite at the start (12) or in twenty trials in a row (3), and ``nonlinear_divergence`` if
    f took the value -inf (13).  A run that ends at machine precision before the tolerance is met (2) has
    ``successful``, because optimistix has no code for that, and no further progress is possible.

    Parameters
    ----------
    L : number or array of shape (), optional
        The smoothness constant w.r.t. the l_p norm; it may be traced.  None finds it by backtracking.
    p : float
        The exponent of the norm, 2 <= p <= inf; it is compiled into the program.
    mu : number or array of shape ()
        The strong convexity w.r.t. l_2; it may be traced.
    rtol, atol : float
        A run ends when ||grad f(y_t)||_{p*} <= max(rtol ||grad f(x_0)||_{p*}, atol).
    raise_L, restart : bool
        As in `hasd.methods.hasd`.  raise_L says whether a declared L is raised if gradients show that it is too small.
        restart says whether a run with backtracked L begins a new epoch when f rises.

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
        return initial_state(y, self.L, self.raise_L)

    def step(
        self, fn: Function, y: Tree, args: Any, options: Any, state: HASDState, tags: Any
    ) -> tuple[Tree, HASDState, Any]:
        """One evaluation and what follows from it."""
        setting = Setting(self.p, self.mu.astype(state.rho.dtype), self.raise_L, self.restart)
        whole = jax.value_and_grad(lambda x: fn(x, args), has_aux=True)

        def look(x: Tree) -> tuple[tuple[Scalar, Any], Tree]:
            """f at the end of a step, and the gradient only where f does not decide."""
            f, aux = fn(x, args)
            unclear = backtracked.drowns(state, f)
            return (f, aux), jax.lax.cond(unclear, lambda x: whole(x)[1], lambda x: mix(jnp.zeros_like, x), x)

        if state.line is None:
            (f, aux), g = whole(state.y)
        else:
            (f, aux), g = jax.lax.cond(state.line.at_x, look, whole, state.y)
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
        return (state.iteration > 0) & (state.grad_norm <= tolerance)

    def postprocess(
        self, fn: Function, y: Tree, aux: Any, args: Any, options: Any, state: HASDState, tags: Any, result: Any
    ) -> tuple[Tree, Any, dict[str, Any]]:
        """Recompute the auxiliary output at the returned x, because the last evaluation was at y."""
        if jax.tree.leaves(aux):
            _, aux = fn(y, args)
        # optimistix itself ends a run where x is not finite, and at its limit on steps.
        lost = jnp.where(state.evaluations == 0, Status.NONFINITE_START.code, Status.NONFINITE.code)
        broken_off = jnp.where(result == optx.RESULTS.nonfinite, lost, Status.MAXFUN.code)
        status = jnp.where(state.status == RUNNING, broken_off, state.status)
        stats = {
            "iterations": state.iteration,
            "weight": state.estimate.weight,
            "L": state.L,
            "grad_norm": state.grad_norm,
            "status": jnp.where(self._has_converged(state), Status.CONVERGED.code, status).astype(jnp.int32),
        }
        return y, aux, stats
