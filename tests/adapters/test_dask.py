"""Objectives in blocks: the same answers as in one process, on threads."""

import gc
import pickle
import sys
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import hasd
import hasd.dask
from hasd.dask import blas, blocks
from hasd.dask.blas import one_thread
from hasd.dask.images import RENEW, BlockImages, Remote
from hasd.objectives import Affine
from hasd.objectives._dual import DualPoint
from hasd.objectives._images import LocalImages
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss, PowerLoss, SquareLoss, SymmetricSoftmaxLoss

N, D = 600, 12
CUTS = (slice(0, 200), slice(200, 250), slice(250, N))  # blocks of unequal length
LOSSES = {
    "log-sum-exp": lambda b: (LogSumExpLoss(0.5), b),
    "softmax": lambda b: (SymmetricSoftmaxLoss(0.5), b),
    "squares": lambda b: (SquareLoss(), b),
    "logistic": lambda b: (LogisticLoss(np.where(b > 0, 1.0, -1.0)), None),
    "power": lambda b: (PowerLoss(4), b),
}
every_loss = pytest.mark.parametrize("kind", LOSSES)


def data(n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def both(kind, n=N, d=D, ridge=0.1, **options):
    """The objective in blocks and the same in one piece."""
    A, b = data(n, d)
    loss, b = LOSSES[kind](b)
    return hasd.dask.affine(loss, [A[cut] for cut in CUTS], b, ridge=ridge, **options), Affine(loss, A, b, ridge)


def close(one, other, tol=1e-10):
    return np.max(np.abs(np.asarray(one) - other)) <= tol * max(1.0, np.max(np.abs(other)))


@every_loss
@pytest.mark.parametrize("method", ["hasd-subspace", "hasd-newton", "hasd-qn", "hasd"])
def test_blocks_give_the_values_and_minimisers_of_one_piece(kind, method):
    """Mutation: blocks added without their softmax weights, or a rank-one part squared block by block."""
    f, whole = both(kind)
    x = np.linspace(-1, 1, D)
    assert close(f(x), whole(x)) and close(f.value_and_grad(x)[1], whole.value_and_grad(x)[1])
    ours = hasd.minimize(f, x, method=method, tol=1e-12, maxiter=3000)
    theirs = hasd.minimize(whole, x, method=method, tol=1e-12, maxiter=3000)
    assert close(ours.x, theirs.x) and close(ours.fun, theirs.fun)


@pytest.mark.parametrize("method", sorted(set(hasd.method_names()) - {"hasd-cg", "hasd-newton"}))
@pytest.mark.parametrize("p", [2.0, 4.0])
def test_every_method_takes_the_same_steps_on_blocks_in_either_norm(method, p):
    f, whole = both("log-sum-exp")
    ours, theirs = (hasd.minimize(g, np.linspace(-1, 1, D), method=method, p=p, maxiter=10) for g in (f, whole))
    assert ours.p == p and ours.nit == theirs.nit and close(ours.x, theirs.x) and close(ours.gap, theirs.gap)


def test_hasd_cg_solves_squares_in_blocks_and_refuses_other_losses():
    f, whole = both("squares")
    ours, theirs = (hasd.minimize(g, np.ones(D), method="hasd-cg", tol=1e-10) for g in (f, whole))
    assert ours.success and close(ours.x, theirs.x)
    with pytest.raises(ValueError, match="'hasd-cg' is for"):
        hasd.minimize(both("power")[0], np.ones(D), method="hasd-cg")


@every_loss
def test_gaps_of_blocks_are_never_below_the_true_gap(kind):
    """res.gap and duality_gap are never below f(x) - f*, and the latter is Affine's with u = phi'(Ax - b)."""
    for ridge, radius in ((0.1, None), (0.1, 0.01), (0.0, 3.0)):
        f, whole = both(kind, ridge=ridge)
        best = hasd.minimize(whole, np.zeros(D), method="hasd-subspace", tol=1e-13)
        reach = max(radius or 0.0, 1.0 + np.linalg.norm(best.x))
        early = hasd.minimize(f, np.zeros(D), method="hasd-subspace", maxiter=2, tol=0.0)
        assert early.fun - best.fun <= early.certificate.gap(radius=reach) and (
            ridge == 0.0 or early.fun - best.fun <= early.gap
        )
        for x in (np.zeros(D), np.linspace(-1, 1, D), best.x):
            gap = f.duality_gap(x, reach if radius else None)
            assert gap >= f(x) - best.fun
        bound = DualPoint(whole, np.ones(D), radius)
        assert close(f.duality_gap(np.ones(D), radius), bound.gap(bound.dual))
    assert f.duality_gap(np.ones(D)) == np.inf  # neither ridge nor radius
    with pytest.raises(ValueError, match="radius must be"):
        f.duality_gap(np.ones(D), -1.0)


def test_runs_on_blocks_stop_at_the_time_limit_and_resume_bit_for_bit():
    A, b = data()

    def product(v):
        time.sleep(0.01)
        return A @ v

    slow = LinearOperator(A.shape, matvec=product, rmatvec=lambda u: A.T @ u, dtype=float)
    f = hasd.dask.affine(LogSumExpLoss(0.01), [slow], b, ridge=1e-6)
    res = hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=0.0, time_limit=0.05)
    assert not res.success and "Time limit" in res.message
    f = both("log-sum-exp")[0]
    straight = hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=1e-10)
    first = hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=1e-10, maxiter=3)
    again = hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=1e-10, resume=first.state)
    assert again.nit == straight.nit and np.array_equal(again.x, straight.x)


def test_a_function_that_fails_says_which():
    def broken():
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone") as caught:
        hasd.dask.affine(SquareLoss(), [I2, broken])
    assert "makes block 1" in caught.value.__notes__[0]


@every_loss
def test_every_operation_on_block_images_agrees_with_one_piece(kind):
    f, whole = both(kind)
    ours, theirs = f.images(), whole.images()
    rng = np.random.default_rng(1)
    x, Q = rng.standard_normal(D), rng.standard_normal((D, 3))
    z, w = ours.at(x), theirs.at(x)
    assert close(z.value, w.value) and ours.constant is theirs.constant
    assert close(ours.gradient(z), theirs.gradient(w))
    W, V = ours.basis(3), theirs.basis(3)
    assert ours.slopes(W, z).shape == (0,)
    for q in Q.T:
        W, V = ours.append(W, ours.multiply(q)), theirs.append(V, theirs.multiply(q))
    turned = rng.standard_normal((3, 2))
    for W, V in ((W, V), (ours.rotate(W, turned), theirs.rotate(V, turned))):  # noqa: B020
        step = rng.standard_normal(turned.shape[0] if V.k == 3 else 2)
        assert close(ours.slopes(W, z), theirs.slopes(V, w)) and close(ours.bends(W, z), theirs.bends(V, w))
        d, e = ours.expand(W, step), theirs.expand(V, step)
        assert close(ours.reach(z, d), theirs.reach(w, e)) and close(ours.bend(z, d), theirs.bend(w, e))
        for t in (1.0, 0.25, 0.25):
            (p, slope), (q, other) = ours.move(z, d, t), theirs.move(w, e, t)
            assert close(p.value, q.value) and close(slope, other) and close(ours.bend(p, d), theirs.bend(q, e))
            assert close(ours.bends(W, p), theirs.bends(V, q)) and close(ours.slopes(W, p), theirs.slopes(V, q))
        assert close(ours.distance(p.z, z.z), theirs.distance(q.z, w.z))
    assert f.nprod == whole.nprod


@every_loss
def test_numbers_that_overflow_give_inf_and_no_warning(kind):
    f, whole = both(kind)
    x = np.full(D, 1e200)
    assert f(x) == whole(x) or close(f(x) / whole(x), 1.0)


@every_loss
@pytest.mark.parametrize("p", [2.0, 4.0, np.inf])
def test_smoothness_is_a_bound(kind, p):
    f, whole = both(kind)
    assert f.smoothness(p) >= whole.smoothness(p) * (1 - 1e-12) and not f.smoothness(p).exact


def test_an_iteration_on_blocks_needs_at_most_five_rounds(monkeypatch):
    """What an iteration on a separable loss needs: gradient, curvature, look; a few more looks and Newton steps."""
    asked = []
    ask = BlockImages.ask
    monkeypatch.setattr(BlockImages, "ask", lambda self, *q, **k: asked.append(q) or ask(self, *q, **k))
    A, b = data(2000, 200)
    f = hasd.dask.affine(LogisticLoss(np.sign(b)), [A[:1000], A[1000:]], ridge=1e-3)
    run = hasd.minimize(f, np.ones(200), method="hasd-subspace", tol=1e-8)
    assert run.success and len(asked) <= 5 * run.nit
    assert f.rounds == 0 and f.with_own_counter().rounds == 0  # a run counts on a copy


def test_images_are_made_from_what_they_need_only(monkeypatch):
    """Mutation: from all that a question is about: then a basis depends on every point of the past."""
    f = both("log-sum-exp")[0]
    seen, real = [], f.pool.round
    monkeypatch.setattr(f.pool, "round", lambda *a: seen.append((len(a[1]), a[2])) or real(*a), raising=False)
    images = f.images()
    z, W = images.at(np.ones(D)), images.basis(3)
    for q in np.eye(D)[:2]:
        W = images.append(W, images.multiply(q))
        images.slopes(W, z)
    (_, first), (bundles, second) = seen[1:]
    assert [act.name for act in first.make] == ["basis", "multiply", "append"] and first.reads == 0
    assert [act.name for act in second.make] == ["multiply", "append"] and second.reads == 1 and bundles == 2


def test_points_that_moved_often_are_made_anew(monkeypatch):
    """With the gradient that is asked for anyway: a product more, not a round."""
    f, whole = both("log-sum-exp")
    monkeypatch.setattr(f.pool, "remakes", True, raising=False)
    monkeypatch.setattr("hasd.dask.images.LONG", 3)
    ours, theirs = f.images(), whole.images()
    z, w = ours.at(np.ones(D)), theirs.at(np.ones(D))
    W, V = (space.append(space.basis(2), space.multiply(np.eye(D)[0])) for space in (ours, theirs))
    for turns in (1, 2, 3):
        z, w = (s.move(p, s.expand(B, np.array([0.5])), 0.5)[0] for s, p, B in ((ours, z, W), (theirs, w, V)))
        assert z.z.turns == turns
    rounds, products = f.rounds, f.nprod
    assert close(ours.gradient(z), theirs.gradient(w)) and z.z.turns == 0
    assert f.rounds == rounds + 1 and f.nprod == products + 2
    assert close(ours.slopes(W, z), theirs.slopes(V, w)) and close(ours.gradient(z), theirs.gradient(w))
    assert f.nprod == products + 3


def test_images_are_renewed_from_the_directions(monkeypatch):
    """What a lost worker has to do again stays bounded: after some rotations the images come from products."""
    f, whole = both("log-sum-exp")
    monkeypatch.setattr(f.pool, "remakes", True, raising=False)
    ours, theirs = f.images(), whole.images()
    W, V, z, w = ours.basis(3), theirs.basis(3), ours.at(np.ones(D)), theirs.at(np.ones(D))
    for q in np.eye(D)[:3]:
        W, V = ours.append(W, ours.multiply(q)), theirs.append(V, theirs.multiply(q))
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((3, 3)))[0]
    names = []
    for _ in range(RENEW):
        W, V = ours.rotate(W, Q), theirs.rotate(V, Q)
        names.append(W.name)
    assert names == ["rotate"] * (RENEW - 1) + ["renew"] and W.on == ()
    assert close(ours.bends(W, z), theirs.bends(V, w))
    W, V = ours.append(W, ours.multiply(np.eye(D)[5])), theirs.append(V, theirs.multiply(np.eye(D)[5]))
    assert close(ours.slopes(W, z), theirs.slopes(V, w))


def test_threads_give_the_same_numbers_whatever_their_order():
    """Mutation: sums in the order of arrival."""

    def slow(A, delays):
        waits = iter(delays)

        def product(v):
            time.sleep(next(waits, 0.0))
            return A @ v

        return LinearOperator(A.shape, matvec=product, rmatvec=lambda u: A.T @ u, dtype=float)

    A, b = data()
    runs = []
    for late in (0, 1):
        blocks = [slow(A[cut], [0.01] * 5 if i == late else []) for i, cut in enumerate(CUTS)]
        f = hasd.dask.affine(LogSumExpLoss(0.5), blocks, b, ridge=0.1, threads=3)
        runs.append(hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=1e-10))
    assert np.array_equal(runs[0].x, runs[1].x) and runs[0].fun == runs[1].fun


def test_threads_are_used_for_large_data_or_when_asked_for(monkeypatch):
    monkeypatch.setattr("hasd.dask.pools.WORTH", 1000)
    monkeypatch.setattr("hasd.dask.build.processors", lambda: 2)
    small = hasd.dask.affine(SquareLoss(), np.eye(4), np.ones(4))
    large = hasd.dask.affine(SquareLoss(), np.ones((600, 600)), np.ones(600))
    asked = hasd.dask.affine(SquareLoss(), np.eye(4), np.ones(4), threads=3)
    assert small.pool.threads == 1 and large.pool.threads == 2 and asked.pool.threads == 3
    assert len(small.blocks) == len(large.blocks) == 2 and len(asked.blocks) == 3
    again = pickle.loads(pickle.dumps(large))
    assert again(np.ones(600)) == large(np.ones(600))
    monkeypatch.setattr("hasd.dask.blas._controller", lambda: None)  # threadpoolctl is not installed
    assert hasd.dask.affine(SquareLoss(), np.ones((600, 600)), np.ones(600)).pool.threads == 1
    assert hasd.dask.affine(SquareLoss(), np.ones((600, 600)), np.ones(600), threads=2).pool.threads == 2


def test_blas_is_held_to_one_thread_and_let_go():
    """By the last one that leaves.  Mutation: every pool restores what it found: BLAS stays at one."""
    control = pytest.importorskip("threadpoolctl").ThreadpoolController()
    blas._controller.cache_clear()  # it looks once, and other tests have loaded libraries since

    def threads():
        return {library["num_threads"] for library in control.info() if library["filepath"] in able}

    with control.limit(limits=2, user_api="blas"):
        # Another test may have loaded a BLAS that was built for one thread.
        able = {one["filepath"] for one in control.info() if one["user_api"] == "blas" and one["num_threads"] == 2}
        assert able
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == {1}
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
        seen = []
        A = LinearOperator((2, 2), matvec=lambda v: seen.append(threads()) or v, rmatvec=lambda v: v, dtype=float)
        hasd.dask.affine(SquareLoss(), [A, A], threads=2)(np.ones(2))
        assert seen == [{1}, {1}] and threads() == {2}


def test_blocks_may_be_sparse_single_precision_or_made_by_functions():
    A, b = data()
    S = sp.random_array((N, D), density=0.3, random_state=np.random.default_rng(0), format="coo")
    x = np.ones(D)
    assert close(hasd.dask.affine(SquareLoss(), S, b, threads=3)(x), Affine(SquareLoss(), S, b)(x))
    f = hasd.dask.affine(SquareLoss(), [lambda: (A[:300], b[:300]), lambda: (A[300:].astype(np.float32), b[300:])])
    assert f.precision == 2.0**-23 and f.row_cost == D and f.rows == N
    assert hasd.dask.affine(SquareLoss(), [A], b).precision == 2.0**-52
    pairs = [(A[cut], np.sign(b[cut])) for cut in CUTS]
    assert close(hasd.dask.affine(LogisticLoss, pairs)(x), Affine(LogisticLoss(np.sign(b)), A)(x))


def test_a_loss_of_ones_own_must_declare_itself_separable():
    class Squares:
        def __getattr__(self, name):
            return getattr(SquareLoss(), name)

    A, b = data()
    with pytest.raises(TypeError, match="separable = True"):
        hasd.dask.affine(Squares(), [A], b)
    Squares.separable = True
    f = hasd.dask.affine(Squares(), [A[cut] for cut in CUTS], b)
    assert close(f(np.ones(D)), Affine(SquareLoss(), A, b)(np.ones(D)))


def test_images_of_the_past_are_let_go(monkeypatch):
    """Mutation: answers noted under strong references: every point of the run stays alive through the next one."""
    alive, most = weakref.WeakSet(), []
    begin = Remote.__init__
    monkeypatch.setattr(Remote, "__init__", lambda self, *a, **k: (begin(self, *a, **k), alive.add(self))[0])
    f = both("log-sum-exp", ridge=1e-3)[0]
    gc.disable()  # references must do
    try:
        hasd.minimize(f, np.ones(D), method="hasd-subspace", tol=1e-10, callback=lambda x: most.append(len(alive)))
    finally:
        gc.enable()
    assert len(most) > 5 and max(most) <= 5


I2 = np.eye(2)


@pytest.mark.parametrize(
    ("error", "message", "arguments", "options"),
    [
        (ValueError, "blocks must not be empty", (SquareLoss(), []), {}),
        (ValueError, "block 1: A must be 2-D with at least one row", (SquareLoss(), [I2, np.zeros((0, 2))]), {}),
        (ValueError, "block 0 has 2 columns, block 1 3", (SquareLoss(), [I2, np.eye(3)]), {}),
        (ValueError, "block 0: A must be finite", (SquareLoss(), [I2 * np.nan]), {}),
        (TypeError, "block 0: A must be a real ndarray", (SquareLoss(), [I2 * 1j]), {}),
        (TypeError, "blocks must be a sequence", (SquareLoss(), 3), {}),
        (ValueError, "blocks must be 2-D", (SquareLoss(), np.zeros(3)), {}),
        (ValueError, "b must be 1-D of length 4, the rows of all blocks", (SquareLoss(), [I2, I2], np.ones(3)), {}),
        (ValueError, "brings a right-hand side of its own", (SquareLoss(), [(I2, [1, 2])], np.ones(2)), {}),
        (ValueError, "block 0: b must be 1-D of length 2", (SquareLoss(), [(I2, [1, 2, 3])]), {}),
        (ValueError, "y must be 1-D of length 4, the rows of all", (LogisticLoss(np.ones(3)), [I2, I2]), {}),
        (ValueError, "block 1: y must hold labels -1 and 1", (LogisticLoss, [(I2, [1, -1]), (I2, [0, 1])]), {}),
        (ValueError, "block 0: y must be 1-D of length 2", (LogisticLoss, [(I2, [1, -1, 1])]), {}),
        (ValueError, "needs labels", (LogisticLoss, [I2]), {}),
        (ValueError, "ridge must be finite and at least 0", (SquareLoss(), [I2]), {"ridge": -1}),
        (ValueError, "threads must be at least 1", (SquareLoss(), [I2]), {"threads": 0}),
        (TypeError, "client must be a distributed.Client", (SquareLoss(), [I2]), {"client": 3}),
        (TypeError, "loss must be one of", ("squares", [I2]), {}),
    ],
)
def test_bad_blocks_and_settings_are_refused_by_name(error, message, arguments, options):
    with pytest.raises(error, match=message):
        hasd.dask.affine(*arguments, **options)


def test_threads_need_no_dask_and_a_client_names_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setitem(sys.modules, "dask", None)
    assert hasd.dask.affine(SquareLoss(), [I2], [1.0, 0.0])(np.zeros(2)) == 0.5
    with pytest.raises(ImportError, match=r'pip install "hasd\[dask\]"'):
        hasd.dask.affine(SquareLoss(), [I2], client="tcp://127.0.0.1:1")


def test_a_dask_array_on_threads_has_the_value_of_one_piece():
    da = pytest.importorskip("dask.array")
    A, b = data()
    f = hasd.dask.affine(SquareLoss(), da.from_array(A, chunks=(250, 5)), da.from_array(b, chunks=100))
    assert len(f.blocks) == 3 and close(f(np.ones(D)), Affine(SquareLoss(), A, b)(np.ones(D)))
    assert close(hasd.dask.affine(SquareLoss(), da.from_array(A), b)(np.ones(D)), f(np.ones(D)))
    with pytest.raises(ValueError, match="b must be 1-D of length 600"):
        hasd.dask.affine(SquareLoss(), da.from_array(A), da.from_array(b[:5]))
    with pytest.raises(ValueError, match="2-D Dask array"):
        hasd.dask.affine(SquareLoss(), da.from_array(b))


def test_a_dask_array_may_have_chunks_of_unknown_sizes():
    """As they come from a data frame."""
    da = pytest.importorskip("dask.array")
    A, b = data()
    rows, rhs = da.from_array(A, chunks=(200, D)), da.from_array(b, chunks=200)
    chosen = rows[:, 0] > 0.0
    expected = Affine(SquareLoss(), A[A[:, 0] > 0.0], b[A[:, 0] > 0.0])(np.ones(D))
    assert close(hasd.dask.affine(SquareLoss(), rows[chosen], rhs[chosen])(np.ones(D)), expected)
    with pytest.raises(ValueError, match=r"as many chunks as A, whose chunk sizes are unknown: 3, got 1"):
        hasd.dask.affine(SquareLoss(), rows[chosen], da.from_array(b))
    with pytest.raises(ValueError, match="block 0: b must be 1-D of length"):
        hasd.dask.affine(SquareLoss(), rows[chosen], rhs)


def test_images_of_an_operator_with_one_buffer_are_renewed_column_by_column():
    A, buffer = np.arange(6.0).reshape(3, 2), np.empty(3)
    operator = LinearOperator(A.shape, matvec=lambda x: np.matmul(A, x, out=buffer), rmatvec=lambda y: A.T @ y)
    images = LocalImages(blocks.Block(SquareLoss(), operator, np.zeros(3)))
    np.testing.assert_array_equal(blocks.OPERATIONS["renew"](images, np.eye(2)).columns, A)
