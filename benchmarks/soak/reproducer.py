"""A file that shows what was found: it needs NumPy and hasd, and nothing of the benchmarks."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.soak import checks
from benchmarks.soak.checks import Truth
from benchmarks.soak.run import RAISES, Run

TEMPLATE = '''r"""{kind}, {method}: {name}.

{sentence}

Found by python -m benchmarks.rounding --seed {seed}, in problem {number}.  Exits with 1 where it is still so.
"""

import math
import sys
import warnings
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, setcontext
from typing import Any, Callable

import numpy as np

import hasd

O = hasd.objectives
inf = math.inf
setcontext(Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[DivisionByZero, InvalidOperation]))
warnings.simplefilter("error")

{data}
x0 = {x0}
fun = {code}
settings = {settings}


def exact(data):
    """The same numbers as Decimal."""
    array = np.asarray(data, dtype=np.float64)
    return Decimal(float(array)) if array.ndim == 0 else np.vectorize(Decimal, otypes=[object])(array)


def value(x, {names}):
    """f(x) to sixty digits."""
    return {formula}


{truth}

{check}

minimum = Decimal("{minimum}")
res = hasd.minimize(fun, x0, **settings)
truth = Truth(
    gap=value(exact(res.x), *map(exact, [{names}])) - minimum,
    evaluate=getattr(fun, "value_and_grad", fun),
    minimum=minimum,
    radius={radius!r},
    needs_radius={needs_radius},
    gap_tol={gap_tol!r},
)
print(res.message)
print("the true gap is", f"{{truth.gap:.6g}}", "and the certified one", res.certificate.gap(truth.radius))
found = {call}
print(found or "nothing is wrong any more")
sys.exit(1 if found else 0)
'''


def write(run: Run, name: str, folder: Path) -> Path:
    """The file for one finding of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    seed, number = run.seed
    words = (name, run.problem.kind, run.method, str(seed), str(number))
    stem = "-".join(words).replace(" ", "_").replace(",", "")
    path = folder / f"{stem}.py"
    for again in range(2, 100):
        if not path.exists():
            break
        path = folder / f"{stem}-{again}.py"
    path.write_text(text(run, name))
    return path


def text(run: Run, name: str) -> str:
    """Its content."""
    problem, reference = run.problem, run.problem.reference
    assert reference is not None
    check = None if name == RAISES else getattr(checks, name)
    return TEMPLATE.format(
        kind=problem.kind,
        method=run.method,
        name=name.replace("_", " "),
        sentence=run.found[name],
        seed=run.seed[0],
        number=run.seed[1],
        data="\n".join(f"{key} = {shown(value)}" for key, value in problem.data.items()),
        x0=shown(problem.x0),
        code=problem.code,
        settings=run.settings,
        names=", ".join(key for key in problem.data if key != "n"),
        formula=problem.exact.formula,
        truth=inspect.getsource(Truth),
        check="" if check is None else inspect.getsource(check),
        minimum=reference.minimum,
        radius=reference.radius,
        needs_radius=not run.certified,
        gap_tol=run.gap_tol,
        call='""' if check is None else f"{name}(res, truth)",
    )


def shown(value: Any) -> str:
    """An array or a number as Python reads it, to the last bit."""
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, dtype=np.{value.dtype})"
    return repr(value)
