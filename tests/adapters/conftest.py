"""Fixtures that several adapters' tests share."""

import pytest


@pytest.fixture
def double():
    """JAX in double precision, inside the test only."""
    import jax

    before = jax.config.jax_enable_x64
    with jax.enable_x64(True):
        yield
    assert jax.config.jax_enable_x64 == before
