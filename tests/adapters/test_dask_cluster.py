"""Blocks on a Dask cluster: the same answers as in one piece, in any order of arrival, though a worker is killed."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import hasd
import hasd.dask
from hasd.objectives import Affine
from hasd.objectives.losses import LogisticLoss, LogSumExpLoss, SquareLoss, SymmetricSoftmaxLoss

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

# A cluster's own shutdown may leave sockets and event loops to the garbage collector.
IGNORED = ("ResourceWarning", "DeprecationWarning:distributed", "pytest.PytestUnraisableExceptionWarning")
pytestmark = [pytest.mark.slow, *(pytest.mark.filterwarnings(f"ignore::{warning}") for warning in IGNORED)]

N, D = 400, 6
I2 = np.eye(2)
PATIENCE = 60.0
"""Seconds that a busy machine may take for what is waited for."""


def data(n=N, d=D):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), rng.standard_normal(n)


def maker(i, n=N, d=D):
    """A function that makes block i of two."""
    return lambda: data(n, d)[0][i * n // 2 : (i + 1) * n // 2]


def close(one, other, tol=1e-10):
    return np.max(np.abs(np.asarray(one) - other)) <= tol * max(1.0, np.max(np.abs(other)))


@contextmanager
def cluster(folder, processes=True, n_workers=2):
    """Any free ports, one thread a worker, files in a folder that pytest clears."""
    with (
        dask.config.set({"distributed.scheduler.work-stealing": False}),
        distributed.LocalCluster(
            processes=processes,
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",  # None is port 8787
            local_directory=str(folder),
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("dask")) as client:
        yield client


def run(f, d=D, tol=1e-9, **options):
    return hasd.minimize(f, np.ones(d), method="hasd-subspace", tol=tol, **options)


def until(condition):
    """Wait for it; where it never comes, the assertion after this fails."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("kind", ["log-sum-exp", "logistic"])
def test_a_cluster_gives_the_minimiser_and_gap_of_one_piece(client, kind):
    A, b = data()
    loss, rhs = (LogSumExpLoss(0.5), b) if kind == "log-sum-exp" else (LogisticLoss(np.sign(b)), None)
    ours = run(hasd.dask.affine(loss, [maker(0), maker(1)], rhs, ridge=0.1, client=client))
    theirs = run(Affine(loss, A, rhs, 0.1))
    assert ours.success and close(ours.x, theirs.x) and close(ours.fun, theirs.fun)
    assert close(ours.gap, theirs.gap)


def test_renewed_images_keep_the_answer_and_no_tasks_pile_up(client, monkeypatch):
    """Mutations: futures kept, or points never made anew: tasks grow by ten an iteration."""
    monkeypatch.setattr("hasd.dask.images.RENEW", 2)
    monkeypatch.setattr("hasd.dask.images.LONG", 8)
    n, d = 200, 150
    A, b = data(n, d)
    loss, seen = SymmetricSoftmaxLoss(1.0), []

    def states(dask_scheduler):
        return [task.state for task in dask_scheduler.tasks.values()]

    def look(x):
        found = client.run_on_scheduler(states)
        seen.append((found.count("memory"), len(found)))

    before = len(client.run_on_scheduler(states))
    f = hasd.dask.affine(loss, [maker(0, n, d), maker(1, n, d)], b, ridge=0.1, client=client)
    ours = run(f, d, memory=4, maxiter=16, callback=look)
    theirs = run(Affine(loss, A, b, 0.1), d, memory=4, maxiter=16)
    assert ours.nit == 16 and ours.nprod > theirs.nprod  # the images made anew
    assert close(ours.fun, theirs.fun) and close(ours.x, theirs.x, 1e-8)
    held, known = np.max(seen, axis=0)
    assert held <= before + 32 and known <= before + 80


def test_the_order_of_answers_does_not_matter(client, tmp_path):
    """To the last bit: whichever block is late, on one worker or three, and on threads.

    Mutation: as_completed instead of gather.
    """

    def late(i, who):
        def make():
            A = maker(i)()

            def product(v):
                time.sleep(0.01 if i == who else 0.0)
                return A @ v

            return LinearOperator(A.shape, matvec=product, rmatvec=lambda u: A.T @ u, dtype=float)

        return make

    def answer(who, **where):
        blocks = [late(0, who), late(1, who)]
        return run(hasd.dask.affine(LogSumExpLoss(0.5), blocks, data()[1], ridge=0.1, **where), maxiter=8)

    runs = [answer(who, client=client) for who in (0, 1)] + [answer(0, threads=1), answer(0, threads=2)]
    for count in (1, 3):
        with cluster(tmp_path, processes=False, n_workers=count) as other:
            runs.append(answer(1, client=other))
    assert all(np.array_equal(runs[0].x, again.x) and runs[0].fun == again.fun for again in runs)


def test_only_short_vectors_travel(client):
    """n = 40 000: an image of a block is 160 kB.  Mutation: the bundle itself fetched, or a block moved to a peer."""
    n, d = 40_000, 5
    f = hasd.dask.affine(LogSumExpLoss(0.5), [maker(0, n, d), maker(1, n, d)], ridge=0.1, client=client)
    f = f.with_own_counter()
    f.with_own_counter = lambda: f  # the run counts its rounds here
    plans, real = [], f.pool.round

    def counting(blocks, bundles, plan):
        plans.append(len(distributed.protocol.pickle.dumps(plan)))
        return real(blocks, bundles, plan)

    def traffic(dask_worker):
        return dask_worker.transfer_outgoing_bytes_total, len(dask_worker.transfer_incoming_log)

    f.pool.round = counting
    before = client.run(traffic)
    res = run(f, d)
    after = client.run(traffic)
    assert res.success and len(plans) == f.rounds > 10
    assert max(plans) < 3000  # client to block: d-vectors and coordinates, and the names of what to do
    for worker, (sent, fetched) in after.items():
        assert fetched == before[worker][1]  # from another worker: nothing
        told = (sent - before[worker][0]) / f.rounds
        assert 0.0 < told < 8 * (d + 2 * d * d) + 500


def test_dask_arrays_on_a_cluster_give_the_answers_of_one_piece(client):
    A, b = data()
    rows, rhs = da.from_array(A, chunks=(200, 3)), da.from_array(b, chunks=100)
    f = hasd.dask.affine(SquareLoss(), rows, rhs, ridge=0.1, client=client)
    assert len(f.blocks) == 2 and close(run(f).x, run(Affine(SquareLoss(), A, b, 0.1)).x)
    y = da.from_array(np.sign(b), chunks=100)
    g = hasd.dask.affine(LogisticLoss, rows, y, client=client)
    assert close(g(np.ones(D)), Affine(LogisticLoss(np.sign(b)), A)(np.ones(D)))


def test_errors_on_workers_are_raised_and_name_their_block(client):
    def broken():
        raise OSError("the disk is gone")

    cases = [
        (ValueError, "block 1: A must be 2-D", [I2, np.zeros((0, 2))]),
        (ValueError, "block 1: A must be finite", [I2, lambda: I2 * np.inf]),
        (ValueError, "block 0 has 2 columns, block 1 3", [I2, lambda: np.eye(3)]),
        (OSError, "the disk is gone", [I2, broken]),
    ]
    for error, message, blocks in cases:
        with pytest.raises(error, match=message) as caught:
            hasd.dask.affine(SquareLoss(), blocks, client=client)
    assert "makes block 1" in caught.value.__notes__[0]


def test_an_address_is_taken_and_an_asynchronous_client_refused(client):
    f = hasd.dask.affine(SquareLoss(), [I2], [1.0, 0.0], client=client.scheduler.address)
    assert f(np.zeros(2)) == 0.5 and distributed.default_client() is client
    f.pool.client.close()

    class Asynchronous:
        asynchronous, map, gather = True, None, None

    with pytest.raises(TypeError, match="must not be asynchronous"):
        hasd.dask.affine(SquareLoss(), [I2], client=Asynchronous())


def test_nothing_is_left_on_the_scheduler(client):
    """Images go when the run ends, and with them what they were made from; blocks with the objective."""

    def tasks():
        return set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))

    before = tasks()
    f = hasd.dask.affine(LogSumExpLoss(0.5), [maker(0), maker(1)], data()[1], ridge=0.1, client=client)
    run(f, maxiter=3)
    assert until(lambda: len(tasks() - before) <= 8)  # the two blocks, and what they are made from
    assert tasks() - before
    del f
    assert until(lambda: not tasks() - before)


def test_a_run_whose_workers_all_left_waits_for_new_ones_or_times_out(tmp_path):
    """A run waits for new ones, which make the blocks anew; or it ends by Dask's own time limit."""
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "30s"}),
        cluster(tmp_path, processes=False, n_workers=1) as client,
    ):

        def leave():
            client.cluster.scale(0)
            assert until(lambda: not client.scheduler_info()["workers"])

        f = hasd.dask.affine(LogSumExpLoss(0.5), [maker(0), maker(1)], ridge=0.1, client=client)
        alone = run(f)
        steps = []

        def disturb(x):
            steps.append(x)
            if len(steps) == 3:
                leave()
                threading.Timer(0.2, client.cluster.scale, (2,)).start()

        again = run(f, callback=disturb)
        assert again.success and np.array_equal(again.x, alone.x)
        leave()
        client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "no_workers_timeout", 0.5))
        with pytest.raises(distributed.scheduler.NoWorkerError):
            f(np.ones(D))


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """A cluster of two whose workers may be killed."""
    with cluster(tmp_path_factory.mktemp("mortal")) as client:
        yield client


def noted(i, folder):
    """A function that makes block i of two and notes which process it is called in."""

    def make():
        with open(os.path.join(folder, f"made-{i}"), "a") as file:
            file.write(f"{os.getpid()}\n")
        return maker(i)()

    return make


def makers_of(i, folder):
    """The processes that made block i, in order."""
    return [int(line) for line in (folder / f"made-{i}").read_text().split()]


def holders_of(block, client):
    """The addresses of the workers that have it."""
    return next(iter(client.who_has(block).values()))


def test_a_worker_killed_during_a_product_does_not_change_the_answer(mortal, tmp_path):
    """Its blocks are made again.  Mutation: blocks scattered or kept in an actor: the run never ends."""
    folder = str(tmp_path)
    armed, under_way = os.path.join(folder, "armed"), os.path.join(folder, "under-way")

    def fatal(i):
        make = noted(i, folder)

        def operator():
            A, products = make(), [0]

            def product(v):
                products[0] += 1
                if i == 1 and products[0] == 5 and os.path.exists(armed) and not os.path.exists(under_way):
                    with open(under_way + ".part", "w") as file:
                        file.write(str(os.getpid()))
                    os.rename(under_way + ".part", under_way)
                    time.sleep(4 * PATIENCE)  # killed meanwhile
                return A @ v

            return LinearOperator(A.shape, matvec=product, rmatvec=lambda u: A.T @ u, dtype=float)

        return operator

    killed, lost = [], {}

    def kill():
        """Kill the worker, and if Dask had copied all blocks to the other one too, that one with it."""
        if until(lambda: os.path.exists(under_way)):
            with open(under_way) as file:
                victim = int(file.read())
            processes = mortal.run(os.getpid)
            held = [{processes[worker] for worker in holders_of(block, mortal)} for block in f.blocks]
            killed.extend([victim] if {victim} in held else processes.values())
            lost.update((i, len(makers_of(i, tmp_path))) for i, holders in enumerate(held) if holders <= set(killed))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    def objective():
        return hasd.dask.affine(LogSumExpLoss(0.5), [fatal(0), fatal(1)], data()[1], ridge=0.1, client=mortal)

    undisturbed = run(objective())
    assert len(makers_of(1, tmp_path)) == 1
    open(armed, "w").close()
    f = objective()
    assert len(makers_of(1, tmp_path)) == 2
    killer = threading.Thread(target=kill)
    killer.start()
    disturbed = run(f)
    killer.join()
    again = {i: makers_of(i, tmp_path)[made:] for i, made in lost.items()}
    assert killed and again and all(again.values())
    assert not set(killed) & {pid for makers in again.values() for pid in makers}
    assert disturbed.success and disturbed.nit == undisturbed.nit
    assert close(disturbed.x, undisturbed.x) and close(disturbed.fun, undisturbed.fun)


def test_a_worker_killed_between_rounds_does_not_change_the_answer(mortal, tmp_path):
    """The chunks of a Dask array, and the images made by then from other images."""
    b, parts = data()[1], [dask.delayed(noted(i, str(tmp_path)))() for i in (0, 1)]
    rows = da.concatenate([da.from_delayed(part, (N // 2, D), dtype=float) for part in parts])
    f = hasd.dask.affine(LogSumExpLoss(0.5), rows, b, ridge=0.1, client=mortal)
    undisturbed, steps = run(f), []

    def kill(x):
        steps.append(x)
        if len(steps) == 5:
            holders = holders_of(f.blocks[1], mortal)  # Dask may have copied a block so small
            for pid in mortal.run(os.getpid, workers=holders).values():
                os.kill(pid, signal.SIGKILL)

    disturbed = run(f, callback=kill)
    assert len(steps) > 5 and len(makers_of(1, tmp_path)) == 2
    assert disturbed.nit == undisturbed.nit and close(disturbed.x, undisturbed.x)
