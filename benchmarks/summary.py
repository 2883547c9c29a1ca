"""From rows to ratios: the least of the rounds, medians over seeds, geometric means, the worst case, the profile."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.run import TARGETS, Row
from benchmarks.sk import UNCOUNTED
from benchmarks.solvers import BASELINE

MEASURES = ("work", "seconds")


@dataclass(frozen=True)
class Cell:
    """What a solver needed for a target on one problem and seed: the least seconds of its rounds.

    What else a machine does only adds to the seconds.
    """

    work: float
    seconds: float
    reached: bool  # in every repeat
    capped: bool

    def get(self, measure: str) -> float:
        """work or seconds; NaN where the work was not counted."""
        return math.nan if measure == "work" and self.work == UNCOUNTED else getattr(self, measure)


@dataclass(frozen=True)
class Ratio:
    """How many times less a solver needed than another.  A bound where one of them did not get there."""

    value: float
    bound: str = ""  # ">=": the other one had not reached the target when it ended; "<=": this one had not

    def __str__(self) -> str:
        """Three digits, marked where it is a bound; `no` where the solver gave up."""
        if math.isnan(self.value):
            return "-"
        return "no" if self.value == 0.0 else f"{self.bound}{self.value:.3g}"


def ratio(other: Cell, mine: Cell, measure: str) -> Ratio:
    """other/mine; 0 where mine gave up short of the target, NaN where neither reached it or nothing was counted."""
    if not (other.reached or mine.reached):
        return Ratio(math.nan)
    if not (mine.reached or mine.capped):
        return Ratio(0.0, "<=")
    above, below = other.get(measure), mine.get(measure)
    value = above / below if below > 0.0 else math.nan
    return Ratio(value, "" if other.reached and mine.reached else ">=" if mine.reached else "<=")


def geometric_mean(values: Iterable[float]) -> float:
    """Of the positive numbers among them (a solver that gave up has the ratio 0); NaN of none."""
    logs = [math.log(value) for value in values if value > 0.0]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def _median(ratios: Sequence[Ratio]) -> Ratio:
    """The median over seeds; of an even number the smaller one in the middle."""
    known = sorted((one for one in ratios if not math.isnan(one.value)), key=lambda one: one.value)
    return known[(len(known) - 1) // 2] if known else Ratio(math.nan)


class Results:
    """All rows, looked up by problem, solver and target."""

    def __init__(self, rows: Sequence[Row]):
        """Group the rows."""
        self.rows = list(rows)
        self.problems = list(dict.fromkeys(row.problem for row in rows))
        self.solvers = list(dict.fromkeys(row.solver for row in rows))
        self.first = {row.problem: row for row in reversed(self.rows)}
        groups: dict[tuple[str, str, float, int], list[Row]] = {}
        for row in rows:
            groups.setdefault((row.problem, row.solver, row.target, row.seed), []).append(row)
        self._cells = {key: _cell(group) for key, group in groups.items()}

    def cell(self, problem: str, solver: str, target: float, seed: int = 0) -> Cell | None:
        """Where the solver was run."""
        return self._cells.get((problem, solver, target, seed))

    def seeds(self, problem: str, solver: str) -> list[int]:
        """The seeds it was run with."""
        return sorted({row.seed for row in self.rows if row.problem == problem and row.solver == solver})

    def methods(self, problem: str, solver: str) -> str:
        """What the solver chose on the seeds of a problem."""
        runs = (row for row in self.rows if row.problem == problem and row.solver == solver)
        return ", ".join(dict.fromkeys(row.method for row in runs))

    def seconds(self, problem: str, solver: str, target: float) -> float:
        """The median over seeds of what was spent to the target, or without reaching it; NaN where it was not run."""
        cells = [self.cell(problem, solver, target, seed) for seed in self.seeds(problem, solver)]
        return statistics.median(cell.seconds for cell in cells if cell is not None) if cells else math.nan

    def reached(self, problem: str, solver: str, target: float) -> bool:
        """Whether it was reached on every seed."""
        cells = [self.cell(problem, solver, target, seed) for seed in self.seeds(problem, solver)]
        return all(cell is not None and cell.reached for cell in cells)

    def fastest_other(self, problem: str, solver: str, target: float) -> str | None:
        """The solver beside this one that reached the target first, on the first seed, which all of them met."""
        cells = {name: self.cell(problem, name, target) for name in self.solvers if name != solver}
        times = {name: cell.seconds for name, cell in cells.items() if cell is not None and cell.reached}
        return min(times, key=times.__getitem__, default=None)

    def ratio(self, problem: str, solver: str, target: float, measure: str, other: str = BASELINE) -> Ratio:
        """The median over seeds of other/solver."""
        ratios = []
        for seed in self.seeds(problem, solver):
            above, below = self.cell(problem, other, target, seed), self.cell(problem, solver, target, seed)
            if above is not None and below is not None:
                ratios.append(ratio(above, below, measure))
        return _median(ratios)

    def ratios(self, solver: str, target: float, measure: str, other: str = BASELINE) -> dict[str, Ratio]:
        """By problem, where there is one."""
        found = {name: self.ratio(name, solver, target, measure, other) for name in self.problems}
        return {name: one for name, one in found.items() if not math.isnan(one.value)}

    def work_before(self, earlier: Results, solver: str, target: float) -> dict[str, Ratio]:
        """By problem, the median over seeds of the solver's work in an earlier version over its work in this one."""
        found = {}
        for name in self.problems:
            both = set(self.seeds(name, solver)) & set(earlier.seeds(name, solver))
            pairs = [(earlier.cell(name, solver, target, seed), self.cell(name, solver, target, seed)) for seed in both]
            found[name] = _median(
                [ratio(old, new, "work") for old, new in pairs if old is not None and new is not None]
            )
        return {name: one for name, one in found.items() if not math.isnan(one.value)}

    def profile(self, target: float, measure: str) -> dict[str, np.ndarray]:
        """For each solver its cost over the best one's, sorted, inf where it did not get there (Dolan & More 2002)."""
        costs = {solver: [] for solver in self.solvers}  # type: dict[str, list[float]]
        for problem in self.problems:
            cells = {solver: self.cell(problem, solver, target) for solver in self.solvers}
            known = {
                solver: cell.get(measure)
                for solver, cell in cells.items()
                if cell is not None and cell.reached and not math.isnan(cell.get(measure))
            }
            best = min(known.values(), default=1.0)  # where none got there, all costs are inf
            for solver in self.solvers:
                if cells[solver] is not None:
                    costs[solver].append(known.get(solver, math.inf) / best)
        return {solver: np.sort(values) for solver, values in costs.items() if values}


def _cell(group: Sequence[Row]) -> Cell:
    return Cell(
        statistics.median(row.work for row in group),
        min(row.seconds for row in group),
        all(row.reached for row in group),
        any(row.capped for row in group),
    )


def below_reference(rows: Sequence[Row]) -> list[str]:
    """Solvers that found a value lower than the reference by more than a thousandth of the last target."""
    limit = -1e-3 * TARGETS[-1]
    found = {(row.problem, row.seed, row.solver): row.best_gap for row in rows if row.best_gap < limit}
    return [f"{key[2]} on {key[0]}, seed {key[1]}: relative gap {gap:.2e}" for key, gap in found.items()]


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Runs whose returned point, evaluated anew, is worse than the trace's end said by a tenth of the last target."""
    limit = 0.1 * TARGETS[-1]
    found = {
        (row.problem, row.seed, row.solver): (row.last_gap, row.final_gap)
        for row in rows
        if row.final_gap > row.last_gap + limit
    }
    return [
        f"{key[2]} on {key[0]}, seed {key[1]}: {told:.2e} told, {is_:.2e} found" for key, (told, is_) in found.items()
    ]
