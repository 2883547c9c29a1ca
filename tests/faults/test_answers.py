"""What may come in: starts of any kind, and functions that answer, and treat their x, in any way."""

import numpy as np
import pytest

import hasd
from support import BAD_VALUES, BLACK_BOX

every_black_box = pytest.mark.parametrize("method", BLACK_BOX)
every_method = pytest.mark.parametrize("method", hasd.method_names())
declared_and_not = pytest.mark.parametrize("L", [None, 30.0], ids=["backtracked", "declared"])


CURVATURE, TARGET = np.array([0.5, 2.0, 7.0]), np.array([1.0, -2.0, 0.5])
BOWL = hasd.objectives.Quadratic(np.diag(CURVATURE), -CURVATURE * TARGET)


def bowl(x):
    return 0.5 * float(CURVATURE @ (x - TARGET) ** 2), CURVATURE * (x - TARGET)


def solve(f, method, x0=(1.0, 2.0, 3.0), **options):
    options.setdefault("mu", 0.5 if method == "hasd-restart" else 0.0)
    options.setdefault("maxiter", 15)
    return hasd.minimize(f, x0, method=method, **options)


def same_run(one, other):
    np.testing.assert_array_equal(one.x, other.x)
    np.testing.assert_array_equal(one.jac, other.jac)
    assert (one.fun, one.status, one.nit, one.nfev) == (other.fun, other.status, other.nit, other.nfev)


def read_only(values):
    array = np.array(values)
    array.setflags(write=False)
    return array


class Subclass(np.ndarray):
    """An array by another name."""


STARTS = {
    "list": [1, 2, 3],
    "tuple": (1.0, 2.0, 3.0),
    "integers": np.array([1, 2, 3]),
    "small integers": np.array([1, 2, 3], dtype=np.uint8),
    "half": np.array([1.0, 2.0, 3.0], dtype=np.float16),
    "long": np.array([1.0, 2.0, 3.0], dtype=np.longdouble),
    "big-endian": np.array([1.0, 2.0, 3.0], dtype=">f8"),
    "read-only": read_only([1.0, 2.0, 3.0]),
    "every other": np.array([1.0, 9.0, 2.0, 9.0, 3.0])[::2],
    "backwards": np.array([3.0, 2.0, 1.0])[::-1],
    "a column of a matrix": np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0]])[:, 0],
    "a subclass": np.array([1.0, 2.0, 3.0]).view(Subclass),
    "masked": np.ma.array([1.0, 2.0, 3.0]),
}


class TestStart:
    """Anything that is a vector of real numbers is a start, and stays as it was."""

    @every_method
    @pytest.mark.parametrize("kind", STARTS)
    def test_any_vector_of_real_numbers_is_a_start_and_stays_unchanged(self, method, kind):
        x0 = STARTS[kind]
        before = np.array(x0, copy=True)
        same_run(solve(BOWL, method, x0), solve(BOWL, method, np.array([1.0, 2.0, 3.0])))
        if method in BLACK_BOX:
            same_run(solve(bowl, method, x0, jac=True), solve(bowl, method, np.array([1.0, 2.0, 3.0]), jac=True))
        np.testing.assert_array_equal(np.asarray(x0), before)
        assert type(x0) is type(STARTS[kind])

    @every_black_box
    @pytest.mark.parametrize("x0", [2, 2.0, np.float64(2.0), np.array(2.0), [2.0]], ids=repr)
    def test_a_number_is_a_vector_of_one(self, method, x0):
        res = solve(lambda x: (float(x[0] ** 2), 2.0 * x), method, x0, jac=True, maxiter=None)
        assert res.success and res.x.shape == (1,)

    @every_method
    def test_the_result_shares_no_memory_with_x0(self, method):
        x0 = TARGET.copy()
        for maxiter in (0, 3):
            res = solve(BOWL, method, x0, maxiter=maxiter)
            assert not np.shares_memory(res.x, x0)
            res.x[:] = 7.0
            np.testing.assert_array_equal(x0, TARGET)

    @every_method
    def test_single_precision_stays(self, method):
        x0 = np.array([1.0, 2.0, 3.0], dtype=np.float32)
        res = solve(BOWL, method, x0)
        assert res.x.dtype == np.float32 and res.fun <= BOWL(x0.astype(float))
        np.testing.assert_array_equal(x0, [1.0, 2.0, 3.0])


VALUES = {
    "length one": lambda f: np.array([f]),
    "one by one": lambda f: np.array([[f]]),
    "no dimension": lambda f: np.array(f),
    "a NumPy number": np.float64,
    "a list": lambda f: [f],
}


class TestAnswers:
    """What a function may return, and what it may do to the x it is given."""

    @every_black_box
    @pytest.mark.parametrize("kind", VALUES)
    def test_a_value_as_a_list_or_one_entry_array_gives_the_same_run(self, method, kind):
        plain = solve(bowl, method, jac=True)
        same_run(plain, solve(lambda x: (VALUES[kind](bowl(x)[0]), bowl(x)[1]), method, jac=True))
        assert type(plain.fun) is float

    @every_black_box
    @declared_and_not
    def test_a_run_survives_values_and_gradients_in_integers(self, method, L):
        """f and g in integers: steps of a floor function, which a run survives."""

        def f(x):
            value, g = bowl(np.rint(np.clip(x, -1e6, 1e6)))
            return int(value), np.rint(g).astype(int)

        res = solve(f, method, jac=True, L=L, maxiter=50)
        assert type(res.fun) is float and res.jac.dtype == np.float64
        assert res.fun <= f(np.array([1.0, 2.0, 3.0]))[0]

    @every_black_box
    @declared_and_not
    def test_a_gradient_in_a_buffer_that_is_used_again_keeps_the_run(self, method, L):
        buffer = np.empty(3)

        def f(x):
            value, buffer[:] = bowl(x)
            return value, buffer

        plain = solve(bowl, method, jac=True, L=L)
        same_run(plain, solve(f, method, jac=True, L=L))
        same_run(plain, solve(lambda x: bowl(x)[0], method, jac=lambda x: f(x)[1], L=L))
        np.testing.assert_array_equal(plain.jac, bowl(plain.x)[1])

    @every_black_box
    @declared_and_not
    def test_a_function_that_writes_into_x_changes_neither_the_run_nor_x0(self, method, L):
        def f(x):
            value, g = bowl(x)
            x[:] = np.nan
            return value, g

        x0 = np.array([1.0, 2.0, 3.0])
        same_run(solve(bowl, method, jac=True, L=L), solve(f, method, x0, jac=True, L=L))
        np.testing.assert_array_equal(x0, [1.0, 2.0, 3.0])

    @every_black_box
    def test_a_function_may_return_its_x_as_the_gradient(self, method):
        """As 0.5 ||x||^2 written without a copy does."""

        def f(x):
            return 0.5 * float(x @ x), x

        res = solve(f, method, jac=True, maxiter=None)
        assert res.success and np.abs(res.x).max() < 1e-4

    @every_black_box
    @declared_and_not
    @pytest.mark.parametrize("after", [0, 1, 5])
    def test_an_error_comes_through_as_it_was(self, method, L, after):
        error, calls = KeyError("mine"), []

        def f(x):
            calls.append(0)
            if len(calls) > after:
                raise error
            return bowl(x)

        with pytest.raises(KeyError) as caught:
            solve(f, method, jac=True, L=L, tol=0)
        assert caught.value is error and len(calls) == after + 1

    @every_black_box
    @pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
    def test_a_bad_value_later_is_an_error_too(self, method, value):
        calls = []

        def f(x):
            calls.append(0)
            return (bowl(x)[0] if len(calls) <= 3 else value(x)), bowl(x)[1]

        with pytest.raises(TypeError, match="fun must return one"):
            solve(f, method, jac=True, tol=0)


class TestNarrowerThanTheAnswers:
    """x0 in float32, and a function that answers in float64."""

    X0 = np.array([1.0, 2.0], dtype=np.float32)

    @pytest.mark.parametrize("scale", [1e-60, 1e-100, 1e-300])
    def test_a_gradient_too_small_for_the_type_is_not_zero(self, scale):
        def f(x):
            y = x.astype(np.float64)
            return scale * float(y @ y), 2.0 * scale * y

        res = hasd.minimize(f, self.X0, jac=True, maxfun=200)
        assert (res.x != self.X0).all()
        assert not res.success or not res.x.any()

    @every_black_box
    def test_one_too_large_is_not_finite_and_no_warning(self, method):
        def f(x):
            y = x.astype(np.float64)
            return 1e40 * float(y @ y), 2e40 * y

        assert solve(f, method, self.X0, jac=True).status == 12


def test_an_error_of_the_function_about_unpacking_is_its_own():
    def f(x):
        a, b = x
        return a * b, x

    with pytest.raises(ValueError, match="too many values to unpack"):
        hasd.minimize(f, np.ones(3), jac=True)


@every_black_box
@pytest.mark.parametrize("jac", [None, True])
@pytest.mark.parametrize("call", [1, 2, 9])
def test_a_stop_iteration_of_the_function_is_its_own(method, jac, call):
    """It does not end our loops, SciPy's differences or the callback quietly."""
    calls = []

    def f(x):
        calls.append(x)
        if len(calls) == call:
            raise StopIteration("mine")
        return bowl(x) if jac else bowl(x)[0]

    def callback(intermediate_result):
        pass

    with pytest.raises(StopIteration, match="mine"):
        solve(f, method, jac=jac, callback=callback, L=30.0 if call == 9 else None, tol=0.0)


@every_method
@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
@pytest.mark.parametrize("error", ["raise", "warn"])
def test_seterr_of_the_caller_raises_nothing_inside_a_run(method, scale, error):
    """np.seterr is for the caller's code: ours looks after its own."""
    f = hasd.objectives.Quadratic(np.diag(scale * CURVATURE), -scale * CURVATURE * TARGET)
    options = {"method": method, "mu": 0.5 * scale if method == "hasd-restart" else 0.0, "radius": 10.0, "maxiter": 30}
    with np.errstate(all=error):
        assert hasd.minimize(f, np.zeros(3), **options).status in (0, 1, 2)
        if method in BLACK_BOX:
            assert hasd.minimize(f.value_and_grad, np.zeros(3), jac=True, **options).status in (0, 1, 2)
