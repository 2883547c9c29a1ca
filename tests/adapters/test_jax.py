"""hasd.jax.HASD in optimistix: one compiled loop, pytrees, vmap, implicit derivatives, how runs end."""

import logging
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("optimistix")
pytest.importorskip("optax")

import equinox as eqx
import jax
import jax.numpy as jnp
import optimistix as optx
from jax.extend.core import subjaxprs

import hasd
from hasd._run.status import Status
from hasd.jax import HASD
from hasd.jax import hasd as transform

pytestmark = pytest.mark.usefixtures("double")

every_L = pytest.mark.parametrize("L", [30.0, None], ids=["declared", "found"])


def bowl(x, b):
    """Strongly convex, with the minimiser b["u"] (2, 2), b["w"] (3,), defined where w > b["w"] - b["edge"].

    b["plus"] is added to every value.
    """
    u, w = x["u"] - b["u"], x["w"] - b["w"]
    inside = jnp.where(jnp.min(w) > -b["edge"], 0.0, jnp.nan)
    return jnp.sum(jnp.cosh(u)) + 0.5 * jnp.sum(w**2) + 0.1 * jnp.sum(u) * w[0] + b["plus"] + inside


def target(plus=0.0, edge=np.inf):
    return {
        "u": np.arange(4.0).reshape(2, 2) / 4.0,
        "w": np.array([1.0, -1.0, 0.5]),
        "plus": np.asarray(plus),
        "edge": np.asarray(edge),
    }


def start(value=0.0):
    return {"u": np.full((2, 2), value), "w": np.full(3, value)}


def solve(L, x0, b):
    """One program for each way to treat L: all that differs between the tests below are numbers."""
    solver = L if isinstance(L, HASD) else HASD(L, rtol=1e-8)
    return optx.minimise(bowl, solver, x0, b, throw=False, max_steps=1000)


def apart(x, b):
    return max(float(np.abs(x[leaf] - b[leaf]).max()) for leaf in ("u", "w"))


def primitives(jaxpr, inside=()):
    """All primitives by name, those of inner programs too, each with the names it stands within."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        yield name, inside
        for inner in equation.params.values():
            for part in inner if isinstance(inner, tuple | list) else (inner,):
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    yield from primitives(part, (*inside, name))


def watched(x, b):
    jax.debug.callback(lambda _: None, x["w"])
    return bowl(x, b)


@pytest.mark.parametrize("over", [lambda f: f, jax.vmap], ids=["alone", "vmap"])
@every_L
def test_a_run_is_one_loop_without_callbacks(L, over):
    """Mutation: f with a callback of its own is found out."""

    def program(f):
        def run(x0, b):
            return optx.minimise(f, HASD(L), x0, b, throw=False).value

        batch = jax.tree.map(lambda leaf: np.stack([leaf, leaf]) if over is jax.vmap else leaf, (start(), target()))
        return list(primitives(jax.make_jaxpr(over(run))(*batch).jaxpr))

    found = program(bowl)
    loops = [inside for name, inside in found if name in ("while", "scan")]
    assert len(loops) == 1 and not {"while", "scan", "cond"} & set(loops[0])
    assert ("cosh" in {name for name, inside in found if "while" in inside}) and len(found) > 100
    assert not [name for name, _ in found if "callback" in name]
    assert [name for name, inside in program(watched) if "callback" in name and "while" in inside]


def test_primitives_are_all_there():
    """The walk above sees no less than JAX's own."""

    def count(jaxpr):
        return len(jaxpr.eqns) + sum(count(inner) for inner in subjaxprs(jaxpr))

    jaxpr = jax.make_jaxpr(lambda x0, b: optx.minimise(bowl, HASD(), x0, b, throw=False).value)(start(), target()).jaxpr
    assert len(list(primitives(jaxpr))) >= count(jaxpr) > 100


def compiled(caplog, function, *arguments):
    """What JAX says it compiles."""
    caplog.clear()
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        result = function(*arguments)
    return result, [record.getMessage() for record in caplog.records if "Compiling" in record.getMessage()]


@every_L
def test_other_numbers_are_no_other_program(L, caplog):
    """Mutation: L kept as a Python number compiles again."""
    assert compiled(caplog, jax.jit(lambda x: x + len(caplog.text)), 1.0)[1]  # a program not seen before is noticed
    solve(L, start(), target())
    constants = [None] if L is None else [2.0 * L, 40, np.float32(L), np.array(L), jnp.asarray(L, jnp.float32)]
    for at, constant in enumerate(constants):
        solver = HASD(constant, np.float64(np.inf), mu=0.01 * at, rtol=1e-8)
        solution, programs = compiled(caplog, solve, solver, start(0.1 * at + 0.1), target(plus=1.0))
        assert programs == []
        assert apart(solution.value, target()) < 1e-6


@every_L
@pytest.mark.parametrize(("bits", "most"), [(64, 1e-7), (32, 1e-3)], ids=["float64", "float32"])
def test_pytrees_are_minimised_in_their_own_precision(L, bits, most):
    """In single precision the tolerance is out of reach: the run ends where its digits do, and says so."""
    b = target()
    with jax.enable_x64(bits == 64):
        solution = solve(L, start(), b)
        assert solution.result == optx.RESULTS.successful and int(solution.stats["status"]) == (0 if bits == 64 else 2)
    assert 0 < int(solution.stats["iterations"]) <= int(solution.stats["num_steps"])
    assert apart(solution.value, b) < most
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(solution.state)} == {f"float{bits}", "int32", "bool"}


@every_L
def test_vmap_is_a_run_each(L):
    """Every lane ends where it would alone, after as many evaluations (but for rounding, where L is found)."""
    rng, lanes = np.random.default_rng(0), 4
    x0 = {"u": rng.standard_normal((lanes, 2, 2)), "w": rng.standard_normal((lanes, 3))}
    b = {"u": rng.standard_normal((lanes, 2, 2)), "w": rng.standard_normal((lanes, 3))}
    b |= {"plus": np.zeros(lanes), "edge": np.full(lanes, np.inf)}
    x0["u"][0], x0["w"][0], b["plus"][1] = b["u"][0], b["w"][0], np.nan  # one lane is there, one has no start
    constants = None if L is None else L * np.linspace(1.0, 2.0, lanes)
    together = jax.jit(jax.vmap(solve, in_axes=(None if L is None else 0, 0, 0)))(constants, x0, b)
    assert len(set(together.stats["num_steps"].tolist())) >= 3
    assert together.stats["status"].tolist() == [0, Status.NONFINITE_START.code, 0, 0]
    for lane in range(lanes):
        mine = jax.tree.map(lambda leaf, lane=lane: leaf[lane], (x0, b))
        alone = solve(None if L is None else constants[lane], *mine)
        assert apart(alone.value, {leaf: together.value[leaf][lane] for leaf in ("u", "w")}) < (
            1e-6 if L is None else 1e-12
        )
        for count in ("num_steps", "iterations"):
            rough = 0.2 if L is None else 0.0
            assert int(together.stats[count][lane]) == pytest.approx(int(alone.stats[count]), rel=rough), count


@pytest.mark.parametrize(("L", "jacobian"), [(30.0, jax.jacrev), (None, jax.jacfwd)], ids=["declared", "found"])
def test_solutions_are_differentiated_implicitly(L, jacobian):
    """x* = H^-1 c: dx*/dc = H^-1 and dx*/dt = -H^-1 x* for H + t I; L may depend on what is differentiated by."""
    H = np.diag([1.0, 2.0, 4.0]) + 0.5

    def f(x, args):
        c, t = args
        return 0.5 * x @ (H + t * np.eye(3)) @ x - c @ x

    def solution(c, t):
        solver = HASD(None if L is None else L + t + 0.0 * c[0], rtol=1e-11)
        return optx.minimise(f, solver, jnp.zeros(3), (c, t), max_steps=3000, throw=False).value

    c, inverse = np.array([1.0, -2.0, 3.0]), np.linalg.inv(H)
    by_c, by_t = jax.jit(jacobian(solution, argnums=(0, 1)))(c, 0.0)
    np.testing.assert_allclose(by_c, inverse, atol=1e-12)
    np.testing.assert_allclose(by_t, -inverse @ (inverse @ c), atol=1e-9)


def test_aux_and_certificate_belong_to_the_solution_and_failures_are_raised():
    def f(x, b):
        return jnp.sum(jnp.cosh(x - b)), {"seen": x}

    b = np.array([1.0, 2.0])
    solution = optx.minimise(f, HASD(8.0), np.zeros(2), b, has_aux=True)
    np.testing.assert_array_equal(solution.aux["seen"], solution.value)
    stats = {name: float(stat) for name, stat in solution.stats.items()}
    assert np.sum(np.abs(np.sinh(solution.value - b))) == pytest.approx(stats["grad_norm"])
    assert stats["grad_norm"] <= 1e-6 * float(solution.state.grad_norm0)
    assert 0.0 <= stats["fun"] - 2.0 <= stats["fun"] - stats["U"] + b @ b / (2.0 * stats["weight"])
    with pytest.raises(Exception, match="Nonfinite"):
        optx.minimise(f, HASD(8.0), np.zeros(2), np.nan * b, has_aux=True)


ENDINGS = {
    "there already": ({"x0": target()}, Status.CONVERGED, optx.RESULTS.successful),
    "NaN at the start": ({"plus": np.nan}, Status.NONFINITE_START, optx.RESULTS.nonfinite),
    "inf at the start": ({"plus": np.inf}, Status.NONFINITE_START, optx.RESULTS.nonfinite),
    "a start of NaN": ({"x0": start(np.nan)}, Status.NONFINITE_START, optx.RESULTS.nonfinite),
    "overflow at the start": ({"x0": start(1e4)}, Status.NONFINITE_START, optx.RESULTS.nonfinite),
    "unbounded": ({"plus": -np.inf}, Status.UNBOUNDED, optx.RESULTS.nonlinear_divergence),
    "no digits left": ({"plus": 1e10, "shift": 1e12}, Status.PRECISION, optx.RESULTS.successful),
}


@pytest.mark.parametrize(("case", "status", "result"), ENDINGS.values(), ids=ENDINGS)
@every_L
def test_status_and_result_tell_how_a_run_ended(L, case, status, result):
    """Told by status and result, after few evaluations."""
    b, shift = target(case.get("plus", 0.0)), case.get("shift", 0.0)
    b |= {leaf: b[leaf] + shift for leaf in ("u", "w")}
    x0 = {leaf: case.get("x0", start(1.0 + shift))[leaf] for leaf in ("u", "w")}
    solution = solve(L, x0, b)
    assert int(solution.stats["status"]) == status.code
    assert solution.result == result
    if status is Status.PRECISION:
        assert apart(solution.value, b) < 0.1 and int(solution.stats["num_steps"]) < 1000
    else:
        jax.tree.map(np.testing.assert_array_equal, solution.value, x0)
        assert int(solution.stats["iterations"]) == 0 and int(solution.stats["num_steps"]) <= 1


def test_the_limit_is_one_of_evaluations():
    """An L much too large: 1000 evaluations are not enough."""
    solution = solve(1e7, start(), target())
    assert solution.result == optx.RESULTS.nonlinear_max_steps_reached
    assert int(solution.stats["status"]) == Status.MAXFUN.code
    assert int(solution.stats["num_steps"]) == int(solution.state.evaluations) == 1000
    assert bowl(solution.value, target()) < bowl(start(), target())


@every_L
def test_a_run_that_is_cut_short_returns_the_lowest_of_its_points(L):
    """x_t, or a point that was evaluated; with f there, and a bound of its own.  Mutation: x_t always."""
    solver, b, kinds = HASD(L, 2.0, rtol=1e-8, restart=False), target(), set()
    R2 = sum(float(np.sum((b[leaf] - start()[leaf]) ** 2)) for leaf in ("u", "w"))

    def fn(x, args):
        return bowl(x, args), None

    @eqx.filter_jit
    def step_and_end(state):
        state = solver.step(fn, state.x, b, {}, state, frozenset())[1]
        end = solver.postprocess(fn, state.x, None, b, {}, state, frozenset(), optx.RESULTS.successful)
        return state, end[0], end[2]

    state = solver.init(fn, start(), b, {}, None, None, frozenset())
    for _ in range(25):
        state, value, stats = step_and_end(state)
        fun, x, best = float(bowl(value, b)), float(bowl(state.x, b)), float(state.best.f)
        assert fun == pytest.approx(float(stats["fun"]), rel=1e-14) == pytest.approx(min(x, best), rel=1e-14)
        if int(stats["iterations"]) > 0:
            assert fun - 4.0 <= fun - float(stats["U"]) + R2 / (2.0 * float(stats["weight"])) + 1e-12
        kinds |= {"x"} if x < best else {"y"}
    assert kinds == {"x", "y"}


@pytest.mark.parametrize("L", [-1.0, 0.0, np.nan, np.inf])
def test_a_traced_L_that_is_no_constant_is_told(L):
    """Where JAX traces L nothing can be refused beforehand."""
    solution = solve(eqx.tree_at(lambda solver: solver.L, HASD(1.0, rtol=1e-8), np.asarray(L)), start(), target())
    assert int(solution.stats["status"]) == Status.NONFINITE.code
    assert solution.result == optx.RESULTS.nonfinite


@every_L
def test_points_outside_the_domain_are_stepped_back_from(L):
    """An eager first step, or momentum, leaves the domain; where no L is small enough at its edge, the run says so."""
    free, confined, lost = (solve(L, start(1.5), target(edge=edge)) for edge in (np.inf, 0.2, 0.01))
    assert int(confined.stats["status"]) == 0 and apart(confined.value, target()) < 1e-6
    beyond = [int(run.stats["num_steps"]) - int(run.stats["iterations"]) for run in (confined, free)]
    assert beyond[0] > beyond[1] >= 1
    assert int(lost.stats["status"]) == Status.NONFINITE.code and lost.result == optx.RESULTS.nonfinite


WRONG = (
    ({"p": 1.5}, ValueError, "p must satisfy 2 <= p <= inf, got 1.5"),
    ({"p": float("nan")}, ValueError, "p must satisfy"),
    ({"p": "inf"}, TypeError, "p must be a number, got 'inf'"),
    ({"p": hasd.Lp(2.0)}, TypeError, "p must be a number"),
    ({"L": -1.0}, ValueError, "L must be positive and finite, got -1.0"),
    ({"L": np.inf}, ValueError, "L must be positive"),
    ({"L": np.array(0.0)}, ValueError, "L must be positive"),
    ({"L": True}, TypeError, "L must be a number, got True"),
    ({"L": "10"}, TypeError, "L must be a number, got '10'"),
    ({"L": np.ones(2)}, TypeError, r"L must be one real number, got an array of shape \(2,\)"),
    ({"L": np.array(True)}, TypeError, "L must be one real number"),
    ({"mu": -1.0}, ValueError, "mu must be at least 0"),
    ({"mu": None}, TypeError, "mu must be a number"),
)


@pytest.mark.parametrize(("wrong", "error", "words"), WRONG, ids=[str(wrong) for wrong, _, _ in WRONG])
@pytest.mark.parametrize("make", [HASD, transform], ids=["optimistix", "optax"])
def test_wrong_parameters_are_refused(make, wrong, error, words):
    with pytest.raises(error, match=words):
        make(**wrong)


@pytest.mark.parametrize("wrong", [{"rtol": -1e-6}, {"atol": float("nan")}], ids=str)
def test_wrong_tolerances_are_refused(wrong):
    with pytest.raises(ValueError, match="at least 0"):
        HASD(**wrong)


def test_an_exponent_cannot_be_traced():
    with pytest.raises(TypeError, match="known when the program is compiled"):
        jax.eval_shape(lambda p: HASD(1.0, p), 2.0)


ALONE = """
import sys, hasd
assert not {"jax", "equinox", "optimistix", "optax"} & set(sys.modules)
import jax
before = dict(jax.config.values)
import hasd.jax
hasd.jax.HASD(), hasd.jax.hasd()
assert dict(jax.config.values) == before
"""


def run(code):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_changes_no_setting():
    """hasd itself needs none of it."""
    run(ALONE)


BY_OPTIMISTIX = """
import jax.numpy as jnp, optimistix
found = optimistix.minimise(lambda x, b: jnp.sum((x - b) ** 2), hasd.jax.HASD(2.0, p=2), jnp.zeros(2), jnp.ones(2))
assert jnp.allclose(found.value, 1.0)
"""
BY_OPTAX = """
import jax.numpy as jnp, optax
optimiser = hasd.jax.hasd(2.0, p=2)
x = jnp.zeros(2)
state = optimiser.init(x)
for _ in range(2):
    updates, state = optimiser.update(2.0 * (x - 1.0), state, x)
    x = optax.apply_updates(x, updates)
assert jnp.allclose(hasd.jax.eval_params(state), 1.0)
"""


@pytest.mark.parametrize(
    ("missing", "used", "needs", "works"),
    [
        ("jax", "hasd.jax", "JAX", ""),
        ("optimistix", "hasd.jax.HASD", "optimistix", BY_OPTAX),
        ("equinox", "hasd.jax.HASD", "optimistix", BY_OPTAX),
        ("optax", "hasd.jax.hasd", "optax", BY_OPTIMISTIX),
    ],
)
def test_a_missing_library_is_named_by_what_needs_it_and_by_nothing_else(missing, used, needs, works):
    run(f"""
import sys, hasd
sys.modules[{missing!r}] = None
try:
    {used}()
except ImportError as error:
    assert str(error) == '{used} needs {needs}: pip install "hasd[jax]"', error
else:
    raise AssertionError("{missing} is not missed")
{works}
""")
