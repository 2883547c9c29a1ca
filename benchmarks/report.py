"""What is printed and written: tables and verdicts in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.insides import PARTS, Growth, Split
from benchmarks.run import LEAST_CAP, PATIENCE, TARGETS
from benchmarks.solvers import BASELINE, OURS
from benchmarks.summary import Cell, Ratio, Results, below_reference, disagreements, geometric_mean
from benchmarks.targets import Verdict


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table, its columns aligned for those who read it as text."""
    cells = [list(header), *(list(line) for line in lines)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(header))]
    padded = [[word.ljust(width) for word, width in zip(line, widths, strict=True)] for line in cells]
    text = ["| " + " | ".join(line) + " |" for line in padded]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def bullets(lines: Sequence[str]) -> str:
    """A list, or the word none."""
    return "\n".join(f"- {line}" for line in lines) or "none"


def problem_table(results: Results, problem: str) -> str:
    """Every solver on one problem: work, seconds and ratios to the baseline at each target."""
    header = ["solver", *(f"{what} {target:.0e}" for target in TARGETS for what in ("work", "s", "ratio work", "time"))]
    lines = []
    for solver in results.solvers:
        line = [solver]
        for target in TARGETS:
            cell = results.cell(problem, solver, target)
            if cell is None:
                break
            ratios = [results.ratio(problem, solver, target, measure) for measure in ("work", "seconds")]
            line += [*_words(cell), *(str(one) for one in ratios)]
        else:
            lines.append(line)
    row = results.first[problem]
    seeds = len(results.seeds(problem, OURS))
    ours = results.methods(problem, OURS)
    about = f"{row.n} x {row.d}, {row.nnz} entries, counted in {row.unit}; ours is {ours}; f* by {row.reference}."
    how = f"Figures of the first seed, ratios the median of {seeds}."
    return f"### {problem}\n\n{about}  {how}\n\n" + table(header, lines)


def _words(cell: Cell) -> tuple[str, str]:
    """Work and seconds; where the target was not reached, why."""
    if not cell.reached:
        return ("cap" if cell.capped else "no"), f"({cell.seconds:.3g})"
    work = cell.get("work")
    return ("-" if math.isnan(work) else f"{work:.0f}"), f"{cell.seconds:.3g}"


def overview(results: Results) -> str:
    """Ours against the baseline on every problem, then the means and the worst."""
    header = ["problem", *(f"{what} {target:.0e}" for target in TARGETS for what in ("work", "time"))]
    columns = [results.ratios(OURS, target, measure) for target in TARGETS for measure in ("work", "seconds")]
    lines = [[name, *(str(column.get(name, Ratio(math.nan))) for column in columns)] for name in results.problems]
    values = [[one.value for one in column.values()] for column in columns]
    lines.append(["**geometric mean**", *(f"{geometric_mean(column):.3g}" for column in values)])
    lines.append(["**worst**", *(f"{min(column, default=math.nan):.3g}" for column in values)])
    return table(header, lines)


def means(results: Results) -> str:
    """The geometric mean of the ratio to the baseline, for every solver, over the problems where it did not give up."""
    header = ["solver", *(f"{what} {target:.0e}" for target in TARGETS for what in ("work", "time", "reached"))]
    lines = []
    for solver in results.solvers:
        line = [solver]
        for target in TARGETS:
            cells = [results.cell(problem, solver, target) for problem in results.problems]
            run = [cell for cell in cells if cell is not None]
            for measure in ("work", "seconds"):
                ratios = results.ratios(solver, target, measure).values()
                line.append(str(Ratio(geometric_mean(one.value for one in ratios))))
            line.append(f"{sum(cell.reached for cell in run)}/{len(run)}")
        lines.append(line)
    return table(header, lines)


def split_table(split: Split) -> str:
    """Where our seconds go."""
    lines = [[part, f"{split.seconds[part]:.3f}", f"{100 * split.share(part):.1f}%"] for part in PARTS]
    return f"{split.method}, {split.n} x {split.d}, {split.iterations} iterations\n\n" + table(
        ["part", "seconds", "share"], lines
    )


def growth_table(rows: Sequence[Growth]) -> str:
    """Seconds an iteration against nnz(A)."""
    lines = [
        [
            f"{row.n} x {row.d}",
            str(row.nnz),
            str(row.iterations),
            f"{1e3 * row.seconds:.3f}",
            f"{1e9 * row.seconds / row.nnz:.3f}",
            f"{1e9 * row.product / row.nnz:.3f}",
        ]
        for row in rows
    ]
    return table(["A", "nnz", "iterations", "ms an iteration", "ns an entry", "ns an entry, one product"], lines)


def seeds_of(results: Results) -> str:
    """How many seeds each problem was run with."""
    by_count: dict[int, list[str]] = {}
    for problem in results.problems:
        by_count.setdefault(len(results.seeds(problem, OURS)), []).append(problem)
    return "; ".join(f"{count} on {', '.join(names)}" for count, names in sorted(by_count.items()))


def report(
    results: Results,
    judged: Sequence[Verdict],
    split: Split | None,
    growth: Sequence[Growth],
    conditions: Sequence[str],
) -> str:
    """The whole of it."""
    capped = list(dict.fromkeys(f"{row.solver} on {row.problem}" for row in results.rows if row.capped))
    sections = [
        "# hasd against its peers",
        bullets([*conditions, "seeds: " + seeds_of(results)]),
        "## Aims\n\n" + "\n".join(f"- {verdict}" for verdict in judged),
        f"## {OURS} against {BASELINE}\n\nHow many times less we need; above 1 we are ahead.  `>=`: {BASELINE} had not "
        "got there when it was stopped, `<=`: we had not, `no`: we gave up.\n\n" + overview(results),
        f"## Every solver against {BASELINE}, geometric means\n\nOver the problems a solver was run on and did not "
        "give up; where it was stopped by the cap, the bound counts.\n\n" + means(results),
        "![performance profile](profile.png)",
        "## Where our time goes\n\n" + split_table(split) if split else "",
        "## Growth with nnz(A)\n\n" + growth_table(growth) if growth else "",
        "## Problem by problem\n\n" + "\n\n".join(problem_table(results, name) for name in results.problems),
        f"## Stopped by the cap\n\nPeers are given {PATIENCE:g} times {BASELINE}'s seconds, {LEAST_CAP:g} at least, "
        "and never more than the cap.\n\n" + bullets(capped),
        "## Values below the reference optimum\n\n" + bullets(below_reference(results.rows)),
        "## Values that the returned point does not have\n\n" + bullets(disagreements(results.rows)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"
