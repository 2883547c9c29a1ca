"""The library against the literal pseudocode, iterate by iterate."""

import ast
import itertools
from pathlib import Path

import numpy as np
import pytest

from hasd import Lp
from hasd.methods import HASDPaper, NemirovskiiNesterov, hasd_paper
from hasd.methods import hasd as optimised
from reference import pseudocode
from support import diagonal, every_norm, every_problem, log_sum_exp, quadratic, run, strongly_convex


def functions(known):
    return known.f, lambda x: known.f.value_and_grad(x)[1]


def agree(states, literal, rtol=1e-7):
    """Whether x, v, A and psi coincide at every iterate."""
    pairs = list(zip(states[1:], literal, strict=True))
    assert pairs
    return all(
        np.allclose(state.x, step["x"], rtol=rtol, atol=1e-9)
        and np.allclose(state.estimate.v, step["v"], rtol=rtol, atol=1e-8)
        and np.isclose(state.weight, step["A"], rtol=rtol)
        and np.isclose(state.psi, step["psi"], rtol=1e-6, atol=1e-8)
        for state, step in pairs
    )


def test_the_reference_imports_nothing_from_the_library():
    tree = ast.parse(Path(pseudocode.__file__).read_text())
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").split(".")[0])
    assert names == {"numpy"}


@every_norm
@every_problem
def test_algorithm_1_with_the_cold_bisection_matches_its_pseudocode(known, p):
    """Both search on their own: even the bisection's trial points coincide."""
    known = known()
    states = run(known, "hasd-paper", p, 20, search="bisect")
    assert agree(states, pseudocode.algorithm_1(*functions(known), known.x0, known.L(p), p, 20))


@every_norm
@every_problem
def test_algorithm_1_with_the_warm_search_matches_its_pseudocode(known, p):
    """The reference checks line 3's condition on the rho that the library found."""
    known = known()
    states = run(known, "hasd-paper", p, 40)
    rhos = [state.rho for state in states[1:]]
    assert agree(states, pseudocode.algorithm_1(*functions(known), known.x0, known.L(p), p, 40, rhos=rhos))


def test_mutation_of_18_to_12_breaks_lockstep(monkeypatch):
    known = quadratic()
    monkeypatch.setattr(hasd_paper, "CONSTANT", 12.0)
    states = run(known, "hasd-paper", 3.0, 20, search="bisect")
    assert not agree(states, pseudocode.algorithm_1(*functions(known), known.x0, known.L(3.0), 3.0, 20))


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_restarts_match_the_pseudocode_of_algorithm_2(p):
    known = diagonal()
    mu = 1.0  # only sets the period here: T = ceil(36 sqrt(L/mu)) short enough to see several epochs
    literal = list(pseudocode.algorithm_2(*functions(known), known.x0, known.L(p), mu, p, 2.0, 3))
    states = run(known, "hasd-restart", p, len(literal), mu=mu, G_hat=2.0, inner=HASDPaper(search="bisect"))
    for state, step in zip(states[1:], literal, strict=True):
        np.testing.assert_allclose(state.x, step["x"], rtol=1e-6, atol=1e-8)
        assert state.weight == pytest.approx(step["A"], rel=1e-4)
    assert states[-1].epoch == 2


@every_norm
@every_problem
def test_the_optimised_form_matches_its_pseudocode(known, p):
    known = known()
    states = run(known, "hasd", p, 30)
    literal = list(pseudocode.optimised_form(*functions(known), known.x0, known.L(p), p, 30))
    assert agree(states, literal, rtol=1e-6)
    for state, step in zip(states[1:], literal, strict=True):
        assert pytest.approx(step["U"], rel=1e-6, abs=1e-9) == state.U
        assert state.gamma == pytest.approx(step["gamma"], rel=1e-4)
        np.testing.assert_allclose(state.cut.x, step["y"], rtol=1e-6, atol=1e-9)


@every_norm
@every_problem
def test_damping_by_the_slack_is_never_more_than_by_the_rule(known, p):
    """gamma = min(1, r^2/s^2) is what the proof allows at least."""
    known = known()
    for exact in pseudocode.optimised_form(*functions(known), known.x0, known.L(p), p, 30):
        assert 0.0 < exact["gamma"] <= 1.0
    rule = pseudocode.optimised_form(*functions(known), known.x0, known.L(p), p, 30, exact=False)
    for step in rule:
        left = step["A"] * step["U"]
        assert left <= step["psi"] + 1e-10 * max(1.0, abs(left))


def test_mutation_the_constant_of_the_tight_form_breaks_lockstep(monkeypatch):
    """sigma = 0 in place of p* - 1."""
    known = quadratic()
    monkeypatch.setattr(optimised, "dual_convexity", lambda geometry: 0.0)
    states = run(known, "hasd", 3.0, 20)
    assert not agree(states, pseudocode.optimised_form(*functions(known), known.x0, known.L(3.0), 3.0, 20))


@every_problem
def test_the_optimised_form_with_stronger_cuts_is_ogm_at_p_2(known):
    """Gradient point by gradient point, and A = 2 theta^2/L."""
    known = known()
    L = known.L(2.0)
    states = run(known, "hasd", 2.0, 60, stronger_cuts=True)
    theta = 1.0
    for state, x in zip(states, pseudocode.optimised_gradient(functions(known)[1], known.x0, L, 61), strict=True):
        np.testing.assert_allclose(state.at.x, x, rtol=1e-7, atol=1e-9)
        if state.iteration:
            assert state.weight == pytest.approx(2.0 * theta**2 / L, rel=1e-9)
            theta = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * theta**2))


def stationary(f, grad, x0, L, mu, T):
    """The optimised form at p = 2 with kappa = mu A and beta = 0, from v_0 = x_0: its gradient points."""
    condition = L / mu
    share = (3.0 + np.sqrt(8.0 * condition + 1.0)) / (2.0 * condition - 2.0)  # a/A, from c a^2 = mu (A + a) (2 A + a)
    x, v = x0, x0
    for _ in range(T):
        b = share / (1.0 + share)  # b'/A
        y = (x + b * v) / (1.0 + b)
        yield y
        g = grad(y)
        x, v = y - g / L, (v + share * y - share * g / mu) / (1.0 + share)


@strongly_convex
def test_the_stationary_optimised_form_is_sc_ogm_at_p_2(known):
    """Both start from x_0, where SC-OGM has no momentum yet: they agree from the first step on."""
    known = known()
    f, grad = functions(known)
    L, mu = known.L(2.0), known.mu
    ours = list(stationary(f, grad, known.x0, L, mu, 40))
    theirs = list(pseudocode.strongly_convex_optimised_gradient(grad, known.x0, L, mu, 40))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


@every_problem
def test_agd_and_heavy_ball_match_their_pseudocode(known):
    known = known()
    _, grad = functions(known)
    L = known.L(2.0)
    for state, x in zip(
        run(known, "agd", 2.0, 40)[1:], pseudocode.accelerated_gradient(grad, known.x0, L, 40), strict=True
    ):
        np.testing.assert_allclose(state.x, x, rtol=1e-9, atol=1e-11)
    states = run(known, "heavy-ball", 2.0, 40, momentum=0.7)
    for state, x in zip(states[1:], pseudocode.heavy_ball(grad, known.x0, L, 0.7, 40), strict=True):
        np.testing.assert_allclose(state.x, x, rtol=1e-9, atol=1e-11)


@every_norm
@every_problem
def test_linear_coupling_matches_its_pseudocode(known, p):
    known = known()
    _, grad = functions(known)
    literal = pseudocode.linear_coupling(grad, known.x0, known.L(p), p, 40)
    for state, x in zip(run(known, "linear-coupling", p, 40)[1:], literal, strict=True):
        np.testing.assert_allclose(state.x, x, rtol=1e-7, atol=1e-9)


@every_norm
@every_problem
def test_nemirovskii_nesterov_matches_its_pseudocode(known, p):
    """Also beyond the 30 iterations that are planned.  The library's weights are those of the notes over R^{p-2}."""
    known = known()
    R = Lp(p).norm(known.x0 - known.x_star)
    states = run(known, NemirovskiiNesterov(T=30, R=R), p, 40)
    literal = pseudocode.nemirovskii_nesterov(*functions(known), known.x0, known.L(p), p, 30, R, 40)
    for state, step in zip(states[1:], literal, strict=True):
        np.testing.assert_allclose(state.at.x, step["y"], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(state.x, step["x"], rtol=1e-6, atol=1e-8)
        assert state.weight == pytest.approx(step["A"] / step["scale"], rel=1e-9)
        assert state.psi == pytest.approx(step["psi"] / step["scale"], rel=1e-6, abs=1e-8)


@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_nemirovskii_nesterov_is_the_estimate_sequence_at_p_2(known, L):
    """Whatever T and R are."""
    known = known()
    ours = run(known, NemirovskiiNesterov(T=7, R=0.1), 2.0, 60, L=L)
    for one, other in zip(ours, run(known, "estimate-sequence", 2.0, 60, L=L), strict=True):
        np.testing.assert_allclose(one.x, other.x, rtol=1e-9, atol=1e-11)
        assert one.weight == pytest.approx(other.weight, rel=1e-12)
        assert one.psi == pytest.approx(other.psi, rel=1e-9, abs=1e-12)


def without_bonus(monkeypatch, rho_one=False):
    """Take sigma = 0, so that gamma = 1 and U is a value no longer needed; with rho_one, guess every gain to be 1."""
    monkeypatch.setattr(optimised, "dual_convexity", lambda geometry: 0.0)
    if rho_one:
        plain = optimised.plan_weight
        monkeypatch.setattr(optimised._Step, "_plan", lambda step, estimate, L: plain(estimate, L, 0.0))


@every_problem
def test_the_estimate_sequence_is_the_optimised_form_without_its_bonus_at_p_2(monkeypatch, known):
    without_bonus(monkeypatch)
    known = known()
    for one, other in zip(run(known, "hasd", 2.0, 60), run(known, "estimate-sequence", 2.0, 60), strict=True):
        np.testing.assert_allclose(one.x, other.x, rtol=1e-9, atol=1e-11)
        assert one.weight == pytest.approx(other.weight, rel=1e-10)


@every_norm
@every_problem
def test_linear_coupling_with_tight_weights_is_the_optimised_form_without_bonus_and_gain(monkeypatch, known, p):
    without_bonus(monkeypatch, rho_one=True)
    known = known()
    coupled = run(known, "linear-coupling", p, 40, weights="tight")
    for one, other in zip(run(known, "hasd", p, 40), coupled, strict=True):
        np.testing.assert_allclose(one.x, other.x, rtol=1e-6, atol=1e-9)


@every_problem
def test_agd_is_the_estimate_sequence_at_p_2(known):
    known = known()
    for one, other in zip(run(known, "agd", 2.0, 60), run(known, "estimate-sequence", 2.0, 60), strict=True):
        np.testing.assert_allclose(one.x, other.x, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(one.weight, other.weight, rtol=1e-10)


@every_problem
def test_gradient_descent_is_steepest_descent_at_p_2(known):
    known = known()
    for one, other in zip(
        run(known, "gradient-descent", 2.0, 20), run(known, "steepest-descent", 2.0, 20), strict=True
    ):
        np.testing.assert_array_equal(one.x, other.x)


def test_mutation_published_weights_are_not_those_of_the_tight_form(monkeypatch):
    without_bonus(monkeypatch, rho_one=True)
    known = log_sum_exp()
    pairs = zip(run(known, "hasd", np.inf, 20), run(known, "linear-coupling", np.inf, 20), strict=True)
    assert any(not np.allclose(one.x, other.x, rtol=1e-3) for one, other in itertools.islice(pairs, 1, None))
