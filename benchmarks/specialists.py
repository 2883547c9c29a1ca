"""`chebyshev`, `lp_fit` and `transport` beside the solvers made for such problems.

``python -m benchmarks.specialists``: one process, the solvers in turn on every seed, each with its default tolerances.
Prints tables and, with ``--out``, writes them to specialists.md there, for ``python -m benchmarks.publish``.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.threads import fix_threads

if __name__ == "__main__":  # before NumPy is imported
    fix_threads()

import numpy as np
from scipy.optimize import linprog

import hasd
from benchmarks import machine, minimax
from benchmarks import transport as entropic
from benchmarks.report import bullets, table
from benchmarks.summary import Ratio, geometric_mean

PAGE = "specialists.md"
SMALL_REG = 1e-4
"""The entropy's weight where plans of least cost are compared, as a part of the largest cost."""
INTRODUCTION = """## Fits and transport beside the solvers made for them, BLAS threads {threads}

Seconds are medians over the seeds; a *time ratio* is the other solver's time divided by ours on the same seed, in the
median: above 1, `hasd` is faster. Where the other solver found no answer, what it had spent counts, and the ratio is
marked `>=`. Every solver has its default tolerances. *Off by* is the worst of the seeds, and so is the *certified gap*:
what `hasd` proves about its own answer, as a part of the value."""
Found = tuple[np.ndarray | None, float]
"""An answer, None where the solver did not find one, and its seconds."""


@dataclass(frozen=True)
class Answer:
    """How long a solver took, and what its answer is off by."""

    seconds: float
    off: float | None  # None: it ended without an answer


@dataclass(frozen=True)
class Match:
    """One problem with one seed."""

    gap: float  # our certified gap, as a part of the value
    ours: Answer
    others: dict[str, Answer]


@dataclass(frozen=True)
class Case:
    """A problem with a seed to choose, and a cap in seconds for the other solvers."""

    name: str
    play: Callable[[int, float], Match]
    quick: bool = False


@dataclass(frozen=True)
class Line:
    """A solver on a problem: medians of seconds, the worst answers."""

    case: str
    other: str
    matches: list[Match] = field(repr=False)

    @property
    def ratio(self) -> Ratio:
        """The median of its seconds over ours; a bound where it did not find an answer."""
        value = statistics.median(match.others[self.other].seconds / match.ours.seconds for match in self.matches)
        return Ratio(value, "" if self.off is not None else ">=")

    @property
    def off(self) -> float | None:
        """The worst of its answers."""
        found = [match.others[self.other].off for match in self.matches]
        return None if None in found else max(one for one in found if one is not None)

    def cells(self) -> list[str]:
        """Of the table."""
        ours, its = (
            statistics.median(one.seconds for one in answers)
            for answers in ([m.ours for m in self.matches], [m.others[self.other] for m in self.matches])
        )
        off = max(match.ours.off or 0.0 for match in self.matches)
        gap = max(match.gap for match in self.matches)
        words = [f"{off:.1e}", f"{gap:.1e}", self.other, f"{its:.3g}"]
        return [self.case, f"{ours:.3g}", *words, str(self.ratio), "none" if self.off is None else f"{self.off:.1e}"]


def timed(solver: Callable[..., Any], *args: Any, **settings: Any) -> tuple[Any, float]:
    """What it returns, and its seconds."""
    began = time.perf_counter()
    found = solver(*args, **settings)
    return found, time.perf_counter() - began


def fit_match(make: Any, q: float, seed: int, cap: float) -> Match:
    """A fit in l_q: how far the norm at an answer is above the lower bound that we certify."""
    A, b = make(np.random.default_rng(seed))
    exact = q == np.inf
    res, seconds = timed(hasd.chebyshev, A, b) if exact else timed(hasd.lp_fit, A, b, power=q)

    def judge(found: Found) -> Answer:
        x, spent = found
        return Answer(spent, None if x is None else float(np.linalg.norm(A @ x - b, q)) / res.lower - 1.0)

    solvers = minimax_solvers() if exact else {"Clarabel": partial(_power_fit, q)}
    others = {name: judge(solve(A, b, cap)) for name, solve in solvers.items()}
    return Match(res.gap / res.fun, judge((res.x, seconds)), others)


def minimax_solvers() -> dict[str, Callable[[Any, np.ndarray, float], Found]]:
    """HiGHS by both of its methods, and Clarabel."""
    from benchmarks import conic

    return {
        "HiGHS simplex": partial(minimax.whole_program, method="highs-ds"),
        "HiGHS interior point": partial(minimax.whole_program, method="highs-ipm"),
        "Clarabel": conic.minimax,
    }


def _power_fit(q: float, A: Any, b: np.ndarray, cap: float) -> Found:
    from benchmarks import conic

    return conic.power_fit(A, b, round(np.log2(q)) - 1, cap)


def entropic_match(kind: str, n: int, reg: float, seed: int, cap: float) -> Match:
    """Entropic transport to a marginal error of 1e-6, which is what an answer is off by."""
    data = entropic.problem(kind, n, seed)
    runs = {name: solve(data, reg, cap) for name, solve in entropic.SOLVERS.items() if "L-BFGS" not in name}
    ours = runs.pop("hasd.transport")
    others = {name: Answer(run.seconds, None if run.word else run.error) for name, run in runs.items()}
    return Match(ours.gap, Answer(ours.seconds, ours.error), others)


def exact_match(kind: str, n: int, programs: bool, seed: int, cap: float) -> Match:
    """The plan of least cost: how far its cost is above the lower bound of POT's network simplex."""
    import ot

    from benchmarks import conic

    C, a, b = entropic.problem(kind, n, seed)
    res, seconds = timed(hasd.transport, C, a, b, SMALL_REG)
    (_, log), spent = timed(ot.emd, a, b, C, log=True)
    lower = float(a @ log["u"] + b @ (C - log["u"][:, None]).min(axis=0))  # a feasible pair of potentials
    others = {"POT emd": Answer(spent, log["cost"] / lower - 1.0)}
    if programs:
        for name, solve in (("HiGHS", highs_transport), ("Clarabel", conic.transport)):
            plan, spent = solve(C, a, b, cap)
            others[name] = Answer(spent, None if plan is None else abs(float((C * plan).sum()) / lower - 1.0))
    certified = (res.gap + SMALL_REG * np.log(n)) / res.cost
    return Match(certified, Answer(seconds, res.cost / lower - 1.0), others)


def highs_transport(C: np.ndarray, a: np.ndarray, b: np.ndarray, cap: float) -> Found:
    """The plan of least cost by HiGHS."""
    from benchmarks import conic

    rows, right = conic.transport_rows(*C.shape), np.concatenate((a, b))
    res, seconds = timed(linprog, C.ravel(), A_eq=rows, b_eq=right, options={"time_limit": cap})
    return (res.x.reshape(C.shape) if res.status == 0 else None), seconds


def fit_cases(q: float) -> Iterator[Case]:
    """Dense and sparse rows, small to middle."""
    for n, d in ((500, 20), (2000, 50), (5000, 100)):
        yield Case(f"normal {n} × {d}", partial(fit_match, minimax.gaussian(n, d), q), quick=n == 500)
    yield Case("Chebyshev basis 2000 × 40", partial(fit_match, minimax.polynomial(2000, 40), q))
    for n, d in ((5000, 100), (20_000, 200)):
        yield Case(f"sparse {n} × {d}, 5 a row", partial(fit_match, minimax.sparse(n, d, 5), q))


def kinds() -> Iterator[tuple[str, str, list[Case]]]:
    """A heading, what an answer is off by, and the cases."""
    lower = "An answer is off by what its norm is above the lower bound that `hasd` certifies, as a part of it."
    yield "`hasd.chebyshev`", f"min max|Ax − b|. {lower}", list(fit_cases(np.inf))
    for q in (4, 8):
        about = f"min ‖Ax − b‖_{q}; Clarabel with second-order cones. {lower}"
        yield f"`hasd.lp_fit`, power {q}", about, list(fit_cases(float(q)))
    about = (
        "Entropic transport, reg as a part of the largest cost, until the l_1 error of the marginals is at most 1e-6: "
        "an answer is off by this error. `none`: not there when the seconds were over, or ended short of it."
    )
    sizes = ((kind, n, reg) for kind in ("square", "random uneven") for n in (200, 500, 1000) for reg in (1e-2, 1e-3))
    cases = [Case(f"{k} {n} × {n}, reg {r:g}", partial(entropic_match, k, n, r), quick=n == 200) for k, n, r in sizes]
    yield "`hasd.transport`, entropic", about, cases
    about = (
        f"The plan of least cost, which `hasd.transport` only comes near, with reg {SMALL_REG:g} of the largest cost. "
        "An answer is off by what its cost differs from the lower bound that the potentials of POT's network simplex "
        "give, as a part of it. The others solve the problem itself, to their tolerances."
    )
    exact = [Case(f"square {n} × {n}", partial(exact_match, "square", n, n == 200), n == 200) for n in (200, 500, 1000)]
    yield "`hasd.transport`, least cost", about, exact


def measure(cases: Sequence[Case], seeds: int, cap: float) -> list[Line]:
    """Every case with every seed."""
    lines = []
    for case in cases:
        matches = [case.play(seed, cap) for seed in range(seeds)]
        for other in matches[0].others:
            lines.append(Line(case.name, other, matches))
            print(*lines[-1].cells(), sep="  ", flush=True)
    return lines


def winners(lines: Sequence[Line]) -> str:
    """Who was faster where, a line for each solver."""
    said = []
    for other in dict.fromkeys(line.other for line in lines):
        ratios = {line.case: line.ratio for line in lines if line.other == other}
        lost = [f"{case} ({ratio})" for case, ratio in ratios.items() if ratio.value < 1.0]
        mean = geometric_mean(ratio.value for ratio in ratios.values())
        where = "; slower on " + ", ".join(lost) if lost else ""
        ahead = len(ratios) - len(lost)
        faster = f"`hasd` was faster on {ahead} of {len(ratios)}"
        said.append(f"{other}: {faster}, time ratio {mean:.3g} in the geometric mean{where}")
    return bullets(said)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.specialists", description=(__doc__ or "").split("\n")[0]
    )
    options.add_argument("--quick", action="store_true", help="the smallest problems, one seed")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--cap", type=float, default=20.0, help="seconds that another solver may take")
    options.add_argument("--threads", type=int, default=1, help="threads of BLAS")
    options.add_argument("--out", type=Path, help=f"write {PAGE} into this folder")
    given = options.parse_args(argv)
    seeds = 1 if given.quick else given.seeds
    began, before = time.perf_counter(), machine.load()
    header = ["problem", "hasd s", "hasd off by", "certified gap", "other solver", "its s", "time ratio", "its off by"]
    sections = []
    for title, about, cases in kinds():
        cases[0].play(0, given.cap)  # warm up
        lines = measure([case for case in cases if case.quick or not given.quick], seeds, given.cap)
        body = table(header, [line.cells() for line in lines])
        sections.append(f"### {title}\n\n{about}\n\n{body}\n\n{winners(lines)}")
    size = "--quick" if given.quick else f"--seeds {seeds} --cap {given.cap:g}"
    command = f"python -m benchmarks.specialists {size} --threads {given.threads}"
    conditions = [
        f"`{command}`, took {time.perf_counter() - began:.0f} s",
        *machine.describe(given.threads, ("numpy", "scipy", "clarabel", "POT")),
        f"load average before {before}, after {machine.load()}",
    ]
    text = "\n\n".join([INTRODUCTION.format(threads=given.threads), bullets(conditions), *sections]) + "\n"
    print("\n" + text)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / PAGE).write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
