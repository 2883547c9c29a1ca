"""What an experiment is: sizes -> tables -> plots and a report, pure functions all; and how it lands in a directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from .._plots import RC
from .tables import Row, Tables, csv_text
from .workers import Workers

Plot = tuple[tuple[float, float], Callable[[Any, Tables], None]]
"""The size in inches, and what draws on an empty matplotlib figure."""


def size(default: Any, text: str) -> Any:
    """A field of an experiment's sizes, with the help text of its option: a whole number, or a flag."""
    return field(default=default, metadata={"help": text})


def exponent(default: float | None, text: str) -> Any:
    """The same for the exponent of a norm; None where an experiment has exponents of its own."""
    return field(default=default, metadata={"help": text, "kind": "exponent"})


def decades(first: int, last: int) -> tuple[int, ...]:
    """The sizes first, 10 first, 100 first, ... below the last one, and the last one.

    >>> decades(10, 1000), decades(10, 500), decades(10, 5)
    ((10, 100, 1000), (10, 100, 500), (5,))
    """
    below = [first * 10**k for k in range(len(str(last))) if first * 10**k < last]
    return (*below, last)


@dataclass(frozen=True)
class Experiment:
    """One subcommand of ``hasd reproduce``."""

    name: str
    summary: str  # one line for --help
    sizes: Any  # a frozen dataclass: the sizes at default
    quick: Any  # the same, tiny: for tests
    tables: Callable[[Any, Workers], Tables]
    plots: Mapping[str, Plot]  # by file stem
    report: Callable[[Tables, Any], str]  # Markdown
    remarks: Callable[[Tables, Any], list[str]] = lambda tables, sizes: []  # lines for whoever waits for the files
    library: str = ""  # what must be installed beside matplotlib; the extra has the same name
    prints: bool = False  # whether the report is printed, too

    def check_library(self) -> None:
        """Raise an error that says what to install, where something is missing."""
        if self.library and find_spec(self.library) is None:
            raise ImportError(
                f"the experiment {self.name} needs {self.library}: pip install 'hasd[demo,{self.library}]'"
            )


def sweep(workers: Workers, label: str, measure: Callable[..., Tables], **columns: Iterable[Any]) -> Tables:
    """What is measured at every combination of the columns' values; the combination heads each of its rows."""
    heads = [dict(zip(columns, values, strict=True)) for values in product(*columns.values())]
    out: Tables = {}
    for head, tables in zip(heads, workers.map(partial(_call, measure), heads, label), strict=True):
        for stem, rows in tables.items():
            out.setdefault(stem, []).extend({**head, **row} for row in rows)
    return out


def _call(measure: Callable[..., Tables], head: Row) -> Tables:
    return measure(**head)


def save(
    chosen: Sequence[tuple[Experiment, Any]],
    workers: Workers,
    out: Path,
    tell: Callable[[str], Any] = lambda _: None,
    show: Callable[[str], Any] = lambda _: None,
) -> list[Path]:
    """Run experiments with their sizes and write their files: CSV tables, sections of the report, then the figures.

    ``tell`` is given what an experiment remarks on its run, one line each, and ``show`` a report that is to be printed.
    """
    _matplotlib()  # fail before hours of work, not after
    for experiment, _ in chosen:
        experiment.check_library()
    out.mkdir(parents=True, exist_ok=True)
    written, drawings = [], []
    for experiment, sizes in chosen:
        tables = experiment.tables(sizes, workers)
        written += [_text(out / f"{stem}.csv", csv_text(rows)) for stem, rows in tables.items()]
        text = experiment.report(tables, sizes)
        written.append(_text(out / f"{experiment.name}.md", text))
        if experiment.prints:
            show(text)
        for line in experiment.remarks(tables, sizes):
            tell(f"{experiment.name}: {line}")
        drawings += [(out / stem, plot, tables) for stem, plot in experiment.plots.items()]
    for paths in workers.map(render, drawings, "figures"):
        written += paths
    return written


def render(drawing: tuple[Path, Plot, Tables]) -> list[Path]:
    """Draw a figure and save it as PNG and PDF; nothing in the files depends on the time."""
    target, (inches, draw), tables = drawing
    figure_class, rc_context = _matplotlib()
    paths = []
    with rc_context(RC):
        figure = figure_class(figsize=inches, layout="constrained")
        draw(figure, tables)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # the layout is found once, not once a file
        for suffix, metadata in ((".png", {}), (".pdf", {"CreationDate": None})):
            paths.append(target.with_suffix(suffix))
            figure.savefig(paths[-1], metadata=metadata)
    return paths


def collect(names: list[str], out: Path) -> Path:
    """report.md: the sections that the directory holds, in the order of the names."""
    sections = [path.read_text(encoding="utf-8") for name in names if (path := out / f"{name}.md").exists()]
    return _text(out / "report.md", "\n".join(["# Reproduction report\n", *sections]))


def _text(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def _matplotlib() -> tuple[Any, Any]:
    """The figure class, drawn on through Agg and PDF canvases without pyplot, so that no backend is chosen."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("the experiments draw figures with matplotlib: pip install 'hasd[demo]'") from error
    return Figure, rc_context
