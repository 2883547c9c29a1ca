"""hasd-cg: conjugate gradients step by step, with the certified sequence at every iterate."""

import itertools
import math

import numpy as np
import pytest

import hasd
from hasd import objectives, theory
from hasd.methods import hasd_cg
from hasd.objectives import _images
from reference.pseudocode import psi_minimum
from support import allowance

RNG = np.random.default_rng(21)
H = np.diag(np.geomspace(1.0, 1e-3, 30))
H = (Q := np.linalg.qr(RNG.standard_normal((30, 30)))[0]) @ H @ Q.T
A = RNG.standard_normal((60, 30)) * np.geomspace(1.0, 0.2, 30)

QUADRATICS = {
    "quadratic": lambda: objectives.Quadratic(0.5 * (H + H.T), RNG_C),
    "squares": lambda: objectives.LeastSquares(A, RNG_B),
    "ridge": lambda: objectives.LeastSquares(A, RNG_B, ridge=1e-2),
}
RNG_C, RNG_B = RNG.standard_normal(30), RNG.standard_normal(60)
every_quadratic = pytest.mark.parametrize("name", QUADRATICS)


def hessian(f):
    """The constant curvature, and the minimiser."""
    G = f.H if hasattr(f, "H") else f.A.T @ f.A + f.ridge * np.eye(30)
    return G, np.linalg.solve(G, -f.value_and_grad(np.zeros(30))[1])


def states(f, T, **options):
    options.setdefault("mu", 0.0)
    return list(itertools.islice(hasd.iterate(f, np.ones(30), method="hasd-cg", **options), T + 1))


@every_quadratic
def test_hasd_cg_keeps_its_invariant_and_lower_bound_at_every_iterate(name):
    """A_t f(x_t) <= psi*_t with psi from the cuts one by one, f never rises, and the lower bound is below f*."""
    f = QUADRATICS[name]()
    _, x_star = hessian(f)
    f_star, R = f(x_star), float(np.linalg.norm(x_star - 1.0))
    cuts, weight, value = [], 0.0, math.inf
    for before, state in itertools.pairwise(states(f, 25)):
        cuts.append((state.weight - weight, before.x, *f.value_and_grad(before.x)))
        weight = state.weight
        _, psi = psi_minimum(cuts, np.ones(30))
        assert state.psi == pytest.approx(psi, rel=1e-8, abs=1e-8)
        assert weight * f(state.x) <= psi + allowance(weight * f(state.x), psi) + 1e-9 * R**2
        assert f(state.x) <= value + allowance(value if math.isfinite(value) else 0.0)
        assert state.estimate.certificate(state.origin).lower(R) <= f_star + allowance(f_star)
        value = f(state.x)


@every_quadratic
def test_hasd_cg_keeps_its_rate_and_the_orthogonality_that_proves_it(name):
    """<g_t, v_t - x_t> = 0, and f(x_T) - f* <= 2 L_2 R^2/T^2."""
    f = QUADRATICS[name]()
    G, x_star = hessian(f)
    L, R = float(np.linalg.eigvalsh(G)[-1]), float(np.linalg.norm(x_star - 1.0))
    for state in states(f, 20)[1:]:
        apart = state.estimate.v - state.x
        size = np.linalg.norm(apart) + np.linalg.norm(state.x)  # v_1 = x_1 up to rounding
        if state.iteration <= 10:  # in floating point it fades
            assert abs(state.at.g @ apart) <= 1e-6 * np.linalg.norm(state.at.g) * size
        assert f(state.x) - f(x_star) <= theory.tight_bound(L, R, 1.0, state.iteration) + allowance(f(x_star))
        assert f(state.x) - f(x_star) <= 2.0 * L * R**2 / state.iteration**2 + allowance(f(x_star))


def textbook(G, g, x, T, momentum=True):
    """Hestenes & Stiefel."""
    d, xs = -g, [x]
    for _ in range(T):
        t = (g @ g) / (d @ G @ d)
        x, new = x + t * d, g + t * (G @ d)
        d = -new + ((new @ new) / (g @ g) if momentum else 0.0) * d
        g = new
        xs.append(x)
    return xs


@every_quadratic
def test_hasd_cg_takes_the_steps_of_textbook_conjugate_gradients(name):
    """Until conjugacy fades: from then on rounding, different in both, grows tenfold at every step."""
    f = QUADRATICS[name]()
    G, _ = hessian(f)
    g = f.value_and_grad(np.ones(30))[1]
    for state, x in zip(states(f, 11), textbook(G, g, np.ones(30), 11), strict=True):
        np.testing.assert_allclose(state.x, x, rtol=1e-7, atol=1e-7)
    wrong = textbook(G, g, np.ones(30), 11, momentum=False)  # the mutation: no conjugacy
    assert np.linalg.norm(wrong[-1] - x) > 1e-3


@pytest.mark.parametrize(("name", "products"), [("quadratic", 1), ("squares", 2), ("ridge", 2)])
def test_hasd_cg_needs_one_product_with_H_or_two_with_A_an_iteration(name, products):
    res = hasd.minimize(QUADRATICS[name](), np.ones(30), method="hasd-cg", tol=0, maxiter=20)
    made = np.diff(res.trace["nprod"])[1:]
    assert np.all((made == products) | (made == 2 * products))  # twice where the gradient was compared with x's own
    assert np.count_nonzero(made > products) <= 3


def test_a_start_that_is_the_optimum_already_ends_within_1000_iterations():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 4))
    f = objectives.LeastSquares(A, A @ (1e5 * rng.standard_normal(4)) + rng.uniform(-1, 1, 80))
    y = hasd.minimize(f, np.zeros(4), method="hasd-cg", tol=1e-8).x
    res = hasd.minimize(f, y, method="hasd-cg", tol=1e-14, maxiter=10000)
    assert res.status in (0, 2) and res.nit < 1000


@every_quadratic
def test_hasd_cg_converges_and_resumes_bit_for_bit(name):
    f = QUADRATICS[name]()
    _, x_star = hessian(f)
    res = hasd.minimize(f, np.ones(30), method="hasd-cg", tol=1e-10)
    assert res.success
    np.testing.assert_allclose(res.x, x_star, rtol=1e-5, atol=1e-5)
    half = hasd.minimize(f, np.ones(30), method="hasd-cg", tol=0, maxiter=9)
    rest = hasd.minimize(f, np.ones(30), method="hasd-cg", tol=0, maxiter=20, resume=half.state)
    whole = hasd.minimize(f, np.ones(30), method="hasd-cg", tol=0, maxiter=20)
    np.testing.assert_array_equal(rest.state.x, whole.state.x)


def test_an_image_that_drifts_is_replaced(monkeypatch):
    """A wrong gradient is seen at the comparison and made anew; with right ones nothing is replaced."""
    monkeypatch.setattr(hasd_cg, "REFRESH", 5)
    f = QUADRATICS["squares"]()
    assert all(state.direction is not None for state in states(f, 15)[1:])
    multiply = _images.LocalImages.multiply
    monkeypatch.setattr(_images.LocalImages, "multiply", lambda self, q: multiply(self, q) * (1 + 0.1))
    drifting = states(f, 15)
    anew = [state for state in drifting if state.iteration and state.direction is None]
    assert anew and anew[0].fun == pytest.approx(f(anew[0].x), rel=1e-12)


def test_the_gradient_does_not_fall_below_what_x_has():
    """Left to itself the recursion tends to 0 whatever x is."""
    f = objectives.Quadratic(np.diag(np.geomspace(1.0, 1e-2, 200)), np.ones(200))
    run = list(itertools.islice(hasd.iterate(f, np.zeros(200), method="hasd-cg"), 400))
    for state in run:
        g = f.value_and_grad(state.x)[1]
        assert np.linalg.norm(g) <= 1.2 * state.at.norm2 + 1e-11


def test_quadratics_without_a_minimum_are_called_unbounded():
    """A slope without curvature, and negative curvature."""
    for f in (objectives.Quadratic(np.zeros((3, 3)), np.ones(3)), objectives.Quadratic(np.diag([1.0, -2.0, 1.0]))):
        res = hasd.minimize(f, np.array([1.0, 1.0, 0.0]), method="hasd-cg")
        assert res.status == 13 and not res.success


def test_hasd_cg_refuses_what_is_not_quadratic():
    with pytest.raises(ValueError, match="Quadratic and LeastSquares objectives"):
        hasd.minimize(objectives.LogSumExp(np.eye(3)), np.ones(3), method="hasd-cg")
    with pytest.raises(TypeError, match="hasd-qn takes any function"):
        hasd.minimize(lambda x: x @ x, np.ones(3), method="hasd-cg")
