"""Whether what hasd says survives rounding: random small problems, held against an exact reference.

``python -m benchmarks.rounding --runs 20000 --seed 0`` makes that many runs, the same ones for the same seed;
``--minutes 30`` draws a new seed and goes on until the minutes are over.  Every finding becomes a file in ``--out``
that shows it by itself.  Exits with 1 where there is any.
"""

from __future__ import annotations

import argparse
import math
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from benchmarks.soak import reproducer
from benchmarks.soak.checks import CHECKS
from benchmarks.soak.run import RAISES, Run, runs

NAMES = (*(check.__name__ for check in CHECKS), RAISES)
"""Of everything that can be found."""


@dataclass
class Summary:
    """Counts of runs and findings, and how sharp the certificates are."""

    total: int = 0
    found: Counter[str] = field(default_factory=Counter)  # by check
    groups: dict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    slack: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # certified over true, by kind
    digits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))  # certified over |f| eps
    converged: Counter[bool] = field(default_factory=Counter)  # status 0, by whether the exact gradient agrees

    def add(self, run: Run) -> None:
        """Take in one run."""
        self.total += 1
        self.found.update(list(run.found))
        types = f"x0 {run.problem.x0.dtype}"
        for group in (("kind", run.problem.kind), ("method", run.method), ("type", types)):
            self.groups[group].update(list(run.found))
            self.groups[group]["runs"] += 1
            self.groups[group]["bad"] += bool(run.found)
        if run.res is not None and RAISES not in run.found:
            self._measure(run)

    def _measure(self, run: Run) -> None:
        gap, true = run.res.certificate.gap(run.truth.radius), float(run.truth.gap)
        eps = float(np.finfo(run.res.x.dtype).eps)
        self.slack[run.problem.kind].append(_ratio(gap, true))
        self.digits[run.problem.kind].append(_ratio(gap, abs(run.res.fun) * eps))
        if run.res.status == 0:
            self.converged[run.converged_in_truth()] += 1

    @property
    def violations(self) -> int:
        """How much was found."""
        return self.found.total()

    def text(self) -> str:
        """The tables."""
        return "\n".join([*self._counts(), "", *self._sharpness(), "", *self._end()])

    def _counts(self) -> Iterator[str]:
        for number, name in enumerate(NAMES, 1):
            yield f"({number}) {name.replace('_', ' ')}: {self.found[name]}"
        yield ""
        yield f"{'':35}{'runs':>7}{'bad':>7}" + "".join(f"{f'({number})':>7}" for number in range(1, len(NAMES) + 1))
        for (_, label), counts in sorted(self.groups.items()):
            yield f"{label:35}" + "".join(f"{counts[name]:7d}" for name in ("runs", "bad", *NAMES))

    def _sharpness(self) -> Iterator[str]:
        yield f"{'certified gap, median and 90%':35}{'over the true one':>22}{'over |f| eps':>22}{'inf':>8}"
        for kind in sorted(self.slack):
            shares = [f"{_quantile(ratios[kind], q):11.2g}" for ratios in (self.slack, self.digits) for q in (0.5, 0.9)]
            infinite = float(np.mean(np.isinf(self.slack[kind])))
            yield f"{kind:35}{''.join(shares)}{infinite:8.1%}"

    def _end(self) -> Iterator[str]:
        yield (
            f"status 0 at {self.converged.total()} points; the exact gradient is beyond the tolerance at "
            f"{self.converged[False]} of them"
        )
        yield f"{self.total} runs, {self.violations} violations"


def _ratio(one: float, other: float) -> float:
    """NaN where there is none."""
    return one / other if other > 0.0 else math.nan


def _quantile(values: Sequence[float], q: float) -> float:
    """Of those that are finite."""
    finite = [value for value in values if math.isfinite(value)]
    return float(np.quantile(finite, q)) if finite else math.nan


def until(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[Run]:
    """Runs of a new seed until the time is over."""
    end = clock() + seconds
    for run in runs(secrets.randbits(32)):
        yield run
        if clock() >= end:
            return


def collect(found: Iterable[Run], out: Path) -> Summary:
    """Run them all; what is found is written down at once."""
    summary = Summary()
    for run in found:
        summary.add(run)
        for name in run.found:
            reproducer.write(run, name, out)
    return summary


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print the tables."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.rounding", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--runs", type=int, default=20000, help="how many")
    options.add_argument("--seed", type=int, default=0, help="which")
    options.add_argument("--minutes", type=float, help="instead of --runs and --seed: a new seed, for so long")
    options.add_argument("--out", type=Path, default=Path("soak"), help="where reproducers go")
    chosen = options.parse_args(argv)
    drawn = islice(runs(chosen.seed), chosen.runs) if chosen.minutes is None else until(60.0 * chosen.minutes)
    summary = collect(drawn, chosen.out)
    print(summary.text())
    if summary.violations:
        print(f"a reproducer of each is in {chosen.out}")
    return 1 if summary.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
