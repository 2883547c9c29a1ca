"""What a user asked for is what a run does: tol, gtol and gap_tol, alone and together."""

import numpy as np
import pytest
import scipy.optimize

import hasd
from hasd.objectives import LeastSquares, LogSumExp, SymmetricSoftmax

RNG = np.random.default_rng(5)
A, B = RNG.standard_normal((60, 8)), RNG.standard_normal(60)
METHODS = ["auto", "hasd", "hasd-qn", "hasd-subspace", "hasd-newton", "agd", "hasd-paper", "linear-coupling"]


@pytest.mark.parametrize("method", METHODS)
def test_a_success_with_gap_tol_has_the_gap(method):
    """Mutation: tol defaults to 1e-6 beside gap_tol."""
    f = SymmetricSoftmax(A, B, alpha=0.5)
    res = hasd.minimize(f, np.zeros(8), method=method, gap_tol=1e-4, radius=100.0, maxiter=5000)
    assert res.status == (hasd.Status.GAP.code if res.success else 1)
    assert not res.success or res.gap <= 1e-4


def test_the_default_tolerance_does_not_end_a_run_that_asks_for_a_gap():
    res = hasd.minimize(SymmetricSoftmax(A, B, alpha=0.5), np.zeros(8), gap_tol=1e-9, radius=100.0)
    assert res.success and res.gap <= 1e-9


def test_both_tolerances_are_met_where_both_are_given():
    f = LogSumExp(A, B, ridge=1e-2)
    loose, strict = 0.1, 1e-9
    for tol, gap_tol in ((loose, strict), (strict, loose), (strict, strict)):
        res = hasd.minimize(f, np.ones(8), tol=tol, gap_tol=gap_tol)
        first = np.linalg.norm(f.value_and_grad(np.ones(8))[1])
        assert res.status == hasd.Status.GAP.code and res.gap <= gap_tol and np.linalg.norm(res.jac) <= tol * first
    res = hasd.minimize(f, np.ones(8), gtol=1e-9, gap_tol=loose)
    assert res.success and np.linalg.norm(res.jac) <= 1e-9


def steep(x):
    """Its minimum at 0 is the number of variables; from afar its gradient is as large as its value."""
    return float((np.exp(x) - x).sum()), np.exp(x) - 1.0


@pytest.mark.parametrize("method", ["auto", "hasd-qn", "hasd", "hasd-restart"])
@pytest.mark.parametrize("start", [5.0, 12.0, 20.0])
def test_a_default_run_goes_on_from_a_steep_start_until_f_has_come_to_rest(method, start):
    """Mutation: the tolerance on the gradient alone, which is what tol=1e-6 asks for."""
    settings = {"method": method, "jac": True} | ({"mu": 0.5} if method == "hasd-restart" else {})
    x0 = np.linspace(0.9, 1.0, 3) * start
    res = hasd.minimize(steep, x0, **settings)
    assert res.success and res.fun - 3.0 <= 1e-3
    ended = hasd.minimize(steep, x0, tol=1e-6, **settings)
    assert ended.success and (ended.fun - 3.0 > 1.0 or start < 20.0 or method == "hasd")


def test_a_gradient_tolerance_that_is_given_is_the_only_one():
    """Mutation: tol defaults to 1e-6 beside gtol."""
    x0 = np.full(3, 20.0)
    res = hasd.minimize(steep, x0, jac=True, gtol=1e-5)
    assert res.success and np.linalg.norm(res.jac) <= 1e-5
    same = scipy.optimize.minimize(steep, x0, jac=True, method=hasd.minimize, options={"gtol": 1e-5})
    assert np.array_equal(same.x, res.x)
    first = np.linalg.norm(steep(x0)[1])
    assert f"It is {np.linalg.norm(res.jac):.3g}, and was {first:.3g} at x0." in res.message


@pytest.mark.parametrize("k", [-300, 300])
def test_where_a_default_run_ends_does_not_depend_on_the_scale_of_f(k):
    c = A @ np.ones(8)

    def exact(x):  # its minimum is 0
        r = A @ x - c
        return 0.5 * float(r @ r), A.T @ r

    for f, x0 in ((steep, np.full(3, 20.0)), (exact, np.zeros(8))):
        plain = hasd.minimize(f, x0, jac=True)
        scaled = hasd.minimize(lambda x, f=f: tuple(2.0**k * part for part in f(x)), x0, jac=True)
        assert plain.success and np.array_equal(scaled.x, plain.x) and scaled.nit == plain.nit


def test_none_is_the_default_as_in_scipy():
    f = LogSumExp(A, B, ridge=1e-2)
    plain, none = hasd.minimize(f, np.ones(8)), hasd.minimize(f, np.ones(8), tol=None)
    assert np.array_equal(plain.x, none.x) and plain.nit == none.nit
    res = scipy.optimize.minimize(f.value_and_grad, np.ones(8), jac=True, method=hasd.minimize, tol=None)
    assert res.success


def test_a_gap_that_rounding_forbids_is_no_success_even_where_the_gradient_vanishes():
    """f = 0 at x = 1e8, where the value itself is not known to gap_tol."""
    f = hasd.objectives.Quadratic(np.eye(2), np.full(2, -1e8))
    res = hasd.minimize(f, np.full(2, 1e8), gap_tol=1e-30, radius=1.0)
    assert not res.success and res.status == 2 and not res.jac.any()


def test_tol_zero_beside_gap_tol_asks_for_the_gap_alone():
    res = hasd.minimize(LeastSquares(A, B), np.zeros(8), tol=0.0, gap_tol=1e-6, radius=10.0)
    assert res.status == hasd.Status.GAP.code and res.gap <= 1e-6


@pytest.mark.parametrize("method", ["hasd", "linear-coupling", "agd", "hasd-paper", "hasd-qn", "heavy-ball"])
def test_states_of_iterate_carry_value_and_counts(method):
    f = SymmetricSoftmax(A, B, alpha=0.5)
    L = float(f.smoothness(2))
    for state, _ in zip(hasd.iterate(f, np.zeros(8), method=method, p=2, L=L), range(5), strict=False):
        before = state.nfev, state.njev, state.nprod
        assert state.fun == pytest.approx(f(state.x), rel=1e-12)
        assert (state.nfev, state.njev, state.nprod) == before and state.nfev >= max(state.iteration, 1)


def test_reading_a_value_changes_neither_the_run_nor_its_counts():
    f = SymmetricSoftmax(A, B, alpha=0.5)
    settings = {"method": "hasd", "p": 2, "L": float(f.smoothness(2))}
    read, unread = [], []
    for states, look in ((read, True), (unread, False)):
        for state, _ in zip(hasd.iterate(f, np.zeros(8), **settings), range(8), strict=False):
            states.append((state.x, state.nfev, state.fun if look else None))
    for one, other in zip(read, unread, strict=True):
        assert np.array_equal(one[0], other[0]) and one[1] == other[1]
