"""The report on training: losses with the spread of the seeds, learning rates, times, and who wins where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .tables import Rows, Tables, column, group, markdown, section, select
from .training_data import SIDE, WINDOW, held_out
from .training_optimizers import CONTENDERS

TASK_TITLES = {
    "logistic": "logistic regression",
    "mlp": "two hidden layers (MLP)",
    "cnn": "two convolutions (CNN)",
    "text": "character transformer",
}
"""By the names of the tasks."""
PEER = "adamw"
"""Ours are compared with it in words."""
TIMING = """\
Milliseconds a step, gradient included, and in brackets the optimizer's part of them: the median over the steps of a
run, and of that the least over the seeds. One thread; other programs on the machine change these numbers."""
LABELS = {name: one.label for name, one in CONTENDERS.items()}
OURS = [name for name, one in CONTENDERS.items() if one.ours]


def spread(rows: Rows, name: str) -> str:
    """The mean over seeds, and how far the farthest seed is from it.

    >>> spread([{"test": 0.5}, {"test": 0.25}], "test"), spread([{"test": 0.5}], "test"), spread([], "test")
    ('0.3750 ± 0.1250', '0.5000', '–')
    """
    values = column(rows, name).astype(float)
    if len(values) == 0:
        return "–"
    if not np.isfinite(values).all():
        return "diverged"
    mean = values.mean()
    return f"{mean:.4f}" if len(values) == 1 else f"{mean:.4f} ± {np.abs(values - mean).max():.4f}"


def ranking(rows: Rows, name: str) -> list[str]:
    """The optimizers of a task from the lowest mean loss on."""
    means = {optimizer: float(np.mean(column(some, name))) for (optimizer,), some in group(rows, "optimizer").items()}
    return sorted(means, key=lambda optimizer: means[optimizer])


def relation(mine: Rows, theirs: Rows, name: str) -> str:
    """Whether all seeds of one are below all of the other, or above, or neither; or how many of its runs diverged.

    >>> a, b, c = ([{"test": value} for value in pair] for pair in ((1.0, 2.0), (3.0, 4.0), (2.5, 3.5)))
    >>> relation(a, b, "test"), relation(b, a, "test"), relation(b, c, "test")
    ('lower', 'higher', 'within the spread of the seeds')
    """
    ours, others = column(mine, name), column(theirs, name)
    if failed := int(np.sum(~np.isfinite(ours.astype(float)))):
        return f"diverged in {failed} of {len(ours)} runs"
    if ours.max() < others.min():
        return "lower"
    return "higher" if ours.min() > others.max() else "within the spread of the seeds"


def report(tables: Tables, sizes: Any) -> str:
    """The section on training."""
    rows = tables["training"]
    paragraphs = ["## Training", *_setting(sizes)]
    for name, title in (("validation", "Validation loss"), ("test", "Test loss"), ("train", "Training loss")):
        paragraphs += [f"### {title}", _table(rows, lambda some, name=name: spread(some, name))]
    paragraphs += ["### Learning rates", _ends(rows), _table(rows, _rate)]
    paragraphs += ["### Time", TIMING, _table(tables["training-times"], _times)]
    return section(*paragraphs, "### What this says", "\n".join(findings(rows)))


def _setting(sizes: Any) -> list[str]:
    runs = "one run" if sizes.seeds == 1 else f"{sizes.seeds} runs"
    caution = " With one seed a difference may be chance." if sizes.seeds == 1 else ""
    tuning = f"""\
Each optimizer tries {sizes.rates} learning rates, spaced by a factor of about 3, on a grid of its own that is the same
for all tasks. The one with the lowest validation loss is taken (first weights and batches of one seed), and {runs}
with other seeds give what is shown: the mean, and after ± how far the farthest seed is from it.{caution}
A run has {sizes.steps} steps, and its learning rate falls to 0 along a cosine. Nothing else is tuned, and there is no
weight decay."""
    data = f"""\
The data are generated (seed {sizes.seed}): images of digits, {SIDE} by {SIDE}, turned, slanted, stretched, shifted and
with noise, in batches of 64; a text of made-up words, in batches of 16 windows of {WINDOW} characters. Of the images or
windows {sizes.rows} are for training, {held_out(sizes.rows)} for validation and as many for the test. Losses are mean
cross-entropies in nats; the training loss is taken on as many examples as there are for validation."""
    settings = """\
"HASD" is `StochasticHASD`: p = ∞ with a norm for each tensor and coupling 0.1; p = 3 with one norm and coupling 0.1;
spectral steps for hidden matrices and p = ∞ for the rest, with averaged gradients, `betas=(0.81, 0.9)`. These settings
were found before, on other tasks of this kind. The others have the settings that their authors publish; Lion and Muon
are also run with the shorter momentum of ours, since that matters. Logistic regression has no hidden matrix: there
Muon would be AdamW, and spectral HASD would be Lion (–).
Figures: `training.png`, `training-curves.png`; data: `training*.csv`."""
    return [tuning, data, settings]


def _table(rows: Rows, cell: Any) -> str:
    """A line for each optimizer, a column for each task."""
    tasks = list(TASK_TITLES)
    lines = [
        [label, *(cell(select(rows, task=task, optimizer=name)) for task in tasks)] for name, label in LABELS.items()
    ]
    return markdown(["optimizer", *(TASK_TITLES[task] for task in tasks)], lines)


def _rate(rows: Rows) -> str:
    """The learning rate, and whether it is at an end of its grid."""
    if not rows:
        return "–"
    return f"{rows[0]['lr']:g} ({rows[0]['end']})" if rows[0]["end"] else f"{rows[0]['lr']:g}"


def _ends(rows: Rows) -> str:
    """How many learning rates are at an end of their grid."""
    ends = [some[0]["end"] for some in group(rows, "task", "optimizer").values()]
    at_end = len(ends) - ends.count("")
    if at_end == 0:
        return "None of the best learning rates is at an end of its grid."
    return f"Of {len(ends)}, {at_end} are the lowest or highest of their grid: there a wider one might have given less."


def _times(rows: Rows) -> str:
    if not rows:
        return "–"
    return f"{column(rows, 'step_ms').min():.2f} ({column(rows, 'optimizer_ms').min():.2f})"


def findings(rows: Rows) -> list[str]:
    """Sentences on every task, from its numbers."""
    out = []
    for task, title in TASK_TITLES.items():
        here = select(rows, task=task)
        for name in ("validation", "test"):
            out.append(f"- {title[0].upper()}{title[1:]}, {name} loss: {_verdict(here, name)}")
    return out


def _verdict(here: Rows, name: str) -> str:
    """Who is lowest, who next, and how ours compare with AdamW."""
    order = ranking(here, name)
    by_name = {optimizer: select(here, optimizer=optimizer) for optimizer in order}
    lowest, following = order[0], order[1]
    kind = "ours" if lowest in OURS else "not ours"
    first = f"lowest is {LABELS[lowest]}, {kind} ({spread(by_name[lowest], name)})"
    second = f"then {LABELS[following]} ({spread(by_name[following], name)})"
    apart = relation(by_name[lowest], by_name[following], name)
    close = "" if apart == "lower" else ", which is within the spread of the seeds"
    compared = [f"{LABELS[one]} is {relation(by_name[one], by_name[PEER], name)}" for one in OURS if one in by_name]
    peer = f"Against AdamW ({spread(by_name[PEER], name)}): {'; '.join(compared)}."
    return f"{first}, {second}{close}. {peer}"


def lowest_label(rows: Rows, task: str) -> str:
    """Whose mean validation loss is the lowest, for the title of a panel; nobody's where all runs diverged."""
    here = select(rows, task=task)
    best = ranking(here, "validation")[0]
    return LABELS[best] if math.isfinite(np.mean(column(select(here, optimizer=best), "validation"))) else "nobody"
