"""The tight form: A_t f(x_t) <= psi*_t at every iterate, declared and backtracked L, and what follows from it."""

import numpy as np
import pytest

import hasd
from hasd import theory
from hasd.methods import hasd as tight
from reference.pseudocode import psi_minimum
from support import NORMS, allowance, diagonal, every_norm, every_problem, quadratic, run


def invariant(known, states):
    """(A_t f(x_t), psi*_t) with psi* recomputed from all cuts at y."""
    cuts, previous = [], 0.0
    for state in states[1:]:
        cuts.append((state.weight - previous, state.at.x, state.at.f, state.at.g))
        previous = state.weight
        _v, psi = psi_minimum(cuts, known.x0)
        assert state.psi == pytest.approx(psi, rel=1e-9, abs=1e-9)
        yield state.weight * known.f(state.x), psi


@every_norm
@every_problem
@pytest.mark.parametrize("L", ["declared", None])
def test_the_invariant_holds_at_every_iterate(known, p, L):
    known = known()
    for left, right in invariant(known, run(known, "hasd", p, 100, L=L)):
        assert left <= right + allowance(left, right)


@every_norm
@every_problem
def test_every_epoch_keeps_the_invariant_when_restarts_are_on(known, p):
    """Backtracked L restarts where f rises; within an epoch the invariant holds, and every epoch's bound is true."""
    known = known()
    for state in run(known, "hasd", p, 120, L=None, restart=True)[1:]:
        left = state.weight * known.f(state.x)
        assert left <= state.psi + allowance(left, state.psi)
        for certificate in (*state.certificates, state.estimate.certificate(state.origin)):
            assert certificate.lower(known.R) <= known.f_star + allowance(known.f_star)


@every_norm
@every_problem
@pytest.mark.parametrize("method", ["estimate-sequence", "linear-coupling"])
@pytest.mark.parametrize("L", ["declared", None])
def test_rivals_with_rho_one_keep_the_invariant_too(known, p, method, L):
    known = known()
    options = {"weights": "tight"} if method == "linear-coupling" else {}
    for left, right in invariant(known, run(known, method, p, 60, L=L, **options)):
        assert left <= right + allowance(left, right)


@every_norm
@every_problem
def test_the_tight_rate_holds_and_rho_stays_in_its_window(known, p):
    known = known()
    total = 0.0
    for state in run(known, "hasd", p, 100)[1:]:
        total += state.gain
        T = state.iteration
        assert 1 - 1e-9 <= state.rho * state.gain**2 <= 2 + 1e-9
        bound = theory.tight_bound(known.L(p), known.R, total / T, T, window=2.0)
        assert known.f(state.x) - known.f_star <= bound + allowance(known.f_star)


LP_METHODS = ("hasd", "hasd-paper", "steepest-descent", "linear-coupling", "estimate-sequence")
METHODS_AND_NORMS = [(method, p) for method in LP_METHODS for p in NORMS] + [("agd", 2.0), ("heavy-ball", 2.0)]


@every_problem
@pytest.mark.parametrize(("method", "p"), METHODS_AND_NORMS)
def test_certificate_is_never_below_the_gap(known, p, method):
    """For every method, whatever its iterates: each cut is a minorant."""
    known = known()
    for state in run(known, method, p, 60, L=None)[1:]:
        certificate = state.estimate.certificate(state.origin)
        for radius in (known.R, 2 * known.R):
            assert certificate.lower(radius) <= known.f_star + allowance(known.f_star)


@every_norm
def test_declared_L_costs_one_evaluation_per_trial(p):
    known = quadratic()
    res = hasd.minimize(known.f, known.x0, p=p, L=known.L(p), tol=0, maxiter=50)
    assert res.nfev == np.nansum(res.trace["trials"])  # the first trial is x_0 itself
    assert res.nit == 50


@pytest.mark.parametrize("p", [2.0, 3.0, np.inf])
def test_mutation_rho_times_0_8_breaks_the_invariant(monkeypatch, p):
    """On a quadratic started along its steepest axis, where smoothness is tight."""
    monkeypatch.setattr(tight, "WINDOW", (0.8, 0.8 * 1.01))
    monkeypatch.setattr(tight, "AIM", 0.804)
    known = diagonal()
    assert any(left > right + allowance(left, right) for left, right in invariant(known, run(known, "hasd", p, 60)))


def test_mutation_declaring_a_third_of_L_breaks_the_rate():
    known = diagonal()
    states = run(known, "hasd", 2.0, 60, L=known.L(2.0) / 3, raise_L=False)
    assert any(left > right + allowance(left, right) for left, right in invariant(known, states))


def test_mutation_a_radius_too_small_breaks_the_certificate():
    """The bound does lean on R: with half of it the lower bound rises above f*."""
    known = diagonal()
    state = run(known, "hasd", 2.0, 60)[-1]
    certificate = state.estimate.certificate(state.origin)
    assert certificate.lower(known.R) <= known.f_star < certificate.lower(0.5 * known.R)
