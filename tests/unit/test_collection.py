"""Without an optional library pytest leaves out every file that imports it, instead of failing on it."""

import ast
import runpy
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS = runpy.run_path(str(ROOT / "conftest.py"))["NEEDS"]
FILES = sorted(path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py"))


def imported(path):
    """The libraries that a file imports when it is imported itself, by the first part of their names."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("library", NEEDS)
def test_a_file_that_imports_an_optional_library_is_left_out_without_it(library):
    found = [path.relative_to(ROOT).as_posix() for path in FILES if library in imported(path)]
    assert [path for path in found if not any(fnmatch(path, pattern) for pattern in NEEDS[library])] == []


def test_the_check_sees_imports():
    assert any("torch" in imported(path) for path in FILES)
