"""Parse, run, write."""

from __future__ import annotations

import argparse
import fnmatch
import shlex
import time
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks import insides, machine
from benchmarks.plot import plot, work_and_time
from benchmarks.problems import Spec, log_sum_exp, specs
from benchmarks.report import report
from benchmarks.run import ROUNDS, Row, Settings, measure
from benchmarks.saved import Saved, load, save
from benchmarks.summary import Results
from benchmarks.targets import verdicts

HERE = Path(__file__).parent


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m benchmarks", description="hasd against its peers")
    options.add_argument("--quick", action="store_true", help="small problems, one seed, one round: under a minute")
    options.add_argument("--seeds", type=int, default=5, help="seeds a problem, at most")
    options.add_argument("--repeats", type=int, default=3, help="rounds on the first seed, at most")
    options.add_argument("--only", metavar="PATTERN", help="problems whose name contains or matches this")
    options.add_argument("--cap", type=float, default=60.0, help="seconds a run may take")
    options.add_argument("--out", type=Path, default=HERE / "results", help="where the report goes")
    options.add_argument("--alone", action="store_true", help="run hasd only, to count its products")
    options.add_argument("--against", type=Path, metavar="FOLDER", help="what a run of an earlier version wrote")
    options.add_argument("--cache", type=Path, help="keep reference optima here")
    options.add_argument("--threads", type=int, default=1, help="threads of BLAS")
    return options


def chosen(quick: bool, pattern: str | None) -> list[Spec]:
    """The problems asked for."""
    found = [spec for spec in specs() if spec.quick or not quick]
    if find_spec("sklearn") is None:
        print("scikit-learn is not installed: its data and its solvers are left out")
        found = [spec for spec in found if not spec.sklearn]
    if pattern:
        found = [spec for spec in found if pattern in spec.name or fnmatch.fnmatch(spec.name, pattern)]
    return found


def command(options: argparse.Namespace) -> str:
    """The command line without paths and defaults that follow from others."""
    chosen = f"--only {shlex.quote(options.only)} " if options.only else ""
    if options.alone:
        chosen += "--alone "
    if options.quick:
        return f"python -m benchmarks --quick {chosen}--threads {options.threads}"
    counts = f"--seeds {options.seeds} --repeats {options.repeats} --cap {options.cap:g} --threads {options.threads}"
    return f"python -m benchmarks {chosen}{counts}"


def conditions(options: argparse.Namespace, began: float, before: str) -> list[str]:
    """What the figures depend on."""
    return [
        f"`{command(options)}`, took {time.perf_counter() - began:.0f} s",
        *machine.describe(options.threads, ("numpy", "scipy", "scikit-learn")),
        f"load average before {before}, after {machine.load()}",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = parser().parse_args(argv)
    if options.quick:
        options.seeds, options.repeats, options.cap = 1, 1, min(options.cap, 5.0)
    found = chosen(options.quick, options.only)
    if not found:
        print("no problem matches; the known ones are " + ", ".join(spec.name for spec in specs()))
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    began, before = time.perf_counter(), machine.load()
    say = partial(print, flush=True)
    rounds = 1 if options.quick or options.alone else ROUNDS
    settings = Settings(options.seeds, options.repeats, rounds, options.cap, options.alone, options.cache, say)
    rows: list[Row] = []
    for spec in found:
        rows += measure(spec, settings)
    split, growth = None, []
    if options.only is None and not options.alone:
        n, d = (5000, 500) if options.quick else (20000, 2000)
        split = insides.split(log_sum_exp(n, d, 1e-2, 0), 60 if options.quick else 150)
        growth = insides.growth(1000 if options.quick else 4000, 500, 30)
    run = Saved(rows, machine.commit(), options.threads, conditions(options, began, before), split, growth)
    results = Results(rows)
    judged = verdicts(results, split, growth, load(options.against) if options.against else None)
    text = report(results, judged, split, growth, run.conditions)
    print("\n" + text)
    written = save(run, options.out)
    (options.out / "report.md").write_text(text)
    pictures = [options.out / f"profile.{kind}" for kind in ("png", "pdf")]
    plot(work_and_time(results), pictures)
    print("written: " + ", ".join(map(str, [*written, options.out / "report.md", *pictures])))
    return 0
