"""check_loss: the losses of the package pass it on many seeds, and each of many wrong losses is named for its fault."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import xlogy

from hasd.objectives import Expansion, Loss, Smoothness, check_loss
from hasd.objectives import _loss_promises as promises
from hasd.objectives._loss_probe import Probe
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss

LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
COUNTS = np.array([0.0, 1.0, 3.0, 2.0, 0.0, 12.0, 1.0])


@dataclass(frozen=True)
class Huber(Loss):
    """Squares below delta, a straight line above: its second derivative jumps."""

    delta: float = 1.0
    bounded_below = True

    def expand(self, z):
        inside = np.clip(z, -self.delta, self.delta)
        return Expansion(float(inside @ (z - 0.5 * inside)), inside, (np.abs(z) <= self.delta).astype(float))

    def conjugate(self, u):
        return 0.5 * float(u @ u) if np.abs(u).max() <= self.delta else math.inf


class Poisson(Loss):
    """exp(z) - yz: unbounded curvature, terms that cancel, a conjugate with a domain."""

    bounded_below = True

    def expand(self, z):
        rate = np.exp(z)
        return Expansion(float(np.sum(rate - COUNTS * z)), rate - COUNTS, rate)

    def conjugate(self, u):
        rate = u + COUNTS
        return float(np.sum(xlogy(rate, rate) - rate)) if rate.min() >= 0.0 else math.inf


class Cancelling(SquareLoss):
    """Right, but for a large constant that is added and taken off again: nine digits are lost."""

    doubt = None

    def value(self, z):
        return (super().value(z) + 1e9) - 1e9

    def expand(self, z):
        return super().expand(z)._replace(value=self.value(z))


class Rising(Loss):
    """max(z, 0)^2 without a second derivative, which jumps at 0."""

    def value_and_slope(self, z):
        top = np.maximum(z, 0.0)
        return float(top @ top), 2.0 * top


RIGHT = [
    LogSumExpLoss(),
    LogSumExpLoss(1e-8),
    LogSumExpLoss(100.0),
    SymmetricSoftmaxLoss(0.5),
    SymmetricSoftmaxLoss(1e-6),
    SquareLoss(),
    LogisticLoss(LABELS),
    PowerLoss(2.0),
    PowerLoss(2.5),
    PowerLoss(4.0),
    PowerLoss(20.0),
    Huber(),
    Huber(0.01),
    Poisson(),
    Cancelling(),
    Rising(),
]
NAMES = [f"{type(loss).__name__}{'' if i < 12 else i}-{i}" for i, loss in enumerate(RIGHT)]


@pytest.mark.parametrize("loss", RIGHT, ids=NAMES)
def test_a_right_loss_is_accused_on_no_seed(loss):
    """`test_mutation_without_an_allowance_rounding_is_accused` shows that this can fail."""
    for seed in range(3):
        check_loss(loss, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("loss", RIGHT, ids=NAMES)
def test_a_right_loss_is_accused_on_none_of_a_hundred_seeds(loss):
    for seed in range(3, 103):
        check_loss(loss, seed=seed)


@pytest.mark.parametrize("size", [1e-12, 1.0, 300.0])
def test_a_right_loss_is_not_accused_near_a_given_point(size):
    """Also where every entry is the same, and where the second derivative jumps at the point itself."""
    rng = np.random.default_rng(0)
    for i, loss in enumerate(RIGHT):
        check_loss(loss, size * rng.standard_normal(7) if i % 2 else np.full(7, -size))


def test_one_row_and_many_rows_can_be_checked():
    check_loss(Huber(), rows=1)
    check_loss(LogSumExpLoss(), rows=1)
    check_loss(SquareLoss(), rows=40)


def test_the_report_says_what_was_checked_and_what_is_not_declared():
    report = check_loss(Rising())
    assert report.checked == ("the arrays", "the slope", "convexity", "extreme points")
    left_out = "the second derivative", "the conjugate", "the rounding errors", "the lower bound"
    assert report.not_declared == ("the smoothness constant", *left_out)
    assert str(report).startswith("checked: the arrays, the slope") and "not declared: the smooth" in str(report)
    assert check_loss(SquareLoss()).not_declared == ()


@pytest.mark.parametrize(
    ("loss", "error", "said"),
    [
        (SquareLoss, TypeError, r"^loss must be an object, got the class SquareLoss: write SquareLoss\(...\)$"),
        (lambda z: z, TypeError, "^loss must be a hasd.objectives.Loss, or have its methods; function has no value"),
        (LogisticLoss(np.ones(4)), ValueError, r"^LogisticLoss failed at a z of length 7 \(a loss that holds data"),
    ],
)
def test_what_is_no_loss_or_has_other_data_is_refused_by_name(loss, error, said):
    with pytest.raises(error, match=said):
        check_loss(loss)


class WrongSign(SquareLoss):
    def value_and_slope(self, z):
        return self.value(z), -z


class SlopeOffByAThousandth(SquareLoss):
    def value_and_slope(self, z):
        return self.value(z), 1.001 * z

    def expand(self, z):
        return super().expand(z)._replace(slope=1.001 * z)


class OneEntryWrong(SquareLoss):
    def value_and_slope(self, z):
        return self.value(z), np.where(np.arange(z.size) == 3, 0.0, z)

    def expand(self, z):
        return super().expand(z)._replace(slope=self.value_and_slope(z)[1])


class TwiceTheCurvature(LogisticLoss):
    def expand(self, z):
        return super().expand(z)._replace(scale=2.0 / z.shape[0])


class NoRankOne(LogSumExpLoss):
    def expand(self, z):
        return super().expand(z)._replace(rank_one=None)


class NegativeCurvature(SquareLoss):
    def expand(self, z):
        return super().expand(z)._replace(diagonal=-np.ones_like(z))


class Cauchy(Loss):
    """log(1 + z^2): right slope and curvature, not convex."""

    def expand(self, z):
        return Expansion(float(np.log1p(z * z).sum()), 2.0 * z / (1.0 + z * z), 2.0 * (1 - z * z) / (1 + z * z) ** 2)


class Concave(Loss):
    def value_and_slope(self, z):
        return -float(z @ z), -2.0 * z


class ConjugateOffByAConstant(SquareLoss):
    def conjugate(self, u):
        return super().conjugate(u) + 1e-3


class ConjugateTooSmall(Huber):
    def conjugate(self, u):
        return 0.25 * float(u @ u)


class ConjugateWithoutDomain(Huber):
    def conjugate(self, u):
        return 0.5 * float(u @ u) - (10.0 if np.abs(u).max() > 1.0 else 0.0)


class ConjugateIsNaN(LogSumExpLoss):
    def conjugate(self, u):
        return float(np.sum(u * np.log(u)))


class ConstantTooSmall(SquareLoss):
    def smoothness(self, A, p):
        return Smoothness(0.9 * super().smoothness(A, p), exact=False)


class LogisticConstantTooSmall(LogisticLoss):
    def smoothness(self, A, p):
        return Smoothness(0.7 * super().smoothness(A, p), exact=False)


class MaximumConstantTooSmall(LogSumExpLoss):
    def smoothness(self, A, p):
        return Smoothness(0.5 * super().smoothness(A, p), exact=False)


class ConstantIsNaN(SquareLoss):
    def smoothness(self, A, p):
        return Smoothness(math.nan, exact=False)


class WritesIntoZ(SquareLoss):
    def value(self, z):
        z *= 2.0
        return 0.125 * float(z @ z)


class WritesIntoU(SquareLoss):
    def conjugate(self, u):
        u *= 1.0 + 1e-15
        return 0.5 * float(u @ u)


class SlopeIsZ(SquareLoss):
    def value_and_slope(self, z):
        return self.value(z), z


class ShortSlope(SquareLoss):
    def value_and_slope(self, z):
        return self.value(z), z.astype(np.float32)


class ShortValue(SquareLoss):
    def value(self, z):
        return np.float32(super().value(z))


class ArrayValue(SquareLoss):
    def value(self, z):
        return 0.5 * z * z


class ReusesItsBuffer(SquareLoss):
    buffer = np.zeros(7)

    def value_and_slope(self, z):
        self.buffer[:] = z
        return self.value(z), self.buffer


class ValuesDisagree(SquareLoss):
    def value_and_slope(self, z):
        return super().value(z) + 1e-6, z.copy()


class Forgetful(SquareLoss):
    counted = np.zeros(1)

    def value_and_slope(self, z):
        self.counted += 1.0
        return super().value(z) * (1.0 + 1e-15 * float(self.counted[0])), z.copy()


class FallsForEver(LogSumExpLoss):
    bounded_below = True


class Undefined(Loss):
    """log sum exp without the largest entry taken out."""

    def value_and_slope(self, z):
        w = np.exp(z)
        return float(np.log(w.sum())), w / w.sum()


class NoDoubtAtAll(LogSumExpLoss):
    def doubt(self, value, rows, dz):
        return 0.0, 0.0, 0.0


class NoDoubtOfChanges(LogSumExpLoss):
    def doubt(self, value, rows, dz):
        return super().doubt(value, rows, 0.0)


class NegativeDoubt(LogSumExpLoss):
    def doubt(self, value, rows, dz):
        return -1.0, 1.0, 1.0


WRONG = [
    (WrongSign(), "value_and_slope must return the derivative of its value|must agree with value_and_slope"),
    (SlopeOffByAThousandth(), "value_and_slope must return the derivative of its value"),
    (OneEntryWrong(), "value_and_slope must return the derivative of its value"),
    (TwiceTheCurvature(LABELS), "expand must give the derivative of the slope"),
    (NoRankOne(), "expand must give the derivative of the slope"),
    (NegativeCurvature(), "expand must give a second derivative without negative curvature"),
    (Cauchy(), "must be convex"),
    (Concave(), "must be convex"),
    (ConjugateOffByAConstant(), r"conjugate must be <u, z> - phi\(z\) at u = phi'\(z\)"),
    (ConjugateTooSmall(), r"conjugate must be <u, z> - phi\(z\) at u"),
    (ConjugateWithoutDomain(), r"conjugate must be at least <u, z> - phi\(z\) for every z"),
    (ConjugateIsNaN(), "conjugate must give a float, inf where it is not defined"),
    (ConstantTooSmall(), "smoothness is too small"),
    (LogisticConstantTooSmall(LABELS), "smoothness is too small"),
    (MaximumConstantTooSmall(), "smoothness is too small"),
    (ConstantIsNaN(), "smoothness must be a number of at least 0, or inf"),
    (WritesIntoZ(), "must not write into z"),
    (WritesIntoU(), "conjugate must not write into u"),
    (SlopeIsZ(), "value_and_slope must give the slope in an array of its own"),
    (ShortSlope(), "must give the slope as float64, an entry a row: .* it is float32"),
    (ShortValue(), "must give the value as a float: .* it is a float32"),
    (ArrayValue(), "must give the value as a float: .* it is a ndarray"),
    (ReusesItsBuffer(), "in an array of its own: .* a later call changed it"),
    (ValuesDisagree(), "value must agree with value_and_slope"),
    (Forgetful(), "must give the same answer at the same z"),
    (FallsForEver(), "says that it is bounded below"),
    (Undefined(), "must have a value at every z"),
    (NoDoubtAtAll(), "doubt is too small"),
    (NoDoubtOfChanges(), "doubt is too small"),
    (NegativeDoubt(), "doubt must give three numbers of at least 0"),
]


@pytest.mark.parametrize(("loss", "said"), WRONG, ids=[type(loss).__name__ for loss, _ in WRONG])
def test_a_wrong_loss_is_named_for_its_fault(loss, said):
    for seed in range(3):
        with pytest.raises(ValueError, match=said) as error:
            check_loss(loss, seed=seed)
        assert str(error.value).startswith(type(loss).__name__) and "at z = array(" in str(error.value)


def test_the_arguments_are_checked():
    with pytest.raises(ValueError, match="rows must be"):
        check_loss(SquareLoss(), rows=0)
    with pytest.raises(ValueError, match="z must be finite"):
        check_loss(SquareLoss(), [1.0, math.nan])
    with pytest.raises(ValueError, match="seed must be"):
        check_loss(SquareLoss(), seed=-1)


def test_the_same_seed_finds_the_same_fault():
    texts = []
    for _ in range(2):
        with pytest.raises(ValueError) as error:
            check_loss(OneEntryWrong())
        texts.append(str(error.value))
    assert texts[0] == texts[1]


def test_mutation_without_an_allowance_rounding_is_accused(monkeypatch):
    """Mutation: SAFE = 0, so that nothing is allowed for rounding."""
    monkeypatch.setattr("hasd.objectives._loss_probe.SAFE", 0.0)
    accused = 0
    for check in (promises.check_slope, promises.check_convexity, promises.check_curvature):
        for loss in (SquareLoss(), PowerLoss(4.0), Poisson(), Cancelling(), Huber()):
            try:
                check(Probe(loss, np.random.default_rng(0), 7))
            except ValueError:
                accused += 1
    assert accused >= 3
