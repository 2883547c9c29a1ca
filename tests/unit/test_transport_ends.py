"""How a run of hasd.transport ends: status 1 where the limit on steps was reached, and only there."""

import numpy as np
import pytest

from hasd._run.status import Status
from hasd.problems import _scaling as scaling
from hasd.problems._transport import transport


def drawn(seed, n=12, m=9):
    """Costs and masses of many sizes."""
    rng = np.random.default_rng(seed)
    a, b = 10.0 ** (-4.0 * rng.random(n)), 10.0 ** (-4.0 * rng.random(m))
    return rng.random((n, m)) * 10.0 ** float(rng.integers(-3, 4)), a / a.sum(), b / b.sum()


@pytest.mark.parametrize("reg", [1e-20, 1e-25, 1e-30])
@pytest.mark.parametrize("seed", range(5))
def test_a_reg_that_is_not_resolved_ends_at_machine_precision(monkeypatch, seed, reg):
    """However few steps a stage may take: its own limit is not one that the caller set."""
    monkeypatch.setattr(scaling, "STAGE_STEPS", 3)
    res = transport(*drawn(seed), reg)
    assert res.status == Status.PRECISION.code and not res.success
    assert res.lower <= res.fun and res.marginal_error > 1e-6


@pytest.mark.parametrize("share", [1e-4, 1e-22])
def test_the_limit_on_steps_is_named_wherever_it_falls(share):
    """Also at the very step that ends a stage: the stages after it are missing."""
    C, a, b = drawn(7)
    reg = share * C.max()
    whole = transport(C, a, b, reg)
    regs, steps = np.unique(whole.trace["reg"], return_counts=True)
    first = int(steps[np.argmax(regs)]) - 1  # the trace has a row for the start, too
    assert 0 < first < whole.nit
    for maxiter in (0, 1, first - 1, first, first + 1, whole.nit - 1):
        res = transport(C, a, b, reg, maxiter=maxiter)
        assert res.status == Status.MAXITER.code and res.nit == maxiter and not res.success
    for maxiter in (whole.nit + 1, whole.nit + 100):
        assert transport(C, a, b, reg, maxiter=maxiter).status == whole.status
