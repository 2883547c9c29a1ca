"""Masked arrays: what lies under a mask is no data, and an array that hides some is refused by name."""

import numpy as np
import pytest
import scipy.sparse

import hasd
from hasd import objectives
from hasd.objectives import EntropicTransport
from hasd.objectives.losses import LogisticLoss, SquareLoss

A, B, Y = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), [1.0, 2.0, 4.0], [1.0, -1.0, 1.0]
H, COSTS, HALVES = np.diag([1.0, 4.0]), [[0.0, 1.0], [2.0, 0.0]], [0.5, 0.5]
POTENTIALS = np.zeros(4)


def squares(x, value=0.0, signs=1.0):
    """The sum of squares and its gradient, of which a test masks the one or the other."""
    return value + float(np.sum(np.square(x))), 2.0 * x * signs


def minimised(**given):
    """Its minimiser, by a function that returns both, and by two."""
    at = hasd.minimize(lambda x: squares(x, **given), HALVES, jac=True).x
    also = hasd.minimize(lambda x: squares(x, **given)[0], HALVES, jac=lambda x: squares(x, **given)[1]).x
    np.testing.assert_array_equal(at, also)
    return at


ENTRIES = {
    "chebyshev A": ("A", A, lambda A: hasd.chebyshev(A, B).x),
    "chebyshev b": ("b", B, lambda b: hasd.chebyshev(A, b).x),
    "lp_fit A": ("A", A, lambda A: hasd.lp_fit(A, B).x),
    "lp_fit b": ("b", B, lambda b: hasd.lp_fit(A, b).x),
    "transport C": ("C", COSTS, lambda C: hasd.transport(C, [0.5, 0.5], [0.25, 0.75], 0.1).x),
    "transport a": ("a", HALVES, lambda a: hasd.transport(COSTS, a, [0.25, 0.75], 0.1).x),
    "transport b": ("b", HALVES, lambda b: hasd.transport(COSTS, [0.25, 0.75], b, 0.1).x),
    "transport x0": ("x0", POTENTIALS, lambda x0: hasd.transport(COSTS, [0.25, 0.75], HALVES, 0.1, x0=x0).x),
    "balance K": ("K", A, lambda K: hasd.balance(K, [1.0, 1.0, 1.0], [1.5, 1.5]).matrix()),
    "balance r": ("r", B, lambda r: hasd.balance(A, r, [3.0, 4.0]).matrix()),
    "balance c": ("c", HALVES, lambda c: hasd.balance(A, [0.25, 0.25, 0.5], c).matrix()),
    "Affine A": ("A", A, lambda A: objectives.Affine(SquareLoss(), A)(HALVES)),
    "Affine b": ("b", B, lambda b: objectives.Affine(SquareLoss(), A, b)(HALVES)),
    "Affine x": ("x", HALVES, lambda x: objectives.Affine(SquareLoss(), A)(x)),
    "Affine value_and_grad x": ("x", HALVES, lambda x: objectives.Affine(SquareLoss(), A).value_and_grad(x)[1]),
    "Affine duality_gap x": ("x", HALVES, lambda x: objectives.LeastSquares(A, B).duality_gap(x)),
    "LogSumExp A": ("A", A, lambda A: objectives.LogSumExp(A)(HALVES)),
    "LogSumExp b": ("b", B, lambda b: objectives.LogSumExp(A, b)(HALVES)),
    "SymmetricSoftmax A": ("A", A, lambda A: objectives.SymmetricSoftmax(A)(HALVES)),
    "SymmetricSoftmax b": ("b", B, lambda b: objectives.SymmetricSoftmax(A, b)(HALVES)),
    "SymmetricSoftmax b alone": ("b", B, lambda b: objectives.SymmetricSoftmax(b=b)(np.zeros(3))),
    "SymmetricSoftmax x alone": ("x", HALVES, lambda x: objectives.SymmetricSoftmax()(x)),
    "LeastSquares A": ("A", A, lambda A: objectives.LeastSquares(A, B)(HALVES)),
    "LeastSquares b": ("b", B, lambda b: objectives.LeastSquares(A, b)(HALVES)),
    "Logistic A": ("A", A, lambda A: objectives.Logistic(A, Y)(HALVES)),
    "Logistic y": ("y", Y, lambda y: objectives.Logistic(A, y)(HALVES)),
    "LogisticLoss y": ("y", Y, lambda y: LogisticLoss(y).value(np.ones(3))),
    "Logistic weights": ("weights", B, lambda b: objectives.Logistic(A, Y, weights=b)(HALVES)),
    "Multinomial A": ("A", A, lambda A: objectives.Multinomial(A, [0, 1, 0])(np.ones(4))),
    "Multinomial y": ("y", [0.0, 1.0, 0.0], lambda y: objectives.Multinomial(A, y)(np.ones(4))),
    "Power A": ("A", A, lambda A: objectives.Power(A, B, q=4)(HALVES)),
    "Power b": ("b", B, lambda b: objectives.Power(A, b, q=4)(HALVES)),
    "Quadratic H": ("H", H, lambda H: objectives.Quadratic(H)(HALVES)),
    "Quadratic c": ("c", HALVES, lambda c: objectives.Quadratic(H, c)(HALVES)),
    "Quadratic x": ("x", HALVES, lambda x: objectives.Quadratic(H)(x)),
    "EntropicTransport C": ("C", COSTS, lambda C: EntropicTransport(C, HALVES, HALVES, 0.1)(POTENTIALS)),
    "EntropicTransport a": ("a", HALVES, lambda a: EntropicTransport(COSTS, a, HALVES, 0.1)(POTENTIALS)),
    "EntropicTransport b": ("b", HALVES, lambda b: EntropicTransport(COSTS, HALVES, b, 0.1)(POTENTIALS)),
    "EntropicTransport x": ("x", POTENTIALS, lambda x: EntropicTransport(COSTS, HALVES, HALVES, 0.1)(x)),
    "EntropicTransport plan x": ("x", POTENTIALS, lambda x: EntropicTransport(COSTS, HALVES, HALVES, 0.1).plan(x)),
    "minimize x0": ("x0", HALVES, lambda x0: hasd.minimize(objectives.Quadratic(H), x0).x),
    "iterate x0": ("x0", HALVES, lambda x0: next(iter(hasd.iterate(objectives.Quadratic(H), x0))).x),
    "compare x0": ("x0", HALVES, lambda x0: hasd.compare(objectives.Quadratic(H), x0, "hasd", 20).results["hasd"].x),
    "theory z": ("z", HALVES, lambda z: hasd.theory.lp_squared_hessian(z, 4)),
    "fun": ("what fun returns", 1.0, lambda value: minimised(value=value)),
    "jac": ("what jac returns", [1.0, 1.0], lambda signs: minimised(signs=signs)),
}
"""The argument's name, values of the right shape for it, and a call of a public function."""


@pytest.mark.parametrize(("name", "values", "call"), ENTRIES.values(), ids=ENTRIES)
class TestEveryArgument:
    """One table: every array that a user can hand in."""

    def test_masked_entries_are_refused_by_name(self, name, values, call):
        array = np.ma.masked_array(values, mask=False)
        array[(-1,) * array.ndim] = np.ma.masked
        place = {0: "0", 1: str(array.size - 1), 2: str(tuple(n - 1 for n in array.shape))}[array.ndim]
        with pytest.raises(ValueError) as caught:
            call(array)
        assert str(caught.value) == (
            f"{name} must have no masked entries, but entry {place} is masked: drop or fill the masked entries"
        )

    @pytest.mark.parametrize("mask", [np.ma.nomask, False])
    def test_a_masked_array_that_hides_nothing_is_a_plain_one(self, name, values, call, mask):
        expected, got = call(np.array(values)), call(np.ma.masked_array(values, mask=mask))
        np.testing.assert_array_equal(got, expected)
        assert not isinstance(got, np.ma.MaskedArray)


MASKED = np.ma.masked_array([2.0, 3.0], [False, True])
ROWS = {
    "a list of masked rows": ([MASKED, MASKED, MASKED], r"A .* entry \(0, 1\) is masked"),
    "a tuple of which the last row is masked": (([1.0, 2.0], [3.0, 4.0], MASKED), r"A .* entry \(2, 1\) is masked"),
    "a list of lists with the masked constant": (
        [[1.0, 2.0], [3.0, np.ma.masked], [1.0, 1.0]],
        r"A .* entry \(1, 1\) is masked",
    ),
}


@pytest.mark.parametrize(("rows", "sentence"), ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("call", [hasd.chebyshev, hasd.lp_fit, objectives.LeastSquares, objectives.Logistic])
def test_masked_rows_in_a_list_are_refused(rows, sentence, call):
    """NumPy reads what lies under the masks of rows in a list, and makes NaN of the masked constant."""
    with pytest.raises(ValueError, match=sentence):
        call(rows, Y)


def test_a_list_with_the_masked_constant_is_no_vector():
    with pytest.raises(ValueError, match="b must have no masked entries, but entry 1 is masked"):
        hasd.lp_fit(A, [1.0, np.ma.masked, 2.0])


def test_masked_values_of_a_sparse_matrix_are_refused():
    sparse = scipy.sparse.csr_array(A)
    sparse.data = np.ma.masked_array(sparse.data, sparse.data == 3.0)
    for call in (hasd.chebyshev, hasd.lp_fit, objectives.LeastSquares):
        with pytest.raises(ValueError, match="A must have no masked entries, but entry 2 is masked"):
            call(sparse, B)
    with pytest.raises(ValueError, match="K must have no masked entries, but entry 2 is masked"):
        hasd.balance(sparse, [1.0, 1.0, 1.0], [1.5, 1.5])


@pytest.mark.parametrize("number", [np.ma.masked, np.ma.masked_array(1.0, True)], ids=["the constant", "0-d"])
def test_masked_numbers_are_refused_in_one_line(number):
    for call in (
        lambda: hasd.transport(COSTS, HALVES, HALVES, number),
        lambda: hasd.chebyshev(A, B, gap_rtol=number),
        lambda: hasd.minimize(objectives.Quadratic(H), HALVES, tol=number),
    ):
        with pytest.raises(TypeError, match=r"(reg|tol) must be a (real )?number") as caught:
            call()
        assert "\n" not in str(caught.value)


def test_masked_values_and_gradients_of_two_functions_are_refused():
    """As of one that returns both, which the table has."""
    for value in (np.ma.masked, np.ma.masked_array([1.0], [True])):
        for jac in (None, lambda x: x):
            with pytest.raises(ValueError, match="what fun returns must have no masked entries, but entry 0 is masked"):
                hasd.minimize(lambda x, value=value: value, HALVES, jac=jac)
    with pytest.raises(ValueError, match="what jac returns must have no masked entries, but entry 1 is masked"):
        hasd.minimize(lambda x: squares(x)[0], HALVES, jac=lambda x: MASKED)
