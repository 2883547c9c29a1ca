"""The aims of the library, each judged by what was measured: a line PASS or MISS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.insides import LINEAR, Growth, Split, exponent
from benchmarks.run import MAIN
from benchmarks.solvers import BASELINE, LINEAR_CG, OURS
from benchmarks.summary import Ratio, Results, geometric_mean

NOTICEABLE = 0.1
"""Seconds the baseline must take for a problem to count in the mean of times."""
LARGE = 500
"""Columns from which a LogSumExp problem is large."""


@dataclass(frozen=True)
class Verdict:
    """One aim."""

    aim: str
    found: str
    passed: bool | None  # None: nothing was measured that could tell

    def __str__(self) -> str:
        """One line."""
        word = "----" if self.passed is None else "PASS" if self.passed else "MISS"
        return f"{word}  {self.aim}: {self.found}"


def verdicts(results: Results, split: Split | None, growth: Sequence[Growth]) -> list[Verdict]:
    """All of them."""
    work = results.ratios(OURS, MAIN, "work")
    seconds = results.ratios(OURS, MAIN, "seconds")
    slow = {name: one for name, one in seconds.items() if _noticeable(results, name)}
    large = {name: one for name, one in seconds.items() if _large(results, name)}
    against_cg = results.ratios(OURS, MAIN, "work", LINEAR_CG)
    return [
        _mean("work to 1e-6, geometric mean at least 2.5 times less than L-BFGS-B", work, 2.5),
        _worst("work to 1e-6 never above 1.05 times L-BFGS-B's, median over seeds", work, 1.05),
        _mean(f"time to 1e-6, at least 2 times less where L-BFGS-B takes over {NOTICEABLE} s", slow, 2.0),
        _mean(f"time to 1e-6, at least 3 times less on LogSumExp with d >= {LARGE}", large, 3.0),
        _worst("time to 1e-6 never above 1.2 times L-BFGS-B's", seconds, 1.2),
        _worst("quadratics: products to 1e-6 at most 1.05 times those of conjugate gradients", against_cg, 1.05),
        _outside(split),
        _linear(growth),
    ]


def _noticeable(results: Results, name: str) -> bool:
    cell = results.cell(name, BASELINE, MAIN)
    return cell is not None and cell.seconds > NOTICEABLE


def _large(results: Results, name: str) -> bool:
    row = results.first[name]
    return row.family == "LogSumExp" and row.d >= LARGE


def _mean(aim: str, ratios: dict[str, Ratio], least: float) -> Verdict:
    if not ratios:
        return Verdict(aim, "no problem", None)
    mean = geometric_mean(one.value for one in ratios.values())
    worst = min(ratios, key=lambda name: ratios[name].value)
    bounds = sum(bool(one.bound) for one in ratios.values())
    marked = f", {bounds} of them bounds" if bounds else ""
    found = f"{mean:.2f} over {len(ratios)} problems{marked}; least {ratios[worst]} ({worst})"
    return Verdict(aim, found, mean >= least and not any(one.bound == "<=" for one in ratios.values()))


def _worst(aim: str, ratios: dict[str, Ratio], most: float) -> Verdict:
    if not ratios:
        return Verdict(aim, "no problem", None)
    times = {name: 1.0 / one.value if one.value > 0.0 else math.inf for name, one in ratios.items()}
    over = {name: times[name] for name, one in ratios.items() if times[name] > most or one.bound == "<="}
    if not over:
        name = max(times, key=times.__getitem__)
        return Verdict(aim, f"at most {times[name]:.2f} ({name})", True)
    listed = ", ".join(f"{name} {over[name]:.2f}" for name in sorted(over, key=over.__getitem__, reverse=True))
    return Verdict(aim, f"{len(over)} of {len(ratios)} above: {listed}", False)


def _outside(split: Split | None) -> Verdict:
    aim = "time outside products with A and passes over phi below 10% at 20000x2000"
    if split is None:
        return Verdict(aim, "not measured", None)
    strict, images = split.outside, split.share("images")
    found = f"{100 * strict:.1f}% at {split.n}x{split.d}, of which {100 * images:.1f}% in passes over cached images"
    return Verdict(aim, found, strict < 0.1 if (split.n, split.d) == (20000, 2000) else None)


def _linear(growth: Sequence[Growth]) -> Verdict:
    aim = "cost linear in nnz(A)"
    power = exponent(growth)
    if math.isnan(power):
        return Verdict(aim, "not measured", None)
    found = f"time an iteration grows as nnz^{power:.2f} from n to 16n rows (linear: up to {LINEAR})"
    return Verdict(aim, found, power <= LINEAR)
