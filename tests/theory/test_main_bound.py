"""Theorem 1: f(x_T) - f* <= c L R^2/(G^2 T^2); c = 324 as printed, 72 as the proof gives, 36 by Lemma 2's rule."""

import pytest

import hasd
from hasd import theory
from hasd.methods import hasd_paper
from support import allowance, chain, every_norm, every_problem, run


@every_norm
@every_problem
@pytest.mark.parametrize(
    ("constant", "rule"),
    [(theory.MAIN, "algorithm"), (theory.MAIN_PAPER, "algorithm"), (theory.MAIN_LEMMA2, "lemma")],
    ids=["72", "324", "36"],
)
def test_the_main_theorem_holds_at_every_iterate(known, p, constant, rule):
    known = known()
    total = 0.0
    for state in run(known, "hasd-paper", p, 80, weights=rule)[1:]:
        total += state.gain
        T = state.iteration
        gap = known.f(state.x) - known.f_star
        assert gap <= theory.main_bound(known.L(p), known.R, total / T, T, constant=constant) + allowance(known.f_star)
        assert gap <= theory.certificate_gap(known.R, state.weight) + allowance(known.f_star)


@pytest.mark.slow
def test_mutation_without_acceleration_the_bound_of_72_breaks(monkeypatch):
    """18 -> 1e9: weights so small that v never moves; the bound is not so loose that plain descent passes it."""
    known = chain(400)
    T = 1500

    def ratio():
        res = hasd.minimize(known.f, known.x0, method="hasd-paper", p=2, L=4.0, tol=0, maxiter=T, trace=False)
        return (known.f(res.state.x) - known.f_star) / theory.main_bound(4.0, known.R, 1.0, T, constant=72.0)

    assert ratio() <= 1.0
    monkeypatch.setattr(hasd_paper, "CONSTANT", 1e9)
    assert ratio() > 1.0
