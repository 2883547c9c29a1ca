"""The losses: slopes and curvatures against finite differences, extremes, and no warning anywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from hasd.objectives._loss import Curvature
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss

n = 7
rng = np.random.default_rng(0)
LABELS = np.where(rng.random(n) < 0.5, -1.0, 1.0)
LOSSES = [
    LogSumExpLoss(0.5),
    SymmetricSoftmaxLoss(0.5),
    SquareLoss(),
    LogisticLoss(LABELS),
    PowerLoss(2.0),
    PowerLoss(3.5),
    PowerLoss(4.0),
]
SOFTMAXES = [LogSumExpLoss, SymmetricSoftmaxLoss]


def hessian(loss, z):
    return loss.curvature(z).times(np.eye(len(z)))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 3.0])
def test_slope_and_curvature_are_derivatives(loss, scale):
    z, h = scale * rng.standard_normal(n), 1e-5
    value, slope = loss.value_and_slope(z)
    assert isinstance(value, float) and value == loss.value(z)
    for i, e in enumerate(np.eye(n)):
        up, down = z + h * e, z - h * e
        assert slope[i] == pytest.approx((loss.value(up) - loss.value(down)) / (2 * h), rel=1e-6, abs=1e-8)
        column = (loss.value_and_slope(up)[1] - loss.value_and_slope(down)[1]) / (2 * h)
        np.testing.assert_allclose(hessian(loss, z)[:, i], column, rtol=1e-5, atol=1e-6)


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=9), st.sampled_from(range(len(LOSSES))))
@settings(deadline=None)
def test_curvature_is_positive_semidefinite(entries, which):
    z = np.resize(np.array(entries), n)
    H = hessian(LOSSES[which], z)
    np.testing.assert_array_equal(H, H.T)
    assert np.linalg.eigvalsh(H).min() >= -1e-12 * max(1.0, np.abs(H).max())


def test_curvature_times_a_matrix_is_the_dense_product():
    curvature = Curvature(np.array([2.0, 3.0]), np.array([1.0, -1.0]))
    dense = np.diag(curvature.diagonal) - np.outer(curvature.rank_one, curvature.rank_one)
    W = rng.standard_normal((2, 5))
    np.testing.assert_allclose(curvature.times(W), dense @ W, atol=1e-14)
    np.testing.assert_allclose(curvature.times(W[:, 0]), dense @ W[:, 0], atol=1e-14)


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_softmaxes_agree_with_scipy(entries, alpha):
    z = np.array(entries)
    both = np.concatenate([z, -z])
    assert LogSumExpLoss(alpha).value(z) == pytest.approx(alpha * logsumexp(z / alpha), rel=1e-12, abs=1e-9)
    assert SymmetricSoftmaxLoss(alpha).value(z) == pytest.approx(alpha * logsumexp(both / alpha), rel=1e-12)


@given(st.lists(st.floats(-30, 30), min_size=n, max_size=n))
@settings(deadline=None)
def test_logistic_agrees_with_logaddexp(entries):
    z = np.array(entries)
    assert LogisticLoss(LABELS).value(z) == pytest.approx(np.logaddexp(0.0, -LABELS * z).mean(), rel=1e-13)


@pytest.mark.parametrize("loss", SOFTMAXES)
@pytest.mark.parametrize(("alpha", "size"), [(1e-8, 1e6), (1.0, 1e6), (1.0, 1e300), (1e-8, 1e300), (1e8, 1e-300)])
def test_softmaxes_stay_finite_and_within_bounds_at_extremes(loss, alpha, size):
    z = size * np.array([1.0, -1.0, 0.5])
    value, slope = loss(alpha).value_and_slope(z)
    assert size <= value <= size + alpha * math.log(6) * (1 + 1e-12)
    assert np.abs(slope).sum() <= 1 + 1e-12
    assert np.isfinite(hessian(loss(alpha), z)).all()


def test_symmetric_slope_keeps_its_digits_near_zero():
    _, slope = SymmetricSoftmaxLoss(1.0).value_and_slope(np.array([1e-12, 0.0]))
    assert slope[0] == pytest.approx(0.5e-12, rel=1e-12)
    assert slope[1] == 0.0


def test_logistic_is_exact_at_extremes():
    value, slope = LogisticLoss(np.array([1.0, -1.0])).value_and_slope(np.array([1e300, 1e300]))
    assert value == 0.5e300
    np.testing.assert_array_equal(slope, [0.0, 0.5])


def test_power_overflows_to_inf():
    value, slope = PowerLoss(4.0).value_and_slope(np.array([-1e200, 1.0]))
    assert value == math.inf
    np.testing.assert_array_equal(slope, [-math.inf, 1.0])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_passes_through_quietly(loss, bad):
    z = np.zeros(n)
    z[2] = bad
    with np.errstate(all="raise"):
        value, _ = loss.value_and_slope(z)
        loss.curvature(z)
    assert math.isnan(value) == math.isnan(bad)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_z_is_never_written_to_nor_returned(loss):
    z = rng.standard_normal(n)
    z.flags.writeable = False
    _, slope = loss.value_and_slope(z)
    loss.value(z), loss.curvature(z)
    assert not np.shares_memory(slope, z)


@pytest.mark.parametrize("loss", SOFTMAXES)
@pytest.mark.parametrize("alpha", [0.0, -1.0, math.inf, math.nan])
def test_alpha_must_be_positive(loss, alpha):
    with pytest.raises(ValueError, match="alpha must be finite and greater than 0"):
        loss(alpha)


def test_q_and_labels_are_checked():
    with pytest.raises(ValueError, match="q must be finite and at least 2"):
        PowerLoss(1.5)
    with pytest.raises(TypeError, match="q must be a number"):
        PowerLoss(2j)
    with pytest.raises(ValueError, match=r"got 0, 1; convert 0/1 labels with 2\*y - 1"):
        LogisticLoss(np.array([False, True]))
