"""kill -9 at random moments, many of them inside a write: there is always a checkpoint to go on from."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fifty_kills_leave_a_checkpoint_that_goes_on_bit_for_bit(tmp_path):
    """Mutation: write to the file itself and not to a temporary one: a kill in a write leaves it unreadable."""
    source = str(HERE.parents[1] / "src")
    done = subprocess.run(
        [sys.executable, str(HERE / "killed.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["killed"] == 50 and found["in_write"] >= 5
    assert all(before < after for before, after in pairwise(found["reached"]))
    assert found["same"]  # bit for bit the run that was never killed
