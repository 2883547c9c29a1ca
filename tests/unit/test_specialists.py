"""The benchmark of fits and transport: the other solvers are given the same problems, and judged by true bounds."""

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

pytest.importorskip("clarabel")
pytest.importorskip("ot")
ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from benchmarks import minimax, specialists  # noqa: E402
from benchmarks.specialists import Answer, Line, Match  # noqa: E402

CAP = 60.0
DENSE, SPARSE = minimax.gaussian(60, 5), minimax.sparse(200, 8, 2)


@pytest.mark.parametrize("make", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("q", [np.inf, 4.0, 8.0])
def test_every_solver_of_a_fit_comes_near_the_bound_and_none_goes_below(make, q):
    match = specialists.fit_match(make, q, 0, CAP)
    assert set(match.others) == ({"HiGHS simplex", "HiGHS interior point", "Clarabel"} if q == np.inf else {"Clarabel"})
    for answer in (match.ours, *match.others.values()):
        assert -1e-12 <= answer.off <= 1e-5
    assert 0.0 <= match.gap <= 1e-7


def test_every_solver_of_transport_comes_as_near_as_its_table_says():
    match = specialists.entropic_match("square uneven", 12, 1e-2, 0, CAP)
    assert set(match.others) == {"POT sinkhorn", "POT sinkhorn_log"}
    assert all(answer.off <= 1e-6 for answer in (match.ours, *match.others.values())) and 0.0 <= match.gap < 1e-3
    match = specialists.exact_match("square", 12, True, 0, CAP)
    assert set(match.others) == {"POT emd", "HiGHS", "Clarabel"}
    assert all(answer.off <= 1e-5 for answer in match.others.values())
    assert -1e-12 <= match.ours.off <= match.gap / (1.0 - match.gap)


def test_a_solver_without_an_answer_only_bounds_the_ratio():
    matches = [
        Match(1e-9, Answer(1.0, 1e-9), {"slow": Answer(2.0, off), "fast": Answer(0.5, 0.0)}) for off in (None, 1e-3)
    ]
    slow, fast = Line("here", "slow", matches), Line("here", "fast", matches)
    assert (str(slow.ratio), slow.cells()[-1], str(fast.ratio)) == (">=2", "none", "0.5")
    said = specialists.winners([slow, fast])
    assert "slow: `hasd` was faster on 1 of 1" in said and "slower on here (0.5)" in said


def test_the_whole_program_is_that_of_the_fit():
    for A in (np.eye(3)[:, :1], scipy.sparse.csr_array(np.eye(3)[:, :1])):
        x, _ = minimax.whole_program(A, np.array([5.0, 1.0, -1.0]), CAP)
        assert abs(x[0] - 5.0) <= 1.0 + 1e-9


def test_the_tables_are_written_for_the_page(tmp_path, monkeypatch, capsys):
    cases = [specialists.Case("tiny", lambda seed, cap: specialists.fit_match(DENSE, 4.0, seed, cap), quick=True)]
    monkeypatch.setattr(specialists, "kinds", lambda: iter([("`hasd.lp_fit`", "About.", cases)]))
    assert specialists.main(["--quick", "--out", str(tmp_path)]) == 0
    page = (tmp_path / specialists.PAGE).read_text()
    assert page.startswith("## Fits and transport") and "| tiny " in page and page in capsys.readouterr().out
