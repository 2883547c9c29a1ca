"""What holds for every test."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from hasd.methods import REGISTRY
from kernels import NUMERICAL
from support import NEEDED

settings.register_profile("any machine", deadline=None)  # an example takes as long as a busy machine lets it
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def own_random_numbers(request, monkeypatch):
    """A test that draws from its module's generator gets the same numbers whatever ran before it in its process."""
    for name, value in vars(request.module).items() if request.module else ():
        if isinstance(value, np.random.Generator):
            monkeypatch.setattr(request.module, name, np.random.default_rng(0))


@pytest.fixture(scope="session", autouse=True)
def needed_options():
    """Every method can be run by its name alone: those that need options are given the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        for method, options in NEEDED.items():
            patch.setitem(REGISTRY, method, partial(REGISTRY[method], **options))
        yield


def pytest_make_parametrize_id(val, argname):
    """Bytes are named, not shown: what gzip makes holds the time, and workers must agree on what tests there are."""
    return argname if isinstance(val, bytes) else None


def pytest_itemcollected(item):
    """Mark the tests that depend on arithmetic: ``make test-kernels`` runs them under several BLAS kernels."""
    if item.path.relative_to(Path(__file__).parent).as_posix().startswith(NUMERICAL):
        item.add_marker("numerical")
