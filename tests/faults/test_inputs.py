"""Bad input: one clear sentence, before any evaluation."""

import re
from fractions import Fraction

import numpy as np
import pytest

import hasd
from hasd.methods.heavy_ball import HeavyBall
from support import BAD_VALUES, BLACK_BOX

NAN, INF = float("nan"), float("inf")


def untouched(x, *args):
    pytest.fail("the function was evaluated before the input was checked")


BAD = [
    # p
    ({"p": 0.0}, ValueError, "p must be"),
    ({"p": -2.0}, ValueError, "p must be"),
    ({"p": 1.0}, ValueError, "p must be"),
    ({"p": 1.999999}, ValueError, "p must be"),
    ({"p": -INF}, ValueError, "p must be"),
    ({"p": NAN}, ValueError, "p must be"),
    ({"p": "inf"}, TypeError, "p must be"),
    ({"p": [2.0]}, TypeError, "p must be"),
    ({"p": 2j}, TypeError, "p must be"),
    ({"p": True}, TypeError, "p must be"),
    # L
    ({"L": 0.0}, ValueError, "L must be"),
    ({"L": -1.0}, ValueError, "L must be"),
    ({"L": NAN}, ValueError, "L must be"),
    ({"L": INF}, ValueError, "L must be"),
    ({"L": "1"}, TypeError, "L must be"),
    ({"L": 1j}, TypeError, "L must be"),
    ({"L": True}, TypeError, "L must be"),
    ({"L": [1.0]}, TypeError, "L must be"),
    # mu
    ({"mu": -1e-9}, ValueError, "mu must be"),
    ({"mu": NAN}, ValueError, "mu must be"),
    ({"mu": INF}, ValueError, "mu must be"),
    ({"mu": "0"}, TypeError, "mu must be"),
    ({"mu": 2.0, "L": 1.0}, ValueError, "mu = 2 cannot exceed L = 1"),
    # x0
    ({"x0": [1.0, NAN]}, ValueError, r"x0 must be finite, but x0\[1\]"),
    ({"x0": [INF, 1.0]}, ValueError, r"x0 must be finite, but x0\[0\]"),
    ({"x0": [1j, 1.0]}, TypeError, "x0 must be real"),
    ({"x0": np.array([1.0, None], dtype=object)}, TypeError, "x0 must be"),
    ({"x0": np.array([1.0, 2.0], dtype=object)}, TypeError, "x0 must be"),
    ({"x0": np.array(["2020", "2021"], dtype="M8[Y]")}, TypeError, "x0 must be"),
    ({"x0": np.zeros(2, dtype=[("a", "f8")])}, TypeError, "x0 must be"),
    ({"x0": ["a", "b"]}, TypeError, "x0 must be"),
    ({"x0": None}, TypeError, "x0 must be"),
    ({"x0": []}, ValueError, "x0 must not be empty"),
    ({"x0": np.ones((2, 2))}, ValueError, "x0 must have one dimension"),
    ({"x0": np.ones((2, 1))}, ValueError, "x0 must have one dimension"),
    ({"x0": np.empty((0, 3))}, ValueError, "x0 must"),
    ({"x0": [[1.0], [1.0, 2.0]]}, ValueError, "x0 must be"),
    ({"x0": np.ma.masked_array([1.0, 2.0], [False, True])}, ValueError, "x0 must have no masked .* entry 1 is"),
    ({"x0": np.ma.masked}, ValueError, "x0 must have no masked entries, but entry 0 is"),
    # method and its options
    ({"method": "newton"}, ValueError, "unknown method 'newton'.*auto.*hasd-paper.*heavy-ball"),
    ({"method": 3}, TypeError, "method must be"),
    ({"method": None}, TypeError, "method must be"),
    ({"method": HeavyBall}, TypeError, "method must be"),
    ({"method": HeavyBall(), "momentum": 0.5}, TypeError, "unknown option 'momentum'"),
    ({"method": "heavy-ball", "inertia": 0.5}, TypeError, "unknown option 'inertia'.*heavy-ball.*momentum"),
    ({"method": "hasd", "serach": "warm"}, TypeError, "unknown option 'serach'.*hasd.*raise_L"),
    ({"method": "agd", "momentum": 0.5}, TypeError, "unknown option 'momentum'.*agd.*no options"),
    ({"method": "agd", "name": "mine"}, TypeError, "unknown option 'name'"),
    ({"method": "heavy-ball", "momentum": 1.0}, ValueError, "momentum must"),
    ({"method": "heavy-ball", "momentum": -0.1}, ValueError, "momentum must"),
    ({"method": "heavy-ball", "momentum": NAN}, ValueError, "momentum must"),
    ({"method": "heavy-ball", "momentum": "much"}, TypeError, "momentum must"),
    ({"method": "hasd-paper", "search": "hot"}, ValueError, "search must.*warm.*bisect"),
    ({"method": "linear-coupling", "weights": "heavy"}, ValueError, "weights must.*published.*tight"),
    ({"method": "hasd", "stronger_cuts": 1}, TypeError, "stronger_cuts must"),
    ({"method": "hasd-paper", "weights": "tight"}, ValueError, "weights must"),
    ({"method": "hasd-restart"}, ValueError, "hasd-restart.*needs mu"),
    ({"method": "hasd-restart", "mu": 1.0, "G_hat": 0.0}, ValueError, "G_hat must"),
    ({"method": "hasd-restart", "mu": 1.0, "G_hat": NAN}, ValueError, "G_hat must"),
    ({"method": "hasd-restart", "mu": 1.0, "inner": "agd"}, ValueError, "inner must"),
    ({"method": "hasd-restart", "mu": 1.0, "G_hat": 1.0, "constant": -1.0}, ValueError, "constant must"),
    # limits and tolerances
    ({"maxiter": -1}, ValueError, "maxiter must be"),
    ({"maxiter": 2.5}, ValueError, "maxiter must be"),
    ({"maxiter": NAN}, ValueError, "maxiter must be"),
    ({"maxiter": "10"}, TypeError, "maxiter must be"),
    ({"maxiter": True}, TypeError, "maxiter must be"),
    ({"maxiter": [10]}, TypeError, "maxiter must be"),
    ({"maxiter": -INF}, ValueError, "maxiter must be"),
    ({"maxfun": 0}, ValueError, "maxfun must be"),
    ({"maxfun": -3}, ValueError, "maxfun must be"),
    ({"maxfun": NAN}, ValueError, "maxfun must be"),
    ({"maxfun": "100"}, TypeError, "maxfun must be"),
    ({"maxfun": 1.5}, ValueError, "maxfun must be"),
    ({"tol": -1e-9}, ValueError, "tol must be"),
    ({"tol": NAN}, ValueError, "tol must be"),
    ({"tol": INF}, ValueError, "tol must be"),
    ({"tol": "tight"}, TypeError, "tol must be"),
    ({"tol": 1e-3 + 0j}, TypeError, "tol must be"),
    ({"tol": "small"}, TypeError, "tol must be"),
    ({"gtol": NAN}, ValueError, "gtol must be"),
    ({"gtol": "0"}, TypeError, "gtol must be"),
    ({"gtol": -1.0}, ValueError, "gtol must be"),
    ({"time_limit": -1.0}, ValueError, "time_limit must be"),
    ({"time_limit": NAN}, ValueError, "time_limit must be"),
    ({"time_limit": "1 s"}, TypeError, "time_limit must be"),
    ({"time_limit": [1.0]}, TypeError, "time_limit must be"),
    ({"gap_tol": -1.0, "radius": 1.0}, ValueError, "gap_tol must be"),
    ({"gap_tol": NAN, "radius": 1.0}, ValueError, "gap_tol must be"),
    ({"gap_tol": "0", "radius": 1.0}, TypeError, "gap_tol must be"),
    ({"radius": -1.0}, ValueError, "radius must be"),
    ({"radius": NAN}, ValueError, "radius must be"),
    ({"radius": "1"}, TypeError, "radius must be"),
    # 0-d arrays and NumPy's scalars that are no numbers, numbers that no float holds
    ({"tol": np.array(True)}, TypeError, "tol must be a number"),
    ({"tol": np.bool_(True)}, TypeError, "tol must be a number"),
    ({"tol": np.array(1.0, dtype=object)}, TypeError, "tol must be a number"),
    ({"tol": np.array("a")}, TypeError, "tol must be a number"),
    ({"tol": np.array(1j)}, TypeError, "tol must be a number"),
    ({"tol": np.ma.masked}, TypeError, "tol must be a number"),
    ({"time_limit": np.timedelta64(1, "s")}, TypeError, "time_limit must be a number"),
    ({"time_limit": np.array(np.timedelta64(1, "s"))}, TypeError, "time_limit must be a number"),
    ({"trace": np.array(True)}, TypeError, "trace must be a number"),
    ({"maxiter": 10**400}, ValueError, "maxiter must be a number of at most 308 digits"),
    ({"maxfun": -(10**400)}, ValueError, "maxfun must be a number of at most 308 digits"),
    ({"L": Fraction(10**400, 3)}, ValueError, "L must be a number of at most 308 digits"),
    ({"p": 10**400}, ValueError, "p must be a number of at most 308 digits"),
    ({"p": np.timedelta64(3, "s")}, TypeError, "p must be a number"),
    # the rest
    ({"callback": 3}, TypeError, "callback must be callable"),
    ({"jac": "2-point"}, TypeError, "jac must be"),
    ({"jac": 1}, TypeError, "jac must be"),
    ({"jac": np.ones(2)}, TypeError, "jac must be"),
    ({"goal": "speed"}, ValueError, "goal must be"),
    ({"fun": 3.0}, TypeError, "fun must be callable"),
    ({"fun": None}, TypeError, "fun must be callable"),
    ({"trace": -5}, ValueError, "trace must be"),
    ({"trace": "all"}, TypeError, "trace must be"),
    ({"trace": None}, TypeError, "trace must be"),
    ({"resume": 3.0}, TypeError, "resume must be"),
    ({"resume": "where I was"}, FileNotFoundError, "no checkpoint at where I was"),
]


@pytest.mark.parametrize(("given", "kind", "sentence"), BAD, ids=lambda v: str(v)[:60] if isinstance(v, dict) else "")
def test_bad_input_is_refused_before_any_evaluation(given, kind, sentence):
    arguments = {"fun": untouched, "x0": np.ones(2), "jac": True} | given
    with pytest.raises(kind) as caught:
        hasd.minimize(arguments.pop("fun"), arguments.pop("x0"), **arguments)
    message = str(caught.value)
    assert re.search(sentence, message)
    assert "\n" not in message and len(message) < 300


def test_a_number_that_python_does_not_print_is_refused():
    with pytest.raises(ValueError, match="maxiter must be a number of at most 308 digits"):
        hasd.minimize(untouched, np.ones(2), jac=True, maxiter=10**5000)


@pytest.mark.parametrize("kind", [np.array, np.float32, np.float64, np.longdouble, Fraction])
def test_numbers_of_other_types_are_numbers(kind):
    f, x0 = hasd.objectives.Quadratic(np.diag([1.0, 4.0])), np.ma.masked_array(np.ones(2), False)
    for given in (
        {"tol": kind(0.25)},
        {"L": kind(4)},
        {"maxiter": np.int8(3)},
        {"maxiter": np.array(3, dtype=np.uint8)},
    ):
        assert np.isfinite(hasd.minimize(f, x0, method="hasd", **given).fun)


RUN_ONLY = {"maxiter", "maxfun", "tol", "gtol", "time_limit", "callback", "goal", "trace", "resume"}
RUN_ONLY |= {"gap_tol", "radius"}


@pytest.mark.parametrize(
    ("given", "kind", "sentence"),
    [case for case in BAD if not set(case[0]) & RUN_ONLY],
    ids=lambda v: str(v)[:60] if isinstance(v, dict) else "",
)
def test_iterate_refuses_the_same(given, kind, sentence):
    arguments = {"fun": untouched, "x0": np.ones(2), "jac": True} | given
    with pytest.raises(kind, match=sentence):
        next(iter(hasd.iterate(arguments.pop("fun"), arguments.pop("x0"), **arguments)))


def test_jac_or_a_start_of_wrong_length_beside_an_objective_is_refused():
    f = hasd.objectives.Quadratic(np.eye(2))
    with pytest.raises(TypeError, match="jac must not be given"):
        hasd.minimize(f, np.ones(2), jac=True)
    with pytest.raises(ValueError, match="x0 has length 3, but the objective has 2 variables"):
        hasd.minimize(f, np.ones(3))


def test_no_declared_L_exists_for_power_four():
    f = hasd.objectives.Power(np.eye(2), np.zeros(2), q=4)
    with pytest.raises(ValueError, match="L must be finite"):
        hasd.minimize(f, np.ones(2), L=f.smoothness(2))


def test_a_state_of_another_method_cannot_be_resumed():
    f = hasd.objectives.Quadratic(np.diag([1.0, 4.0]))
    state = hasd.minimize(f, np.ones(2), method="hasd", maxiter=3).state
    with pytest.raises((TypeError, ValueError), match="resume"):
        hasd.minimize(f, np.ones(2), method="agd", resume=state)


def test_a_state_of_another_size_cannot_be_resumed():
    state = hasd.minimize(hasd.objectives.Quadratic(np.eye(3)), np.ones(3), maxiter=0).state
    with pytest.raises(ValueError, match="resume"):
        hasd.minimize(hasd.objectives.Quadratic(np.eye(2)), np.ones(2), resume=state)


BAD_GRADIENTS = {
    "too long": lambda x: np.ones(3),
    "too short": lambda x: np.ones(1),
    "a column": lambda x: np.ones((2, 1)),
    "a row": lambda x: np.ones((1, 2)),
    "a number": lambda x: 1.0,
    "nothing": lambda x: None,
    "complex": lambda x: np.ones(2) * 1j,
    "text": lambda x: ["a", "b"],
}


class TestFirstEvaluation:
    """Errors that only the first evaluation can show: raised there, with a sentence."""

    @pytest.mark.parametrize("gradient", BAD_GRADIENTS.values(), ids=BAD_GRADIENTS)
    def test_a_bad_gradient_is_refused_at_the_first_evaluation(self, gradient):
        calls = []
        with pytest.raises((TypeError, ValueError), match="jac must return an array of"):
            hasd.minimize(lambda x: calls.append(0) or (1.0, gradient(x)), np.ones(2), jac=True)
        with pytest.raises((TypeError, ValueError), match="jac must return an array of"):
            hasd.minimize(lambda x: calls.append(0) or 1.0, np.ones(2), jac=gradient)
        assert len(calls) == 2

    @pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
    def test_a_bad_value_is_refused_at_the_first_evaluation(self, value):
        for options in ({"jac": lambda x: x}, {}):
            with pytest.raises(TypeError, match="fun must return one"):
                hasd.minimize(value, np.ones(2), **options)
        with pytest.raises(TypeError, match="fun must return one"):
            hasd.minimize(lambda x: (value(x), x), np.ones(2), jac=True)

    @pytest.mark.parametrize("returned", [1.0, None, (1.0,), (1.0, np.ones(2), np.eye(2))])
    def test_jac_true_needs_a_pair(self, returned):
        with pytest.raises(TypeError, match=r"must return the pair \(f, g\)"):
            hasd.minimize(lambda x: returned, np.ones(2), jac=True)

    def test_a_pair_without_jac_true_is_explained(self):
        with pytest.raises(TypeError, match=r"fun must return one.*jac=True"):
            hasd.minimize(lambda x: (0.5 * float(x @ x), x), np.ones(2))

    def test_the_users_own_errors_come_through(self):
        def f(x):
            raise ZeroDivisionError("mine")

        with pytest.raises(ZeroDivisionError, match="mine"):
            hasd.minimize(f, np.ones(2), jac=True)

    @pytest.mark.parametrize("method", BLACK_BOX)
    def test_stop_iteration_is_an_error_like_any_other(self, method):
        """From f, that is.  Mutation: step in a generator, which Python ends by a RuntimeError."""
        for after in range(1, 6):
            calls = []

            def f(x, calls=calls, after=after):
                calls.append(0)
                if len(calls) == after:
                    raise StopIteration("mine")
                return float(np.cosh(x).sum()), np.sinh(x)

            with pytest.raises(StopIteration, match="mine"):
                hasd.minimize(f, np.array([1.0, 2.0]), jac=True, method=method, mu=0.5, tol=0.0)


def test_a_class_in_place_of_an_objective_is_refused():
    with pytest.raises(TypeError, match="fun must be an objective, got the class Logistic itself"):
        hasd.minimize(hasd.objectives.Logistic, np.zeros(2))


def test_args_beside_an_objective_are_refused():
    """Its data are its own."""
    f = hasd.objectives.Quadratic(np.eye(2))
    with pytest.raises(TypeError, match="args must not be given with an objective"):
        hasd.minimize(f, np.zeros(2), args=(1,))
    for nothing in ((), [], None):
        assert hasd.minimize(f, np.zeros(2), args=nothing).success
