"""`hasd reproduce training`: equal chances for all optimizers, splits without overlap, and a report that follows."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from hasd.experiments import save, training
from hasd.experiments.experiment import render
from hasd.experiments.tables import csv_text, group, select
from hasd.experiments.training import TrainingSizes, best_rate, carry_out, end_of_grid, pairs, tables
from hasd.experiments.training_assignment import Assignment
from hasd.experiments.training_data import digits, text
from hasd.experiments.training_muon import Muon
from hasd.experiments.training_networks import initialise, output_layer
from hasd.experiments.training_optimizers import CONTENDERS
from hasd.experiments.training_report import LABELS, TASK_TITLES, findings, report
from hasd.experiments.training_runs import TASKS, batches, evaluate, make_optimizers, prepare, train
from training import close, lion, start, with_noise

TINY = TrainingSizes(steps=2, rates=3, seeds=2, rows=30)
NAMES = {(task, name) for task in TASKS for name in CONTENDERS}


class Here:
    """Workers that are this process."""

    def map(self, function, assignments, label):
        return [function(one) for one in assignments]


@pytest.fixture(scope="module")
def made():
    """The tables of a tiny run."""
    return tables(TINY, Here())


def run_of(task, optimizer="adamw", **others):
    return Assignment(
        **{"task": task, "optimizer": optimizer, "lr": 0.01, "seed": 1, "steps": 3, "rows": 40, "data_seed": 0} | others
    )


def test_the_tasks_are_those_of_the_report():
    assert list(TASKS) == list(TASK_TITLES)


@pytest.mark.parametrize("make", [digits, text])
def test_the_three_parts_of_the_data_have_no_example_in_common(make):
    split = make(120, 0)
    parts = [{row.tobytes() for row in np.asarray(part.x)} for part in split]
    assert [len(part.x) for part in split] == [120, 20, 20] == [len(part.y) for part in split]
    assert [len(part) for part in parts] == [120, 20, 20]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


@pytest.mark.parametrize("make", [digits, text])
def test_the_data_depend_on_the_seed_alone(make):
    one, again, other = make(30, 0), make(30, 0), make(30, 1)
    assert all(np.array_equal(a, b) for a, b in zip(one.test, again.test, strict=True))
    assert not np.array_equal(one.test.x, other.test.x)


def test_a_window_of_text_is_to_be_answered_by_the_characters_that_follow():
    split = text(20, 0)
    assert np.array_equal(split.train.x[:, 1:], split.train.y[:, :-1])


def test_all_digits_are_there_and_look_different():
    split = digits(600, 0)
    means = np.array([split.train.x[split.train.y == digit].mean(axis=0) for digit in range(10)])
    distances = np.linalg.norm(means[:, None] - means[None], axis=2)
    assert distances[~np.eye(10, dtype=bool)].min() > 1.0


@pytest.mark.parametrize("points", [3, 5])
def test_all_grids_have_one_size_and_one_spacing(points):
    grids = [one.grid(points) for one in CONTENDERS.values()]
    assert {len(set(grid)) for grid in grids} == {points}
    for grid in grids:
        assert all(2.9 < b / a < 3.4 for a, b in pairwise(grid))


def test_every_optimizer_is_tuned_by_runs_of_one_seed_that_no_figure_is_taken_from(made):
    for (task, name), mine in group(made["training-tuning"], "task", "optimizer").items():
        assert tuple(row["lr"] for row in mine) == CONTENDERS[name].grid(TINY.rates)
        assert {row["lr"] for row in select(made["training"], task=task, optimizer=name)} == {
            best_rate(made["training-tuning"], task, name)
        }
    assert {row["seed"] for row in made["training"]} == {1, 2}


@pytest.mark.parametrize("task", TASKS)
def test_every_optimizer_starts_from_the_same_weights_and_sees_the_same_batches(task):
    chosen = [name for place, name in pairs() if place == task]
    weights = []
    for name in chosen:
        _, model, _ = prepare(run_of(task, name))
        weights.append([weight.detach().clone() for weight in model.parameters()])
    assert all(torch.equal(a, b) for other in weights for a, b in zip(weights[0], other, strict=True))
    first, second = (batches(40, 16, seed=1) for _ in range(2))
    assert all(np.array_equal(next(first), next(second)) for _ in range(5))
    assert not np.array_equal(next(batches(40, 16, seed=1)), next(batches(40, 16, seed=2)))


def test_every_example_is_seen_once_before_any_is_seen_twice():
    drawn = batches(40, 10, seed=0)
    assert sorted(np.concatenate([next(drawn) for _ in range(4)]).tolist()) == list(range(40))
    assert len(next(batches(3, 16, seed=0))) == 3


def test_other_seeds_have_other_weights():
    models = [TASKS["text"].model() for _ in range(2)]
    for seed, model in enumerate(models):
        initialise(model, seed)
    assert not torch.equal(*(model.head.weight for model in models))


@pytest.mark.parametrize(("task", "name"), sorted(pairs()))
def test_every_parameter_is_stepped_by_exactly_one_optimizer(task, name):
    _, model, optimizers = prepare(run_of(task, name))
    held = [id(weight) for one in optimizers for part in one.param_groups for weight in part["params"]]
    assert sorted(held) == sorted(id(weight) for weight in model.parameters())


def test_pairs_leave_out_only_what_has_no_matrix_to_show_itself_on():
    left_out = NAMES - set(pairs())
    assert left_out == {("logistic", name) for name, one in CONTENDERS.items() if one.needs_matrices}
    assert {name for name, one in CONTENDERS.items() if one.needs_matrices} == {"muon", "muon-short", "spectral"}


@pytest.mark.parametrize("task", TASKS)
def test_a_run_depends_on_its_seeds_alone(task):
    one, again, other = (train(run_of(task, "tensors", lr=1e-5, seed=seed, checkpoints=3)) for seed in (1, 1, 2))
    assert (one.train, one.validation, one.test, one.curve) == (again.train, again.validation, again.test, again.curve)
    assert one.validation != other.validation
    assert [step for step, _ in one.curve] == [1, 2, 3] and one.curve[-1][1] == one.validation


@pytest.mark.parametrize("name", CONTENDERS)
def test_every_optimizer_learns_with_a_learning_rate_of_its_grid(name):
    outcomes = [train(run_of("mlp", name, lr=lr, steps=40, rows=200)) for lr in CONTENDERS[name].grid(5)]
    assert min(out.train for out in outcomes) < 1.5 < math.log(10)


def test_validation_is_at_the_answer_and_training_goes_on_where_it_was():
    split, model, optimizers = prepare(run_of("mlp", "tensors", lr=1e-4))
    x, y = (torch.from_numpy(part) for part in split.train)
    for _ in range(3):
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizers[0].step()
    before = [weight.detach().clone() for weight in model.parameters()]
    at_y = torch.nn.functional.cross_entropy(model(x), y).item()
    at_x = evaluate(model, optimizers, split.train)
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert at_x != pytest.approx(at_y, rel=1e-6)


def test_the_learning_rate_falls_to_zero():
    """Where the last step is one of rate 0, or nearly, the run before it had almost arrived."""
    curve = train(run_of("mlp", "sgd", lr=0.1, steps=50, checkpoints=50)).curve
    changes = np.abs(np.diff([loss for _, loss in curve]))
    assert changes[-1] < 0.05 * changes[:10].max()


def test_a_run_that_diverges_ends_with_infinite_losses():
    out = train(run_of("mlp", "sgd", lr=1e30, steps=20))
    assert out.train == out.validation == out.test == math.inf


def test_lion_is_as_published():
    """The parameters of a model after steps of noise, against the code of its authors."""
    for name, betas in (("lion", (0.9, 0.99)), ("lion-short", (0.81, 0.9))):
        (weight,), (twin,) = start((5, 4)), start((5, 4))
        model = torch.nn.ParameterList([weight])
        (one,) = CONTENDERS[name].make(model, "", 0.01)
        average = [torch.zeros_like(twin)]
        for _ in with_noise(list(model.parameters()), 6):
            gradient = next(model.parameters()).grad
            one.step()
            lion([twin], [gradient], average, 0.01, betas, 0.0)
        assert torch.equal(next(model.parameters()), twin)


@pytest.mark.skipif(not hasattr(torch.optim, "Muon"), reason="PyTorch has Muon from 2.9 on")
@pytest.mark.parametrize("momentum", [0.9, 0.95])
def test_muon_is_that_of_pytorch(momentum):
    """PyTorch rounds to bfloat16 inside; Mutation: another momentum differs by more than that."""

    def steps(make):
        weights = start((8, 5), (4, 9), dtype=torch.float32)
        one = make(weights)
        for _ in with_noise(weights, 6):
            one.step()
        return weights

    theirs = steps(
        lambda some: torch.optim.Muon(
            some, lr=0.01, weight_decay=0.0, momentum=momentum, adjust_lr_fn="match_rms_adamw"
        )
    )
    assert close(steps(lambda some: Muon(some, 0.01, momentum)), theirs, atol=1e-3)
    assert not close(steps(lambda some: Muon(some, 0.01, 0.5)), theirs, atol=1e-3)


def test_muon_takes_convolutions_as_matrices():
    (kernel,), (matrix,) = start((6, 2, 3, 3)), start((6, 18))
    matrix.data = kernel.detach().reshape(6, 18).clone()
    ones = Muon([kernel], 0.01), Muon([matrix], 0.01)
    kernel.grad = torch.sin(kernel.detach() * 7.0)
    matrix.grad = kernel.grad.reshape(6, 18)
    for one in ones:
        one.step()
    assert torch.equal(kernel.detach().reshape(6, 18), matrix.detach())


def test_muon_leaves_embeddings_vectors_and_the_output_to_adamw():
    model = TASKS["text"].model()
    muon, rest = make_optimizers(run_of("text", "muon"), model)
    names = {id(weight): name for name, weight in model.named_parameters()}
    hidden = {names[id(weight)] for weight in muon.param_groups[0]["params"]}
    assert output_layer(model) == "head"
    assert not [name for name in hidden if name.startswith(("head", "letters", "places")) or name.endswith("bias")]
    assert len(hidden) == 8 and isinstance(rest, torch.optim.AdamW)


def test_a_rerun_gives_the_same_tables_but_for_the_times(monkeypatch):
    monkeypatch.setattr(training, "pairs", lambda: [("logistic", "one-norm"), ("text", "spectral")])
    one, again = (tables(TINY, Here()) for _ in range(2))
    assert set(one) == {"training", "training-tuning", "training-curves", "training-times"}
    for stem in set(one) - {"training-times"}:
        assert csv_text(one[stem]) == csv_text(again[stem])


def test_a_learning_rate_at_the_end_of_the_grid_is_named(made):
    low, middle, high = CONTENDERS["sgd"].grid(3)
    assert [end_of_grid("sgd", lr, 3) for lr in (low, middle, high)] == ["lowest", "", "highest"]
    inside = [{**row, "end": ""} for row in made["training"]]
    outside = [{**row, "end": "highest"} if row["optimizer"] == "sgd" else row for row in inside]
    assert "None of the best learning rates is at an end" in report({**made, "training": inside}, TINY)
    text_of = report({**made, "training": outside}, TINY)
    assert f"Of {len(pairs())}, 4 are the lowest or highest of their grid" in text_of and "(highest)" in text_of


def crafted(losses):
    """Rows of every task, with two seeds around a loss for each optimizer."""
    return [
        {
            "task": task,
            "optimizer": name,
            "lr": 1.0,
            "end": "",
            "seed": k,
            "train": loss,
            "validation": loss,
            "test": loss,
        }
        for task in TASK_TITLES
        for name, middle in losses.items()
        for k, loss in enumerate((middle - 0.01, middle + 0.01))
    ]


def test_the_report_names_whoever_wins():
    ours = findings(crafted({"adamw": 0.5, "sgd": 0.4, "spectral": 0.3}))
    theirs = findings(crafted({"adamw": 0.5, "sgd": 0.4, "spectral": 0.6}))
    near = findings(crafted({"adamw": 0.5, "sgd": 0.4, "spectral": 0.39}))
    assert all("lowest is HASD spectral + ℓ∞, ours (0.3000 ± 0.0100)" in line for line in ours)
    assert all("HASD spectral + ℓ∞ is lower" in line for line in ours)
    assert all("lowest is SGD Nesterov 0.9, not ours" in line for line in theirs)
    assert all("HASD spectral + ℓ∞ is higher" in line for line in theirs)
    assert all(
        "then SGD Nesterov 0.9 (0.4000 ± 0.0100), which is within the spread of the seeds" in line for line in near
    )
    assert len(ours) == 2 * len(TASK_TITLES)


def test_a_diverged_optimizer_is_called_so_and_drawn(made, tmp_path):
    lost = [{**row, "validation": math.inf} if row["optimizer"] == "stacey" else row for row in made["training"]]
    changed = {**made, "training": lost}
    assert "| STACEY(3,2) | diverged |" in report(changed, TINY)
    for stem, plot in training.EXPERIMENT.plots.items():
        assert all(path.stat().st_size > 0 for path in render((tmp_path / stem, plot, changed)))


def test_the_report_has_a_line_for_every_optimizer_and_is_printed(made, tmp_path):
    shown = []
    given = replace(training.EXPERIMENT, tables=lambda sizes, workers: made)
    written = save([(given, TINY)], Here(), tmp_path, show=shown.append)
    stems = {path.name for path in written}
    assert {"training.csv", "training-times.csv", "training.md", "training.png", "training-curves.pdf"} <= stems
    assert shown == [(tmp_path / "training.md").read_text(encoding="utf-8")]
    assert all(shown[0].count(f"\n| {label} |") == 5 for label in LABELS.values())
    assert "2 runs\nwith other seeds" in shown[0] and "one seed a difference may be chance" not in shown[0]
    assert "one seed a difference may be chance" in report(made, replace(TINY, seeds=1))


def test_an_assignment_is_carried_out_with_the_sizes_it_names():
    sizes = replace(TINY, steps=4, rows=50, seed=3)
    one = sizes.assignment("logistic", "sgd", 0.1, 2, checkpoints=2)
    assert (one.steps, one.rows, one.data_seed, one.seed) == (4, 50, 3, 3002)
    assert [step for step, _ in carry_out(one).curve] == [2, 4]
