"""Lemma 3: how fast A_t grows, with the paper's 18 and with the 12 that its argument gives unrounded."""

import math

import numpy as np
import pytest

from hasd import theory
from hasd.methods import hasd_paper
from norms import every_geometry
from support import diagonal, every_norm, every_problem, log_sum_exp, run


def growth(states, constant):
    """(sqrt(A_t), sum of the gains/(constant sqrt(L))) at every t >= 1."""
    total = 0.0
    for state in states[1:]:
        total += state.gain
        yield math.sqrt(state.weight), total / (constant * math.sqrt(states[0].L))


@every_geometry
@every_problem
@pytest.mark.parametrize("constant", [12.0, 18.0])
def test_paper_weights_grow_with_the_gain(known, norm, constant):
    known = known()
    for weight, bound in growth(run(known, "hasd-paper", norm(known.x0.size), 60), constant):
        assert weight >= bound * (1 - 1e-12)


@every_norm
@every_problem
def test_weights_of_lemma_2s_printed_rule_grow_faster(known, p):
    """a^2 = (A_t + A_{t+1})/(18 L rho) gives 6 sqrt(2) in place of 12."""
    for weight, bound in growth(run(known(), "hasd-paper", p, 60, weights="lemma"), theory.GROWTH_LEMMA2):
        assert weight >= bound * (1 - 1e-12)


def test_gain_is_the_one_at_the_stated_point():
    """At x_{t+1} in hasd-paper, at y in hasd."""
    known = log_sum_exp()
    for method in ("hasd-paper", "hasd"):
        for state in run(known, method, np.inf, 10)[1:]:
            g = known.f.value_and_grad(state.x if method == "hasd-paper" else state.at.x)[1]
            assert state.gain == pytest.approx(np.abs(g).sum() / np.linalg.norm(g), rel=1e-12)


@pytest.mark.parametrize(("rule", "constant"), [("algorithm", theory.GROWTH), ("lemma", theory.GROWTH_LEMMA2)])
def test_mutation_of_18_to_80_breaks_the_growth(monkeypatch, rule, constant):
    monkeypatch.setattr(hasd_paper, "CONSTANT", 80.0)
    states = run(diagonal(), "hasd-paper", 2.0, 60, weights=rule)
    assert any(weight < bound for weight, bound in growth(states, constant))
