"""The gap that hasd certifies on the benchmark's problems, and how it compares with an earlier version's.

``python -m benchmarks.sharpness --save old.json``, then, after a change, ``--against old.json``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import hasd
from benchmarks.cli import chosen
from benchmarks.problems import Problem, Spec
from benchmarks.reference import find

TOLERANCE = 1e-8
SLOW = ("lse-20000x2000-mu1e-3", "lse-20000x2000-mu1e-6")
"""Left out: a run takes more than a minute."""


def certified(spec: Spec) -> tuple[float, float]:
    """The gap at the end of a run on the first seed, and how much of it is the charge for rounding.

    For the true distance to the minimiser where there is no ridge.
    """
    problem = spec.make(0)
    strong = problem.objective.ridge > 0.0 and not problem.black_box
    radius = None if strong else distance(problem)
    fun, jac = (problem.objective.value_and_grad, True) if problem.black_box else (problem.objective, None)
    gap = hasd.minimize(fun, problem.x0, jac=jac, tol=TOLERANCE, radius=radius, trace=False).certificate
    return gap.gap(), gap.charge()


def distance(problem: Problem) -> float:
    """||x0 - x*||_2 and a little more, as the reference is in floats."""
    return (1.0 + 1e-6) * float(np.linalg.norm(problem.x0 - find(problem).x))


def ratio(new: float, old: float) -> float:
    """How many times as large; 1 where both are 0 or both infinite."""
    if new == old:
        return 1.0
    return new / old if old > 0.0 else math.inf


def main(argv: Sequence[str] | None = None) -> int:
    """Print the gaps."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.sharpness", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--only", metavar="PATTERN", help="problems whose name contains or matches this")
    options.add_argument("--save", type=Path, help="write the gaps to this file")
    options.add_argument("--against", type=Path, help="gaps of an earlier version")
    given = options.parse_args(argv)
    old = json.loads(given.against.read_text()) if given.against else {}
    gaps, ratios = {}, {}
    print(f"{'problem':32}{'gap':>12}{'charge':>12}" + (f"{'earlier':>12}{'ratio':>9}" if old else ""))
    for spec in chosen(quick=False, pattern=given.only):
        if spec.name in SLOW:
            print(f"{spec.name:32} left out")
            continue
        gaps[spec.name], charge = certified(spec)
        line = f"{spec.name:32}{gaps[spec.name]:12.3g}{charge:12.3g}"
        if spec.name in old:
            ratios[spec.name] = ratio(gaps[spec.name], old[spec.name])
            line += f"{old[spec.name]:12.3g}{ratios[spec.name]:9.2f}"
        print(line, flush=True)
    if ratios:
        print(f"largest ratio {max(ratios.values()):.2f}, on {max(ratios, key=ratios.__getitem__)}")
    if given.save:
        given.save.write_text(json.dumps(gaps, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
