"""What a checkpoint meets on disk: no room, other writers, a damaged last one, somebody's data, links, odd names."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import hasd
from hasd._resume import atomic_write as replacing
from hasd._resume import checkpoint

X0 = np.linspace(1.0, 3.0, 400)


def fun(x):
    return float(np.cosh(x).sum()), np.sinh(x)


def run(path, **options):
    common = {"jac": True, "method": "agd", "tol": 0.0, "maxiter": 20, "checkpoint_every": 1}
    return hasd.minimize(fun, X0, checkpoint=path, **common | options)


def iteration(path):
    return checkpoint._contents(path)[0]["tree"]["dict"]["state"]["iteration"]


def names(folder):
    return sorted(p.name for p in folder.iterdir())


class TestWriting:
    def test_the_last_two_are_kept_and_nothing_else(self, tmp_path):
        path = tmp_path / "run.npz"
        run(path, checkpoint_every=5)
        assert names(tmp_path) == ["run.npz", "run.npz.previous"]
        assert (iteration(path), iteration(replacing.previous_path(path))) == (20, 15)

    def test_the_last_two_are_kept_where_links_are_unknown_too(self, tmp_path, monkeypatch):
        def refuse(*args):
            raise OSError(errno.EPERM, "no links here")

        monkeypatch.setattr(os, "link", refuse)
        run(tmp_path / "run.npz")
        assert names(tmp_path) == ["run.npz", "run.npz.previous"]

    def test_a_full_disk_is_warned_of_once_and_the_run_goes_on(self, tmp_path, monkeypatch):
        path, real, calls = tmp_path / "run.npz", np.savez, []

        def full(file, **arrays):
            calls.append(None)
            if len(calls) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
            real(file, **arrays)

        monkeypatch.setattr(np, "savez", full)
        with pytest.warns(
            RuntimeWarning, match="could not be written .No space left on device.; the run goes on"
        ) as seen:
            res = run(path)
        assert len(seen) == 1 and len(calls) > 3
        monkeypatch.undo()
        assert np.array_equal(res.x, run(tmp_path / "other.npz").x)
        assert iteration(path) == 0 and run(path, resume=path).nit == 20  # from the first, which was written
        assert not list(tmp_path.glob("*.tmp"))


class TestTwoWriters:
    def test_writers_of_one_file_leave_it_readable_at_any_moment(self, tmp_path):
        """Mutation: one temporary name for all."""
        path, found, over = tmp_path / "run.npz", [], threading.Event()
        run(path, maxiter=2)

        def look():
            while not over.is_set() or len(found) < 20:
                found.extend(iteration(file) for file in (path, replacing.previous_path(path)))

        writers = [threading.Thread(target=run, args=(path,), kwargs={"maxiter": 60}) for _ in range(3)]
        reader = threading.Thread(target=look)
        for thread in (reader, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        over.set()
        reader.join()
        assert iteration(path) == 60
        assert names(tmp_path) == ["run.npz", "run.npz.previous"]

    def test_a_version_that_another_writer_just_kept_is_kept_once(self, tmp_path):
        """Two names of one file, and renaming one to the other does nothing: the name it was kept by must go too."""
        path = tmp_path / "run.npz"
        path.write_text("last")
        os.link(path, replacing.previous_path(path))
        replacing.replace(path, lambda file: file.write(b"new"), keep=True)
        assert names(tmp_path) == ["run.npz", "run.npz.previous"]
        assert (path.read_text(), replacing.previous_path(path).read_text()) == ("new", "last")

    def test_a_file_that_another_writer_just_replaced_is_not_moved_away(self, tmp_path, monkeypatch):
        """Linux knows no link to a file whose last name has gone meanwhile.  Nothing moves the other's file away."""
        path, real, moved = tmp_path / "run.npz", os.replace, []

        def gone(*args):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")

        def move(one, other):
            moved.append(one)
            real(one, other)

        path.write_text("another's")
        monkeypatch.setattr(os, "link", gone)
        monkeypatch.setattr(os, "replace", move)
        replacing.replace(path, lambda file: file.write(b"new"), keep=True)
        assert moved == [replacing.temporary_path(path)] and path.read_text() == "new"

    def test_no_two_threads_have_the_same_temporary_name(self, tmp_path):
        seen, together = [], threading.Barrier(4)

        def name():
            together.wait()  # an ended thread's number is free again
            seen.append(replacing.temporary_path(tmp_path / "a"))
            together.wait()

        threads = [threading.Thread(target=name) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(seen)) == 4 and all(str(os.getpid()) in name.name for name in seen)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere only their age tells")
class TestLeftovers:
    @pytest.fixture
    def dead(self):
        """The number of a process that is no more."""
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        return child.pid

    def test_leftovers_of_the_dead_are_removed_and_no_others(self, tmp_path, dead):
        path, mine = tmp_path / "run.npz", replacing._machine()
        gone = [f"run.npz.{mine}-{dead}-7.tmp", f"run.npz.{mine}-{dead}-7.link", f"run.npz.{mine}-{10**30}-1.tmp"]
        old = [f"run.npz.00000000-{dead}-1.tmp"]
        kept = [
            f"run.npz.{mine}-{os.getpid()}-1.tmp",  # of another thread
            f"run.npz.{mine}-{os.getppid()}-1.tmp",
            f"run.npz.00000000-{dead}-2.tmp",  # of another machine, perhaps alive
            f"other.npz.{mine}-{dead}-1.tmp",
            "run.npz.tmp",
            "run.npz.notes",
        ]
        for name in (*gone, *old, *kept):
            (tmp_path / name).write_text("half")
        os.utime(tmp_path / old[0], (0.0, time.time() - 2 * replacing.STALE))
        run(path)
        assert names(tmp_path) == sorted([*kept, "run.npz", "run.npz.previous"])


class TestADamagedLastOne:
    """Mutation: keep whatever is there; the damaged file then takes the place of the good one before."""

    @pytest.mark.filterwarnings("ignore:.*going on from:RuntimeWarning")
    @pytest.mark.parametrize("resumed", [True, False])
    def test_a_damaged_checkpoint_never_replaces_the_good_one_before(self, resumed, tmp_path, monkeypatch):
        path = tmp_path / "run.npz"
        run(path)
        good = replacing.previous_path(path).read_bytes()
        path.write_bytes(path.read_bytes()[:-300])
        real, writes = os.replace, []

        def killed(one, other):
            """In the first write, after the last was kept and before the new one is there."""
            if Path(other) == path:
                writes.append(None)
                raise KeyboardInterrupt
            real(one, other)

        monkeypatch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            run(path, resume=path if resumed else None, maxiter=30)
        assert writes and replacing.previous_path(path).read_bytes() == good

    def test_a_damaged_checkpoint_is_replaced_even_where_nothing_is_new(self, tmp_path):
        path = tmp_path / "run.npz"
        run(path)
        path.write_bytes(b"")
        with pytest.warns(RuntimeWarning, match="going on from"):
            run(path, resume=path, maxiter=19)
        assert iteration(path) == 19


class TestSomebodysFile:
    @pytest.mark.parametrize("suffix", ["", ".previous"])
    @pytest.mark.parametrize("kind", ["npz", "npy", "text", "zip-like"])
    def test_somebodys_file_is_not_overwritten(self, kind, suffix, tmp_path):
        path = tmp_path / f"run.npz{suffix}"
        if kind == "npz":
            with open(path, "wb") as file:
                np.savez(file, about=np.ones(3), measurements=np.ones(4))
        elif kind == "npy":
            with open(path, "wb") as file:
                np.save(file, np.ones(3))
        else:
            path.write_bytes(b"months of work" if kind == "text" else b"PK\x03\x04 and more")
        before, calls = path.read_bytes(), []
        with pytest.raises(FileExistsError, match="is no checkpoint, and will not be overwritten"):
            hasd.minimize(lambda x: calls.append(x), X0, jac=True, checkpoint=tmp_path / "run.npz")
        assert path.read_bytes() == before and not calls

    def test_an_old_or_damaged_checkpoint_is_overwritten(self, tmp_path):
        path = tmp_path / "run.npz"
        run(path)
        whole = path.read_bytes()
        flips = [bytearray(whole) for _ in range(3)]
        flips[0][whole.index(b"about")] ^= 1
        flips[1][whole.rindex(b"about")] ^= 1
        flips[2][whole.rindex(b"checksum")] ^= 1
        for damaged in (b"", whole[:100], whole[:-1], whole[: len(whole) // 2], *map(bytes, flips)):
            path.write_bytes(damaged)
            assert run(path).nit == 20 and iteration(path) == 20
        hasd.minimize(fun, X0, jac=True, method="hasd", maxiter=1, checkpoint=path)  # that of another run
        assert iteration(path) == 1

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
    def test_a_pipe_is_refused_as_a_checkpoint(self, tmp_path):
        os.mkfifo(tmp_path / "run.npz")
        with pytest.raises(FileExistsError, match="is no checkpoint"):
            run(tmp_path / "run.npz")


class TestNames:
    def test_a_checkpoint_named_by_a_link_replaces_the_file_it_leads_to(self, tmp_path):
        """Mutation: replace the link, and leave what it led to as it was."""
        folder, link = tmp_path / "far", tmp_path / "run.npz"
        folder.mkdir()
        link.symlink_to(folder / "real.npz")
        whole = run(tmp_path / "other.npz", maxiter=30)
        run(link)
        assert link.is_symlink() and names(folder) == ["real.npz", "real.npz.previous"]
        assert iteration(folder / "real.npz") == 20
        again = run(link, resume=link, maxiter=30)
        assert link.is_symlink() and iteration(folder / "real.npz") == 30 and np.array_equal(again.x, whole.x)
        (folder / "real.npz").write_bytes(b"")
        with pytest.warns(RuntimeWarning, match="going on from .*real.npz.previous"):
            hasd.minimize(fun, X0, jac=True, method="agd", tol=0.0, maxiter=30, resume=link)

    @pytest.mark.parametrize("name", ["", ".", "/", "a\0b", "x" * 400, "x" * 250])
    @pytest.mark.parametrize("setting", ["resume", "checkpoint"])
    def test_names_that_no_file_can_have_are_refused(self, setting, name):
        with pytest.raises(ValueError, match=f"{setting} must name a file, got") as caught:
            hasd.minimize(fun, X0, jac=True, **{setting: name})
        assert len(str(caught.value)) < 250
