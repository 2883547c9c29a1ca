"""One training run: a task, an optimizer, a learning rate and a seed in, losses and times out."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR

from ..torch import StochasticHASD
from .training_assignment import Assignment, Outcome
from .training_data import Examples, Split, digits, text
from .training_networks import (
    Transformer,
    convolutions,
    initialise,
    logistic_regression,
    output_layer,
    perceptron,
)
from .training_optimizers import CONTENDERS

CHUNK = 250
"""So many examples are judged at a time."""


class Task(NamedTuple):
    """What is learnt, by which network, from how many examples a step."""

    data: Callable[[int, int], Split]  # from the number of examples to learn from and a seed
    model: Callable[[], torch.nn.Module]
    batch: int


TASKS = {
    "logistic": Task(digits, logistic_regression, 64),
    "mlp": Task(digits, perceptron, 64),
    "cnn": Task(digits, convolutions, 64),
    "text": Task(text, Transformer, 16),
}
"""By name, from the fastest to the slowest."""


def prepare(run: Assignment) -> tuple[Split, torch.nn.Module, list[Any]]:
    """The data, the network with its first weights, and the optimizers of its parts."""
    task = TASKS[run.task]
    model = task.model()
    initialise(model, run.seed)
    return task.data(run.rows, run.data_seed), model, make_optimizers(run, model)


def make_optimizers(run: Assignment, model: torch.nn.Module) -> list[Any]:
    """Those that the run asks for."""
    return CONTENDERS[run.optimizer].make(model, output_layer(model), run.lr)


def batches(rows: int, batch: int, seed: int) -> Iterator[np.ndarray]:
    """Places of examples, in a new order each time all have been seen; the same for every optimizer."""
    rng = np.random.default_rng([seed, 3])
    while True:
        order = rng.permutation(rows)
        yield from (order[k : k + batch] for k in range(0, max(1, rows - batch + 1), batch))


def train(run: Assignment) -> Outcome:
    """Make all steps, with a learning rate that falls to 0 along a cosine; end early where the loss is not finite."""
    split, model, optimizers = prepare(run)
    schedules = [LambdaLR(one, lambda step: 0.5 + 0.5 * math.cos(math.pi * step / run.steps)) for one in optimizers]
    x, y = (torch.from_numpy(part) for part in split.train)
    marks = {round(run.steps * (k + 1) / run.checkpoints) for k in range(run.checkpoints)}
    curve, whole, own = [], [], []
    for step, places in enumerate(batches(len(x), TASKS[run.task].batch, run.seed), start=1):
        begun = time.perf_counter()
        for one in optimizers:
            one.zero_grad()
        loss = loss_of(model, x[places], y[places])
        if not math.isfinite(loss.item()):
            break
        loss.backward()
        stepped = time.perf_counter()
        for one in optimizers:
            one.step()
        ended = time.perf_counter()
        whole.append(ended - begun)
        own.append(ended - stepped)
        for schedule in schedules:
            schedule.step()
        if step in marks:
            curve.append((step, evaluate(model, optimizers, split.validation)))
        if step == run.steps:
            break
    seen = Examples(*(part[: len(split.validation.x)] for part in split.train))
    return Outcome(
        train=evaluate(model, optimizers, seen),
        validation=evaluate(model, optimizers, split.validation),
        test=evaluate(model, optimizers, split.test),
        curve=curve,
        seconds=_median(whole),
        optimizer_seconds=_median(own),
        parameters=sum(weight.numel() for weight in model.parameters()),
    )


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy in nats: of an image's digit, or of the next character."""
    return cross_entropy(model(x).flatten(0, -2), y.flatten())


@torch.no_grad()
def evaluate(model: torch.nn.Module, optimizers: list[Any], examples: Examples) -> float:
    """The mean loss at the answer of the optimizers, which for ours is not the point where gradients are taken."""
    ours = [one for one in optimizers if isinstance(one, StochasticHASD)]
    for one in ours:
        one.eval()
    x, y = (torch.from_numpy(part) for part in examples)
    pieces = [(loss_of(model, a, b).item(), len(a)) for a, b in zip(x.split(CHUNK), y.split(CHUNK), strict=True)]
    for one in ours:
        one.train()
    mean = sum(loss * count for loss, count in pieces) / len(x)
    return mean if math.isfinite(mean) else math.inf


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds) if seconds else math.nan
