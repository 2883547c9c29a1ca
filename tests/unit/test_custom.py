"""Bring your own: a method and two geometries.  These are the documentation's examples."""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest

import hasd
from hasd.methods.base import first_state
from support import log_sum_exp

# A method ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NormalisedGradient:
    """x_{t+1} = x_t - length/(t + 1) * s/||s||: needs no L at all.

    `init` makes the state at t = 0 from the evaluation at x_0, `step` the next state.  The loop, the counts, the trace,
    the stopping rules and the certificate come from hasd.
    """

    length: float = 1.0
    name: str = "normalised-gradient"
    default_p: float = 2.0  # the norm where the caller names none

    def init(self, problem, start):
        return hasd.State(**first_state(problem, start))

    def step(self, problem, state):
        e = state.at  # x_t, f and g there
        s = problem.geometry.steepest(e.g)
        x = e.x - (self.length / (state.iteration + 1)) * s / problem.geometry.norm(s)
        there = problem.oracle.evaluate(x)  # counted; raises where a budget is spent
        return replace(
            state,
            iteration=state.iteration + 1,
            x=x,
            fun=there.f,
            at=there,
            grad_norm=problem.dual_norm(there),
            estimate=state.estimate.cut(1.0, e),  # any weight > 0 gives a true certificate
        )


class TestMethod:
    def solve(self, **options):
        known = log_sum_exp()
        return known, hasd.minimize(known.f, known.x0, method=NormalisedGradient(length=1.0), **options)

    def test_a_method_of_ones_own_converges(self):
        known, res = self.solve(tol=1e-2, maxiter=3000)
        assert res.success and res.method == "normalised-gradient" and res.p == 2.0
        assert res.fun - known.f_star < 1e-3

    def test_counts_trace_and_budget_are_those_of_the_loop(self):
        _, res = self.solve(tol=0, maxfun=40)
        assert (res.status, res.nfev, res.nit, res.nrecord) == (10, 40, 39, 0)
        assert len(res.trace["fun"]) == 40 and np.isnan(res.trace["rho"]).all()

    def test_the_certificate_of_a_method_of_ones_own_is_true(self):
        known, res = self.solve(tol=0, maxiter=200)
        assert res.fun - known.f_star <= res.certificate.gap(known.R) < known.f(known.x0) - known.f_star

    def test_a_method_of_ones_own_resumes(self):
        _, whole = self.solve(tol=0, maxiter=30)
        _, half = self.solve(tol=0, maxiter=10)
        _, rest = self.solve(tol=0, maxiter=30, resume=half.state)
        np.testing.assert_array_equal(rest.x, whole.x)

    def test_a_method_of_ones_own_can_be_iterated_and_compared(self):
        known = log_sum_exp()
        mine = NormalisedGradient(0.5)
        assert [state.iteration for state in islice(hasd.iterate(known.f, known.x0, method=mine), 4)] == [0, 1, 2, 3]
        both = hasd.compare(known.f, known.x0, {"mine": mine, "hasd": "hasd"}, budget=30)
        assert [row["nfev"] for row in both.rows()] == [30, 30]

    def test_a_class_with_the_methods_of_the_protocol_is_a_method(self):
        assert isinstance(NormalisedGradient(), hasd.Method)


# Two geometries ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightedLp:
    """||x|| = ||w * x||_p, for variables in different units.

    Its dual norm is ||g / w||_{p*}, its steepest-descent map s_p(g / w) / w.
    """

    w: np.ndarray
    exponent: float = np.inf

    @property
    def p(self):
        """What `res.p` reports."""
        return f"weighted l_{self.exponent:g}"

    def norm(self, x):
        return hasd.Lp(self.exponent).norm(self.w * x)

    def dual_norm(self, g):
        return hasd.Lp(self.exponent).dual_norm(g / self.w)

    def steepest(self, g):
        return hasd.Lp(self.exponent).steepest(g / self.w) / self.w


@dataclass(frozen=True)
class Groups:
    """||x|| = max_k ||x_k||_2 over groups k of variables; its dual norm is sum_k ||g_k||_2."""

    of: np.ndarray  # the group of each variable: 0, 1, ...
    p: str = "l_inf of l_2 groups"

    def lengths(self, x):
        return np.sqrt(np.bincount(self.of, x * x))

    def norm(self, x):
        return float(self.lengths(x).max())

    def dual_norm(self, g):
        return float(self.lengths(g).sum())

    def steepest(self, g):
        lengths = self.lengths(g)
        return self.dual_norm(g) * g / np.where(lengths > 0.0, lengths, 1.0)[self.of]


WEIGHTS = np.geomspace(0.2, 5.0, 10)
GROUP = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3])


def weighted_smoothness(f, exponent):
    """f(x) = F(w * x) with F the LogSumExp of A/w, so L in the weighted norm is F's L_p."""
    return float(hasd.objectives.LogSumExp(f.A / WEIGHTS, f.b).smoothness(exponent))


def group_smoothness(f):
    """max_{i,j} ||a_i - a_j||_*^2 / 4, the dual norm in place of l_{p*}: the Hessian is a covariance of rows."""
    norm = Groups(GROUP).dual_norm
    return max(norm(a - b) for a in f.A for b in f.A) ** 2 / 4.0


def geometries():
    f = log_sum_exp().f
    for exponent in (2.0, 3.0, np.inf):
        yield WeightedLp(WEIGHTS, exponent), weighted_smoothness(f, exponent)
    yield Groups(GROUP), group_smoothness(f)


every_geometry = pytest.mark.parametrize(("geometry", "L"), list(geometries()), ids=lambda v: getattr(v, "p", ""))


class TestGeometry:
    @every_geometry
    def test_norms_and_steepest_map_of_a_custom_geometry_are_dual(self, geometry, L):
        rng = np.random.default_rng(0)
        for _ in range(20):
            g, x = rng.standard_normal((2, 10))
            s, size = geometry.steepest(g), geometry.dual_norm(g)
            assert g @ s == pytest.approx(size**2) and geometry.norm(s) == pytest.approx(size)
            assert g @ x <= size * geometry.norm(x) * (1.0 + 1e-12)
        assert not geometry.steepest(np.zeros(10)).any()
        assert isinstance(geometry, hasd.Geometry)

    @every_geometry
    @pytest.mark.parametrize("declared", [True, False], ids=["declared", "backtracked"])
    def test_the_invariant_and_the_bound_hold_at_every_iterate(self, geometry, L, declared):
        known = log_sum_exp()
        L = L if declared else None
        for state in islice(hasd.iterate(known.f, known.x0, method="hasd", p=geometry, L=L, restart=False), 1, 150):
            assert state.weight * state.U <= state.psi + 1e-11 * abs(state.psi)
            above = 0.0 if declared else max(0.0, known.f(state.x) - state.U)  # U bounds f(x) where L is true
            assert known.f(state.x) - known.f_star <= known.R**2 / (2.0 * state.weight) + above + 1e-12
            assert not declared or known.f(state.x) <= state.U + 1e-12

    @pytest.mark.parametrize("method", ["hasd", "hasd-paper", "linear-coupling", "estimate-sequence"])
    @every_geometry
    def test_every_method_takes_a_geometry_of_ones_own(self, geometry, L, method):
        known = log_sum_exp()
        res = hasd.minimize(known.f, known.x0, method=method, p=geometry, L=L, tol=1e-3, maxfun=6000)
        assert res.success and res.p == geometry.p and res.L == L
        assert geometry.dual_norm(res.jac) <= 1e-3 * geometry.dual_norm(known.f.value_and_grad(known.x0)[1])
        assert res.certificate.gap(known.R) >= res.fun - known.f_star

    def test_U_is_no_bound_for_a_norm_that_is_not_the_dual(self):
        """So the test above can fail."""

        class Wrong(WeightedLp):
            def dual_norm(self, g):
                return 4.0 * super().dual_norm(g)

        known = log_sum_exp()
        L = weighted_smoothness(known.f, np.inf)
        run = hasd.iterate(known.f, known.x0, method="hasd", p=Wrong(WEIGHTS), L=L, raise_L=False)
        assert any(known.f(state.x) > state.U + 1e-9 for state in islice(run, 1, 50))
