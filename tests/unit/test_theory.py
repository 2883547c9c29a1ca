"""hasd.theory agrees with itself: constants, inversions, monotonicity, the recurrences behind the growth."""

import inspect
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hasd import theory
from hasd._math.pair import damped_weight, planned_weight

positive = st.floats(1e-3, 1e3)
gain = st.floats(1.0, 30.0)
count = st.integers(1, 2000)
exponent = st.one_of(st.floats(2.0, 50.0), st.just(math.inf))
unit = st.floats(0.0, 1.0)
gains = st.lists(st.tuples(gain, unit), min_size=1, max_size=40)

FUNCTIONS = {name: value for name, value in vars(theory).items() if inspect.isfunction(value)}
GOOD = {
    **dict.fromkeys(("L", "R", "G", "A", "constant", "grad_norm", "step_norm", "window", "gap"), 1.0),
    **dict.fromkeys(("alpha", "kappa", "N", "error"), 1.0),
    **dict.fromkeys(("Gamma", "guess", "gain"), 1.0),
    **dict.fromkeys(("weight_sum", "first_gain", "moved", "psi", "U", "f", "slope", "noise", "sigma"), 1.0),
    **{
        "T": 3,
        "t": 3,
        "d": 4,
        "n": 5,
        "p": 3.0,
        "mu": 0.5,
        "eps": 0.1,
        "factor": 0.5,
        "as_printed": True,
    },
    "z": [1.0, 2.0],
    "x": (-1.0, 0.5, 1.0),
}
BAD = {
    **dict.fromkeys(("L", "A", "constant", "gap", "eps", "Gamma", "alpha", "kappa"), (0.0, -1.0, math.inf, math.nan)),
    "mu": (-1.0, math.nan, math.inf),
    **dict.fromkeys(
        ("R", "grad_norm", "step_norm", "weight_sum", "first_gain", "moved", "noise", "sigma"), (-1.0, math.nan)
    ),
    **dict.fromkeys(("N", "error"), (-1.0, math.nan, math.inf)),
    **dict.fromkeys(("G", "window", "guess", "gain"), (0.5, math.inf, math.nan)),
    **dict.fromkeys(("T", "t", "d", "n"), (0, -1, 1.5, math.nan)),
    "p": (1.9, math.nan),
    **dict.fromkeys(("psi", "U", "f", "slope"), (math.nan, math.inf)),
    "factor": (0.0, 1.0),
    "z": ([0.0, 0.0], [math.nan, 1.0], [[1.0]]),
    "x": ((0.0, 0.5), (0.0, 0.5, 1.1), (math.nan, 0.0, 0.0)),
}


def arguments(function):
    """Values every function accepts."""
    return {name: GOOD[name] for name in inspect.signature(function).parameters}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_good_arguments_are_taken_and_bad_ones_named(name):
    """Each argument of each function is checked, and the message says which."""
    function = FUNCTIONS[name]
    function(**arguments(function))
    for parameter in inspect.signature(function).parameters:
        for bad in BAD.get(parameter, ()):
            with pytest.raises(ValueError, match="vector" if parameter == "z" else rf"\b{parameter} must"):
                function(**{**arguments(function), parameter: bad})


def test_mu_above_l_is_refused():
    """L-smooth in l_p implies L-smooth in l_2."""
    with pytest.raises(ValueError, match="mu must not exceed L"):
        theory.restart_period(L=1.0, mu=2.0, G=1.0)
    with pytest.raises(ValueError, match="mu must not exceed L"):
        theory.optimised_growth_factor(L=1.0, mu=2.0, p=2, guess=1.0, gain=1.0)


@pytest.mark.parametrize("name", sorted(theory.__all__))
def test_every_name_is_on_the_page(name):
    """docs/theory.md mentions all that is public."""
    assert f"`{name}`" in (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")


def test_constants_follow_from_one_another():
    """Each constant is the derivation's number, rounded up by less than one."""
    assert pytest.approx(2.0 * math.sqrt(2 * theory.PROGRESS) * math.sqrt(2.0)) == theory.GROWTH
    assert theory.MAIN == theory.GROWTH**2 / 2
    assert theory.MAIN_LEMMA3 == theory.GROWTH_PAPER**2 / 2
    assert pytest.approx(theory.GROWTH_LEMMA2**2 / 2) == theory.MAIN_LEMMA2
    assert theory.MAIN_PAPER == 2 * theory.MAIN_LEMMA3
    assert math.ceil(math.sqrt(4 * theory.MAIN)) == theory.RESTART
    assert math.sqrt(4 * theory.MAIN_PAPER) == theory.RESTART_PAPER
    assert math.sqrt(2 * theory.MAIN) == theory.GRADIENT
    assert math.sqrt(2 * theory.MAIN_PAPER) == pytest.approx(theory.GRADIENT_PAPER)
    assert math.ceil((3 * theory.PROGRESS * theory.GROWTH**2) ** (1 / 3)) == theory.GRADIENT_BEST
    assert math.ceil((3 * theory.PROGRESS * theory.GROWTH_PAPER**2) ** (1 / 3)) == theory.GRADIENT_BEST_PAPER
    assert math.sqrt(theory.PROGRESS) * theory.GROWTH_PAPER == theory.DISTANCE_CORRECTED
    assert theory.DISTANCE == theory.GROWTH


@given(L=positive, R=positive, G=gain, T=count)
def test_main_bounds_are_ordered(L, R, G, T):
    """2/p* <= 4 <= 36 <= 72 <= 162 <= 324; a first gain helps; the gap at the guaranteed weight is the bound."""
    constants = (theory.MAIN, theory.MAIN_LEMMA3, theory.MAIN_PAPER)
    chain = [theory.main_bound(L, R, G, T, constant) for constant in constants]
    assert chain == sorted(chain)
    best = [theory.optimised_bound(L, R, p, G, T) for p in (2.0, 3.0, math.inf)]
    ladder = [*best, theory.tight_bound(L, R, G, T, window=2.0), theory.main_bound(L, R, G, T, theory.MAIN_LEMMA2)]
    assert [*ladder, *chain] == sorted([*ladder, *chain])
    assert best[0] == pytest.approx(L * R**2 / (G * T) ** 2) and best[2] == pytest.approx(2 * best[0])
    assert theory.main_bound(L, R, G, T, first_gain=1.0) < chain[0]
    assert theory.main_bound(L, R, G, T + 1) < chain[0]
    assert theory.certificate_gap(R, theory.weight_bound(L, G, T)) == pytest.approx(chain[0])
    at = theory.tight_weight_bound(L, G, T, 2.0, 1.0)
    assert theory.certificate_gap(R, at) == pytest.approx(theory.tight_bound(L, R, G, T, 2.0, 1.0))


@given(L=positive, R=positive, G=gain, eps=st.floats(1e-6, 1.0))
def test_iterations_invert_bounds(L, R, G, eps):
    """The bound is at most eps at T, and above it at T - 1."""
    pairs = [
        (theory.main_iterations(L, R, G, eps), lambda T: theory.main_bound(L, R, G, T), eps),
        (theory.optimised_iterations(L, R, 3.0, G, eps), lambda T: theory.optimised_bound(L, R, 3.0, G, T), eps),
        (
            theory.gradient_norm_iterations(L, R, G, eps),
            lambda T: theory.main_bound(L, R, G, T),
            theory.gradient_norm_gap(L, eps),
        ),
        (
            theory.optimised_gradient_norm_iterations(L, R, 3.0, G, eps),
            lambda T: theory.optimised_gradient_norm_bound(L, R, 3.0, theory.optimised_weight_bound(L, 3.0, G, T)),
            eps,
        ),
    ]
    for T, bound, target in pairs:
        assert bound(T) <= target * (1 + 1e-9)
        assert T == 1 or bound(T - 1) > target * (1 - 1e-9)


@given(L=positive, R=positive, G=gain, eps=st.floats(1e-3, 10.0))
def test_stops_match_the_iterations(L, R, G, eps):
    """At the T of a corollary the guaranteed weights pass its stop; ours never later than printed."""
    T = theory.gradient_norm_iterations(L, R, G, eps)
    assert theory.weight_bound(L, G, T) >= theory.gradient_norm_weight(L, R, eps) * (1 - 1e-9)
    assert theory.gradient_norm_iterations(L, R, G, eps, theory.GRADIENT_PAPER) >= T
    best = theory.gradient_norm_iterations_best(L, R, G, eps)
    assume(best < 10**6)
    total = theory.weight_bound(L, G, 1) * best * (best + 1) * (2 * best + 1) / 6
    assert total >= theory.gradient_norm_weight_sum(L, R, eps) * (1 - 1e-9)
    assert theory.gradient_norm_iterations_best(L, R, G, eps, theory.GRADIENT_BEST_PAPER) >= best
    last = theory.weight_bound(L, G, best)
    assert theory.gradient_norm_bound(L, R, last, total) <= eps * (1 + 1e-9)


@given(L=positive, R=positive, A=positive, extra=st.floats(0.0, 1e6))
def test_joint_gradient_bound_beats_both_stops(L, R, A, extra):
    """The bound from A_T and sum A_t together is below each alone."""
    joint = theory.gradient_norm_bound(L, R, A, A + extra)
    assert joint <= math.sqrt(L / A) * R * (1 + 1e-12)
    assert joint <= 3 * R * math.sqrt(L / (A + extra)) * (1 + 1e-12)
    assert theory.gradient_norm_bound(L, R, A, 0.0) == pytest.approx(math.sqrt(L / A) * R)
    assert theory.optimised_gradient_norm_bound(L, R, math.inf, A) == pytest.approx(math.sqrt(L / A) * R)
    assert theory.optimised_gradient_norm_bound(L, R, 2.0, A) == pytest.approx(math.sqrt(L / (2 * A)) * R)


@given(L=positive, mu=st.floats(1e-4, 1.0), G=gain, gap=positive, eps=st.floats(1e-9, 1e3))
def test_restart_halves_and_counts(L, mu, G, gap, eps):
    """A period halves the gap, by the bound and by the certificate; K halvings suffice and K - 1 do not."""
    mu = mu * L
    R = math.sqrt(2 * gap / mu)
    T = theory.optimised_restart_period(L, mu, 3.0, G)
    assert theory.optimised_bound(L, R, 3.0, G, T) <= gap / 2 * (1 + 1e-9)
    T = theory.restart_period(L, mu, G)
    assert theory.main_bound(L, R, G, T) <= gap / 2 * (1 + 1e-9)
    assert theory.restart_period(L, mu, G, theory.RESTART_PAPER) >= T
    assert theory.weight_bound(L, G, T) >= theory.restart_weight(mu) * (1 - 1e-9)
    assert theory.restart_factor(mu, theory.restart_weight(mu, 0.3)) == pytest.approx(0.3)
    K = theory.restart_count(gap, eps)
    assert gap * 0.5**K <= eps * (1 + 1e-9)
    assert K == 0 or gap * 0.5 ** (K - 1) > eps * (1 - 1e-9)


@given(factor=st.floats(1e-4, 0.99))
def test_e_squared_has_the_best_worst_case(factor):
    """sqrt(A) iterations per log(1/factor) of progress is least at factor e^-2."""

    def cost(q):
        return math.sqrt(theory.restart_weight(1.0, q)) / math.log(1 / q)

    assert cost(factor) >= cost(math.exp(-2)) * (1 - 1e-12)


@given(L=positive, steps=gains)
def test_published_weights_grow_as_lemma_3_says(L, steps):
    """a^2 = A'/(18 L rho), rho in [1/2, 2]/r^2: Lemma 3 unrounded, with the first gain counted twice."""
    A = total = 0.0
    for r, u in steps:
        c = 1 / (18 * L * (0.5 + 1.5 * u) / r**2)
        A += (c + math.sqrt(c * c + 4 * c * A)) / 2
        total += r
    t = len(steps)
    assert theory.weight_bound(L, total / t, t, first_gain=steps[0][0]) * (1 - 1e-9) <= A


def test_growth_constant_cannot_be_improved():
    """At the far edge of the window the ratio tends to 1: 11.9 for 12 would be false."""
    A, c = 0.0, 1 / 36
    for _ in range(20_000):
        A += (c + math.sqrt(c * c + 4 * c * A)) / 2
    assert theory.weight_bound(1.0, 1.0, 20_000) <= A < theory.weight_bound(1.0, 1.0, 20_000, constant=11.9)


@given(L=positive, steps=gains)
def test_weights_of_lemma_2s_rule_grow_as_they_say(L, steps):
    """a^2 = (A + A')/(18 L rho), rho in [1/2, 2]/r^2."""
    A = total = 0.0
    for r, u in steps:
        c = 1 / (18 * L * (0.5 + 1.5 * u) / r**2)
        A += (c + math.sqrt(c * c + 8 * c * A)) / 2
        total += r
    t = len(steps)
    assert theory.weight_bound(L, total / t, t, constant=theory.GROWTH_LEMMA2) * (1 - 1e-9) <= A


@given(L=positive, steps=gains, window=st.floats(1.0, 4.0))
def test_tight_weights_grow_as_their_bound_says(L, steps, window):
    """L rho a^2 = A', rho in [1, window]/r^2."""
    A = total = 0.0
    for r, u in steps:
        c = r**2 / (L * (1 + (window - 1) * u))
        A += (c + math.sqrt(c * c + 4 * c * A)) / 2
        total += r
    t = len(steps)
    assert theory.tight_weight_bound(L, max(1.0, total / t), t, window, steps[0][0]) * (1 - 1e-9) <= A


@given(L=positive, steps=gains, p=st.sampled_from([2.0, 2.5, 3.0, 10.0, math.inf]), mu=st.floats(0.0, 1.0))
def test_optimised_weights_grow_as_their_bounds_say(L, steps, p, mu):
    """(L/s^2) a'^2 = (kappa + mu a') (p* A + a'), damped by gamma = min(1, r^2/s^2): plain (mu = 0) and geometric."""
    mu = mu * L / max(r for r, _ in steps) ** 2 * 0.5
    dual = 1.0 if p == math.inf else p / (p - 1.0)
    plain = strong = total = 0.0
    guess = steps[0][0]
    for t, (r, _) in enumerate(steps, 1):
        gamma, c = min(1.0, r**2 / guess**2), L / guess**2
        plain += gamma * planned_weight(plain, 1.0, 0.0, c, dual - 1.0)
        kappa = 1.0 + mu * strong
        a = damped_weight(gamma, planned_weight(strong, kappa, mu, c, dual - 1.0), kappa, mu)
        if mu > 0.0 and t > 1:
            assert (strong + a) / strong >= theory.optimised_growth_factor(L, mu, p, guess, r) * (1 - 1e-9)
        strong += a
        total += theory.optimised_step(guess, r)
        assert plain >= theory.optimised_weight_bound(L, p, total / t, t, steps[0][0]) * (1 - 1e-9)
        guess = r


@given(L=positive, R=positive, A=positive, U=st.floats(-10.0, 10.0), slack=st.floats(0.0, 10.0))
def test_slack_in_the_invariant_only_lowers_the_gap(L, R, A, U, slack):
    gap = theory.optimised_gap(R, A, A * U + slack, U)
    assert gap <= theory.certificate_gap(R, A) + 1e-9 * (abs(U) + slack / A + R**2 / A)


def test_the_strongly_convex_bound_survives_extremes():
    assert theory.optimised_strong_bound(1.0, 0.5, 1.0, 2, 1.0, 10**6) == 0.0
    assert theory.optimised_strong_bound(8.0, 1e-300, 1.0, 2, 1.0, 5) == pytest.approx(4.0)


@given(L=positive, R=positive, G=gain, t=count)
def test_distance_bounds_agree_with_each_other(L, R, G, t):
    """12 <= 54; the form in weights implies the form in t; v adds R; D_R is of degree 2 as it must be."""
    ours = theory.distance_bound(R, t, G)
    assert ours <= theory.distance_bound(R, t) <= theory.distance_bound(R, t, constant=theory.DISTANCE_CORRECTED)
    A = theory.weight_bound(L, G, t)
    assert theory.distance_bound_from_weight(L, R, A, t * A) == pytest.approx(ours)
    assert theory.coupling_distance_bound(R, t, G) == pytest.approx(ours + R)
    assert theory.search_diameter(2 * R) == pytest.approx(4 * theory.search_diameter(R))
    assert theory.search_diameter(R) < theory.search_diameter(R, theory.DISTANCE_CORRECTED)


@given(L=positive, A=positive, step=positive)
def test_slack_from_step_contains_slack_from_gradient(L, A, step):
    """||g|| <= 3 L ||x+ - y||, with equality here: the two slacks and the two progresses meet."""
    g = 3 * L * step
    assert theory.slack_from_step(L, A, step) == pytest.approx(theory.slack_from_gradient(L, A, g))
    assert theory.progress_from_step(L, step) == pytest.approx(theory.progress_from_gradient(L, g))
    assert theory.descent(L, g) >= theory.progress_from_gradient(L, g)


@given(psi=st.floats(-50, 50), A=positive, R=positive, m=st.floats(0.0, 50.0), share=unit)
def test_certificate_is_the_minimum_over_the_ball(psi, A, R, m, share):
    """psi* + k/2 (u - m)^2 - u^2/2 over |u| <= R: never above, attained, never below the form with max(0, .)."""
    rounding = 1e-9 * (1 + abs(psi) + (1 + A) * (m + R) ** 2) / A
    for mu in (0.0, share):
        mu = mu if mu > 1e-3 else 0.0
        k = 1 + mu * A
        low = theory.certificate_lower(psi, A, R, m, mu)
        grid = [R * (i / 500 - 1) for i in range(1001)]
        least = min(psi + k / 2 * (u - m) ** 2 - u**2 / 2 for u in grid) / A
        assert low <= least + rounding
        assert least - low <= mu / 2 * (R / 500) ** 2 + rounding
    clipped = (psi - R**2 / 2 + max(0.0, R - m) ** 2 / 2) / A
    plain = theory.certificate_lower(psi, A, R, m)
    assert plain >= clipped - rounding
    assert plain >= theory.certificate_lower(psi, A, R) - rounding


@given(psi=st.floats(-50, 50), A=positive, m=st.floats(0.0, 50.0), mu=st.floats(1e-2, 10.0))
def test_a_certificate_without_a_radius_needs_mu_and_the_distance_moved(psi, A, m, mu):
    """mu > 0, R unknown: psi* - k m^2/(2 mu A); mu = 0 needs R, mu > 0 needs m."""
    expected = (psi - (1 + mu * A) * m**2 / (2 * mu * A)) / A
    value = theory.certificate_lower(psi, A, math.inf, m, mu)
    assert value == pytest.approx(expected, rel=1e-6, abs=1e-6 * (1 + m * m / A + m * m / (mu * A * A)))
    with pytest.raises(ValueError, match="R must"):
        theory.certificate_lower(psi, A, math.inf, m)
    with pytest.raises(ValueError, match="moved must"):
        theory.certificate_lower(psi, A, 1.0, mu=mu)


@given(d=st.integers(1, 10**6), p=exponent, R=positive, L=positive)
def test_the_gain_has_its_limits_and_trials_grow_as_eps_falls(d, p, R, L):
    """1 <= G <= sqrt(d), attained by softmax; the search's count grows as eps falls, from p = 2 on."""
    limit = theory.gain_limit(d, p)
    assert 1.0 <= limit <= math.sqrt(d) * (1 + 1e-12)
    assert theory.softmax_gain(d, p) == limit
    eps = L * theory.search_diameter_as_printed(R) / 12
    trials = theory.search_trials_bound(L, R, d, p, eps)
    assert theory.search_trials_bound(L, R, d, p, eps / 2) == pytest.approx(trials + 1)
    assert theory.search_trials_bound(L, R, d, 2, eps) <= trials
    with pytest.raises(ValueError, match="eps must not exceed"):
        theory.search_trials_bound(L, R, d, p, 3 * eps)


@given(L=positive, R=positive, T=count, p=exponent, gap=positive)
def test_rivals_are_ordered(L, R, T, p, gap):
    """AGD = LC <= estimate sequence and <= the LC certificate; the orders match and run from T^-2 to T^-1."""
    agd = theory.accelerated_gradient_bound(L, R, T)
    assert theory.linear_coupling_bound(L, R, T) == agd == pytest.approx(theory.tight_bound(L, R, 1.0, T, 1.0, 1.0))
    assert theory.certificate_gap(R, theory.linear_coupling_weight(L, T)) <= agd * (1 + 1e-12)
    assert agd <= theory.estimate_sequence_bound(L, R, T)
    assert agd <= theory.gradient_descent_bound(L, R, T) * (1 + 1e-12)
    assert theory.gradient_descent_bound(L, R, T + 1) < theory.gradient_descent_bound(L, R, T)
    assert theory.steepest_descent_bound(L, R, T + 1) < theory.steepest_descent_bound(L, R, T)
    order = theory.lower_bound_order(L, R, T, p)
    assert order == theory.nemirovskii_order(L, R, T, p)
    assert L * R**2 / T**2 * (1 - 1e-9) <= order <= L * R**2 / T * (1 + 1e-9)
    mu = L / 10
    slow = theory.gradient_descent_strong_bound(L, mu, gap, T)
    assert theory.steepest_descent_strong_bound(L, mu, gap, 2.0, T) <= slow <= gap
    fast = theory.accelerated_gradient_strong_bound(L, mu, math.sqrt(2 * gap / mu), gap, T)
    assert fast <= 2 * gap * (1 - math.sqrt(0.1)) ** T * (1 + 1e-9)
    assert theory.strong_gap_from_gradient(mu, math.sqrt(2 * mu * gap)) == pytest.approx(gap)
    assert theory.slack_limit(R) == pytest.approx(R * R / 2)
