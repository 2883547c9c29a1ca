"""The aims of the library, each judged by what was measured: a line PASS, MISS, or ---- where that does not tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.insides import LINEAR, Growth, Split, exponent
from benchmarks.run import MAIN
from benchmarks.saved import Saved
from benchmarks.solvers import BASELINE, LINEAR_CG, OURS
from benchmarks.summary import Ratio, Results, geometric_mean

SLOW, SLOWER = 0.01, 0.1
"""Seconds that the baseline must take for a problem to count where the least speed, or the mean, is judged."""
SHARP = "smoothed l_inf"
"""The family with aims of its own."""
ALLOWED = 1.0 / 1.05
"""Products are compared with this allowance, as a different rounding may cost a step."""


@dataclass(frozen=True)
class Verdict:
    """One aim."""

    aim: str
    found: str
    passed: bool | None  # None: what was measured does not tell

    def __str__(self) -> str:
        """One line."""
        word = "----" if self.passed is None else "PASS" if self.passed else "MISS"
        return f"{word}  {self.aim}: {self.found}"


def verdicts(
    results: Results, split: Split | None, growth: Sequence[Growth], earlier: Saved | None = None
) -> list[Verdict]:
    """All of them; `earlier` is a run of an earlier version."""
    seconds = results.ratios(OURS, MAIN, "seconds")
    slow, slower = (over(results, seconds, least) for least in (SLOW, SLOWER))
    sharp = {name: one for name, one in seconds.items() if results.first[name].family == SHARP}
    against_cg = results.ratios(OURS, MAIN, "work", LINEAR_CG)
    before = {} if earlier is None else _before(results, Results(earlier.rows))
    then = f"at commit {earlier.commit}" if earlier else "in an earlier version"
    before_ours = f"products to 1e-6, Hessians not counted, at most 1.05 times those {then} (ratio: those then to ours)"
    return [
        _least(f"speed to 1e-6 at least 0.9 of L-BFGS-B's where it takes over {1e3 * SLOW:g} ms", slow, 0.9),
        _mean(f"speed to 1e-6, geometric mean at least 3 where L-BFGS-B takes over {SLOWER:g} s", slower, 3.0),
        _least(f"speed to 1e-6 at least L-BFGS-B's on {SHARP}", sharp, 1.0),
        _least(f"speed to 1e-6 at least 1.5 times L-BFGS-B's on {SHARP}", sharp, 1.5),
        _outside(split),
        _least(before_ours, before, ALLOWED),
        _least("products to 1e-6, Hessians not counted, at most 1.05 times those of linear CG", against_cg, ALLOWED),
        _linear(growth),
    ]


def over(results: Results, ratios: dict[str, Ratio], least: float) -> dict[str, Ratio]:
    """Those of the problems on which the baseline takes more than so many seconds, in the median over seeds."""
    return {name: one for name, one in ratios.items() if results.seconds(name, BASELINE, MAIN) > least}


def _before(results: Results, earlier: Results) -> dict[str, Ratio]:
    """Products of an earlier version over ours, by problem; where the method is another one now, both are named."""
    found = {}
    for name, one in results.work_before(earlier, OURS, MAIN).items():
        old, new = earlier.methods(name, OURS), results.methods(name, OURS)
        found[name if old == new else f"{name} (by {new} now, {old} then)"] = one
    return found


def _mean(aim: str, ratios: dict[str, Ratio], least: float) -> Verdict:
    if not ratios:
        return Verdict(aim, "no problem", None)
    mean = geometric_mean(one.value for one in ratios.values())
    bounds = sum(bool(one.bound) for one in ratios.values())
    marked = f", {bounds} of them bounds" if bounds else ""
    found = f"{mean:.2f} over {len(ratios)} problems{marked}; least {least_of(ratios)}"
    return Verdict(aim, found, mean >= least and not any(one.bound == "<=" for one in ratios.values()))


def _least(aim: str, ratios: dict[str, Ratio], least: float) -> Verdict:
    """A ratio that is only known to be at least something below the limit may be above it: it decides nothing."""
    if not ratios:
        return Verdict(aim, "no problem", None)
    low = {name: one for name, one in ratios.items() if one.value < least or one.bound == "<="}
    under = {name: one for name, one in low.items() if one.bound != ">="}
    unknown = {name: one for name, one in low.items() if one.bound == ">="}
    if not low:
        return Verdict(aim, f"least {least_of(ratios)}, of {len(ratios)} problems", True)
    parts = [(under, "below"), (unknown, "not known, as a run was cut off")]
    found = "; ".join(f"{len(those)} of {len(ratios)} {word}: {_list(those)}" for those, word in parts if those)
    return Verdict(aim, found, False if under else None)


def _list(ratios: dict[str, Ratio]) -> str:
    """The problems with their ratios, the smallest first."""
    return ", ".join(f"{name} {ratios[name]}" for name in sorted(ratios, key=lambda name: ratios[name].value))


def least_of(ratios: dict[str, Ratio]) -> str:
    """The smallest ratio and its problem."""
    name = min(ratios, key=lambda name: ratios[name].value)
    return f"{ratios[name]} ({name})"


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
    alone = exponent(growth, "product")  # above 1 where the smallest matrix fits into a cache, and the largest does not
    found = f"time an iteration grows as nnz^{power:.2f} from n to 16n rows, that of a product alone as nnz^{alone:.2f}"
    return Verdict(aim, f"{found} (linear: up to {LINEAR}, or as a product)", power <= max(LINEAR, alone))
