"""The layout of the package: arrows between its rooms go one way, and a name means one thing."""

import ast
import importlib
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "hasd"
LAYERS = (
    ("_checks", "_version", "_plots"),
    ("_math",),
    ("objectives", "theory"),
    ("_run",),
    ("_resume",),
    ("methods",),
    ("_inputs", "_scipy_style", "_scipy_methods", "_minimize", "_compare"),
    ("problems",),
    ("torch", "jax", "dask", "sklearn", "solve", "experiments"),
    ("cli", ""),
    ("__main__",),
)
"""From the bottom up: a room may use its own layer and those before it; "" is the package's own __init__."""
RANK = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}
OPTIONAL = ("torch", "jax", "dask", "sklearn")
TRAINING = {f"hasd.experiments.training_{part}" for part in ("muon", "networks", "optimizers", "runs")}
"""The experiment on training is about the adapter for PyTorch; nothing but its own modules imports these."""
ADAPTED = {"HASD"}
"""What the adapters call by one name, each in the terms of its library."""
SHARED = {"__init__", "base"}
"""Modules that mean the same in every package."""


def modules():
    """Every module of the package by its name, as a path."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["hasd", *path.relative_to(PACKAGE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room(name):
    """The part of the package that a module belongs to."""
    return [*name.split("."), ""][1]


def imports(name, path):
    """The package's modules that one imports, with the line; those for type checkers included."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            base = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield (full if full in MODULES else base), node.lineno


def test_every_room_has_its_layer():
    assert {room(name) for name in MODULES} == set(RANK)


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down_the_layers_only(name):
    upward = [(line, other) for other, line in imports(name, MODULES[name]) if RANK[room(other)] > RANK[room(name)]]
    assert not upward


@pytest.mark.parametrize("name", [name for name in MODULES if name != "hasd"])
def test_nothing_imports_an_adapter_but_itself_and_the_experiment_on_training(name):
    used = {room(other) for other, _ in imports(name, MODULES[name])} & set(OPTIONAL)
    assert used <= ({"torch"} if name in TRAINING else {room(name)})


@pytest.mark.parametrize("name", [name for name in MODULES if name != "hasd"])
def test_modules_of_the_package_are_imported_by_statements_only(name):
    assert not re.search(r"import_module\(\s*f?[\"'](hasd|\.)", MODULES[name].read_text())


@pytest.mark.parametrize("name", MODULES)
def test_the_package_imports_itself_by_relative_names(name):
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
        assert not [used for used in names if used.split(".")[0] == "hasd"]


def test_no_import_goes_round_in_a_circle():
    graph = {name: {other for other, _ in imports(name, path)} - {name} for name, path in MODULES.items()}
    done = set()

    def visit(name, above):
        assert name not in above, f"{' -> '.join([*above, name])}"
        if name not in done:
            for other in graph[name]:
                visit(other, [*above, name])
            done.add(name)

    for name in graph:
        visit(name, [])


@pytest.mark.parametrize("name", [name for name in MODULES if room(name) not in OPTIONAL and name != "hasd"])
def test_no_name_hides_a_module(name):
    if name in TRAINING:
        pytest.importorskip("torch")
    module = importlib.import_module(name)
    *above, last = name.split(".")
    assert getattr(sys.modules[".".join(above)], last) is module


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for name, path in MODULES.items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1 and name not in ADAPTED}


def test_no_two_modules_have_one_name():
    places = defaultdict(list)
    for name, path in MODULES.items():
        places[path.stem].append(name)
    assert not {stem: where for stem, where in places.items() if len(where) > 1 and stem not in SHARED}


ONE_THREAD = {f"scipy.linalg.{name}" for name in ("blas.ddot", "blas.dtrsv", "lapack.dpotrf", "lapack.dpotrs")}
"""Functions of SciPy that use one thread: `dtrsv` always, the others for vectors and matrices as small as ours."""
ONCE = {"scipy.linalg.eigvalsh"}
"""What is computed at most once for an objective, when its constants are asked for."""


def scipy_linear_algebra(source):
    """What a source imports of scipy.linalg, or could use of it by an import of all of SciPy."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in ("scipy", "scipy.linalg"))
        elif isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "scipy":
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name for name in names if name.startswith("scipy.linalg"))


def test_iterations_use_the_blas_threads_of_one_library():
    """NumPy makes the products; threads of SciPy's own would stand in their way (`_math.cholesky` says how)."""
    rooms = ("_math", "methods", "_run", "objectives")
    sources = [path.read_text() for name, path in MODULES.items() if room(name) in rooms]
    assert {name for source in sources for name in scipy_linear_algebra(source)} == ONE_THREAD | ONCE


@pytest.mark.parametrize(
    "source", ["from scipy import linalg", "import scipy.linalg as sl", "import scipy", "from scipy.linalg import qr"]
)
def test_mutation_other_imports_of_linear_algebra_are_noticed(source):
    assert set(scipy_linear_algebra(source)) - ONE_THREAD - ONCE
