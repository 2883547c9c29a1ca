"""Runs on disk: going on bit for bit, files that are damaged or of another run, Ctrl-C."""

import contextlib
import dataclasses
import json
import threading
import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import hasd
from hasd import _minimize as minimizing
from hasd._resume import checkpoint, packing
from hasd._run import job as same_run
from hasd.methods.agd import AGD
from hasd.methods.base import advance, first_state
from hasd.objectives import LeastSquares, Logistic, LogSumExp, Multinomial, Power, Quadratic, SymmetricSoftmax
from support import BLACK_BOX, STRUCTURED

RNG = np.random.default_rng(2)
A, RIGHT = RNG.standard_normal((80, 12)), RNG.standard_normal(80)
H = A.T @ A / 80
OBJECTIVES = {
    "log-sum-exp": LogSumExp(A, RIGHT, alpha=0.1, ridge=0.01),
    "softmax": SymmetricSoftmax(A, RIGHT, alpha=0.1),
    "squares": LeastSquares(A, RIGHT),
    "logistic": Logistic(A, np.sign(RIGHT), ridge=0.01),
    "intercept": Logistic(A, np.sign(RIGHT), ridge=0.01, intercept=True),
    "multinomial": Multinomial(A[:, :4], np.arange(80) % 3, ridge=0.01, intercept=True),
    "power": Power(A, RIGHT, 4),
    "quadratic": Quadratic(H, A[0]),
}
SECONDS = "seconds"


def smooth(x):
    """Strongly convex, not quadratic, as a black box."""
    z = A @ x - RIGHT
    return float(np.sum(np.sqrt(1 + z * z)) + 0.05 * x @ x), A.T @ (z / np.sqrt(1 + z * z)) + 0.1 * x


def same(one, other, counts=True):
    """Bit for bit, but for the clock."""
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.jac, other.jac)
    for name in ("fun", "nit", "status", "success", "message", "weight", "psi"):
        assert one[name] == other[name] or (one[name] != one[name] and other[name] != other[name]), name
    np.testing.assert_equal(one.L, other.L)
    assert one.certificate.gap(700.0) == other.certificate.gap(700.0)
    if counts:
        assert (one.nfev, one.njev, one.nprod) == (other.nfev, other.njev, other.nprod)
        for name in set(one.trace) - {SECONDS}:
            np.testing.assert_array_equal(one.trace[name], other.trace[name])


def options(method):
    return {"mu": 0.1} if method == "hasd-restart" else {}


class TestGoingOn:
    @pytest.mark.parametrize("L", [None, 30.0, 3.0])
    @pytest.mark.parametrize("p", [2.0, 3.0, np.inf])
    @pytest.mark.parametrize("method", BLACK_BOX)
    def test_runs_of_black_boxes_resume_bit_for_bit(self, method, p, L, tmp_path):
        common = {"jac": True, "method": method, "p": p, "L": L, "tol": 1e-10, **options(method)}
        whole = hasd.minimize(smooth, np.ones(12), maxiter=40, **common)
        for at in (0, 1, 13):
            path = tmp_path / f"{at}.npz"
            part = hasd.minimize(smooth, np.ones(12), maxiter=at, checkpoint=path, **common)
            same(whole, hasd.minimize(smooth, np.ones(12), maxiter=40, resume=path, **common))
            same(whole, hasd.minimize(smooth, np.ones(12), maxiter=40, resume=part.state, **common), counts=False)

    @pytest.mark.parametrize("method", ["auto", "hasd-subspace", "hasd-qn", "hasd-newton", "hasd-cg", "hasd"])
    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_runs_of_objectives_resume_bit_for_bit(self, name, method, tmp_path):
        f, path = OBJECTIVES[name], tmp_path / "run.npz"
        if method == "hasd-cg" and name not in ("squares", "quadratic"):
            return
        common = {"method": method, "tol": 1e-12, "radius": 100.0}
        whole = hasd.minimize(f, np.ones(12), maxiter=60, **common)
        for at in (1, 3, 9):
            part = hasd.minimize(f, np.ones(12), maxiter=at, checkpoint=path, **common)
            same(whole, hasd.minimize(f, np.ones(12), maxiter=60, resume=path, **common))
            same(whole, hasd.minimize(f, np.ones(12), maxiter=60, resume=part.state, **common), counts=False)

    def test_runs_resume_bit_for_bit_through_a_cut_span_and_refreshed_images(self, tmp_path):
        wide = np.random.default_rng(0).standard_normal((300, 200))
        f, path = SymmetricSoftmax(wide, wide @ np.ones(200) + 1, alpha=0.05), tmp_path / "run.npz"
        common = {"method": "hasd-subspace", "memory": 8, "tol": 0.0}
        whole = hasd.minimize(f, np.zeros(200), maxiter=130, **common)
        hasd.minimize(f, np.zeros(200), maxiter=61, checkpoint=path, **common)
        same(whole, hasd.minimize(f, np.zeros(200), maxiter=130, resume=path, **common))

    @pytest.mark.parametrize("rows", [False, 7, True])
    def test_the_trace_goes_on_as_it_was_thinned(self, rows, tmp_path):
        path, common = tmp_path / "run.npz", {"jac": True, "method": "agd", "trace": rows, "tol": 0.0}
        whole = hasd.minimize(smooth, np.ones(12), maxiter=90, **common)
        hasd.minimize(smooth, np.ones(12), maxiter=37, checkpoint=path, **common)
        again = hasd.minimize(smooth, np.ones(12), maxiter=90, resume=path, **common)
        assert (whole.trace is None) == (again.trace is None) == (rows is False)
        for name in set(whole.trace or {}) - {SECONDS}:
            np.testing.assert_array_equal(whole.trace[name], again.trace[name])

    def test_a_checkpoint_from_the_middle_of_a_run_goes_on_bit_for_bit(self, tmp_path):
        """What is written every ten iterations is as good as what is written at the end."""
        path, kept, common = tmp_path / "run.npz", tmp_path / "kept.npz", {"jac": True, "method": "hasd", "tol": 0.0}

        def keep(x):
            if path.exists() and not kept.exists():
                kept.write_bytes(path.read_bytes())

        whole = hasd.minimize(
            smooth, np.ones(12), maxiter=50, checkpoint=path, checkpoint_every=10, callback=keep, **common
        )
        same(whole, hasd.minimize(smooth, np.ones(12), maxiter=50, resume=kept, **common))

    def test_writing_changes_nothing(self, tmp_path):
        common = {"jac": True, "tol": 1e-9}
        written = hasd.minimize(smooth, np.ones(12), checkpoint=tmp_path / "a.npz", checkpoint_every=1, **common)
        same(hasd.minimize(smooth, np.ones(12), **common), written)

    def test_a_finished_run_stays_finished(self, tmp_path):
        path = tmp_path / "run.npz"
        done = hasd.minimize(smooth, np.ones(12), jac=True, checkpoint=path)
        again = hasd.minimize(smooth, np.ones(12), jac=True, resume=path)
        assert done.success
        same(done, again)

    @pytest.mark.parametrize("kind", ["torch", "strict"])
    def test_runs_on_arrays_of_other_libraries_resume_bit_for_bit(self, kind, tmp_path):
        library = pytest.importorskip("torch" if kind == "torch" else "array_api_strict")

        def of(a):
            return library.asarray(a)

        path, common = tmp_path / "run.npz", {"method": "hasd-subspace", "tol": 0.0}
        f = LogSumExp(of(A), of(RIGHT), alpha=0.1)
        whole = hasd.minimize(f, of(np.ones(12)), maxiter=20, **common)
        hasd.minimize(f, of(np.ones(12)), maxiter=7, checkpoint=path, **common)
        again = hasd.minimize(f, of(np.ones(12)), maxiter=20, resume=path, **common)
        assert type(again.x) is type(whole.x)
        np.testing.assert_array_equal(np.asarray(again.x), np.asarray(whole.x))


def saved(path, x0=None, **options):
    common = {"jac": True, "method": "hasd", "maxiter": 20, "tol": 0.0} | options
    return hasd.minimize(smooth, np.ones(12) if x0 is None else x0, checkpoint=path, checkpoint_every=5, **common)


def resumed(path, x0=None, fun=smooth, **options):
    common = {"jac": True, "method": "hasd", "maxiter": 30, "tol": 0.0} | options
    return hasd.minimize(fun, np.ones(12) if x0 is None else x0, resume=path, **common)


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"x0": np.ones(11)}, "its dimension is 12, this one's is 11"),
            ({"x0": np.ones(12, dtype=np.float32)}, "its dtype is float64, this one's is float32"),
            ({"p": 3.0}, "its p is inf, this one's is 3.0"),
            ({"L": 2.0}, "its L is None, this one's is 2.0"),
            ({"mu": 0.1}, "its mu is 0.0, this one's is 0.1"),
            ({"method": "agd"}, "its method is HASD.*, this one's is AGD"),
            ({"restart": False}, "its method is HASD.*restart=True"),
            ({"fun": lambda x: (2 * smooth(x)[0], 2 * smooth(x)[1])}, "of another function: at its point f was"),
        ],
    )
    def test_a_checkpoint_of_another_run_is_refused_with_the_difference(self, given, sentence, tmp_path):
        path = tmp_path / "run.npz"
        saved(path)
        with pytest.raises(ValueError, match=sentence):
            resumed(path, **given)

    def test_a_checkpoint_of_another_version_or_format_is_refused(self, tmp_path, monkeypatch):
        path = tmp_path / "run.npz"
        saved(path)
        monkeypatch.setattr(same_run, "VERSION", "99.0")
        with pytest.raises(ValueError, match=r"its version is .*, this one's is 99.0"):
            resumed(path)
        monkeypatch.undo()
        monkeypatch.setattr(checkpoint, "FORMAT", checkpoint.FORMAT + 1)
        with pytest.raises(ValueError, match=r"has format \d+, this version of hasd reads format \d+"):
            resumed(path)

    def test_resuming_from_a_missing_file_is_refused(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"no checkpoint at .*none\.npz"):
            resumed(tmp_path / "none.npz")

    @pytest.mark.parametrize(
        ("path", "every", "kind", "sentence"),
        [
            (3, 1, TypeError, "checkpoint must be a path"),
            (".", 1, ValueError, "must name a file"),
            ("nowhere/run.npz", 1, FileNotFoundError, "there is no folder 'nowhere'"),
            ("run.npz", 0, ValueError, "checkpoint_every must be"),
            ("run.npz", 2.5, ValueError, "checkpoint_every must be a whole number"),
            ("run.npz", "often", TypeError, "checkpoint_every must be a number"),
            ("run.npz", None, TypeError, "checkpoint_every must be a number"),
        ],
    )
    def test_bad_checkpoint_settings_are_refused_by_name(self, path, every, kind, sentence, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(kind, match=sentence):
            hasd.minimize(smooth, np.ones(12), jac=True, checkpoint=path, checkpoint_every=every)

    def test_a_state_that_cannot_be_saved_is_refused_with_the_type_it_holds(self, tmp_path):
        class Mine:
            name, default_p = "mine", 2.0
            state_classes = AGD.state_classes

            def __init__(self):
                self.inner = AGD()

            def init(self, problem, start):
                return dataclasses.replace(self.inner.init(problem, start), note=NotText())

            def step(self, problem, state):
                return self.inner.step(problem, state)

        class NotText:
            pass

        with pytest.raises(TypeError, match="cannot be saved: it holds a NotText"):
            hasd.minimize(smooth, np.ones(12), jac=True, method=Mine(), checkpoint=tmp_path / "run.npz")


class TestDamage:
    def test_every_single_bit_counts(self, tmp_path):
        """A flipped bit anywhere, or a file cut short, is seen; the one before is taken, with a warning."""
        path = tmp_path / "run.npz"
        saved(path)
        previous = Path(f"{path}.previous")
        whole, rng = path.read_bytes(), np.random.default_rng(0)
        damages = [whole[:n] for n in (0, 1, 100, len(whole) // 2, len(whole) - 1)]
        for place in rng.integers(0, len(whole), 60):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << int(rng.integers(8))
            damages.append(bytes(flipped))
        expected, noticed = resumed(path), 0
        for damaged in damages:
            path.write_bytes(damaged)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                again = resumed(path)
            noticed += bool(caught)
            assert not caught or f"going on from {previous}" in str(caught[0].message)
            np.testing.assert_array_equal(again.x, expected.x)
        assert noticed > 40  # the rest hit what zip keeps twice, or does not look at

    def test_a_file_with_any_header_bit_flipped_is_read_or_called_unreadable(self, tmp_path):
        """Of zip's: flags (one says that a password is required), compression, sizes, name; and of NumPy's own."""
        path = tmp_path / "run.npz"
        saved(path)
        whole = path.read_bytes()
        for place in (*range(200), *range(whole.rindex(b"PK\x01\x02"), len(whole))):
            for bit in range(8):
                flipped = bytearray(whole)
                flipped[place] ^= 1 << bit
                path.write_bytes(flipped)
                with contextlib.suppress(checkpoint.Unreadable):
                    checkpoint._contents(path)

    @pytest.mark.parametrize("which", ["checksum", "about", "a column"])
    def test_what_zip_finds_intact_must_fit_the_checksum(self, tmp_path, which):
        path = tmp_path / "run.npz"
        saved(path)
        Path(f"{path}.previous").unlink()
        with np.load(path) as file:
            columns = {name: file[name].copy() for name in file.files}
        name = next(iter(columns.keys() - {"checksum", "about"})) if which == "a column" else which
        columns[name].reshape(-1).view(np.uint8)[0] ^= 1
        np.savez(path, **columns)
        with pytest.raises(ValueError, match="is damaged: its checksum does not fit"):
            resumed(path)

    def test_two_damaged_checkpoints_are_refused_and_both_named(self, tmp_path):
        path = tmp_path / "run.npz"
        saved(path)
        for file in (path, Path(f"{path}.previous")):
            file.write_bytes(file.read_bytes()[:200])
        with pytest.raises(ValueError, match=r"neither checkpoint can be read: .*run.npz is .*; .*previous is "):
            resumed(path)

    def test_a_strangers_file_is_refused_as_no_checkpoint(self, tmp_path):
        path = tmp_path / "run.npz"
        np.savez(path, about=np.array([{"a": 1}], dtype=object), checksum=np.zeros(3))
        with pytest.raises(ValueError, match="no checkpoint, or damaged"):
            resumed(path)
        path.write_text("hello")
        with pytest.raises(ValueError, match=r"no checkpoint, or damaged$"):  # without NumPy's advice to unpickle it
            resumed(path)

    def test_a_checkpoint_holds_no_pickle(self, tmp_path):
        path = tmp_path / "run.npz"
        saved(path)
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
        assert about["configuration"]["dimension"] == 12
        with zipfile.ZipFile(path) as archive:
            assert all(b"'O'" not in archive.read(name)[:200] for name in archive.namelist())


class TestInterrupt:
    @staticmethod
    def interrupting(after):
        calls = []

        def fun(x):
            calls.append(None)
            if len(calls) == after:
                raise KeyboardInterrupt
            return smooth(x)

        return fun

    def test_an_interrupt_is_raised_and_leaves_the_checkpoint_intact(self, tmp_path):
        path, common = tmp_path / "run.npz", {"jac": True, "method": "hasd", "tol": 0.0}
        with pytest.raises(KeyboardInterrupt):
            hasd.minimize(self.interrupting(40), np.ones(12), checkpoint=path, checkpoint_every=3, **common)
        whole = hasd.minimize(smooth, np.ones(12), maxiter=40, **common)
        same(whole, hasd.minimize(smooth, np.ones(12), maxiter=40, resume=path, **common))

    @pytest.mark.parametrize("method", hasd.method_names())
    def test_an_interrupt_on_request_returns_a_point_no_worse_than_x0(self, method):
        objective = method in STRUCTURED
        f = OBJECTIVES["squares"]
        fun = f.value_and_grad if objective else smooth
        start = fun(np.ones(12))[0]
        if objective:
            calls = []

            def callback(x):
                calls.append(None)
                if len(calls) == 2:
                    raise KeyboardInterrupt

            res = hasd.minimize(f, np.ones(12), method=method, tol=0.0, interrupt="return", callback=callback)
        else:
            res = hasd.minimize(
                self.interrupting(15),
                np.ones(12),
                jac=True,
                method=method,
                tol=0.0,
                interrupt="return",
                **options(method),
            )
        assert res.status == hasd.Status.INTERRUPTED.code and not res.success
        assert res.fun <= start and res.fun == fun(res.x)[0]

    @pytest.mark.parametrize("after", [15, 16, 17])
    def test_an_interrupted_run_returns_with_a_checkpoint_that_goes_on(self, after, tmp_path):
        """In the middle of a step, whose evaluations are not the checkpoint's."""
        path, common = tmp_path / "run.npz", {"jac": True, "method": "hasd", "tol": 0.0}
        part = hasd.minimize(self.interrupting(after), np.ones(12), checkpoint=path, interrupt="return", **common)
        assert part.status == hasd.Status.INTERRUPTED.code
        assert checkpoint._contents(path)[0]["tree"]["dict"]["state"]["iteration"] == part.nit > 0
        whole = hasd.minimize(smooth, np.ones(12), maxiter=40, **common)
        same(whole, hasd.minimize(smooth, np.ones(12), maxiter=40, resume=path, **common))

    @pytest.mark.parametrize("times", [1, 2])
    @pytest.mark.parametrize("interrupt", ["raise", "return"])
    def test_an_interrupt_while_the_answer_is_made_leaves_the_checkpoint(self, interrupt, times, tmp_path, monkeypatch):
        """The first Ctrl-C makes it anew, the second is raised; the checkpoint is there in any case."""
        path, left, real = tmp_path / "run.npz", [None] * times, minimizing.result

        def answer(*args):
            if left:
                left.pop()
                raise KeyboardInterrupt
            return real(*args)

        monkeypatch.setattr(minimizing, "result", answer)
        if interrupt == "return" and times == 1:
            same(saved(path, interrupt=interrupt), saved(tmp_path / "other.npz"))
        else:
            with pytest.raises(KeyboardInterrupt):
                saved(path, interrupt=interrupt)
        assert checkpoint._contents(path)[0]["tree"]["dict"]["state"]["iteration"] == 20

    def test_an_interrupt_before_there_is_anything_to_return_is_raised(self):
        with pytest.raises(KeyboardInterrupt):
            hasd.minimize(self.interrupting(1), np.ones(12), jac=True, interrupt="return")

    def test_interrupt_takes_only_raise_or_return(self):
        with pytest.raises(ValueError, match="interrupt must be 'raise' or 'return'"):
            hasd.minimize(smooth, np.ones(12), jac=True, interrupt="ignore")

    def test_a_run_in_a_thread_where_no_signals_come_is_the_same(self, tmp_path):
        found = []
        thread = threading.Thread(target=lambda: found.append(saved(tmp_path / "run.npz")))
        thread.start()
        thread.join()
        same(found[0], saved(tmp_path / "other.npz"))


@dataclasses.dataclass(frozen=True, repr=False)
class CountingState(hasd.State):
    """A state with a field of its own, and a class of its own in it."""

    seen: "tuple[Seen, ...]" = ()


class Seen(NamedTuple):
    """A user's record."""

    x: np.ndarray
    f: float


class Counting:
    """A user's method: gradient descent that remembers what it saw."""

    name, default_p = "counting", 2.0
    state_classes = (CountingState,)

    def init(self, problem, start):
        return CountingState(**first_state(problem, start))

    def step(self, problem, state):
        there = problem.oracle.evaluate(state.x - 0.05 * state.at.g)
        seen = (*state.seen, Seen(state.at.x, state.at.f))
        return advance(problem, state, there, state.estimate.cut(0.05, state.at), 1, seen=seen)


def test_a_users_method_with_a_state_of_its_own_goes_on_from_a_checkpoint(tmp_path):
    path, common = tmp_path / "run.npz", {"jac": True, "method": Counting(), "tol": 0.0}
    hasd.minimize(smooth, np.ones(12), maxiter=7, checkpoint=path, **common)
    rest = hasd.minimize(smooth, np.ones(12), maxiter=20, resume=path, **common)
    whole = hasd.minimize(smooth, np.ones(12), maxiter=20, **common)
    same(whole, rest)
    assert [type(one) for one in rest.state.seen] == [Seen] * 20
    assert all(a.f == b.f and np.array_equal(a.x, b.x) for a, b in zip(rest.state.seen, whole.state.seen, strict=True))


def test_a_method_that_does_not_declare_its_state_says_so(tmp_path):
    class Silent(Counting):
        state_classes = ()

    with pytest.raises(TypeError, match="it holds a CountingState, which the method's state_classes do not name"):
        hasd.minimize(smooth, np.ones(12), jac=True, method=Silent(), checkpoint=tmp_path / "run.npz")


class Named(NamedTuple):
    """A user's record whose fields have the names that packing itself uses."""

    array: tuple
    dict: dict


@pytest.mark.parametrize("keys", ["text", "numbers"])
def test_fields_and_keys_of_a_state_come_back_as_they_were_or_are_refused(keys):
    value = Named((np.arange(3.0), 1), {"a" if keys == "text" else 1: np.ones(2)})
    classes = {packing._name(Named): Named}
    if keys == "numbers":
        with pytest.raises(TypeError, match="a dict whose keys are not all text"):
            packing.pack(value, classes)
        return
    back = packing.unpack(packing.pack(value, classes), classes)
    assert type(back) is Named and back.array[1] == 1
    np.testing.assert_array_equal(back.array[0], np.arange(3.0))
    np.testing.assert_array_equal(back.dict["a"], np.ones(2))
