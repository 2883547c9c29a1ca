"""What a worker is asked to do and what it answers; there is no part of PyTorch in either."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assignment:
    """One run of training."""

    task: str
    optimizer: str
    lr: float
    seed: int  # of the first weights and of the batches
    steps: int
    rows: int  # examples to learn from
    data_seed: int
    checkpoints: int = 1  # how often the validation loss is taken, the last time at the end


@dataclass(frozen=True)
class Outcome:
    """What came of a run; losses are inf where the run diverged."""

    train: float  # the final mean loss, over as many training examples as there are for validation
    validation: float
    test: float
    curve: list[tuple[int, float]]  # steps made, and the validation loss there
    seconds: float  # of a step with its gradient: the median
    optimizer_seconds: float  # of the optimizer's part alone
    parameters: int
