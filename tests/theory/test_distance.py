"""Where the iterates stay: ||v_t - x*||_2 <= R and, corrected, ||x_t - x*||_p <= R + 54 R/sqrt(t); sharpened, 12.

Lemma R_bounds as printed drops the square roots of Cauchy-Schwarz: its bound R + 2916 R^2/t is not even homogeneous,
and fails for small R, which a test below shows.
"""

import numpy as np
import pytest

from hasd import Lp, objectives, theory
from hasd.methods import hasd_paper
from support import Known, diagonal, every_norm, every_problem, run


@every_norm
@every_problem
@pytest.mark.parametrize("method", ["hasd-paper", "hasd"])
def test_v_stays_within_R(known, p, method):
    known = known()
    for state in run(known, method, p, 80):
        assert np.linalg.norm(state.estimate.v - known.x_star) <= known.R * (1 + 1e-9) + 1e-9


@every_norm
@every_problem
@pytest.mark.parametrize("constant", [theory.DISTANCE, theory.DISTANCE_CORRECTED])
def test_the_iterates_stay_within_the_corrected_distance_bound(known, p, constant):
    known = known()
    for state in run(known, "hasd-paper", p, 80)[1:]:
        distance = Lp(p).norm(state.x - known.x_star)
        assert distance <= theory.distance_bound(known.R, state.iteration, constant=constant) * (1 + 1e-12)


def test_mutation_of_18_to_0_02_lets_v_run_away(monkeypatch):
    monkeypatch.setattr(hasd_paper, "CONSTANT", 0.02)
    known = diagonal()
    assert any(
        np.linalg.norm(state.estimate.v - known.x_star) > known.R * (1 + 1e-6)
        for state in run(known, "hasd-paper", 2.0, 80)
    )


def test_mutation_a_fifth_step_too_long_breaks_the_distance_bound():
    """With L declared 1/50 of the truth the iterates leave every such ball."""
    known = diagonal()
    states = run(known, "hasd-paper", 2.0, 60, L=known.L(2.0) / 50)
    assert any(
        not Lp(2.0).norm(state.x - known.x_star) <= theory.distance_bound(known.R, state.iteration)
        for state in states[1:]
    )


def test_the_printed_bound_is_false():
    """In two dimensions at p = inf the first step leads away from x*: ||x_1 - x*||_inf = 1.48 s against R = 1.41 s.

    The printed bound R + 2916 R^2/t is not homogeneous, so a small s leaves it no room; the corrected one holds.
    """
    s = 1e-9
    H = np.array([[0.01, -0.011], [-0.011, 1.0]])
    known = Known("two", objectives.Quadratic(H), s * np.ones(2), np.zeros(2), 0.0)
    first = run(known, "hasd-paper", np.inf, 1)[1]
    distance = np.abs(first.x).max()
    assert distance > 1.04 * theory.distance_bound_as_printed(known.R, 1)
    assert distance <= theory.distance_bound(known.R, 1)
