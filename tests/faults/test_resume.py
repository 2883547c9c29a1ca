"""Runs that go on are the runs they go on from: what they know, what they count, what is refused as another's."""

import copy
import dataclasses
import itertools
import pickle

import numpy as np
import pytest

import hasd
from hasd import Blocks, Lp, Schatten
from hasd._math.geometry import norm2
from hasd.methods.hasd import HASDMethod
from hasd.methods.hasd_restart import HASDRestart
from hasd.objectives import LeastSquares, LogSumExp, Quadratic

A = np.random.default_rng(0).standard_normal((40, 6))
X0 = np.linspace(0.1, 3.0, 6)
METHODS = ["hasd-qn", "hasd", "agd", "gradient-descent", "linear-coupling", "heavy-ball"]


def hills(x):
    return float(np.sum(0.05 * x * x + np.cos(2 * x))), 0.1 * x - 2 * np.sin(2 * x)


def bowl(x):
    z = A @ x - 1.0
    return float(np.sum(np.sqrt(1 + z * z)) + 0.05 * x @ x), A.T @ (z / np.sqrt(1 + z * z)) + 0.1 * x


def grown(x):
    """Whose steps take several evaluations each."""
    return float(np.cosh(x).sum()), np.sinh(x)


class TestWhatARunKnows:
    """Mutation: leave `convexity` out of `Memory`; a run of hills that was stopped in time then certifies them."""

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("fun", [hills, bowl])
    def test_the_verdict_is_that_of_the_whole_run(self, fun, method, tmp_path):
        common = {"jac": True, "method": method, "tol": 1e-9, "radius": 20.0, "gap_tol": 1e-2}
        whole = hasd.minimize(fun, X0, maxiter=40, **common)
        assert ("not convex" in whole.message) == (fun is hills)
        path = tmp_path / "run.npz"
        for at in range(min(whole.nit, 25)):
            part = hasd.minimize(fun, X0, maxiter=at, checkpoint=path, **common)
            for resume in (path, part.state, pickle.loads(pickle.dumps(part.state))):
                rest = hasd.minimize(fun, X0, maxiter=40, resume=resume, **common)
                assert (rest.message, rest.status, rest.gap) == (whole.message, whole.status, whole.gap)

    def test_hills_are_not_certified_after_a_break(self, tmp_path):
        x0, path = np.array([3.4, 3.7]), tmp_path / "run.npz"
        common = {"jac": True, "method": "hasd-qn", "tol": 1e-9, "radius": 20.0, "gap_tol": 1e-2}
        part = hasd.minimize(hills, x0, maxiter=1, checkpoint=path, **common)
        for resume in (path, part.state):
            rest = hasd.minimize(hills, x0, resume=resume, **common)
            assert not rest.success and rest.gap == np.inf and "not convex" in rest.message

    def test_a_radius_that_was_contradicted_stays_so(self, tmp_path):
        path, common = tmp_path / "run.npz", {"method": "hasd-qn", "tol": 0.0, "radius": 1e-3, "gap_tol": 0.0}
        f = LogSumExp(A, np.ones(40), ridge=0.1)
        whole = hasd.minimize(f, X0, maxiter=9, **common)
        part = hasd.minimize(f, X0, maxiter=8, checkpoint=path, **common)
        assert "radius = 0.001 is too small" in part.message and part.message[50:] == whole.message[50:]
        for resume in (path, part.state):
            rest = hasd.minimize(f, X0, maxiter=9, resume=resume, **common)
            assert (rest.message, rest.gap) == (whole.message, np.inf)

    def test_a_run_in_pieces_of_one_iteration_is_the_whole_run(self, tmp_path):
        """A run in pieces of one iteration each."""
        common = {"jac": True, "method": "hasd-qn", "tol": 1e-9, "radius": 20.0}
        whole, path = hasd.minimize(hills, X0, maxiter=12, **common), tmp_path / "run.npz"
        resume, state = None, None
        for at in range(1, 13):
            part = hasd.minimize(hills, X0, maxiter=at, resume=resume, checkpoint=path, **common)
            other = hasd.minimize(hills, X0, maxiter=at, resume=state, **common)
            resume, state = path, other.state
        for res in (part, other):
            assert res.message == whole.message and np.array_equal(res.x, whole.x)

    def test_a_resumed_run_remembers_the_smallest_gradient(self, tmp_path):
        """Mutation: let a state begin with its own gradient as the smallest."""
        common = {"jac": True, "method": "heavy-ball", "momentum": 0.99, "L": 40.0, "tol": 0.0, "goal": "gradient"}
        path, seen = tmp_path / "run.npz", 0
        for at, more in itertools.product((5, 15, 30), (1, 4)):
            whole = hasd.minimize(bowl, X0, maxiter=at + more, **common)
            part = hasd.minimize(bowl, X0, maxiter=at, checkpoint=path, **common)
            seen += np.array_equal(whole.x, part.x)
            for resume in (path, part.state):
                assert np.array_equal(hasd.minimize(bowl, X0, maxiter=at + more, resume=resume, **common).x, whole.x)
        assert seen > 0  # the smallest gradient was found before the break


class TestAStepThatWasBrokenOff:
    """Mutation: save the counts, or the best point, as they are at the end and not as they were before the step."""

    @pytest.mark.parametrize("method", ["hasd", "hasd-paper", "hasd-qn", "steepest-descent"])
    def test_a_step_that_was_broken_off_is_counted_once(self, method, tmp_path):
        common = {"jac": True, "method": method, "tol": 0.0, "maxiter": 25}
        x0, path = np.linspace(1.0, 3.0, 6), tmp_path / "run.npz"
        whole = hasd.minimize(grown, x0, **common)
        for budget in range(1, 25):
            part = hasd.minimize(grown, x0, maxfun=budget, checkpoint=path, **common)
            assert part.status == hasd.Status.MAXFUN.code and part.nfev <= budget
            rest = hasd.minimize(grown, x0, resume=path, **common)
            assert (rest.nfev, rest.njev, rest.nit) == (whole.nfev, whole.njev, whole.nit)
            for name in set(whole.trace) - {"seconds"}:
                np.testing.assert_array_equal(rest.trace[name], whole.trace[name])

    def test_points_of_a_step_that_was_broken_off_are_forgotten(self, tmp_path):
        """The best point of a run to maxiter is not one of a later step."""
        common, x0, path = {"jac": True, "method": "hasd", "tol": 0.0}, np.linspace(1.0, 3.0, 6), tmp_path / "run.npz"
        for budget in range(2, 25):
            part = hasd.minimize(grown, x0, maxfun=budget, checkpoint=path, **common)
            whole = hasd.minimize(grown, x0, maxiter=part.nit, **common)
            for resume in (path, part.state):
                assert hasd.minimize(grown, x0, maxiter=part.nit, resume=resume, **common).fun == whole.fun


class TestItsOwnFunction:
    """Mutation: hold the difference of the values against these values alone."""

    @pytest.mark.parametrize("start", [0.0, 1.0 - 1e-9, 1.0 + 1e-15])
    def test_a_run_that_ended_at_a_minimum_of_zero_may_be_resumed(self, start, tmp_path):
        wide = np.random.default_rng(0).standard_normal((80, 60))
        f, path, x0 = LeastSquares(wide, wide @ np.ones(60)), tmp_path / "run.npz", np.full(60, start)
        for method in ("auto", "hasd-subspace", "hasd-qn", "hasd-newton", "hasd-cg"):
            done = hasd.minimize(f, x0, tol=1e-12, method=method, checkpoint=path)
            again = hasd.minimize(f, x0, tol=1e-12, method=method, resume=path)
            assert np.array_equal(done.x, again.x)

    def test_a_little_noise_is_not_taken_for_another_function(self, tmp_path):
        rng, path = np.random.default_rng(1), tmp_path / "run.npz"

        def noisy(x):
            return 0.5 * float(x @ x) + 1e-8 * rng.standard_normal(), x

        for method in ("hasd", "hasd-qn", "agd"):
            part = hasd.minimize(noisy, np.ones(6), jac=True, method=method, maxiter=30, checkpoint=path)
            for resume in (path, part.state):
                assert hasd.minimize(noisy, np.ones(6), jac=True, method=method, maxiter=40, resume=resume).fun < 1e-4

    @pytest.mark.parametrize("by", [0.9, 1.1])
    def test_a_run_of_another_function_is_refused(self, by, tmp_path):
        path, common = tmp_path / "run.npz", {"method": "hasd", "tol": 1e-10}
        f, other = LogSumExp(A, ridge=0.1), LogSumExp(by * A, ridge=0.1)  # the same at 0
        part = hasd.minimize(f, np.zeros(6), checkpoint=path, **common)
        for resume in (path, part.state):
            with pytest.raises(ValueError, match="is of another function: at its point f was"):
                hasd.minimize(other, np.zeros(6), resume=resume, **common)

    def test_an_objective_that_is_the_same_object_is_not_asked(self):
        f = LeastSquares(A, np.ones(40))
        part = hasd.minimize(f, X0, method="hasd-subspace", maxiter=2, tol=0.0)
        rest = hasd.minimize(f, X0, method="hasd-subspace", maxiter=2, tol=0.0, resume=part.state)
        copied = hasd.minimize(f, X0, method="hasd-subspace", maxiter=2, tol=0.0, resume=copy.deepcopy(part.state))
        assert rest.nrecord == copied.nrecord - 1


@dataclasses.dataclass(frozen=True)
class Weighted:
    """||x||^2 = sum w x^2, which calls itself 2 whatever the weights."""

    w: np.ndarray
    p = 2.0

    def norm(self, x):
        return norm2(np.sqrt(self.w) * x)

    def dual_norm(self, g):
        return norm2(g / np.sqrt(self.w))

    def steepest(self, g):
        return g / self.w


class TestAnothersState:
    """What a file refuses, a state does too."""

    @pytest.mark.parametrize(
        ("given", "sentence"),
        [
            ({"p": 3.0}, "its p is inf, this one's is 3.0"),
            ({"L": 2.0}, "its L is None, this one's is 2.0"),
            ({"mu": 0.1}, "its mu is 0.0, this one's is 0.1"),
            ({"restart": False}, "its method is HASD.*restart=True"),
            ({"method": "agd"}, "agd|AGD"),
            ({"x0": X0.astype(np.float32)}, "its dtype is float64, this one's is float32"),
            ({"x0": X0[:5]}, "length 6, but x0 has length 5|its dimension is 6"),
            ({"fun": hills}, "is of another function"),
            ({"x0": X0 + 1.0}, r"is of a run from another x0: its x0\[0\] is 0.1, this one's is 1.1"),
        ],
    )
    def test_a_run_of_another_configuration_is_refused(self, given, sentence, tmp_path):
        path = tmp_path / "run.npz"
        part = hasd.minimize(bowl, X0, jac=True, method="hasd", maxiter=4, checkpoint=path)
        call = {"fun": bowl, "x0": X0, "jac": True, "method": "hasd"} | given
        for resume in (path, part.state):
            with pytest.raises(ValueError, match=sentence):
                hasd.minimize(resume=resume, **call)

    def test_another_geometry_of_the_same_label_is_refused(self, tmp_path):
        path, w = tmp_path / "run.npz", np.arange(1.0, 7.0)
        part = hasd.minimize(bowl, X0, jac=True, p=Weighted(w), maxiter=4, checkpoint=path)
        for resume in (path, part.state):
            assert hasd.minimize(bowl, X0, jac=True, p=Weighted(w.copy()), resume=resume).success
            with pytest.raises(ValueError, match=r"its geometry is Weighted with norms .*, this one's is Weighted"):
                hasd.minimize(bowl, X0, jac=True, p=Weighted(w[::-1]), resume=resume)
            with pytest.raises(ValueError, match=r"its geometry is Weighted with norms .*, this one's is Lp"):
                hasd.minimize(bowl, X0, jac=True, p=2.0, method="hasd", resume=resume)

    @pytest.mark.parametrize(
        ("norm", "other"),
        [
            (Lp(3.0, weights=np.ones(6)), Lp(3.0, weights=[1.0, 1.0, 1.0, 1.0, 1.0, 1.0 + 1e-9])),
            (Schatten(3.0, (2, 3)), Schatten(3.0, (3, 2))),
            (Blocks([Lp(2.0, shape=(2,)), Lp(3.0, shape=(4,))]), Blocks([Lp(2.0, shape=(4,)), Lp(3.0, shape=(2,))])),
        ],
        ids=["weights", "shape", "blocks"],
    )
    def test_another_norm_of_the_library_is_refused(self, norm, other, tmp_path):
        """However little it differs: a checksum of the weights is compared, which no rounding changes."""
        path = tmp_path / "run.npz"
        hasd.minimize(bowl, X0, jac=True, method="hasd", p=norm, maxiter=4, checkpoint=path)
        assert hasd.minimize(bowl, X0, jac=True, method="hasd", p=norm, resume=path).success
        with pytest.raises(ValueError, match=r"its (geometry|p) is .*, this one's is "):
            hasd.minimize(bowl, X0, jac=True, method="hasd", p=other, resume=path)

    @pytest.mark.parametrize("radius", [None, 10.0])
    def test_a_file_or_state_of_another_start_is_refused(self, tmp_path, radius):
        """Distances and tolerances are measured from it; the point that was returned is another one."""
        path, common = tmp_path / "run.npz", {"jac": True, "method": "hasd-qn", "tol": 1e-9, "radius": radius}
        part = hasd.minimize(bowl, X0, maxiter=3, checkpoint=path, **common)
        for resume in (path, part.state):
            with pytest.raises(ValueError, match=r"of a run from another x0: its x0\[0\] is .*, this one's is "):
                hasd.minimize(bowl, part.x, resume=resume, **common)

    def test_equal_methods_may_be_other_objects(self):
        """What prints as an address is not compared by it."""

        class Plain:
            name, default_p = "plain", 2.0

            def init(self, problem, start):
                return HASDMethod().init(problem, start)

            def step(self, problem, state):
                return HASDMethod().step(problem, state)

        common = {"jac": True, "mu": 0.1, "tol": 0.0}
        part = hasd.minimize(bowl, X0, method=HASDRestart(inner=Plain()), maxiter=1, **common)
        again = hasd.minimize(bowl, X0, method=HASDRestart(inner=Plain()), maxiter=3, resume=part.state, **common)
        assert again.nit == 3

    def test_a_single_precision_run_resumes_in_single_precision_only(self, tmp_path):
        """The images are kept in double, and so is the run's own x_0."""
        f, path, x0 = LeastSquares(A.astype(np.float32), np.ones(40)), tmp_path / "run.npz", X0.astype(np.float32)
        common = {"method": "hasd-subspace", "tol": 0.0}
        part = hasd.minimize(f, x0, maxiter=2, checkpoint=path, **common)
        for resume in (path, part.state):
            assert hasd.minimize(f, x0, maxiter=4, resume=resume, **common).nit == 4
            with pytest.raises(ValueError, match="its dtype is float32"):
                hasd.minimize(f, X0, maxiter=4, resume=resume, **common)

    def test_a_state_of_iterate_resumes_with_its_own_x0_and_function_only(self):
        """`iterate` leaves no memory: its method, size, start and function are all there is to see."""
        f = Quadratic(np.diag([1.0, 10.0]))
        state = next(itertools.islice(hasd.iterate(f, [1.0, 1.0], method="hasd"), 3, None))
        assert hasd.minimize(f, [1.0, 1.0], method="hasd", resume=state).success
        with pytest.raises(ValueError, match="from another x0"):
            hasd.minimize(f, [5.0, 1.0], method="hasd", resume=state)
        with pytest.raises(ValueError, match="of another function"):
            hasd.minimize(Quadratic(np.eye(2)), [1.0, 1.0], method="hasd", resume=state)
