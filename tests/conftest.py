"""What holds for every test."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def own_random_numbers(request, monkeypatch):
    """A test that draws from its module's generator gets the same numbers whatever ran before it in its process."""
    for name, value in vars(request.module).items() if request.module else ():
        if isinstance(value, np.random.Generator):
            monkeypatch.setattr(request.module, name, np.random.default_rng(0))
