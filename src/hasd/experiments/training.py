"""Optimizers for training side by side: four tasks, one learning rate each to tune, three seeds.

logistic  logistic regression on images of digits: convex
mlp       two hidden layers on the same images
cnn       two convolutions on the same images
text      a small transformer that predicts the next character of a made-up text

Every optimizer has a grid of learning rates of its own, all of one size, and takes the one with the lowest validation
loss in runs with the first seed.  Other seeds then give the figures of the comparison.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .experiment import Experiment, size
from .tables import Row, Rows, Tables
from .training_assignment import Assignment, Outcome
from .training_optimizers import CONTENDERS
from .training_plot import draw, draw_curves
from .training_report import TASK_TITLES, report
from .workers import Workers

SEEDS = 1000
"""So many runs may have seeds of their own before they meet those of the next --seed."""
CHECKPOINTS = 8
"""Points of a curve."""
CONVEX = "logistic"
"""The task whose only matrix is the output layer."""


@dataclass(frozen=True)
class TrainingSizes:
    """How much to train."""

    steps: int = size(600, "steps of a run")
    rates: int = size(5, "learning rates on the grid of each optimizer")
    seeds: int = size(3, "runs at the best learning rate, each with a seed of its own")
    rows: int = size(6000, "examples to learn from; a sixth as many are for validation, and again for the test")
    seed: int = 0

    def assignment(self, task: str, optimizer: str, lr: float, k: int, checkpoints: int = 1) -> Assignment:
        """The k-th run: k = 0 is for tuning, those after it are for the comparison."""
        seed = self.seed * SEEDS + k
        return Assignment(task, optimizer, lr, seed, self.steps, self.rows, self.seed, checkpoints)


def pairs() -> list[tuple[str, str]]:
    """Every task with every optimizer that has something to show there."""
    return [
        (task, name)
        for task in TASK_TITLES
        for name, one in CONTENDERS.items()
        if not (task == CONVEX and one.needs_matrices)
    ]


def carry_out(assignment: Assignment) -> Outcome:
    """Train, in a process of its own, which is the first to need PyTorch."""
    from .training_runs import train

    return train(assignment)


def tables(sizes: TrainingSizes, workers: Workers) -> Tables:
    """Tuning, then the comparison; times are in a table of their own, because no two runs agree on them."""
    grid = [sizes.assignment(task, name, lr, 0) for task, name in pairs() for lr in CONTENDERS[name].grid(sizes.rates)]
    tuned = _carry_out_all(workers, grid, "training: tuning")
    tuning = [{**_head(one), "lr": one.lr, "validation": out.validation} for one, out in zip(grid, tuned, strict=True)]
    chosen = [
        sizes.assignment(task, name, best_rate(tuning, task, name), k, CHECKPOINTS)
        for task, name in pairs()
        for k in range(1, sizes.seeds + 1)
    ]
    outcomes = list(zip(chosen, _carry_out_all(workers, chosen, "training: runs"), strict=True))
    return {
        "training": [_losses(one, out, sizes.rates) for one, out in outcomes],
        "training-tuning": tuning,
        "training-curves": [
            {**_head(one), "seed": one.seed, "step": step, "validation": loss}
            for one, out in outcomes
            for step, loss in out.curve
        ],
        "training-times": [_times(one, out) for one, out in outcomes],
    }


def best_rate(tuning: Rows, task: str, optimizer: str) -> float:
    """The learning rate with the lowest validation loss; of equal ones the smallest.

    >>> rows = [{"task": "mlp", "optimizer": "sgd", "lr": lr, "validation": v} for lr, v in ((0.1, 2.0), (0.3, 1.0))]
    >>> best_rate(rows, "mlp", "sgd")
    0.3
    """
    mine = [row for row in tuning if (row["task"], row["optimizer"]) == (task, optimizer)]
    return min(mine, key=lambda row: (row["validation"], row["lr"]))["lr"]


def end_of_grid(optimizer: str, lr: float, points: int) -> str:
    """Whether a learning rate is the lowest or the highest of its grid: then a wider one might have a better."""
    grid = CONTENDERS[optimizer].grid(points)
    return "lowest" if lr == grid[0] else "highest" if lr == grid[-1] else ""


def _losses(one: Assignment, out: Outcome, points: int) -> Row:
    end = end_of_grid(one.optimizer, one.lr, points)
    losses = {"train": out.train, "validation": out.validation, "test": out.test}
    return {**_head(one), "lr": one.lr, "end": end, "seed": one.seed, **losses}


def _times(one: Assignment, out: Outcome) -> Row:
    times = {"step_ms": 1e3 * out.seconds, "optimizer_ms": 1e3 * out.optimizer_seconds}
    return {**_head(one), "seed": one.seed, "parameters": out.parameters, **times}


def _head(one: Assignment) -> Row:
    return {"task": one.task, "optimizer": one.optimizer}


def _carry_out_all(workers: Workers, assignments: Sequence[Assignment], label: str) -> list[Outcome]:
    """The outcomes in order; the slowest task is last and begins first, so that no worker is left alone with it."""
    return workers.map(carry_out, assignments[::-1], label)[::-1]


EXPERIMENT = Experiment(
    name="training",
    summary="optimizers for mini-batches on four tasks, each with its best learning rate (needs PyTorch)",
    sizes=TrainingSizes(),
    quick=TrainingSizes(steps=20, rates=3, seeds=1, rows=600),
    tables=tables,
    plots={"training": ((10.0, 6.4), draw), "training-curves": ((10.0, 7.6), draw_curves)},
    report=report,
    library="torch",
    prints=True,
)
