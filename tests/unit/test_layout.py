"""Starts that are matrices or lists of arrays: x has their shape wherever the user sees it."""

import json
import pickle
from itertools import islice

import numpy as np
import pytest

import hasd
from hasd import Blocks, Lp, Schatten

SPECTRAL = Schatten(np.inf, (3, 4))
BOTH = Blocks([SPECTRAL, Lp(2.0, shape=(4,))])
RNG = np.random.default_rng(0)
A, TARGET, B = RNG.standard_normal((20, 3)), RNG.standard_normal((3, 4)), RNG.standard_normal(4)
X0, PARTS0 = np.zeros((3, 4)), [np.zeros((3, 4)), np.zeros(4)]


def matrix(X):
    """A function of a matrix, with its gradient as a matrix; minimal at TARGET."""
    assert X.shape == (3, 4)
    R = A @ (X - TARGET)
    return 0.5 * np.sum(R * R), A.T @ R


def parts(x):
    """A function of a matrix and a vector, minimal at TARGET and B."""
    assert type(x) is list
    f, G = matrix(x[0])
    return f + 0.5 * np.sum((x[1] - B) ** 2), [G, x[1] - B]


def flat(x):
    """The same as a function of vectors."""
    f, (G, g) = parts([x[:12].reshape(3, 4), x[12:]])
    return f, np.concatenate((G.ravel(), g))


def same(one, two):
    """Whether two values of one layout are equal, bit for bit."""
    one, two = (value if isinstance(value, list) else [value] for value in (one, two))
    assert len(one) == len(two)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.shape == b.shape


CASES = {"a matrix": (matrix, X0, SPECTRAL), "a list": (parts, PARTS0, BOTH)}
every_layout = pytest.mark.parametrize(("f", "x0", "norm"), CASES.values(), ids=CASES)


def test_a_matrix_is_handed_back_as_a_matrix():
    res = hasd.minimize(matrix, X0, jac=True, p=SPECTRAL, tol=1e-8)
    assert res.success and res.p == "Schatten-inf" and res.x.shape == res.jac.shape == (3, 4)
    np.testing.assert_allclose(res.x, TARGET, atol=1e-6)
    assert not X0.any()  # it is never changed


def test_a_list_is_handed_back_as_a_list():
    res = hasd.minimize(parts, PARTS0, jac=True, p=BOTH, mu=0.1, tol=1e-8)
    assert res.success and [part.shape for part in res.x] == [part.shape for part in res.jac] == [(3, 4), (4,)]
    np.testing.assert_allclose(res.x[0], TARGET, atol=1e-5)
    np.testing.assert_allclose(res.x[1], B, atol=1e-5)
    assert 0.0 <= res.fun <= res.gap


def test_vectors_take_the_same_steps():
    """The methods see vectors; a geometry with a shape takes a vector of all entries as well."""
    listed = hasd.minimize(parts, tuple(PARTS0), jac=True, p=BOTH, maxiter=30, tol=0)
    vectors = hasd.minimize(flat, np.zeros(16), jac=True, p=BOTH, maxiter=30, tol=0)
    assert vectors.x.shape == (16,) and listed.fun == vectors.fun
    np.testing.assert_array_equal(np.concatenate([part.ravel() for part in listed.x]), vectors.x)


@every_layout
@pytest.mark.parametrize("given", ["pair", "jac", "differences"])
def test_functions_get_x_and_return_gradients_in_its_layout(f, x0, norm, given):
    if given == "pair":
        res = hasd.minimize(f, x0, jac=True, p=norm)
    elif given == "jac":
        res = hasd.minimize(lambda x: f(x)[0], x0, jac=lambda x: f(x)[1], p=norm)
    else:
        res = hasd.minimize(lambda x: f(x)[0], x0, p=norm, tol=1e-4)
    assert res.success
    same([np.isfinite(part) for part in (res.x if type(res.x) is list else [res.x])],
         [np.ones_like(part, dtype=bool) for part in (x0 if type(x0) is list else [x0])])  # fmt: skip


@every_layout
def test_a_function_may_write_into_its_argument(f, x0, norm):
    def greedy(x):
        out = f([part.copy() for part in x] if type(x) is list else x.copy())
        for part in x if type(x) is list else [x]:
            part[...] = np.nan
        return out

    same(hasd.minimize(greedy, x0, jac=True, p=norm).x, hasd.minimize(f, x0, jac=True, p=norm).x)


@every_layout
def test_callbacks_get_x_in_its_layout(f, x0, norm):
    seen, told = [], []
    hasd.minimize(f, x0, jac=True, p=norm, maxiter=5, tol=0, callback=seen.append)

    def tell(*, intermediate_result):
        told.append(intermediate_result)

    hasd.minimize(f, x0, jac=True, p=norm, maxiter=5, tol=0, callback=tell)
    assert len(seen) == len(told) == 5
    for x, result in zip(seen, told, strict=True):
        same(x, result.x)
        assert f(x)[0] == pytest.approx(result.fun, rel=1e-12)


@every_layout
def test_iterate_yields_states_with_x_in_its_layout_which_resume(f, x0, norm):
    states = list(islice(hasd.iterate(f, x0, jac=True, method="hasd", p=norm), 6))
    for state in states:
        assert state.fun == f(state.x)[0]
    whole = hasd.minimize(f, x0, jac=True, method="hasd", p=norm, maxiter=20, tol=0)
    for state in (states[-1], pickle.loads(pickle.dumps(states[-1]))):
        again = hasd.minimize(f, x0, jac=True, method="hasd", p=norm, maxiter=20, tol=0, resume=state)
        same(again.x, whole.x)


@every_layout
@pytest.mark.parametrize("method", ["hasd", "hasd-paper", "hasd-qn"])
def test_checkpoints_and_states_resume_bit_for_bit(f, x0, norm, method, tmp_path):
    common = {"jac": True, "method": method, "p": norm, "tol": 0.0}
    whole = hasd.minimize(f, x0, maxiter=12, **common)
    part = hasd.minimize(f, x0, maxiter=5, checkpoint=tmp_path / "run.npz", **common)
    for resume in (tmp_path / "run.npz", part.state):
        again = hasd.minimize(f, x0, maxiter=12, resume=resume, **common)
        same(again.x, whole.x)
        same(again.jac, whole.jac)


def test_a_checkpoint_of_another_norm_is_refused(tmp_path):
    path, common = tmp_path / "run.npz", {"jac": True, "method": "hasd", "maxiter": 3}
    hasd.minimize(matrix, X0, p=SPECTRAL, checkpoint=path, **common)
    for norm, said in ((Schatten(3.0, (3, 4)), "its p is"), (Lp(np.inf, shape=(3, 4)), "its p is")):
        with pytest.raises(ValueError, match=said):
            hasd.minimize(matrix, X0, p=norm, resume=path, **common)
    w = np.ones((3, 4))
    hasd.minimize(matrix, X0, p=Lp(2, weights=w), checkpoint=path, **common)
    with pytest.raises(ValueError, match="its geometry is Lp with weights of checksum"):
        hasd.minimize(matrix, X0, p=Lp(2, weights=w + np.eye(3, 4)), resume=path, **common)
    start = X0.copy()
    start[1, 2] = 1.0
    with pytest.raises(ValueError, match=r"from another x0: its x0\[1, 2\] is 0.0, this one's is 1.0"):
        hasd.minimize(matrix, start, p=Lp(2, weights=w), resume=path, **common)


@every_layout
def test_results_are_printed_and_saved(f, x0, norm, tmp_path):
    res = hasd.minimize(f, x0, jac=True, p=norm)
    assert "array of shape (3, 4), float64" in str(res) and len(str(res).splitlines()) < 30
    res.save(tmp_path / "res.npz")
    res.save(tmp_path / "res.json")
    saved, read = np.load(tmp_path / "res.npz"), json.loads((tmp_path / "res.json").read_text())
    names = ["x.0", "x.1"] if type(res.x) is list else ["x"]
    for name, part in zip(names, res.x if type(res.x) is list else [res.x], strict=True):
        np.testing.assert_array_equal(saved[name], part)
        np.testing.assert_array_equal(read[name], part)


def test_float32_and_mixed_lists():
    single = [part.astype(np.float32) for part in PARTS0]
    res = hasd.minimize(lambda x: parts([part.astype(float) for part in x]), single, jac=True, p=BOTH, tol=1e-3)
    assert res.success and {part.dtype for part in res.x} == {np.dtype(np.float32)}
    res = hasd.minimize(parts, [single[0], np.zeros(4, dtype=int)], jac=True, p=BOTH, maxiter=3)
    assert {part.dtype for part in res.x} == {np.dtype(np.float64)}


def test_an_objective_takes_its_vector_in_a_shape():
    """The multinomial loss has a matrix of coefficients, which its objective takes as a vector."""
    rng = np.random.default_rng(1)
    f = hasd.objectives.Multinomial(rng.standard_normal((40, 3)), np.arange(40) % 4, ridge=0.1)
    n = f.dimension
    res = hasd.minimize(f, np.zeros((n // 4, 4)), p=Schatten(np.inf, (n // 4, 4)))
    assert res.success and res.x.shape == (n // 4, 4) and res.gap < 1e-3


REFUSED = {
    "another shape": ({"x0": np.zeros((4, 3))}, ValueError, r"x0 must have shape \(3, 4\), got shape \(4, 3\)"),
    "another length": ({"x0": np.zeros(11)}, ValueError, "x0 has 11 entries, but the norm given as p is for 12"),
    "not finite": ({"x0": np.full((3, 4), np.nan)}, ValueError, r"x0 must be finite, but x0\[0, 0\] is nan"),
    "complex": ({"x0": np.zeros((3, 4), dtype=complex)}, TypeError, "x0 must be real"),
    "no list": ({"x0": np.zeros((3, 4)), "p": BOTH}, ValueError, "x0 must be a list of 2 arrays, got ndarray"),
    "too few": ({"x0": [np.zeros((3, 4))], "p": BOTH}, ValueError, "x0 must be a list of 2 arrays, got 1 of them"),
    "text": ({"x0": "start", "p": BOTH}, ValueError, "x0 must be a list of 2 arrays, got str"),
    "a wrong part": (
        {"x0": [np.zeros((3, 4)), np.zeros(5)], "p": BOTH}, ValueError, r"x0 must have shape \(4,\) as array 1, got"
    ),
    "a part that is not finite": (
        {"x0": [np.zeros((3, 4)), np.array([0, 0, np.inf, 0])], "p": BOTH}, ValueError, r"x0\[1\]\[2\] is inf"
    ),
    "no shape": ({"p": Lp(2.0)}, ValueError, "x0 must have one dimension, got shape"),
    "no geometry": ({"p": 2.0}, ValueError, "x0 must have one dimension, got shape"),
    "a class": ({"x0": np.zeros(12), "p": Blocks}, TypeError, "p must be a number between 2 and inf, or an object"),
    "other weights": ({"x0": np.zeros(3), "p": Lp(2.0, weights=[1.0])}, ValueError, "x0 has 3 entries, but the norm"),
    "weights in float32": (
        {"x0": np.zeros(2, dtype=np.float32), "p": Blocks([Lp(2.0, weights=[1.0, 1e31])])},
        ValueError, "weights must be between 1e-18 and 1e18 where x0 is in float32",
    ),
    "agd": ({"method": "agd"}, ValueError, "method 'agd' is made for l_2 and takes no norm such as Schatten-inf"),
    "heavy-ball": ({"method": "heavy-ball"}, ValueError, "method 'heavy-ball' is made for l_2"),
    "gradient-descent": ({"method": "gradient-descent"}, ValueError, "method 'gradient-descent' is made for l_2"),
    "a restart of agd": (
        {"method": hasd.methods.hasd_restart.HASDRestart(inner=hasd.methods.agd.AGD()), "mu": 0.1},
        ValueError, "method 'hasd-restart' is made for l_2",
    ),
}  # fmt: skip
"""What is given beside the spectral norm and a matrix, and what is said."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_the_norm_is_refused_before_any_evaluation(case):
    given, error, said = REFUSED[case]

    def untouched(x):
        pytest.fail("the function was evaluated")

    call = {"x0": X0, "p": SPECTRAL, "jac": True} | given
    with pytest.raises(error, match=said):
        hasd.minimize(untouched, **call)
    with pytest.raises(error, match=said):
        hasd.iterate(untouched, **call)


class Own:
    """The maximum norm, with further attributes."""

    p = ("a", "label")

    def __init__(self, **more):
        self.__dict__ |= more

    def norm(self, x):
        return Lp(np.inf).norm(x)

    def dual_norm(self, g):
        return Lp(np.inf).dual_norm(g)

    def steepest(self, g):
        return Lp(np.inf).steepest(g)


@pytest.mark.parametrize(
    ("more", "error", "said"),
    [
        ({"shape": 12}, ValueError, "the shape of p must be a tuple of whole numbers of at least 1, got 12"),
        (
            {"shape": [3, 4]},
            ValueError,
            "each of the shapes of p must be a tuple of whole numbers",
        ),
        ({"least_gain": np.inf}, ValueError, "the least_gain of p must be finite and greater than 0, got inf"),
        ({"least_gain": "one"}, TypeError, "the least_gain of p must be a number, got 'one'"),
        ({"dual_convexity": np.nan}, ValueError, "the dual_convexity of p must be finite and at least 0, got nan"),
        ({"dual_convexity": 1.5}, ValueError, "the dual_convexity of p must be at most 1, got 1.5"),
    ],
)
def test_a_norm_of_ones_own_with_impossible_constants_is_refused(more, error, said):
    with pytest.raises(error, match=said):
        hasd.minimize(lambda x: (x @ x, 2 * x), np.ones(12), jac=True, method="linear-coupling", p=Own(**more))


def test_norms_of_ones_own_may_be_joined():
    norm = Blocks([Own(shape=(3,)), Lp(2.0, shape=(1,))])
    res = hasd.minimize(
        lambda x: (sum(y @ y for y in x), [2 * y for y in x]), [np.ones(3), np.ones(1)], jac=True, p=norm
    )
    assert res.success and res.p == "largest of ('a', 'label'), l_2"
    with pytest.raises(ValueError, match=r"the shape of parts\[0\] must be a tuple of whole numbers"):
        Blocks([Own(shape=3)])


def test_methods_for_l_2_take_matrices_in_the_frobenius_norm():
    for method in ("agd", "gradient-descent", "heavy-ball"):
        res = hasd.minimize(matrix, X0, jac=True, method=method, p=Schatten(2, (3, 4)), tol=1e-5, maxiter=5000)
        assert res.success and res.x.shape == (3, 4)


@pytest.mark.parametrize(
    ("f", "x0", "norm", "said"),
    [
        (lambda X: (0.0, np.zeros(12)), X0, SPECTRAL, r"what jac returns must have shape \(3, 4\), got shape \(12,\)"),
        (
            lambda x: (0.0, [np.zeros((3, 4))]),
            PARTS0,
            BOTH,
            "must be a list of 2 arrays, got 1 of them",
        ),
        (lambda x: (0.0, np.zeros(16)), PARTS0, BOTH, "what jac returns must be a list of 2 arrays, got ndarray"),
    ],
)
def test_gradients_of_another_layout_are_refused(f, x0, norm, said):
    with pytest.raises(ValueError, match=said):
        hasd.minimize(f, x0, jac=True, p=norm)


def test_compare_takes_matrices():
    norms = {"spectral": SPECTRAL, "Frobenius": Schatten(2, (3, 4)), "largest entry": Lp(np.inf, shape=(3, 4))}
    race = hasd.compare(matrix, X0, {name: {"p": norm} for name, norm in norms.items()}, jac=True, tol=1e-6)
    assert all(res.success and res.x.shape == (3, 4) for res in race.results.values())
    with pytest.raises(ValueError, match="x0 must have one dimension"):
        hasd.compare(matrix, X0, ["L-BFGS-B"], jac=True)
