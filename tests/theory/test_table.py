"""No bound without a test: every function of hasd.theory is used by a test beside this one or in tests/unit."""

from pathlib import Path

import pytest

from hasd import theory

HERE = Path(__file__).parent
TEXT = "".join(path.read_text() for path in [*HERE.glob("test_*.py"), HERE.parent / "unit" / "test_theory.py"])
PAGE = (HERE.parents[1] / "docs" / "theory.md").read_text()
FUNCTIONS = [name for name in dir(theory) if not name.startswith("_") and callable(getattr(theory, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_theory_is_tested_and_on_the_page(name):
    assert f"{name}(" in TEXT
    assert f"`{name}`" in PAGE
