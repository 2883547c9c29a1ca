"""The compact inverse Hessian of hasd-qn against the two loops it replaces; its versions, its scale, its libraries."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import hasd
from hasd._math.geometry import norm2
from hasd.methods.hasd_qn import NO_PAIRS, Pairs
from hasd.objectives import Logistic

MEMORY = 7


def two_loops(pairs: list[tuple[np.ndarray, np.ndarray]], g: np.ndarray) -> np.ndarray:
    """H g as Liu & Nocedal (1989), Algorithm 2.1, have it."""
    q, alphas = g, []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    s, y = pairs[-1]
    q = (s @ y) / (y @ y) * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        q = q + (alpha - y @ q / (s @ y)) * s
    return q


def steps(condition: float, count: int, d: int = 30) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs of a quadratic, their lengths spread over ten orders of magnitude."""
    rng = np.random.default_rng(3)
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
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
        expected = two_loops(made[max(k - MEMORY, 0) : k], g)
        assert len(pairs) == min(k, MEMORY)
        assert np.linalg.norm(pairs.times(g) - expected) <= 1e-10 * np.linalg.norm(expected)


def test_without_pairs_it_is_the_identity() -> None:
    g = np.arange(3.0)
    assert not NO_PAIRS
    assert NO_PAIRS.times(g) is g


@pytest.mark.parametrize("k", [-1000, -600, 600, 1000])
def test_the_scale_of_f_changes_no_bit(k: int) -> None:
    """Mutation: gradients as they are, not in a unit of their own: what is small beside them is no normal number."""
    g = 2.0**-20 * np.random.default_rng(0).uniform(1.0, 2.0, 30)  # as near a minimiser; normal at every scale
    made = [(s / norm2(s), y / norm2(s)) for s, y in steps(1e6, 12)]
    plain = appended(NO_PAIRS, made)
    scaled = appended(NO_PAIRS, [(s, 2.0**k * y) for s, y in made])
    assert np.array_equal(scaled.times(2.0**k * g), plain.times(g))
    assert scaled.steepest == 2.0**k * plain.steepest


def test_versions_never_change() -> None:
    """Two continuations of one version, through more pairs than its buffer has room for."""
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 40)
    old = appended(NO_PAIRS, made[:10])
    before = old.times(g)
    one, other = appended(old, made[10:]), appended(old, made[20:])
    assert np.array_equal(old.times(g), before)
    assert np.array_equal(one.times(g), appended(NO_PAIRS, made).times(g))
    assert np.array_equal(other.times(g), appended(NO_PAIRS, made[:10] + made[20:]).times(g))


def test_a_smaller_memory_takes_effect_at_once() -> None:
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 12)
    few = appended(appended(NO_PAIRS, made[:11]), made[11:], memory=3)
    assert np.allclose(few.times(g), two_loops(made[-3:], g), rtol=1e-10)


def test_float32_keeps_its_type_and_sums_in_float64() -> None:
    g, made = np.random.default_rng(0).standard_normal(30).astype(np.float32), steps(1e2, 12)
    single = [(s.astype(np.float32), y.astype(np.float32)) for s, y in made]
    found = appended(NO_PAIRS, single).times(g)
    exact = two_loops([(s.astype(float), y.astype(float)) for s, y in single[-MEMORY:]], g.astype(float))
    assert found.dtype == np.float32
    assert np.linalg.norm(found - exact) <= 1e-6 * np.linalg.norm(exact)


class Foreign(np.ndarray):
    """An array that is not NumPy's own: the path of every other library."""


def test_arrays_of_another_library_need_no_buffer() -> None:
    g, made = np.random.default_rng(0).standard_normal(30), steps(1e2, 12)
    foreign = appended(NO_PAIRS, [(s.view(Foreign), y.view(Foreign)) for s, y in made])
    assert foreign.store is None and type(foreign.inner) is np.ndarray
    assert np.allclose(foreign.times(g.view(Foreign)), appended(NO_PAIRS, made).times(g), rtol=1e-12)


@pytest.mark.parametrize("stopped", [3, 20, 35])
def test_a_resumed_run_repeats_the_whole_one_bit_for_bit(stopped: int) -> None:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((200, 30)) * np.geomspace(1.0, 1e-2, 30)
    f = Logistic(A, np.where(rng.random(200) < 0.5, 1.0, -1.0), ridge=1e-6)
    run: dict[str, Any] = {"method": "hasd-qn", "tol": 0.0, "memory": 5}
    whole = hasd.minimize(f, np.zeros(30), maxiter=45, **run)
    half = hasd.minimize(f, np.zeros(30), maxiter=stopped, **run)
    for state in (half.state, half.state, pickle.loads(pickle.dumps(half.state))):  # the store is shared, then not
        again = hasd.minimize(f, np.zeros(30), maxiter=45, resume=state, **run)
        assert np.array_equal(again.x, whole.x) and again.nit == whole.nit
