"""Run the solvers on a problem, in turn, and turn their histories into rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.problems import Problem, Spec
from benchmarks.reference import Reference, find
from benchmarks.sk import sklearn_solvers
from benchmarks.solvers import BASELINE, LINEAR_CG, OURS, Run, Solver, solvers_for

TARGETS = (1e-3, 1e-6, 1e-9)
"""Relative gaps (f - f*)/(f0 - f*)."""
MAIN = 1e-6
"""The one the aims speak of."""
WARM_UP = 0.05
"""Seconds a solver is run for before it is measured."""
PAUSE = 0.2
"""Seconds of rest before a measured run.  Threads of BLAS keep a core busy for a while after their last task, waiting
for the next, and SciPy's are others than NumPy's: without a rest, each solver would be slowed by the one before it."""
PATIENCE = 3.0
"""A peer other than the baseline is given so many times the baseline's seconds."""
LEAST_CAP = 0.5
"""But so many seconds at least."""
LATER = 20.0
"""On seeds after the first no run takes more seconds than this: what it spent then counts as a bound."""
LONG = 5.0
"""A solver whose first run took more seconds than this, or was stopped by the cap, is not repeated."""
SHORT, ROUNDS = 1.0, 3
"""A solver that takes fewer seconds than this is run in so many rounds at least, on every seed (not with --quick or
--alone): a short run may fall wholly into a moment at which something else has the processor."""


@dataclass(frozen=True)
class Row:
    """One target on one run."""

    problem: str
    family: str
    n: int
    d: int
    nnz: int
    seed: int
    repeat: int
    solver: str
    method: str
    unit: str
    target: float
    reached: bool
    capped: bool
    work: int  # to the target, or spent without reaching it
    seconds: float
    best_gap: float  # the smallest relative gap of the run
    last_gap: float  # the one it ended with
    final_gap: float  # that of the returned point, evaluated anew; NaN where none is returned
    f_star: float
    reference: str  # how f* was found


@dataclass(frozen=True)
class Settings:
    """What the command line says."""

    seeds: int = 5
    repeats: int = 3
    rounds: int = ROUNDS  # at least, of short runs
    cap: float = 60.0
    alone: bool = False  # ours only
    cache: Path | None = None
    say: Callable[[str], None] = print


def rows_of(
    spec: Spec, problem: Problem, reference: Reference, seed: int, repeat: int, name: str, run: Run
) -> list[Row]:
    """A row for each target."""
    common = {
        "problem": spec.name,
        "family": spec.family,
        "n": problem.matrix.shape[0],
        "d": problem.x0.size,
        "nnz": problem.nnz,
        "seed": seed,
        "repeat": repeat,
        "solver": name,
        "method": run.method,
        "unit": problem.unit,
        "capped": run.capped,
        "best_gap": reference.gap(run.history.best),
        "last_gap": reference.gap(run.history.values[-1]) if run.history.values else math.nan,
        "final_gap": reference.gap(run.final),
        "f_star": reference.fun,
        "reference": reference.how,
    }
    rows = []
    for target in TARGETS:
        crossing = run.history.crossing(reference.value(target))
        work, seconds = crossing or run.history.spent
        rows.append(Row(**common, target=target, reached=crossing is not None, work=work, seconds=seconds))
    return rows


def measure(spec: Spec, settings: Settings) -> Iterator[Row]:
    """All seeds of a problem.  Only the first seed meets every peer; the others ours, the baseline and linear CG."""
    for seed in range(settings.seeds):
        problem = spec.make(seed)
        reference = find(problem, settings.cache, f"{spec.name}|{seed}")
        solvers = {**solvers_for(problem), **dict(sklearn_solvers(problem))}
        peers = () if seed > 0 else spec.peers
        if peers is not None:
            solvers = {name: solvers[name] for name in (BASELINE, OURS, LINEAR_CG, *peers) if name in solvers}
        if settings.alone:
            solvers = {OURS: solvers[OURS]}
        repeats = min(spec.repeats, settings.repeats) if seed == 0 else 1
        yield from _in_turn(spec, problem, reference, seed, solvers, repeats, settings)


def _in_turn(
    spec: Spec,
    problem: Problem,
    reference: Reference,
    seed: int,
    solvers: dict[str, Solver],
    repeats: int,
    settings: Settings,
) -> Iterator[Row]:
    """Warm up, then round after round over the solvers."""
    goal = reference.value(TARGETS[-1])
    for solver in solvers.values():
        solver(problem, goal, WARM_UP)
    took: dict[str, float] = {}
    finished: set[str] = set()
    for repeat in range(max(repeats, settings.rounds)):
        if repeat == repeats:
            finished.update(name for name, seconds in took.items() if seconds >= SHORT)
        for name, solver in solvers.items():
            if name in finished:
                continue
            cap = settings.cap if seed == 0 else min(settings.cap, LATER)
            if name not in (BASELINE, OURS):
                cap = min(cap, max(LEAST_CAP, PATIENCE * took[BASELINE]))
            time.sleep(PAUSE)
            run = solver(problem, goal, cap)
            took.setdefault(name, run.history.spent[1])
            if run.capped or took[name] > LONG:
                finished.add(name)
            settings.say(_line(spec, reference, seed, repeat, name, run))
            yield from rows_of(spec, problem, reference, seed, repeat, name, run)


def _line(spec: Spec, reference: Reference, seed: int, repeat: int, name: str, run: Run) -> str:
    work, seconds = run.history.spent
    gap = reference.gap(run.history.best)
    what = "cap" if run.capped else "done" if gap <= TARGETS[-1] else "ended by itself"
    return f"{spec.name:32} seed {seed} round {repeat} {name:24} {work:8d} {seconds:9.3f} s  gap {gap:9.2e}  {what}"
