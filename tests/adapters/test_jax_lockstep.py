"""hasd.jax takes the steps of the NumPy core: every iterate, to rounding, on function values of one program.

A declared L is held to the core over whole runs.  With L found both amplify rounding: L is read off from a difference
of values and inner products, so the digits that these leave are all it has.  There every single iteration, from the
core's own state, is held to that many digits, and whole runs for as long as it takes rounding to grow.
"""

from functools import cache
from itertools import islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optimistix")

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx

import hasd
from hasd._math.geometry import Lp
from hasd._math.pair import WeightPlan
from hasd._math.pair import largest_damping as core_damping
from hasd._run.status import Status
from hasd.jax import HASD
from hasd.jax.state import RUNNING, EstimateTree, EvaluationTree, Iterate, Setting
from hasd.jax.step import _next_trial, largest_damping
from hasd.jax.trees import norm, steepest
from hasd.methods.hasd import _is_stalled

pytestmark = pytest.mark.usefixtures("double")

EPS = 2.0**-52
MU = 0.02
SIZE = 8

every_p = pytest.mark.parametrize("p", [2.0, 3.0, np.inf], ids=lambda p: f"p={p:g}")
with_and_without_mu = pytest.mark.parametrize("mu", [0.0, MU], ids=["mu=0", "mu"])


@cache
def features():
    return np.random.default_rng(0).standard_normal((40, SIZE)) * np.geomspace(3.0, 0.3, SIZE)


def logistic(x):
    """Logistic regression with a ridge of MU."""
    return jnp.sum(jnp.logaddexp(0.0, features().astype(x.dtype) @ x)) + 0.5 * MU * jnp.vdot(x, x)


def barrier(x):
    """Defined in a box that the first steps leave, with its minimum near a corner."""
    inside = jnp.max(jnp.abs(x)) < 1.5
    return jnp.where(inside, -jnp.sum(jnp.log(2.25 - x**2)) - 8.0 * jnp.sum(x) + jnp.cosh(x[0] - x[1]), jnp.nan)


def point(x):
    """Defined at the start only."""
    return jnp.where(jnp.all(x == 1.0), jnp.sum(x**2), jnp.nan)


def smoothness(p):
    """L_p of `logistic`: rows of A in the dual norm; ||x||_2^2 <= d^{1-2/p} ||x||_p^2 for the ridge."""
    q = Lp(p).dual
    rows = np.sum(np.abs(features()) ** q, axis=1) ** (2.0 / q)
    return 0.25 * rows.sum() + MU * SIZE ** (1.0 - 2.0 / p)


def counted(fun):
    """What the core is given: the values of the same program; and the list of those."""
    calls, program = [], jax.jit(jax.value_and_grad(fun))

    def both(x):
        f, g = program(x)
        calls.append(float(f))
        return float(f), np.asarray(g)

    return both, calls


def core(p, L, mu, count, fun=logistic, dtype="float64", **options):
    """The NumPy core's states t = 0, 1, ..., each with the values it had seen by then."""
    both, calls = counted(fun)
    run = hasd.iterate(both, np.ones(SIZE, dtype), jac=True, method="hasd", p=p, L=L, mu=mu, **options)
    return [(state, list(calls)) for state in islice(run, count + 1)]


@eqx.filter_jit
def begin(solver, dtype="float64"):
    return solver.init(None, jnp.ones(SIZE, dtype), None, {}, None, None, None)


@eqx.filter_jit
def iteration(solver, state, fun=logistic):
    """Evaluations until the next iterate; the first state is reached after one."""

    def step(s):
        return solver.step(lambda x, _: (fun(x), None), s.x, None, {}, s, None)[1]

    before = state.iteration
    return jax.lax.while_loop(lambda s: (s.iteration == before) & (s.status == RUNNING), step, state)


def off(ours, theirs):
    """The relative difference, in the largest entry."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-300)


def furthest(state, one):
    """The largest relative difference between a state of ours and one of the core's."""
    estimate, plan = state.estimate, state.made.plan
    pairs = (
        (state.x, one.x),
        (state.U, one.U),
        (estimate.center + estimate.away, one.estimate.v),
        (estimate.weight, one.weight),
        (plan.weight, one.plan.weight),
        (plan.c, one.plan.c),
        (state.L, one.L),
        (state.grad_norm, one.grad_norm),
        (state.grad_norm0, one.grad_norm0),
        (state.at.x, one.at.x),
        (state.at.g, one.at.g),
        (state.at.gain, one.gain),
        (state.best.x, one.best.x),
    )
    return max(off(ours, theirs) for ours, theirs in pairs)


def same_standing(state, one):
    """Whether all that is counted or decided is equal."""
    ours = (state.iteration, state.idle, state.began, state.has_risen, state.made.plan.coupled)
    return [int(each) for each in ours] == [one.iteration, one.idle, one.began, one.has_risen, one.plan.coupled]


@pytest.mark.parametrize("part", [1.0, 1.0 / 300.0], ids=["true L", "L too small"])
@with_and_without_mu
@every_p
def test_declared_L_is_the_numpy_core_over_the_whole_run(p, mu, part):
    """With the same number of evaluations, also where L is raised.

    Mutations: 1.2 for CORRECT in the JAX core; a remade step whose point counts as coupled.
    """
    L = part * smoothness(p)
    solver = HASD(L, p, mu=mu)
    state = begin(solver)
    reference = core(p, L, mu, 70)[1:]
    for one, seen in reference:
        state = iteration(solver, state)
        assert int(state.evaluations) == len(seen) and same_standing(state, one)
        assert furthest(state, one) < 1e-11
        assert off(state.L_next, one.L_next) < 1e-11
    assert len(reference) == 70
    assert (float(state.L) > 2.0 * L) == (part < 1.0)


def resumed(solver, state, one):
    """Our state with all that matters from the core's, and the trial that follows from it."""
    number = np.float64
    p = solver.p

    def evaluation(e):
        return EvaluationTree(e.x, number(e.f), e.g, number(e.norm2), number(Lp(p).dual_norm(e.g)))

    old = one.estimate
    estimate = EstimateTree(old.center, old.away, number(old.weight))
    plan = WeightPlan(number(one.plan.weight), number(one.plan.c), np.bool_(one.plan.coupled))
    stalled = solver.restart and _is_stalled(SimpleNamespace(geometry=Lp(p)), one)
    given = {
        "at": evaluation(one.at),
        "best": evaluation(one.best),
        "start": evaluation(one.start),
        "made": Iterate(one.x, number(one.excess), number(one.slack), estimate, plan),
        "evaluations": np.int32(1),
        **{name: np.int32(getattr(one, name)) for name in ("iteration", "idle", "began")},
        **{name: number(getattr(one, name)) for name in ("grad_norm0", "L", "L_next", "fell", "least")},
        "has_risen": np.bool_(one.has_risen),
        "L_tried": number(one.L_next),
        "anew": np.bool_(stalled),
    }
    return go_on(solver, state._replace(**given))


@eqx.filter_jit
def go_on(solver, state):
    return _next_trial(Setting(Lp(solver.p), solver.mu, solver.L is not None, solver.raise_L, solver.restart), state)


def digits(after):
    """The relative error of an L that the last two gradients of the core's state ask for."""
    e, there = after.cut, after.at
    D = e.f - there.f - there.g @ (e.x - there.x)
    return EPS * max(abs(e.f), abs(there.f)) / max(abs(D), 1e-300)


@pytest.mark.parametrize(
    ("p", "restart"), [(2.0, True), (3.0, True), (np.inf, True), (np.inf, False)], ids=lambda case: f"{case!s}"
)
def test_found_L_is_the_numpy_core_iterate_by_iterate(p, restart):
    """Mutations: 0.8 for LOWER; a remade step whose point counts as coupled; no restart."""
    kinds = set()
    for mu in (0.0, MU):
        solver = HASD(None, p, mu=mu, restart=restart)
        start = free = begin(solver)
        reference = [one for one, _ in core(p, None, mu, 60, restart=restart)]
        for one, after in pairwise(reference):
            ours = iteration(solver, resumed(solver, start, one) if one.iteration else start)
            assert int(ours.status) == RUNNING and same_standing(ours, after)
            allowed = 1e-12 + 64.0 * digits(after)
            assert furthest(ours, after) < allowed
            assert off(ours.L_next, after.L_next) < allowed
            if after.iteration <= 12:
                free = iteration(solver, free)
                assert furthest(free, after) < 1e-9
            kinds |= {"restarted"} if after.began > 0 else set()
            kinds |= {"raised"} if not after.plan.coupled else set()
            kinds |= {"lowered"} if after.L_next < after.L else set()
        assert len(reference) == 61
    assert kinds >= {"raised", "lowered", *(["restarted"] if restart else [])}


@pytest.mark.parametrize("L", [None, 0.05], ids=["found", "declared"])
@every_p
def test_points_outside_the_domain_are_left_as_the_core_leaves_them(p, L):
    """Every iterate of twelve, with as many evaluations, and new epochs where three points were outside.

    Mutation: L kept at what non-finite points raised it to.
    """
    solver = HASD(L, p)
    state = begin(solver)
    reference = core(p, L, 0.0, 12, fun=barrier)[1:]
    for one, seen in reference:
        state = iteration(solver, state, barrier)
        assert int(state.evaluations) == len(seen) and same_standing(state, one)
        assert furthest(state, one) < 1e-8
    last, seen = reference[-1]
    assert last.iteration == 12 and last.began > 0 and np.sum(np.isnan(seen)) >= 3


@pytest.mark.parametrize("L", [None, 500.0], ids=["found", "declared"])
@every_p
def test_single_precision_follows_the_core_in_single_precision(p, L):
    """The core's scalars have more digits: what is kept for ten iterations is all that can be asked."""
    solver = HASD(L, p)
    state = begin(solver, "float32")
    for one, seen in core(p, L, 0.0, 10, dtype="float32")[1:]:
        state = iteration(solver, state)
        assert one.x.dtype == state.x.dtype == np.float32
        assert int(state.evaluations) == len(seen) and same_standing(state, one)
        assert off(state.x, one.x) < 1e-3 and off(state.estimate.weight, one.weight) < 1e-3


ENDINGS = {
    "converged": (logistic, smoothness(2.0), 2.0, 1e-4, Status.CONVERGED),
    "converged, L found": (logistic, None, np.inf, 1e-4, Status.CONVERGED),
    "converged, L too small": (logistic, 0.1, 3.0, 1e-4, Status.CONVERGED),
    "no finite neighbour": (point, 1.0, 2.0, 1e-4, Status.NONFINITE),
    "no finite neighbour, L found": (point, None, np.inf, 1e-4, Status.NONFINITE),
    "machine precision": (logistic, smoothness(2.0), 2.0, 0.0, Status.PRECISION),
}


@pytest.mark.parametrize(("fun", "L", "p", "tol", "status"), ENDINGS.values(), ids=ENDINGS)
def test_runs_end_as_the_cores_do(fun, L, p, tol, status):
    """With the same status; a declared L after the same number of iterations and evaluations, but for rounding."""
    both, _ = counted(fun)
    limit = 40_000
    theirs = hasd.minimize(both, np.ones(SIZE), jac=True, method="hasd", p=p, L=L, tol=tol, gtol=1e-300, maxiter=limit)
    ours = optx.minimise(lambda x, _: fun(x), HASD(L, p, rtol=tol), jnp.ones(SIZE), throw=False, max_steps=2 * limit)
    assert theirs.status == int(ours.stats["status"]) == status.code
    exactly = L is not None and status is not Status.PRECISION
    for mine, other in (("iterations", theirs.nit), ("num_steps", theirs.nfev)):
        assert int(ours.stats[mine]) == pytest.approx(other, rel=0.0 if exactly else 0.2)
    if status is Status.CONVERGED:
        np.testing.assert_allclose(ours.value, theirs.x, rtol=0, atol=1e-10 if exactly else 1e-2)
        assert float(ours.stats["fun"]) == pytest.approx(theirs.fun, rel=1e-12 if exactly else 1e-4)


def test_the_damping_without_branches_is_the_cores():
    """Also where the parabola has no root, where its root is below 0, and where something is unknown."""
    numbers = [0.0, 1e-200, 0.3, 1.0, 7.0, 1e150]
    cases = [
        (q, slack, length)
        for q in [*numbers, *(-n for n in numbers), np.nan]
        for slack in [*numbers, *(-n for n in numbers), np.nan]
        for length in [0.0, 1e-100, 0.5, 1.0, 30.0, 1e100]
    ]
    ours = largest_damping(*map(jnp.asarray, np.array(cases).T))
    for case, mine in zip(cases, ours, strict=True):
        assert float(mine) == pytest.approx(core_damping(*case), rel=1e-14), case


@pytest.mark.parametrize("p", [2.0, 2.5, 10.0, np.inf], ids=lambda p: f"p={p:g}")
def test_a_tree_has_the_norms_and_the_step_of_the_vector_of_its_entries(p):
    """Leaves of several shapes, entries from 1e-160 to 1e+160, zeros, nothing at all."""

    @jax.jit
    def ours(tree):
        N = norm(tree, Lp(p).dual)
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
