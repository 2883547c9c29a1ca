"""Norms beyond l_p: what the guarantees need of a norm, and what breaks where it is missing."""

import numpy as np
import pytest

import hasd
from hasd import Blocks, Geometry, Lp, Schatten, theory
from hasd._math.estimate import Estimate
from hasd._math.pair import plan_weight
from norms import BEYOND_LP, LP, every_geometry, every_norm_beyond_lp, rows_and_columns
from support import Known, allowance, diagonal, log_sum_exp, quadratic, run

ANY_NORM = ("hasd", "hasd-paper", "steepest-descent", "linear-coupling", "estimate-sequence")
"""The methods whose steps are made in the norm given."""


def pairs(d, count=300):
    """Gradients g and h of all sizes beside each other, some of them of rank one or with a single entry."""
    rng = np.random.default_rng(0)
    for k in range(count):
        g, h = rng.standard_normal((2, d)) * np.exp(rng.uniform(-3, 3, (2, 1)))
        if k % 3 == 1:
            g, h = (np.outer(*(rng.standard_normal(n) for n in rows_and_columns(d))).ravel() for _ in range(2))
        if k % 3 == 2:
            g, h = np.eye(d)[rng.integers(d)] * g, np.eye(d)[rng.integers(d)] * h
        yield g, h


def strong_convexity_slack(norm, sigma, g, h):
    """1/2||g - h||_*^2 - 1/2||g||_*^2 + <h, s(g)> - sigma/2 ||h||_*^2, relative to its terms: property P's proof."""
    N, M, apart = map(norm.dual_norm, (g, h, g - h))
    return (0.5 * apart**2 - 0.5 * N**2 + h @ norm.steepest(g) - 0.5 * sigma * M**2) / (N + M) ** 2


@every_geometry
@pytest.mark.parametrize("d", [4, 12])
def test_half_the_squared_dual_norm_is_as_convex_as_the_geometry_says(norm, d):
    norm = norm(d)
    assert all(strong_convexity_slack(norm, norm.dual_convexity, g, h) >= -1e-13 for g, h in pairs(d))


SINGULAR, PARTS, NEIGHBOURS = (0, 5), (0, 6), (0, 1)
"""Two entries of twelve that are singular values of their own, that are in parts of their own, and any two."""


@every_geometry
def test_mutation_a_sigma_larger_by_a_tenth_is_too_large(norm):
    """From (1, 1) along (1, -1), in the units of the weights, the dual norm is least convex: sigma is exact."""
    norm = norm(12)
    places = list(SINGULAR if isinstance(norm, Schatten) else PARTS if isinstance(norm, Blocks) else NEIGHBOURS)
    weights = getattr(norm, "weights", None)
    w = np.ones(2) if weights is None else weights[places]
    g, h = np.zeros((2, 12))
    g[places], h[places] = w, 1e-3 * w * [1, -1]
    assert strong_convexity_slack(norm, norm.dual_convexity, g, h) >= -1e-13
    assert strong_convexity_slack(norm, 1.1 * norm.dual_convexity + 1e-3, g, h) < -1e-12


@every_geometry
def test_no_gain_is_below_the_least_one(norm):
    norm = norm(12)
    gains = [norm.dual_norm(g) / np.linalg.norm(g) for both in pairs(12) for g in both]
    assert norm.least_gain * (1 - 1e-12) <= min(gains) <= norm.least_gain * 1.01  # and it is reached


# What breaks ---------------------------------------------------------------------------------------------------------


class WrongSteepest(Schatten):
    """The spectral norm with the steepest map of the largest entry."""

    def steepest(self, g):
        return self.dual_norm(g) * np.sign(g)


class WrongSigma(Schatten):
    """The spectral norm that claims to be as convex as l_2."""

    dual_convexity = 1.0


def skewed() -> Known:
    """A quadratic on 4 x 4 matrices whose steep directions are of rank one and of full rank."""
    rng = np.random.default_rng(3)
    U, _ = np.linalg.qr(rng.standard_normal((16, 16)))
    H = U @ np.diag(np.geomspace(10.0, 0.01, 16)) @ U.T
    return Known("skewed", hasd.objectives.Quadratic(0.5 * (H + H.T)), rng.standard_normal(16), np.zeros(16), 0.0)


def worst_pair(known, norm, L):
    """By how much property P, with what the norm says of itself, fails at most along a run, at the iterates."""
    worst = -np.inf
    for state in run(known, "hasd", norm, 60, L=L, raise_L=False)[1:]:
        for y in (state.x, state.at.x, known.x0, known.x_star):
            f, g = known.f.value_and_grad(y)
            least = f + g @ (state.x - y) + norm.dual_convexity * norm.dual_norm(g) ** 2 / (2 * L)
            worst = max(worst, least - state.U - allowance(f, least, state.U))
    return worst


def steep_mean() -> Known:
    """A quadratic on 4 x 4 matrices, steep along the ones: a step by the signs of the gradient is too long."""
    ones = np.ones(16) / 4.0
    f = hasd.objectives.Quadratic(np.outer(ones, ones) + 1e-3 * np.eye(16))
    return Known("steep mean", f, np.random.default_rng(4).standard_normal(16) + 1.0, np.zeros(16), 0.0)


@pytest.mark.parametrize(("wrong", "make"), [(WrongSteepest, steep_mean), (WrongSigma, skewed)])
def test_mutation_a_norm_that_is_wrong_about_itself_breaks_property_p(wrong, make):
    known = make()
    L = known.L(Schatten(np.inf, (4, 4)))
    assert worst_pair(known, Schatten(np.inf, (4, 4)), L) <= 0.0
    assert worst_pair(known, wrong(np.inf, (4, 4)), L) > 0.0


def test_mutation_a_sigma_too_large_calls_a_true_constant_too_small():
    known = diagonal()
    spectral = Schatten(np.inf, (2, 2))
    L = known.L(spectral)

    def message(norm):
        return hasd.minimize(known.f, known.x0, method="hasd", p=norm, L=L, mu=0.0, tol=0, maxiter=60).message

    assert "too small" not in message(spectral)
    assert "too small" in message(WrongSigma(np.inf, (2, 2)))


class NoLeastGain(Lp):
    """Weights that do not say that gains may be below 1."""

    least_gain = 1.0


@pytest.mark.parametrize("method", ["linear-coupling", "estimate-sequence"])
def test_mutation_weights_as_if_gains_were_at_least_one_break_the_rivals(method):
    known = quadratic()
    options = {"weights": "tight"} if method == "linear-coupling" else {}

    def violations(norm):
        states = run(known, method, norm, 60, L=known.L(Lp(norm.p, weights=norm.weights)), **options)[1:]
        return [s for s in states if s.weight * known.f(s.x) > s.psi + allowance(s.psi, s.weight * known.f(s.x))]

    weights = np.full(12, 8.0)
    assert not violations(Lp(3.0, weights=weights))
    assert violations(NoLeastGain(3.0, weights=weights))


# What a norm's scale does not change ---------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [-30, -1, 40])
@pytest.mark.parametrize("method", ANY_NORM)
def test_multiplying_the_norm_changes_nothing_if_the_constant_follows(method, power):
    """c||.|| has L/c^2 and gains divided by c; for powers of two the iterates agree to the last bit."""
    known = log_sum_exp()
    weights, c = np.geomspace(0.5, 4.0, 10), 2.0**power
    L = known.L(Lp(np.inf, weights=weights))
    one = run(known, method, Lp(np.inf, weights=weights), 40, L=L)
    two = run(known, method, Lp(np.inf, weights=c * weights), 40, L=L / c**2)
    assert len(one) == len(two) == 41
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.x, b.x)
        assert a.grad_norm == c * b.grad_norm
        assert a.weight == (b.weight / c**2 if method == "steepest-descent" else b.weight)  # its cuts have weight 1/L


@pytest.mark.parametrize("method", ANY_NORM)
def test_weights_of_one_and_a_shape_change_nothing(method):
    known = log_sum_exp()
    plain, *others = (
        run(known, method, norm, 40, L=known.L(3.0))[-1].x
        for norm in (3.0, Lp(3.0, weights=np.ones(10)), Lp(3.0, shape=(2, 5)))
    )
    for x in others:
        np.testing.assert_array_equal(x, plain)


def test_frobenius_is_l_2():
    known = log_sum_exp()
    a, b = (run(known, "hasd", norm, 40, L=known.L(2.0))[-1].x for norm in (2.0, Schatten(2.0, (2, 5))))
    np.testing.assert_array_equal(a, b)


def test_with_mu_a_constant_below_mu_may_be_true():
    """f = 1/2||x||_2^2 has mu = 1 and, in the norm 8||x||_2, L = 1/64; the bound by the least gain is exact here."""
    f = hasd.objectives.Quadratic(np.eye(3))
    norm = Lp(2.0, weights=np.full(3, 8.0))
    assert hasd.minimize(f, np.ones(3), method="hasd", p=norm, mu=1.0, L=1.0 / 64.0).success
    assert hasd.minimize(f, np.ones(3), method="estimate-sequence", p=norm, mu=0.99, L=1.0 / 64.0).success
    with pytest.raises(ValueError, match=r"^mu = 1 cannot exceed L = 0.015 divided by the square of the least gain"):
        hasd.minimize(f, np.ones(3), p=norm, mu=1.0, L=0.015)
    small = Lp(2.0, weights=np.full(3, 0.125))
    with pytest.raises(ValueError, match=r"^mu = 1 cannot exceed L = 63 divided by the square of the least gain, 8$"):
        hasd.minimize(f, np.ones(3), p=small, mu=1.0, L=63.0)


@every_norm_beyond_lp
def test_what_is_certified_is_true_with_the_answer_of_every_method(norm):
    known = quadratic()
    norm = norm(12)
    for method in (*ANY_NORM, "hasd-restart", "hasd-qn", "hasd-subspace", "hasd-newton", "hasd-cg"):
        f = known.f
        res = hasd.minimize(f, known.x0, method=method, p=norm, mu=known.mu, tol=1e-4, maxiter=1000)
        assert res.success or not method.startswith("hasd"), method
        if res.success:
            assert norm.dual_norm(res.jac) <= 1e-4 * norm.dual_norm(f.value_and_grad(known.x0)[1]) * (1 + 1e-9)
        assert -allowance(res.fun) <= res.fun - known.f_star <= res.gap + allowance(res.fun)
        assert res.p == norm.label


def test_the_published_bound_holds_for_the_mean_gain():
    """Theorem 1's proof uses no more of a norm than Lemma 1 does."""
    known = log_sum_exp()
    for name in ("spectral", "blocks", "weighted l_inf"):
        norm = BEYOND_LP[name](10)
        L, total, least = known.L(norm), 0.0, norm.least_gain
        for state in run(known, "hasd-paper", norm, 60)[1:]:
            total += state.gain / least
            T = state.iteration
            bound = theory.main_bound(L / least**2, known.R, total / T, T, constant=theory.MAIN)
            assert known.f(state.x) - known.f_star <= bound + allowance(known.f_star)


def test_every_shipped_norm_is_a_geometry():
    for make in (*LP.values(), *BEYOND_LP.values()):
        assert isinstance(make(12), Geometry)


def test_a_c_that_vanished_gives_a_finite_weight():
    """L/s^2 of a tiny function in a norm of tiny weights may underflow; a larger c is always allowed."""
    assert 0.0 < plan_weight(Estimate.around(np.zeros(1)), c=0.0, sigma=0.5).weight < np.inf
