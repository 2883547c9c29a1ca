"""How large the package is, and what a small run costs: lines of code, files and calls, microseconds an iteration.

``python -m benchmarks.house`` for this tree; with ``--source other/src`` for the package there, so that two versions
are compared by one program.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import time
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Lines that hold code: no blanks, no comments, no docstrings.

    >>> code_lines('"A module."\\n\\nx = 1  # one\\n# two\\ny = (\\n    2)\\n')
    3
    """
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for statement in getattr(node, "body", []) if not isinstance(node, ast.Lambda | ast.IfExp) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                documented.update(range(statement.lineno, (statement.end_lineno or statement.lineno) + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - documented)


class Walk(NamedTuple):
    """The package's files and functions that a stretch of a run passes through."""

    files: set[str]
    calls: int


@contextmanager
def following(package: Path) -> Iterator[Callable[[], Walk]]:
    """Counts calls of the package's functions; asked, it tells them and begins anew."""
    files: set[str] = set()
    calls = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(package)) and not frame.f_code.co_name.startswith("<"):
            files.add(name)
            calls += 1

    def tell() -> Walk:
        nonlocal calls
        walk = Walk(set(files), calls)
        files.clear()
        calls = 0
        return walk

    sys.setprofile(profile)
    try:
        yield tell
    finally:
        sys.setprofile(None)


def default_run(hasd: Any) -> tuple[Walk, float]:
    """What the default run passes through before its first evaluation, and calls in each iteration after the third."""
    walks: list[Walk] = []

    def f(x: np.ndarray) -> tuple[float, np.ndarray]:
        return 0.5 * float(x @ x) + 0.25 * float((x * x) @ (x * x)), x + x * x * x

    def first(x: np.ndarray) -> tuple[float, np.ndarray]:
        walks.append(tell())
        return f(x)

    x0 = np.linspace(1.0, 3.0, 5)
    hasd.minimize(f, x0, jac=True)  # what is imported or computed once
    with following(Path(hasd.__file__).parent) as tell:
        hasd.minimize(first, x0, jac=True)
        tell()
        long, whole = hasd.minimize(f, x0, jac=True, tol=1e-9), tell().calls
        short, fewer = hasd.minimize(f, x0, jac=True, tol=1e-9, maxiter=3), tell().calls
    return walks[0], (whole - fewer) / (long.nit - short.nit)


def microseconds(hasd: Any, method: str, repeats: int = 7, iterations: int = 400) -> float:
    """The least time of an iteration on a function that costs next to nothing, of some repeats."""
    turned, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))
    H = (turned * np.linspace(1.0, 1e4, 20)) @ turned.T  # turned: no diagonal matrix explains it

    def f(x: np.ndarray) -> tuple[float, np.ndarray]:
        g = H @ x
        return 0.5 * float(g @ x), g

    best = np.inf
    for _ in range(repeats):
        begun = time.perf_counter()
        res = hasd.minimize(f, np.ones(20), jac=True, method=method, tol=0.0, maxiter=iterations)
        best = min(best, (time.perf_counter() - begun) / res.nit)
    return 1e6 * best


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.house", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--source", type=Path, default=Path(__file__).parents[1] / "src", help="the folder above hasd")
    given = options.parse_args(argv)
    sys.path.insert(0, str(given.source.resolve()))
    import hasd

    package = Path(hasd.__file__).parent
    files = sorted(package.rglob("*.py"))
    before, each = default_run(hasd)
    print(f"{sum(code_lines(file.read_text()) for file in files)} lines of code in {len(files)} files of {package}")
    print(f"{len(before.files)} files and {before.calls} calls before the first evaluation of the default run")
    print(f"{each:.1f} calls in an iteration of the default run")
    for method in ("agd", "hasd-qn"):
        print(f"{microseconds(hasd, method):.0f} microseconds an iteration of {method}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
