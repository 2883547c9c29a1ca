"""hasd.jax takes the steps of the NumPy core: every iterate, to rounding, on function values of one program.

A declared L is held to the core over whole runs.  With L backtracked both amplify rounding: the curvature that the next
L is read off from is (f(x) - f(y))/predicted, so the digits of f that the predicted descent leaves are all it has.
There every single iteration, from the core's own state, is held to that many digits, and whole runs for as long as it
takes rounding to grow.
"""

from functools import cache
from itertools import islice, pairwise

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optimistix")

import equinox as eqx
import jax
import jax.numpy as jnp

import hasd
import hasd._math.search
from hasd._math.geometry import Lp
from hasd.jax import HASD
from hasd.jax.declared import _next_trial
from hasd.jax.state import RUNNING, Setting, initial_state
from hasd.jax.trees import dual, norm, steepest
from hasd.methods.hasd import AIM, WINDOW, weight

pytestmark = pytest.mark.usefixtures("double")

EPS = 2.0**-52
MU = 0.02
SIZE = 8

every_p = pytest.mark.parametrize("p", [2.0, 3.0, np.inf], ids=lambda p: f"p={p:g}")
with_and_without_mu = pytest.mark.parametrize("mu", [0.0, MU], ids=["mu=0", "mu"])


@cache
def features():
    return np.random.default_rng(0).standard_normal((40, SIZE)) * np.geomspace(3.0, 0.3, SIZE)


def fun(x):
    """Logistic regression with a ridge of MU."""
    return jnp.sum(jnp.logaddexp(0.0, features() @ x)) + 0.5 * MU * jnp.vdot(x, x)


value_and_grad = jax.jit(jax.value_and_grad(fun))


def smoothness(p):
    """L_p: rows of A in the dual norm; ||x||_2^2 <= d^{1-2/p} ||x||_p^2 for the ridge."""
    q = Lp(p).dual
    rows = np.sum(np.abs(features()) ** q, axis=1) ** (2.0 / q)
    return 0.25 * rows.sum() + MU * SIZE ** (1.0 - 2.0 / p)


def core(p, L, mu, count, **options):
    """The NumPy core's states t = 0, 1, ..., and how often it had evaluated by then."""
    calls = []

    def both(x):
        calls.append(1)
        f, g = value_and_grad(x)
        return float(f), np.asarray(g)

    run = hasd.iterate(both, np.ones(SIZE), jac=True, method="hasd", p=p, L=L, mu=mu, **options)
    return [(state, len(calls)) for state in islice(run, count + 1)]


@eqx.filter_jit
def begin(solver):
    return solver.init(None, jnp.ones(SIZE), None, None, None, None, None)


@eqx.filter_jit
def iteration(solver, state):
    """Evaluations until the next iterate."""

    def step(s):
        return solver.step(lambda x, _: (fun(x), None), s.x, None, None, s, None)[1]

    before = state.iteration
    return jax.lax.while_loop(lambda s: (s.iteration == before) & (s.status == RUNNING), step, state)


def off(ours, theirs):
    """The relative difference, in the largest entry."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-300)


def furthest(state, one):
    """The largest relative difference between a state of ours and one of the core's."""
    pairs = (
        (state.x, one.x),
        (state.estimate.v, one.estimate.v),
        (state.estimate.weight, one.weight),
        (state.estimate.psi, one.psi),
        (state.L, one.L),
        (state.grad_norm, one.grad_norm),
        (state.grad_norm0, one.grad_norm0),
        (state.at.x, one.at.x),
        (state.at.g, one.at.g),
        (state.at.gain, one.gain),
    )
    return max(off(ours, theirs) for ours, theirs in pairs)


@pytest.mark.parametrize("part", [1.0, 1.0 / 300.0], ids=["true L", "L too small"])
@with_and_without_mu
@every_p
def test_declared_L_is_the_numpy_core_over_the_whole_run(p, mu, part):
    """With the same number of evaluations, also where L is raised and the cuts are scaled.

    Mutations: AIM 1.3 for 1.2 in the JAX core; a new epoch in place of scaled cuts.
    """
    L = part * smoothness(p)
    solver = HASD(L, p, mu=mu)
    state = begin(solver)
    reference = core(p, L, mu, 70)[1:]
    for one, evaluations in reference:
        state = iteration(solver, state)
        assert int(state.iteration) == one.iteration and int(state.evaluations) == evaluations
        assert furthest(state, one) < 1e-12
    assert len(reference) == 70
    assert (float(state.L) > 2.0 * L) == (part < 1.0)


def resumed(state, one):
    """Our state with all that matters from the core's."""
    a = weight(one.estimate, one.L_next, one.rho)
    given = {
        "iteration": np.int32(one.iteration),
        "x": one.x,
        "y": one.estimate.couple(one.x, a),
        "fun": np.float64(one.fun),
        "grad_norm0": np.float64(one.grad_norm0),
        "rho": np.float64(one.rho),
        "estimate": state.estimate._replace(v=one.estimate.v, weight=np.float64(one.weight), psi=np.float64(one.psi)),
        "line": state.line._replace(L_start=np.float64(one.L_next)),
    }
    return state._replace(**given)


@pytest.mark.parametrize(
    ("p", "restart"), [(2.0, True), (3.0, True), (np.inf, True), (np.inf, False)], ids=lambda case: f"{case!s}"
)
def test_backtracked_L_is_the_numpy_core_iterate_by_iterate(p, restart):
    """Mutations: 0.8 for 0.5 in `enough`; L_next kept within a factor four; no restart."""
    kinds = set()
    for mu in (0.0, MU):
        solver = HASD(None, p, mu=mu, restart=restart)
        start = free = begin(solver)
        reference = [one for one, _ in core(p, None, mu, 60, restart=restart)]
        for one, after in pairwise(reference):
            ours = iteration(solver, resumed(start, one) if one.iteration else start)
            assert int(ours.status) == RUNNING and int(ours.iteration) == after.iteration
            digits = EPS * max(abs(one.fun), abs(after.fun)) / (after.grad_norm**2 / (2.0 * after.L))
            allowed = 1e-13 + 32.0 * digits
            assert furthest(ours, after) < allowed
            assert off(ours.rho, after.rho) < allowed and off(ours.line.L_start, after.L_next) < allowed
            assert off(ours.fun, after.fun) < 1e-13
            if after.iteration <= 12:
                free = iteration(solver, free)
                assert furthest(free, after) < 1e-10
            kinds |= {"restarted"} if after.weight == 0.0 else set()
            kinds |= {"coupled again"} if after.trials > 1 else set()
        assert len(reference) == 61
    assert kinds == ({"restarted", "coupled again"} if restart else {"coupled again"})


RESIDUALS = {
    "steep": lambda u: u**9,
    "jump": lambda u: 0.1 if u < 3.0 else 10.0,
    "undefined below": lambda u: float("nan") if u < 700.0 else u / 1000.0,
    "never defined": lambda u: float("nan"),
    "never above": lambda u: 0.5,
    "infinite": lambda u: float("inf") if u > 0.01 else 0.0,
}


@jax.jit
def go_on(state, c):
    return _next_trial(Setting(2.0, 0.0, True, True), state, c)


@pytest.mark.parametrize("c", RESIDUALS.values(), ids=RESIDUALS)
def test_search_tries_what_the_numpy_search_tries(c):
    """Trial by trial; a jump is answered by the side above once more."""
    tried = []

    def recorded(u):
        tried.append(u)
        return c(u), u

    found = hasd._math.search.search(recorded, 1.0, WINDOW, target=AIM)
    state = initial_state(jnp.zeros(2), 1.0, raise_L=False)
    for at, u in enumerate(tried):
        assert float(state.rho) == pytest.approx(u, rel=1e-12), at
        last = at == len(tried) - 1
        if last and found.ending is hasd._math.search.Ending.FOUND:
            return
        state, failed = go_on(state, np.float64(c(u)))
        assert bool(failed) == (last and found.payload is None)
    assert bool(state.search.forced) == (found.ending is hasd._math.search.Ending.JUMP)
    if found.payload is not None:
        assert float(state.rho) == pytest.approx(found.u, rel=1e-12)


@pytest.mark.parametrize("p", [2.0, 2.5, 10.0, np.inf], ids=lambda p: f"p={p:g}")
def test_a_tree_has_the_norms_and_the_step_of_the_vector_of_its_entries(p):
    """Leaves of several shapes, entries from 1e-160 to 1e+160, zeros, nothing at all."""

    @jax.jit
    def ours(tree):
        N = norm(tree, dual(p))
        return norm(tree, p), N, steepest(tree, p, N)

    geometry, rng = Lp(p), np.random.default_rng(0)
    for scale, decades in ((1.0, 0.0), (1e-160, 3.0), (1e160, 3.0), (1.0, 160.0), (0.0, 0.0)):
        flat = scale * rng.standard_normal(9) * 10.0 ** rng.uniform(-decades, 0.0, 9)
        tree = {"a": flat[:4].reshape(2, 2), "b": [flat[4], flat[5:]], "c": np.empty((0, 3))}
        size, dual_norm, s = ours(tree)
        assert float(size) == pytest.approx(geometry.norm(flat), rel=1e-14)
        assert float(dual_norm) == pytest.approx(geometry.dual_norm(flat), rel=1e-14)
        whole = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(s)])
        np.testing.assert_allclose(whole, geometry.steepest(flat), rtol=1e-13)
