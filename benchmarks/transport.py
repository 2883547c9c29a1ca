"""hasd.transport against Sinkhorn and L-BFGS on the dual: passes over C and seconds to an l_1 marginal error of 1e-6.

    python -m benchmarks.transport [--quick]

One process, the solvers in turn on every seed, medians over the seeds.  Costs are divided by their maximum: reg means a
share of it.  A half-step of Sinkhorn is one pass over K, so that an iteration counts two (its error check, every
tenth iteration, counts nothing); an evaluation of the dual is one; ours counts its products with the plan by the
entries they touch.  POT stops by the l_2 error, which is set to 1e-6/sqrt(m) for the l_1 error to follow.  `cap`: not
there when the seconds were over (not repeated on other seeds); `fail`: ended short of 1e-6 by itself.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.threads import fix_threads

if __name__ == "__main__":  # before NumPy is imported
    fix_threads()

import numpy as np
from scipy.optimize import minimize

from benchmarks.report import table
from hasd.objectives import EntropicTransport
from hasd.problems._transport import transport

TARGET = 1e-6
REGS = (1e-1, 1e-2, 1e-3, 1e-4)
Problem = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Run:
    """One solver on one problem."""

    passes: float
    seconds: float
    error: float
    capped: bool = False
    gap: float = math.nan  # certified, as a part of the value; ours only

    @property
    def word(self) -> str:
        """What to print where it did not arrive."""
        return "" if self.error <= TARGET else "cap" if self.capped else "fail"


def problem(kind: str, n: int, seed: int) -> Problem:
    """Points in the unit square or random costs, uniform or uneven masses; max C = 1."""
    rng = np.random.default_rng(seed)
    if "square" in kind:
        C = ((rng.random((n, 1, 2)) - rng.random((1, n, 2))) ** 2).sum(axis=-1)
    else:
        C = rng.random((n, n))
    a, b = (rng.random(n) ** 2 + 0.01, rng.random(n) ** 2 + 0.01) if "uneven" in kind else (np.ones(n), np.ones(n))
    return C / C.max(), a / a.sum(), b / b.sum()


def error(P: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The l_1 error of both marginals; inf where P is not finite."""
    off = float(np.abs(P.sum(axis=1) - a).sum() + np.abs(P.sum(axis=0) - b).sum())
    return off if math.isfinite(off) else math.inf


def ours(data: Problem, reg: float, cap: float) -> Run:
    """hasd.transport with its defaults."""
    C, a, b = data
    began = time.perf_counter()
    res = transport(C, a, b, reg, error_tol=TARGET, time_limit=cap)
    seconds = time.perf_counter() - began
    off = error(np.exp((res.u[:, None] + res.v - C) / reg), a, b)
    return Run(res.npass, seconds, off, seconds >= cap, res.gap / abs(res.fun))


def sinkhorn(method: str, data: Problem, reg: float, cap: float) -> Run:
    """POT's, with as many iterations as fit the cap by the pace of the first ones."""
    import ot

    C, a, b = data
    call = partial(ot.sinkhorn, a, b, C, reg, method=method, stopThr=TARGET / math.sqrt(len(b)), log=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        call(numItermax=20)
        pace = (time.perf_counter() - began) / 20
        limit = max(20, int(cap / pace))
        began = time.perf_counter()
        P, log = call(numItermax=limit)
        seconds = time.perf_counter() - began
    done = log["niter"] + 1
    return Run(2 * done, seconds, error(P, a, b), done >= limit)


class Arrived(Exception):
    """Raised out of SciPy's loop."""


def lbfgs(data: Problem, reg: float, cap: float) -> Run:
    """SciPy's L-BFGS-B on the dual in (u, v), its tolerances opened, stopped at the target or the cap."""
    f = EntropicTransport(*data, reg)
    began = time.perf_counter()
    least = math.inf

    def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal least
        value, g = f.value_and_grad(x)
        least = min(least, float(np.abs(g).sum()))
        if least <= TARGET or time.perf_counter() - began > cap:
            raise Arrived
        return value / reg, g  # in units of reg, x/reg: as well scaled as the dual can be

    try:
        options = {"maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0}
        minimize(lambda z: fun(reg * z), np.zeros(f.dimension), jac=True, method="L-BFGS-B", options=options)
    except Arrived:
        pass
    seconds = time.perf_counter() - began
    return Run(f.nprod, seconds, least, seconds > cap)


SOLVERS: dict[str, Callable[[Problem, float, float], Run]] = {
    "hasd.transport": ours,
    "POT sinkhorn": partial(sinkhorn, "sinkhorn"),
    "POT sinkhorn_log": partial(sinkhorn, "sinkhorn_log"),
    "L-BFGS-B, dual": lbfgs,
}


def measure(kind: str, n: int, reg: float, seeds: int, cap: float) -> dict[str, list[Run]]:
    """Every solver on every seed, in turn; one that was capped is not run again."""
    runs: dict[str, list[Run]] = {name: [] for name in SOLVERS}
    for seed in range(seeds):
        data = problem(kind, n, seed)
        for name, solver in SOLVERS.items():
            if not any(run.word for run in runs[name]):
                runs[name].append(solver(data, reg, cap))
    return runs


def cells(runs: Sequence[Run]) -> list[str]:
    """Passes and seconds, medians over the seeds; the word where one did not arrive."""
    if word := next((run.word for run in runs if run.word), ""):
        return [word, word]
    passes, seconds = (statistics.median(getattr(run, what) for run in runs) for what in ("passes", "seconds"))
    return [f"{passes:.0f}", f"{seconds:.3g}"]


def ratio(runs: dict[str, list[Run]]) -> str:
    """Passes of the better Sinkhorn over ours."""
    best = min((statistics.median(r.passes for r in runs[name]) for name in _sinkhorns(runs)), default=math.nan)
    mine = statistics.median(run.passes for run in runs["hasd.transport"])
    if not math.isnan(best):
        return f"{best / mine:.3g}"
    spent = max(run.passes for name in SOLVERS if "sinkhorn" in name for run in runs[name])
    return f">={spent / mine:.3g}"


def _sinkhorns(runs: dict[str, list[Run]]) -> list[str]:
    return [name for name in runs if "sinkhorn" in name and not any(run.word for run in runs[name])]


def main(argv: Sequence[str] | None = None) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 x 200, one seed, a cap of 2 seconds")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cap", type=float, default=10.0, help="seconds a run may take")
    parser.add_argument("--out", type=Path, help="write the table here too")
    options: Any = parser.parse_args(argv)
    sizes = (200,) if options.quick else (200, 500, 1000)
    seeds, cap = (1, min(2.0, options.cap)) if options.quick else (options.seeds, options.cap)
    header = ["problem", "reg", *(f"{name} {what}" for name in SOLVERS for what in ("passes", "s")), "Sinkhorn/ours"]
    lines = []
    measure("square", 50, 1e-1, 1, 1.0)  # warm up
    for n in sizes:
        for kind in ("square", "square uneven", "random", "random uneven"):
            for reg in REGS:
                runs = measure(kind, n, reg, seeds, cap)
                lines.append([f"{kind} {n}", f"{reg:g}", *(c for r in runs.values() for c in cells(r)), ratio(runs)])
                print(*lines[-1], sep="\t", flush=True)
    text = table(header, lines)
    print("\n" + text)
    if options.out:
        options.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
