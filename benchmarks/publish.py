"""Write the page and the picture of the results: ``python -m benchmarks.publish RESULTS... [--against EARLIER]``.

RESULTS are folders that ``python -m benchmarks --out`` wrote, one for each number of BLAS threads, and may hold the
tables of ``python -m benchmarks.specialists``.  The picture has a panel for each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.plot import Panel, plot
from benchmarks.report import bullets, table
from benchmarks.run import MAIN
from benchmarks.saved import Saved, load
from benchmarks.solvers import BASELINE, OURS
from benchmarks.specialists import PAGE as SPECIALISTS
from benchmarks.summary import Ratio, Results, geometric_mean
from benchmarks.targets import SLOW, SLOWER, least_of, over, verdicts

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = "benchmarks-results.md", "images/benchmarks.png"
TITLE = """# Benchmark results

`python -m benchmarks.publish` wrote this page from the runs named below. [Benchmarks](benchmarks.md) says what is
measured, on which problems, and what is fair about it and what is less so."""
LEGEND = f"""Seconds are the medians over the seeds of what `hasd.minimize(objective, x0)` and SciPy's {BASELINE} took
to a relative gap of {MAIN:.0e}. A *time ratio* is {BASELINE}'s time divided by ours on the same seed, in the median
over the seeds: above 1, `hasd` is faster. The *products ratio* is the same for products with A, or for evaluations of
a black box. It is in brackets where `hasd-newton` was taken, because the Hessians that this method makes and factors
are no products: look at the time. The *fastest other solver* of all that were run is found on the first seed (`none`
where no other one got there), and the ratio beside it is its time divided by ours. `>=` marks a ratio that is at least
so large ({BASELINE} was stopped before it was there), `<=` one that is at most so large (`hasd` was), and `no` that
`hasd` gave up. Seeds on which both were stopped count in no ratio."""
HESSIANS = "hasd-newton"
"""The method whose products do not tell its work."""


def results_table(results: Results) -> str:
    """A row a problem."""
    header = ["problem", "rows × variables", "entries", "method", f"{BASELINE} s", "hasd s", "time ratio"]
    header += ["products ratio", "fastest other solver (first seed)", "time ratio to it (first seed)"]
    return table(header, [_line(results, name) for name in results.problems])


def _line(results: Results, name: str) -> list[str]:
    row, other = results.first[name], results.fastest_other(name, OURS, MAIN)
    methods, work = results.methods(name, OURS), results.ratio(name, OURS, MAIN, "work")
    theirs, ours = results.cell(name, other or "", MAIN), results.cell(name, OURS, MAIN)
    faster = "-" if theirs is None else Ratio(theirs.seconds / ours.seconds) if ours and ours.reached else "no"
    return [
        name,
        f"{row.n} × {row.d}",
        f"{row.nnz:.2g}".replace("e+0", "e"),
        methods,
        *(_seconds(results, name, solver) for solver in (BASELINE, OURS)),
        str(results.ratio(name, OURS, MAIN, "seconds")),
        f"({work})" if HESSIANS in methods else str(work),
        other or "none",
        str(faster),
    ]


def _seconds(results: Results, name: str, solver: str) -> str:
    mark = "" if results.reached(name, solver, MAIN) else ">"
    return f"{mark}{results.seconds(name, solver, MAIN):.3g}"


def means_table(results: Results) -> str:
    """Geometric means and the worst problem, by how long the baseline takes."""
    ratios = results.ratios(OURS, MAIN, "seconds")
    work = results.ratios(OURS, MAIN, "work")
    lines = []
    for least in (SLOWER, SLOW, 0.0):
        chosen = over(results, ratios, least)
        products = [work[name].value for name in chosen if HESSIANS not in results.methods(name, OURS)]
        means = [Ratio(geometric_mean(values)) for values in ([one.value for one in chosen.values()], products)]
        took = f"more than {1e3 * least:g} ms" if least else "any time"
        worst = least_of(chosen) if chosen else "-"
        lines.append([took, str(len(chosen)), str(means[0]), worst, f"{means[1]} ({len(products)})"])
    header = [f"{BASELINE} takes", "problems", "time ratio, geometric mean", "least"]
    return table([*header, f"products ratio, geometric mean without {HESSIANS} (problems)"], lines)


def section(run: Saved, earlier: Saved | None) -> str:
    """One run."""
    results = Results(run.rows)
    judged = verdicts(results, run.split, run.growth, earlier)
    parts = [
        f"## {OURS} against {BASELINE}, BLAS threads {run.threads}",
        bullets(run.conditions),
        means_table(results),
        results_table(results),
        "The aims of the library, judged by this run:",
        bullets([str(one) for one in judged]),
    ]
    return "\n\n".join(parts)


def page(runs: Sequence[Saved], earlier: Saved | None, specialists: Sequence[str]) -> str:
    """The whole page."""
    count = len(Results(runs[0].rows).problems)
    caption = f"""The share of the {count} problems that a solver has solved to {MAIN:.0e} within a multiple of the
best solver's time, on the first seed. A solver is drawn if it was run on at least half of the problems, and its
share is of those it was run on."""
    parts = [TITLE, f"![Performance profiles]({PICTURE})", caption, LEGEND]
    parts += [section(run, earlier) for run in runs]
    return "\n\n".join([*parts, *specialists]) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page and the picture."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.publish", description=(__doc__ or "").split("\n")[0])
    options.add_argument("results", type=Path, nargs="+", help="folders that the benchmark wrote")
    options.add_argument("--against", type=Path, metavar="FOLDER", help="what a run of an earlier version wrote")
    options.add_argument("--docs", type=Path, default=DOCS, help="where the page goes")
    given = options.parse_args(argv)
    runs = [load(folder) for folder in given.results]
    tables = [folder / SPECIALISTS for folder in given.results]
    earlier = load(given.against) if given.against else None
    text = page(runs, earlier, [one.read_text().strip() for one in tables if one.exists()])
    (given.docs / PICTURE).parent.mkdir(parents=True, exist_ok=True)
    (given.docs / PAGE).write_text(text)
    panels = [Panel(Results(run.rows), "seconds", f"time with BLAS threads {run.threads}") for run in runs]
    plot(panels, [given.docs / PICTURE])
    print(f"written: {given.docs / PAGE}, {given.docs / PICTURE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
