"""Fixtures that several test files share."""

import pytest

from hasd.problems import _lp_spaces as lp_spaces


@pytest.fixture(params=["factored", "products"])
def route(request, monkeypatch):
    """Both ways to a solution, whatever the size."""
    if request.param == "products":
        monkeypatch.setattr(lp_spaces, "WHOLE", 0)
        monkeypatch.setattr(lp_spaces, "WIDEST", 0)
    return request.param
