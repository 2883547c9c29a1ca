"""The compact inverse Hessian of hasd-qn against the two loops it replaces; its versions, its scale, its libraries."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import hasd
from hasd._math.geometry import norm2
from hasd.methods import _curvature_pairs
from hasd.methods._curvature_pairs import scales
from hasd.methods.hasd_qn import NO_PAIRS, Pairs
from hasd.objectives import Logistic, Quadratic

MEMORY = 19


def two_loops(pairs: list[tuple[np.ndarray, np.ndarray]], g: np.ndarray, D: Any = None) -> np.ndarray:
    """H g as Liu & Nocedal (1989), Algorithm 2.1, have it, with a multiple of the diagonal D in the middle."""
    q, alphas = g, []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    s, y = pairs[-1]
    D = np.ones(len(g)) if D is None else D
    q = (s @ y) / (y @ (D * y)) * D * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + (alpha - y @ q / (s @ y)) * s
    return q


def steps(condition: float, count: int, d: int = 30, *, turned: bool = True) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of a quadratic, their lengths spread over ten orders of magnitude; its axes are turned or not."""
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0] if turned else np.eye(d)
    H = (Q * np.geomspace(1.0, condition, d)) @ Q.T
    made = [10.0 ** rng.uniform(-8, 2) * rng.standard_normal(d) for _ in range(count)]
    return [(s, H @ s) for s in made]


def appended(pairs: Pairs, made: list[tuple[np.ndarray, np.ndarray]], memory: int = MEMORY) -> Pairs:
    for s, y in made:
        pairs = pairs.append(s, y, norm2(y), memory)
    return pairs


@pytest.mark.parametrize("condition", [1.0, 1e3, 1e6])
def test_the_compact_form_is_the_two_loops(condition: float) -> None:
    g, made = np.random.default_rng(0).standard_normal(30), steps(condition, 40)
    pairs = NO_PAIRS
    for k, (s, y) in enumerate(made, 1):
        pairs = pairs.append(s, y, norm2(y), MEMORY)
        expected = two_loops(made[max(k - MEMORY, 0) : k], g, pairs.diagonal)
        assert len(pairs) == min(k, MEMORY)
        assert np.linalg.norm(pairs.times(g) - expected) <= 1e-10 * np.linalg.norm(expected)


@pytest.mark.parametrize("turned", [True, False])
def test_the_compact_form_is_the_two_loops_with_a_diagonal(turned: bool) -> None:
    """Mutation: D y_i not made anew with D."""
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e4, 40, turned=turned)
    pairs, seen = NO_PAIRS, 0
    for k, (s, y) in enumerate(made, 1):
        pairs = pairs.append(s, y, norm2(y), MEMORY)
        expected = two_loops(made[max(k - MEMORY, 0) : k], g, pairs.diagonal)
        seen += pairs.diagonal is not None
        assert np.linalg.norm(pairs.times(g) - expected) <= 1e-9 * np.linalg.norm(expected)
    assert seen > 20 or turned


@pytest.mark.parametrize("memory", [17, 20, 30])
def test_products_are_those_of_the_rows_whenever_the_diagonal_changes(memory: int) -> None:
    """The store is new at some changes, and then written to.  Mutation: y read after its rows were overwritten."""
    changes = 0
    for switch in range(5, 70, 4):
        made, old = steps(1e4, switch) + steps(1e6, 110 - switch, turned=False), None
        pairs = NO_PAIRS
        for s, y in made:
            pairs = pairs.append(s, y, norm2(y), memory)
            scaled, D = pairs.rows[1::2], np.ones(30) if pairs.diagonal is None else pairs.diagonal
            expected = scaled @ (scaled / D).T
            assert np.abs(pairs.products[1] - expected).max() <= 1e-12 * np.abs(expected).max()
            changes, old = changes + (pairs.diagonal is not old), pairs.diagonal
    assert changes > 10


def test_the_diagonal_of_a_separable_quadratic_is_its_inverse_hessian() -> None:
    pairs = appended(NO_PAIRS, steps(1e6, 20, turned=False))
    assert np.allclose(pairs.diagonal, np.geomspace(1.0, 1e-6, 30), rtol=1e-10)


def test_a_diagonal_that_fits_no_better_is_not_taken() -> None:
    """Between the axes of a quadratic that is turned, no diagonal explains the curvature along a step."""
    assert appended(NO_PAIRS, steps(1e4, 40)).diagonal is None


def test_a_diagonal_that_fits_no_longer_is_given_up() -> None:
    pairs = appended(NO_PAIRS, steps(1e6, 20, turned=False))
    assert pairs.diagonal is not None
    assert appended(pairs, steps(1e4, 40)).diagonal is None


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**10])
def test_scales_follow_the_units_of_the_variables(unit: float) -> None:
    """Mutation: no root."""
    rng = np.random.default_rng(1)
    moved, turned, units = rng.uniform(1, 2, 9), rng.uniform(1, 2, 9), np.where(np.arange(9) < 4, unit, 1.0)
    plain, scaled = scales(moved, turned), scales(moved / units**2, turned * units**2)
    expected = plain / units**2
    assert np.allclose(scaled, expected / expected.max(), rtol=1e-12)


def test_scales_of_variables_that_say_nothing() -> None:
    moved, turned = np.array([0.0, 1.0, 4.0, 0.0]), np.array([0.0, 1.0, 1.0, 1.0])
    D = scales(moved, turned)
    assert D[1] < D[0] <= D[2] == 1.0 and D[3] > 0.0  # unmoved, or with a gradient that changed all the same
    assert np.array_equal(scales(np.zeros(2), np.ones(2)), np.ones(2))
    for strange in ([np.inf, 1.0], [np.nan, 1.0], [1.0, np.nan], [1e-320, 0.0]):
        assert np.array_equal(scales(np.ones(2), np.array(strange)), np.ones(2))
        assert np.array_equal(scales(np.array(strange), np.ones(2)), np.ones(2))


def test_variables_of_other_units_cost_a_fraction_of_the_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    A, units = rng.standard_normal((60, 30)), np.geomspace(1.0, 1e3, 30)
    f = Quadratic((A.T @ A / 60 + np.eye(30)) * units * units[:, None], rng.standard_normal(30))

    def evaluations() -> int:
        return hasd.minimize(lambda x: f.value_and_grad(x), np.zeros(30), jac=True, method="hasd-qn", tol=1e-9).nfev

    found = evaluations()
    monkeypatch.setattr(_curvature_pairs, "TRIED", 10**9)
    assert found < 0.5 * evaluations()


def test_without_pairs_it_is_the_identity() -> None:
    g = np.arange(3.0)
    assert not NO_PAIRS
    assert NO_PAIRS.times(g) is g


@pytest.mark.parametrize("k", [-1000, -600, 600, 1000])
def test_the_scale_of_f_changes_no_bit(k: int) -> None:
    """Mutation: gradients as they are, not in a unit of their own: what is small beside them is no normal number."""
    g = 2.0**-20 * np.random.default_rng(0).uniform(1.0, 2.0, 30)  # as near a minimiser; normal at every scale
    made = [(s / norm2(s), y / norm2(s)) for s, y in steps(1e6, 17, turned=False)]
    plain = appended(NO_PAIRS, made)
    assert plain.diagonal is not None
    scaled = appended(NO_PAIRS, [(s, 2.0**k * y) for s, y in made])
    assert np.array_equal(scaled.times(2.0**k * g), plain.times(g))
    assert scaled.steepest == 2.0**k * plain.steepest


@pytest.mark.parametrize("turned", [True, False])
def test_versions_never_change(turned: bool) -> None:
    """Two continuations of one version, through more pairs than its buffer has room for."""
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 40, turned=turned)
    old = appended(NO_PAIRS, made[:10])
    before = old.times(g)
    one, other = appended(old, made[10:]), appended(old, made[20:])
    assert np.array_equal(old.times(g), before)
    assert np.array_equal(one.times(g), appended(NO_PAIRS, made).times(g))
    assert np.array_equal(other.times(g), appended(NO_PAIRS, made[:10] + made[20:]).times(g))


def test_a_smaller_memory_takes_effect_at_once() -> None:
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 12)
    few = appended(appended(NO_PAIRS, made[:7]), made[7:], memory=3)
    assert np.allclose(few.times(g), two_loops(made[-3:], g), rtol=1e-10)


def test_float32_keeps_its_type_and_sums_in_float64() -> None:
    g, made = np.random.default_rng(0).standard_normal(30).astype(np.float32), steps(1e2, 12)
    single = [(s.astype(np.float32), y.astype(np.float32)) for s, y in made]
    found = appended(NO_PAIRS, single).times(g)
    D = appended(NO_PAIRS, single).diagonal
    exact = two_loops([(s.astype(float), y.astype(float)) for s, y in single[-MEMORY:]], g.astype(float), D)
    assert found.dtype == np.float32
    assert np.linalg.norm(found - exact) <= 1e-6 * np.linalg.norm(exact)


class Foreign(np.ndarray):
    """An array that is not NumPy's own: the path of every other library."""


@pytest.mark.parametrize("turned", [True, False])
def test_arrays_of_another_library_need_no_buffer(turned: bool) -> None:
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 22, turned=turned)
    foreign = appended(NO_PAIRS, [(s.view(Foreign), y.view(Foreign)) for s, y in made])
    assert foreign.store is None and type(foreign.products) is np.ndarray
    assert foreign.diagonal is not None or turned
    assert np.allclose(foreign.times(g.view(Foreign)), appended(NO_PAIRS, made).times(g), rtol=1e-12)


@pytest.mark.parametrize("memory", [5, 20])
@pytest.mark.parametrize("stopped", [3, 20, 35])
def test_a_resumed_run_repeats_the_whole_one_bit_for_bit(stopped: int, memory: int) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((200, 30)) * np.geomspace(1.0, 1e-2, 30)
    f = Logistic(A, np.where(rng.random(200) < 0.5, 1.0, -1.0), ridge=1e-6)
    run: dict[str, Any] = {"method": "hasd-qn", "tol": 0.0, "memory": memory}
    whole = hasd.minimize(f, np.zeros(30), maxiter=45, **run)
    half = hasd.minimize(f, np.zeros(30), maxiter=stopped, **run)
    for state in (half.state, half.state, pickle.loads(pickle.dumps(half.state))):  # the store is shared, then not
        again = hasd.minimize(f, np.zeros(30), maxiter=45, resume=state, **run)
        assert np.array_equal(again.x, whole.x) and again.nit == whole.nit


@pytest.mark.parametrize("stopped", [15, 16, 17, 24, 32])
def test_a_run_is_resumed_bit_for_bit_where_the_diagonal_changes(stopped: int) -> None:
    """Mutation: y read after its rows were overwritten, which happens where a store is new."""
    curvature = np.geomspace(1.0, 1e4, 30)

    def f(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float(0.5 * (curvature * x * x).sum() + np.logaddexp(0.0, x).sum()), curvature * x + 1.0 / (
            1.0 + np.exp(-x)
        )

    run: dict[str, Any] = {"method": "hasd-qn", "tol": 0.0, "jac": True}
    half = hasd.minimize(f, np.ones(30), maxiter=stopped, **run)
    for end in (stopped + 1, stopped + 8):
        whole = hasd.minimize(f, np.ones(30), maxiter=end, **run)
        for state in (half.state, half.state, pickle.loads(pickle.dumps(half.state))):
            assert np.array_equal(hasd.minimize(f, np.ones(30), maxiter=end, resume=state, **run).x, whole.x)
