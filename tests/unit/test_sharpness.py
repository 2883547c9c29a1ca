"""The certified gaps of the benchmark's problems, side by side with an earlier version's."""

import json
import math
import sys
from pathlib import Path

import pytest

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from benchmarks import problems, sharpness  # noqa: E402
from benchmarks.problems import Spec  # noqa: E402

SPECS = [
    Spec("ridge", "", lambda seed: problems.log_sum_exp(40, 8, 1e-2, seed)),
    Spec("none", "", lambda seed: problems.least_squares(30, 6, 1e-1, seed)),
    Spec("black box", "", lambda seed: problems.transport(6, 1e-1, seed, black_box=True)),
]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Three small problems in place of the large ones."""
    monkeypatch.setattr(sharpness, "chosen", lambda quick, pattern: SPECS)


def test_saved_gaps_are_compared_with(tmp_path, capsys):
    file = tmp_path / "old.json"
    assert sharpness.main(["--save", str(file)]) == 0
    gaps = json.loads(file.read_text())
    assert gaps.keys() == {"ridge", "none", "black box"} and all(0.0 < gap < 1e-3 for gap in gaps.values())
    file.write_text(json.dumps({**gaps, "none": gaps["none"] / 2.0}))
    assert sharpness.main(["--against", str(file)]) == 0
    assert "largest ratio 2.00, on none" in capsys.readouterr().out


def test_a_slow_problem_is_left_out_and_named(monkeypatch, capsys):
    monkeypatch.setattr(sharpness, "SLOW", ("ridge", "none", "black box"))
    assert sharpness.main([]) == 0 and capsys.readouterr().out.count("left out") == 3


def test_a_ratio_to_nothing_is_infinite_unless_both_are_nothing():
    assert sharpness.ratio(1.0, 0.0) == math.inf and sharpness.ratio(0.0, 0.0) == 1.0 == sharpness.ratio(
        math.inf, math.inf
    )
