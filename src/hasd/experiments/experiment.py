"""What an experiment is: sizes -> tables -> plots and a report, pure functions all; and how it lands in a directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .style import RC
from .tables import Tables, csv_text
from .workers import Workers

Plot = Callable[[Any, Tables], None]
"""Draws on an empty matplotlib figure."""


def size(default: Any, text: str) -> Any:
    """A field of an experiment's sizes, with the help text of its option."""
    return field(default=default, metadata={"help": text})


def seed() -> Any:
    """The field that every experiment has."""
    return size(0, "seed of the random data")


@dataclass(frozen=True)
class Experiment:
    """One subcommand of ``hasd reproduce``."""

    name: str
    summary: str  # one line for --help
    sizes: Any  # a frozen dataclass: the sizes at default
    quick: Any  # the same, tiny: for tests
    tables: Callable[[Any, Workers], Tables]
    plots: Mapping[str, tuple[tuple[float, float], Plot]]  # by file stem: inches and what draws
    report: Callable[[Tables, Any], str]  # Markdown


def save(experiment: Experiment, sizes: Any, workers: Workers, out: Path) -> list[Path]:
    """Run it and write its files: CSV tables, PNG and PDF figures, its section of the report."""
    figure_class, rc_context = _matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    tables = experiment.tables(sizes, workers)
    written = []
    for stem, rows in tables.items():
        written.append(_text(out / f"{stem}.csv", csv_text(rows)))
    for stem, (inches, draw) in experiment.plots.items():
        with rc_context(RC):
            figure = figure_class(figsize=inches, layout="constrained")
            draw(figure, tables)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # the layout is found once, not once a file
            for path, metadata in ((out / f"{stem}.png", {}), (out / f"{stem}.pdf", {"CreationDate": None})):
                figure.savefig(path, metadata=metadata)
                written.append(path)
    written.append(_text(out / f"{experiment.name}.md", experiment.report(tables, sizes)))
    return written


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
