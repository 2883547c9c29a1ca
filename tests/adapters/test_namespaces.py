"""The core on arrays of other libraries: same steps, and everything stays in the caller's library, type and device.

array-api-strict computes by NumPy, so there the run is NumPy's bit for bit; PyTorch sums in another order.  Its second
device refuses to mix with the first, which stands in for a GPU.
"""

import math
from contextlib import nullcontext

import array_api_strict as strict
import numpy as np
import pytest
import torch
from array_api_compat import device

import hasd
from hasd._math.arrays import library, namespace, to_host
from hasd.objectives import LeastSquares, Logistic, LogSumExp, Power, Quadratic, SymmetricSoftmax
from support import BLACK_BOX

DEVICE = strict.Device("device1")
LIBRARIES = {
    "torch": lambda a: torch.tensor(a),
    "strict": lambda a: strict.asarray(a, device=DEVICE),
}
RNG = np.random.default_rng(5)
D = 9
B = RNG.standard_normal((D, D))
H, C = B @ B.T / D + 0.1 * np.eye(D), RNG.standard_normal(D)
A, RIGHT, LABELS = RNG.standard_normal((60, D)), RNG.standard_normal(60), np.sign(RNG.standard_normal(60))
OBJECTIVES = {
    "log-sum-exp": lambda of: LogSumExp(of(A), of(RIGHT), alpha=0.3, ridge=0.01),
    "softmax": lambda of: SymmetricSoftmax(of(A), of(RIGHT), alpha=0.2),
    "identity": lambda of: SymmetricSoftmax(b=of(RIGHT[:D]), alpha=0.3),
    "squares": lambda of: LeastSquares(of(A), of(RIGHT)),
    "logistic": lambda of: Logistic(of(A), of(LABELS), ridge=0.01),
    "power": lambda of: Power(of(A), of(RIGHT), 4),
    "quadratic": lambda of: Quadratic(of(H), of(C)),
}


def bowl(of, kept=None):
    """A quadratic as a black box in the library that `of` makes arrays of."""
    matrix, vector = of(H), of(C)

    def f(x):
        if kept is not None:
            kept.append(x)
        g = matrix @ x + vector
        return 0.5 * (x @ (g + vector)), g

    return f


def options(method):
    return {"mu": 0.1} if method == "hasd-restart" else {}


def first_iterates(method, of, p, L, count=12):
    states = hasd.iterate(bowl(of), of(np.zeros(D)), jac=True, method=method, p=p, L=L, **options(method))
    return [to_host(state.x) for state, _ in zip(states, range(count), strict=False)]


@pytest.mark.parametrize("L", [None, 40.0])
@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
@pytest.mark.parametrize("method", BLACK_BOX)
def test_strict_arrays_take_numpys_steps_bit_for_bit(method, p, L):
    expected = first_iterates(method, np.array, p, L)
    found = first_iterates(method, LIBRARIES["strict"], p, L)
    assert len(found) == len(expected) > 3
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("p", [2.0, 3.0, math.inf])
@pytest.mark.parametrize("method", BLACK_BOX)
def test_tensors_take_numpys_steps_to_rounding(method, p):
    expected = first_iterates(method, np.array, p, 40.0)
    found = first_iterates(method, LIBRARIES["torch"], p, 40.0)
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-9 * max(1.0, np.abs(y).max()))


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("method", BLACK_BOX)
def test_arrays_in_and_out_of_a_black_box_are_of_the_kind_of_x0(method, kind):
    seen, of = [], LIBRARIES[kind]
    x0 = of(np.zeros(D))
    iterates = []
    res = hasd.minimize(
        bowl(of, seen), x0, jac=True, method=method, maxiter=5, callback=iterates.append, tol=0.0, **options(method)
    )
    for array in (res.x, res.jac, *seen, *iterates):
        assert type(array) is type(x0) and array.dtype == x0.dtype and device(array) == device(x0)
        assert array is not x0
    addresses = [np.asarray(to_host(x)).ctypes.data for x in (x0, res.x, res.jac, *iterates)] if kind == "torch" else []
    assert len(addresses) == len(set(addresses))
    for number in (res.fun, res.L, res.weight, res.psi, res.certificate.gap(10.0)):
        assert type(number) is float
    assert float(namespace(x0).sum(abs(x0))) == 0.0


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize(
    ("method", "name"),
    [
        *(
            (method, name)
            for method in ("auto", "hasd-subspace", "hasd-newton", "hasd-qn", "hasd", "agd")
            for name in OBJECTIVES
            if (method, name) != ("hasd-newton", "identity")  # which it refuses
        ),
        *(("hasd-cg", name) for name in ("squares", "quadratic")),
    ],
)
def test_objectives_of_other_libraries_reach_numpys_minimum_in_their_type(method, name, kind):
    of = LIBRARIES[kind]
    expected = hasd.minimize(OBJECTIVES[name](np.array), np.full(D, 0.1), method=method, tol=1e-7)
    f, x0 = OBJECTIVES[name](of), of(np.full(D, 0.1))
    res = hasd.minimize(f, x0, method=method, tol=1e-7)
    assert res.success and type(res.x) is type(x0) and res.x.dtype == x0.dtype and device(res.x) == device(x0)
    if kind == "strict" and method == "hasd":
        np.testing.assert_array_equal(to_host(res.x), expected.x)
    np.testing.assert_allclose(to_host(res.x), expected.x, rtol=0, atol=1e-4)
    assert res.fun == pytest.approx(expected.fun, abs=1e-9)
    assert f.smoothness(math.inf) == OBJECTIVES[name](np.array).smoothness(math.inf)


@pytest.mark.parametrize("kind", LIBRARIES)
@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "quadratic"])
def test_the_dual_bound_is_numpys(name, kind):
    x = np.full(D, 0.3)
    expected = OBJECTIVES[name](np.array).duality_gap(x, radius=10.0)
    found = OBJECTIVES[name](LIBRARIES[kind]).duality_gap(LIBRARIES[kind](x), radius=10.0)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["numpy", *LIBRARIES])
@pytest.mark.parametrize("method", ["hasd", "hasd-qn", "hasd-subspace", "hasd-newton", "agd"])
def test_float32_stays_float32_and_reaches_the_minimum(method, kind):
    make = {"numpy": np.asarray, **LIBRARIES}[kind]

    def of(a):
        return make(np.asarray(a, dtype=np.float32))

    exact = hasd.minimize(OBJECTIVES["log-sum-exp"](np.array), np.zeros(D), tol=1e-9)
    x0, seen = of(np.zeros(D)), []
    res = hasd.minimize(OBJECTIVES["log-sum-exp"](of), x0, method=method, tol=1e-3, callback=seen.append)
    assert res.success and res.x.dtype == x0.dtype == res.jac.dtype
    assert {x.dtype for x in seen} == {x0.dtype}
    assert res.fun == pytest.approx(exact.fun, abs=1e-5)
    again = OBJECTIVES["log-sum-exp"](of)
    assert again(res.x) == res.fun  # all fields speak of the rounded point


def test_a_run_in_float32_never_returns_worse_than_x0():
    f = OBJECTIVES["squares"](np.array)
    best = hasd.minimize(f, np.zeros(D), tol=1e-12).x.astype(np.float32)
    for shift in range(20):
        x0 = best.copy()
        x0[shift % D] = np.nextafter(x0[shift % D], np.float32(9.0))
        assert hasd.minimize(f, x0, tol=1e-12, maxiter=3).fun <= f(x0)


def test_a_tensor_with_history_is_detached_and_left_alone():
    x0 = torch.zeros(D, dtype=torch.float64, requires_grad=True)
    matrix = torch.tensor(A, requires_grad=True)
    versions = x0._version, matrix._version
    res = hasd.minimize(LogSumExp(matrix, ridge=0.1), x0, method="hasd-subspace")
    assert res.success and not res.x.requires_grad
    assert (x0._version, matrix._version) == versions and x0.grad is None and matrix.grad is None


def test_answers_that_carry_autograd_history_are_detached():
    weight = torch.ones(D, dtype=torch.float64, requires_grad=True)

    def f(x):
        return (weight * x) @ x + x.sum(), 2 * weight * x + 1

    res = hasd.minimize(f, torch.ones(D, dtype=torch.float64), jac=True)
    assert res.success and not res.jac.requires_grad


def test_a_gradient_buffer_may_be_reused():
    buffer = torch.zeros(D, dtype=torch.float64)

    def f(x):
        torch.mul(x - 1.0, 2.0, out=buffer)
        return torch.sum((x - 1.0) ** 2), buffer

    res = hasd.minimize(f, torch.zeros(D, dtype=torch.float64), jac=True, method="hasd", p=3)
    assert res.success and float(abs(res.x - 1.0).max()) < 1e-5


def test_a_gradient_of_another_library_is_taken_over():
    res = hasd.minimize(lambda x: (float(x @ x), 2 * x.numpy()), torch.ones(3, dtype=torch.float64), jac=True)
    assert res.success and isinstance(res.x, torch.Tensor)
    res = hasd.minimize(lambda x: (float(x @ x), 2 * torch.tensor(x)), np.ones(3), jac=True)
    assert res.success and isinstance(res.x, np.ndarray)


def test_objectives_evaluate_points_of_any_library_in_their_own():
    for of in (np.array, *LIBRARIES.values()):
        f = OBJECTIVES["squares"](of)
        for x in (np.ones(D), [1.0] * D):
            assert f(x) == pytest.approx(OBJECTIVES["squares"](np.array)(np.ones(D)))
            assert type(f.value_and_grad(x)[1]) is type(of(C))
    assert OBJECTIVES["squares"](np.array)(torch.ones(D, dtype=torch.float64)) == OBJECTIVES["squares"](np.array)(
        np.ones(D)
    )


@pytest.mark.parametrize("method", ["hasd-qn", "hasd-subspace", "hasd-newton", "hasd-cg"])
def test_certificates_hold_from_a_start_in_float32(method):
    """The gradient at x0 is not rounded to float32.  Mutation: evaluate the start in x0's own precision."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        f = LeastSquares(1e-6 * rng.standard_normal((5, 6)), np.ones(5), ridge=0.7)
        least = hasd.minimize(f, np.zeros(6), tol=1e-14).fun
        res = hasd.minimize(f, (1 + rng.random(6)).astype(np.float32), method=method, maxiter=1, tol=0)
        assert res.certificate.lower() <= least and res.gap >= 0.0


def test_success_is_of_the_rounded_point():
    f = OBJECTIVES["log-sum-exp"](np.array)
    for method in ("hasd-subspace", "hasd-qn"):
        res = hasd.minimize(f, np.zeros(D, dtype=np.float32), method=method, tol=1e-9)
        start = np.linalg.norm(f.value_and_grad(np.zeros(D))[1])
        assert res.success == (np.linalg.norm(res.jac) <= 1e-9 * start)


def test_float32_ends_where_its_precision_does():
    f = LogSumExp(A.astype(np.float32), ridge=0.01)
    for method in ("hasd-subspace", "hasd-qn"):
        res = hasd.minimize(f, np.zeros(D, dtype=np.float32), method=method, tol=0.0, maxiter=3000)
        assert res.status == 2 and res.nit < 500


@pytest.mark.parametrize("kind", LIBRARIES)
def test_finite_differences_solve_in_the_callers_library(kind):
    of = LIBRARIES[kind]
    f = bowl(of)
    warned = pytest.warns(UserWarning, match="hasd.torch.minimize") if "torch" in kind else nullcontext()
    with warned:
        res = hasd.minimize(lambda x: f(x)[0], of(np.zeros(D)), tol=1e-5)
    assert res.success and library(res.x) == library(of(C))
    np.testing.assert_allclose(to_host(res.x), -np.linalg.solve(H, C), atol=1e-4)


@pytest.mark.parametrize(
    ("x0", "error", "match"),
    [
        (torch.zeros(2, 2), ValueError, r"one dimension, got shape \(2, 2\)"),
        (torch.zeros(0), ValueError, "must not be empty"),
        (torch.zeros(2, dtype=torch.complex64), TypeError, "must be real"),
        (torch.tensor([0.0, math.nan]), ValueError, r"x0\[1\] is nan"),
        (strict.asarray([math.inf, 1.0]), ValueError, r"x0\[0\] is inf"),
    ],
)
def test_a_start_that_is_no_finite_real_vector_is_refused(x0, error, match):
    with pytest.raises(error, match=match):
        hasd.minimize(lambda x: (x @ x, 2 * x), x0, jac=True)


def test_whole_numbers_become_float64():
    res = hasd.minimize(lambda x: (x @ x, 2 * x), torch.ones(3, dtype=torch.int32), jac=True)
    assert res.x.dtype == torch.float64


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: hasd.minimize(LeastSquares(A, RIGHT), torch.zeros(D, dtype=torch.float64)), "x0 is an array of torch"),
        (lambda: hasd.minimize(LeastSquares(torch.tensor(A), torch.tensor(RIGHT)), np.zeros(D)), "x0 is an array of n"),
        (lambda: LeastSquares(A, torch.tensor(RIGHT)), "b is an array of torch, but A is one of numpy"),
        (lambda: Logistic(A, torch.tensor(LABELS)), "y is an array of torch, but A is one of numpy"),
        (lambda: Quadratic(H, torch.tensor(C)), "c is an array of torch, but H is one of numpy"),
        (lambda: hasd.minimize(SymmetricSoftmax(b=torch.tensor(C)), np.zeros(D)), "x0 is an array of numpy"),
        (lambda: LogSumExp(torch.tensor(A).to_sparse()), "A must be dense where it is a tensor"),
    ],
)
def test_libraries_do_not_mix(make, match):
    with pytest.raises(TypeError, match=match):
        make()


def test_devices_do_not_mix():
    here, there = strict.asarray(A), LIBRARIES["strict"](RIGHT)
    with pytest.raises(ValueError, match=r"b is on device .*device1.*, but A on .*CPU.*: move one"):
        LeastSquares(here, there)
    with pytest.raises(ValueError, match="x0 is on device"):
        hasd.minimize(LogSumExp(here), LIBRARIES["strict"](np.zeros(D)))


def test_a_state_of_another_library_is_refused():
    state = hasd.minimize(bowl(torch.tensor), torch.zeros(D, dtype=torch.float64), jac=True, maxiter=3).state
    with pytest.raises(ValueError, match="resume holds arrays of torch, but x0 is one of numpy"):
        hasd.minimize(bowl(np.array), np.zeros(D), jac=True, resume=state)


def test_problems_take_tensors_and_answer_in_numpy():
    fit = hasd.chebyshev(torch.tensor(A), torch.tensor(RIGHT))
    np.testing.assert_array_equal(fit.x, hasd.chebyshev(A, RIGHT).x)
    assert hasd.lp_fit(torch.tensor(A), torch.tensor(RIGHT), 4).fun == hasd.lp_fit(A, RIGHT, 4).fun


# Norms with a shape --------------------------------------------------------------------------------------------------

MATRIX = hasd.Schatten(math.inf, (3, 3))
LIST = hasd.Blocks([hasd.Schatten(3.0, (2, 3)), hasd.Lp(math.inf, weights=[0.5, 1.0, 2.0])])


def shaped_bowl(of, layout):
    """The bowl for x as a matrix, or as a matrix and a vector."""
    flat = bowl(of)

    def f(x):
        arrays = x if layout == "list" else [x]
        xp = namespace(arrays[0])
        value, g = flat(xp.concat([xp.reshape(part, (-1,)) for part in arrays]))
        return value, [xp.reshape(g[:6], (2, 3)), g[6:]] if layout == "list" else xp.reshape(g, (3, 3))

    return f


def shaped_run(of, layout):
    x0 = [of(np.zeros((2, 3))), of(np.zeros(3))] if layout == "list" else of(np.zeros((3, 3)))
    norm = LIST if layout == "list" else MATRIX
    res = hasd.minimize(shaped_bowl(of, layout), x0, jac=True, method="hasd", p=norm, L=40.0, maxiter=20, tol=0)
    return (res.x, x0) if layout == "list" else ([res.x], [x0])


@pytest.mark.parametrize("layout", ["matrix", "list"])
@pytest.mark.parametrize("kind", LIBRARIES)
def test_matrices_and_lists_of_other_libraries_take_numpys_steps(kind, layout):
    expected, _ = shaped_run(np.array, layout)
    found, start = shaped_run(LIBRARIES[kind], layout)
    for x, x0, y in zip(found, start, expected, strict=True):
        assert type(x) is type(x0) and x.shape == x0.shape and x.dtype == x0.dtype and device(x) == device(x0)
        np.testing.assert_allclose(to_host(x), y, rtol=0, atol=1e-9)


def test_weights_may_be_a_tensor():
    norm = hasd.Lp(2.0, weights=torch.tensor([1.0, 2.0], requires_grad=True))
    assert type(norm.weights) is np.ndarray and norm.norm(torch.tensor([3.0, 2.0])) == 5.0


def test_tensors_of_any_shape_are_differentiated_in_any_norm():
    target = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    zero = torch.zeros(3, 3, dtype=torch.float64)
    res = hasd.torch.minimize(lambda X: torch.sum((X - target) ** 2), zero, p=MATRIX)
    assert res.success and torch.allclose(res.x, target, atol=1e-4) and res.p == "Schatten-inf"
    with pytest.raises(TypeError, match=r"^p must be a number between 2 and inf, got Schatten.*takes other norms$"):
        hasd.torch.HASD([zero.requires_grad_()], p=MATRIX)
