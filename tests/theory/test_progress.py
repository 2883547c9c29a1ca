"""Lemma 1: the step's closed form and the progress inequality, along the iterates of Algorithm 1."""

import numpy as np
import pytest

from hasd import Lp
from support import allowance, diagonal, every_norm, every_problem, run


def progress(known, y, step, p):
    """<grad f(x+), y - x+>, L||x+ - y||_p^2 and ||grad f(x+)||_{p*}^2/(9L) for x+ = y - step s_p(g)."""
    geometry, L = Lp(p), known.L(p)
    x = y - step * geometry.steepest(known.f.value_and_grad(y)[1])
    g = known.f.value_and_grad(x)[1]
    return g @ (y - x), L * geometry.norm(x - y) ** 2, geometry.dual_norm(g) ** 2 / (9 * L)


@every_norm
@every_problem
def test_the_progress_inequality_holds_at_every_iterate(known, p):
    known = known()
    for state in run(known, "hasd-paper", p, 40):
        for y in (state.x, state.estimate.v, 0.5 * (state.x + state.estimate.v)):
            inner, middle, low = progress(known, y, 1 / (2 * known.L(p)), p)
            assert inner >= middle - allowance(inner)
            assert middle >= low - allowance(middle)


@every_norm
@every_problem
def test_step_is_the_minimiser_of_the_model(known, p):
    known = known()
    geometry, L, y = Lp(p), known.L(p), known.x0
    g = known.f.value_and_grad(y)[1]
    step = -geometry.steepest(g) / (2 * L)
    best = g @ step + L * geometry.norm(step) ** 2
    assert best == pytest.approx(-(geometry.dual_norm(g) ** 2) / (4 * L), rel=1e-12)
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1e-3, 1.0):
        for _ in range(50):
            other = step + scale * geometry.norm(step) * rng.standard_normal(y.size)
            assert g @ other + L * geometry.norm(other) ** 2 >= best - allowance(best)


def test_mutation_a_step_of_1_over_1_9_L_breaks_the_first_inequality():
    known = diagonal()
    inner, middle, _ = progress(known, np.array([1.0, 0, 0, 0]), 1 / (1.9 * known.L(2.0)), 2.0)
    assert inner < middle * (1 - 1e-3)


def test_mutation_without_the_factor_nine_the_second_inequality_breaks():
    known = diagonal()
    y = np.array([0.0, 0.0, 0.0, 1.0])  # the flat direction: the gradient hardly changes along the step
    _, middle, low = progress(known, y, 1 / (2 * known.L(2.0)), 2.0)
    assert middle < 9 * low
