"""Mutants of a module, each against the module's tests: ``python tests/mutation.py geometry`` lists those that survive.

A mutant changes one operator, comparison, number, condition or extreme of the source.  It lives in a forked process
in which the changed source has taken the module's place: the file is never touched, and nothing is left behind.
"""

from __future__ import annotations

import ast
import copy
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import pytest

HERE = Path(__file__).parent
TESTS = {
    "geometry": ["unit/test_geometry.py", "equivalence/test_lockstep.py"],
    "estimate": ["unit/test_estimate.py", "equivalence/test_lockstep.py"],
    "search": ["unit/test_search.py", "equivalence/test_lockstep.py"],
}
"""What a mutant must pass to survive; the quickest first."""
SECONDS = 20
"""Of processor time after which a mutant counts as killed: it does not end."""
EXAMPLES = 20
"""Of Hypothesis a test: a mutant is run hundreds of times as often as the module itself."""

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}

Change = Callable[[ast.AST], ast.AST | None]


def changes(node: ast.AST) -> Iterator[Change]:
    """The ways in which a node may be replaced; None: its operator is changed where it stands."""
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        yield lambda node: setattr(node, "op", OPERATORS[type(node.op)]())
    elif isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            if type(op) in OPERATORS:
                yield lambda node, k=k: node.ops.__setitem__(k, OPERATORS[type(node.ops[k])]())
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda node: ast.Constant(node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield lambda node: node.operand
    elif isinstance(node, ast.IfExp | ast.If):
        yield lambda node: setattr(node, "test", ast.Constant(True))
        yield lambda node: setattr(node, "test", ast.Constant(False))
    elif isinstance(node, ast.Name) and node.id in EXTREMES and isinstance(node.ctx, ast.Load):
        yield lambda node: setattr(node, "id", EXTREMES[node.id])


class _Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, old: ast.AST, new: ast.AST):
        self.old, self.new = old, ast.copy_location(new, old)

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().generic_visit(node)


def mutants(source: str) -> Iterator[tuple[int, str, ast.Module]]:
    """The line, the statement before and after, and the module, for every single change."""
    tree = ast.parse(source)
    for index, node in enumerate(ast.walk(tree)):
        for change in changes(node):
            twin = copy.deepcopy(tree)
            target = list(ast.walk(twin))[index]
            statement = next(s for s in reversed(list(ast.walk(twin))) if isinstance(s, ast.stmt) and _holds(s, target))
            line, before, new = target.lineno, _first_line(statement), change(target)
            if new is not None:
                twin = _Replace(target, new).visit(twin)
                statement = _Replace(target, new).visit(statement)
            yield line, f"{before}  ->  {_first_line(statement)}", ast.fix_missing_locations(twin)


def _first_line(statement: ast.AST) -> str:
    return ast.unparse(statement).splitlines()[0]


def _holds(statement: ast.AST, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(statement))


def put_in_place(module: ModuleType, tree: ast.Module) -> None:
    """Run the mutant's source in the module, and hand what it defines to all who imported that from there."""
    before = dict(vars(module))
    exec(compile(tree, f"<mutant of {module.__name__}>", "exec"), vars(module))
    changed = {name: vars(module)[name] for name, old in before.items() if vars(module)[name] is not old}
    for other in list(sys.modules.values()):
        names = (
            vars(other) if other.__name__.startswith("hasd") or str(HERE) in str(getattr(other, "__file__", "")) else {}
        )
        for name in [name for name in names if name in changed and names[name] is before[name]]:
            names[name] = changed[name]


class Mutation:
    """A plugin that runs what pytest has collected once for each mutant, in a process of its own."""

    def __init__(self, name: str):
        """Remember which module."""
        self.name = name

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """The quick tests first: those with an example of their own, then Hypothesis', then whole runs."""
        items.sort(key=lambda item: ("unit" not in str(item.path), hasattr(item.obj, "hypothesis")))

    def pytest_runtestloop(self, session: Any) -> bool:
        """Print the survivors as they are found, then the count."""
        module = sys.modules[f"hasd.{self.name}"]
        source = Path(str(module.__file__)).read_text()
        if not self.survives(session, module, ast.parse(source)):
            raise session.Failed("the tests fail without any mutation")
        count = left = 0
        for line, what, tree in mutants(source):
            count += 1
            if self.survives(session, module, tree):
                left += 1
                print(f"{self.name}.py:{line}: {what}", flush=True)
        print(f"{count} mutants, {left} survive", flush=True)
        return True

    def survives(self, session: Any, module: ModuleType, tree: ast.Module) -> bool:
        """Whether all tests pass with it."""
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1] == 0
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        try:
            put_in_place(module, tree)
            for item, following in zip(session.items, [*session.items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    break
        except BaseException:  # a mutant that cannot even be imported
            os._exit(1)
        os._exit(bool(session.testsfailed))


def main(module: str) -> None:
    """Collect the tests once, then run them against one mutant after the other."""
    few = {"max_examples": EXAMPLES, "derandomize": True, "database": None, "deadline": None}
    hypothesis.settings.register_profile("mutation", **few)
    hypothesis.settings.load_profile("mutation")
    options = ["-qq", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "--override-ini=addopts=--import-mode=importlib"]
    pytest.main(
        [*options, f"--rootdir={HERE.parent}", *(str(HERE / test) for test in TESTS[module])], [Mutation(module)]
    )


if __name__ == "__main__":
    main(sys.argv[1])
