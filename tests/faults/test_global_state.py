"""No module keeps state between calls: the sources are scanned for it, and what modules hold is compared."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hasd
import runs

SOURCES = Path(hasd.__file__).parent
OPTIONAL = ("dask", "jax", "torch", "sklearn")  # packages whose libraries may be missing

KNOWN = {
    # BLAS has one number of threads a process, whoever asks: a lock and a count of those who hold it to one.
    "dask/blas.py: global _inside, _limit",
    "dask/blas.py: cache of _controller()",
    # The same seed gives the same data: nothing but time depends on it, and nobody writes into them.
    "experiments/families.py: cache of data()",
    # Only the command line reads files and solves there, in one thread.
    "solve/plot.py: calls warnings.catch_warnings",
    "solve/plot.py: calls warnings.simplefilter",
    "solve/solvers.py: calls warnings.catch_warnings",
    "solve/solvers.py: calls warnings.simplefilter",
    "solve/files.py: calls warnings.catch_warnings",
    "solve/files.py: calls warnings.simplefilter",
}
"""What is allowed, and why."""

CACHES = {"cache", "lru_cache"}
CHANGES = {"append", "extend", "insert", "remove", "pop", "clear", "update", "setdefault", "add", "discard", "popitem"}
SETTINGS = {
    *(f"warnings.{name}" for name in ("simplefilter", "filterwarnings", "resetwarnings", "catch_warnings")),
    *(f"np.{name}" for name in ("seterr", "seterrcall", "setbufsize", "set_printoptions", "random.seed")),
    *("random.seed", "os.putenv", "os.chdir", "locale.setlocale", "sys.setrecursionlimit", "signal.signal"),
    *("torch.manual_seed", "torch.set_default_dtype", "torch.set_num_threads", "jax.config.update"),
    *("plt.style.use", "plt.rc", "matplotlib.use", "multiprocessing.set_start_method"),
}
"""Calls that change the process for everybody."""


def findings(text: str, name: str) -> Iterator[str]:
    """Where a module could keep something from one call to the next, or change something that is everybody's."""
    tree = ast.parse(text)
    shared = {target for node in tree.body for target in _bound(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield f"{name}: global {', '.join(node.names)}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from (f"{name}: {what}" for what in _of_function(node, shared))
        elif isinstance(node, ast.ClassDef):
            held = [target for line in node.body for target in _bound(line) if _mutable(getattr(line, "value", None))]
            yield from (f"{name}: class {node.name} shares {target}" for target in held)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SETTINGS:
            yield f"{name}: calls {ast.unparse(node.func)}"


def _bound(node: ast.AST) -> list[str]:
    """The names that a statement binds to a value."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _mutable(value: ast.AST | None) -> bool:
    made = isinstance(value, ast.Call) and ast.unparse(value.func) in ("dict", "list", "set", "defaultdict", "Counter")
    return made or isinstance(value, ast.Dict | ast.List | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _of_function(node: Any, shared: set[str]) -> Iterator[str]:
    """Defaults that live as long as the function, caches, and writes to names of the module."""
    label = f"{getattr(node, 'name', 'lambda')}()"
    defaults = [*node.args.defaults, *node.args.kw_defaults]
    yield from (f"a default of {label} is shared" for default in defaults if _mutable(default))
    for decorator in getattr(node, "decorator_list", []):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called).split(".")[-1] in CACHES:
            yield f"cache of {label}"
    own = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    own |= {argument.arg for argument in ast.walk(node) if isinstance(argument, ast.arg)}
    for inner in ast.walk(node):
        for target in _written(inner):
            if isinstance(target, ast.Name) and target.id in shared - own:
                yield f"{label} writes to {target.id}"


def _written(node: ast.AST) -> list[ast.AST]:
    """What a statement or call changes: the a of a[i] = ..., a.b = ..., a.append(...)."""
    if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return [node.func.value]
    return []


def test_no_source_keeps_state():
    """Exactly the exceptions above: one more is a finding, one less a line of the list to take out."""
    files = sorted(SOURCES.rglob("*.py"))
    assert len(files) > 80
    found = {what for file in files for what in findings(file.read_text(), file.relative_to(SOURCES).as_posix())}
    assert found == KNOWN


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("n = 0\ndef f():\n    global n\n    n += 1", "global n"),
        ("seen = {}\ndef f(x):\n    seen[x] = 1", "f() writes to seen"),
        ("seen = []\ndef f(x):\n    seen.append(x)", "f() writes to seen"),
        ("seen: dict = {}\nclass C:\n    def f(self, x):\n        del seen[x]", "f() writes to seen"),
        ("class Box: pass\nbox = Box()\ndef f():\n    box.n = 1", "f() writes to box"),
        ("def f(x, seen=[]):\n    return seen", "a default of f() is shared"),
        ("def f(x, *, seen={}):\n    return seen", "a default of f() is shared"),
        ("class C:\n    seen = {}", "class C shares seen"),
        ("class C:\n    seen: list[int] = []", "class C shares seen"),
        ("import functools\n@functools.lru_cache(maxsize=None)\ndef f(x): ...", "cache of f()"),
        ("from functools import cache\n@cache\ndef f(x): ...", "cache of f()"),
        ("import numpy as np\nnp.seterr(all='ignore')", "calls np.seterr"),
        ("import warnings\ndef f():\n    warnings.simplefilter('ignore')", "calls warnings.simplefilter"),
    ],
)
def test_mutation_the_scan_finds_state(source, finding):
    assert set(findings(source, "m.py")) == {f"m.py: {finding}"}


def test_the_scan_leaves_locals_alone():
    source = (
        "seen = {}\ndef f(x):\n    seen = []\n    seen.append(x)\n    self = [x]\n    self[0] = seen\n    return self"
    )
    assert not set(findings(source, "m.py"))


def modules() -> list[types.ModuleType]:
    """Every module of the package that needs no optional library."""
    names = [info.name for info in pkgutil.walk_packages([str(SOURCES)], "hasd.", onerror=lambda name: None)]
    return [importlib.import_module(name) for name in names if name.split(".")[1] not in (*OPTIONAL, "experiments")]


def held() -> dict[str, str]:
    """What modules and their classes are bound to: which object, and what is in it."""
    found = {}
    for module in modules():
        for name, value in vars(module).items():
            if not isinstance(value, types.ModuleType) and not name.startswith("__"):
                found[f"{module.__name__}.{name}"] = _told(value)
            if isinstance(value, type) and value.__module__ == module.__name__:
                members = {key: _told(one) for key, one in vars(value).items() if not key.startswith(("__", "_abc_"))}
                found |= {f"{module.__name__}.{name}.{key}": one for key, one in members.items()}
    return found


def _told(value: Any) -> str:
    inside = repr(value) if isinstance(value, dict | list | set | tuple | bytearray | np.ndarray) else ""
    return f"{id(value)} {inside}"


def test_runs_leave_nothing_behind_in_modules():
    before = held()
    assert len(before) > 500
    runs.digests()
    assert held() == before


def test_mutation_what_is_left_behind_is_noticed(monkeypatch):
    before = held()
    monkeypatch.setitem(hasd.methods.REGISTRY, "mine", object)
    assert set(held().items()) ^ set(before.items())
    monkeypatch.undo()
    monkeypatch.setattr(hasd.objectives.Quadratic, "note", "left", raising=False)
    assert held() != before
