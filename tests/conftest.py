"""What holds for every test."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from kernels import NUMERICAL

settings.register_profile("any machine", deadline=None)  # an example takes as long as a busy machine lets it
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def own_random_numbers(request, monkeypatch):
    """A test that draws from its module's generator gets the same numbers whatever ran before it in its process."""
    for name, value in vars(request.module).items() if request.module else ():
        if isinstance(value, np.random.Generator):
            monkeypatch.setattr(request.module, name, np.random.default_rng(0))


def pytest_make_parametrize_id(val, argname):
    """Bytes are named, not shown: what gzip makes holds the time, and workers must agree on what tests there are."""
    return argname if isinstance(val, bytes) else None


def pytest_itemcollected(item):
    """Mark the tests that depend on arithmetic: ``make test-kernels`` runs them under several BLAS kernels."""
    if item.path.relative_to(Path(__file__).parent).as_posix().startswith(NUMERICAL):
        item.add_marker("numerical")
