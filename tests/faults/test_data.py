"""Data and numbers that a problem or an objective cannot use: one clear sentence that names them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import aslinearoperator

import hasd
from hasd import objectives
from hasd.objectives import EntropicTransport

A, B, HALVES, COSTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]), [1.0, 2.0, 4.0], [0.5, 0.5], np.eye(2)
FIT = objectives.LeastSquares(A, B)
DUAL = EntropicTransport(COSTS, HALVES, HALVES, 0.1)

NO_NUMBERS = {
    "text": "2",
    "None": None,
    "complex": 2j,
    "a list": [2.0],
    "a matrix": np.ones((2, 2)),
    "a long vector": np.arange(1000),
    "True": True,
    "masked": np.ma.masked_array(2.0, True),
}
NUMBERS = {
    "p of Lp": ("p", hasd.Lp),
    "p of an objective's smoothness": ("p", FIT.smoothness),
    "p of a dual's smoothness": ("p", DUAL.smoothness),
    "iterations of duality_gap": ("iterations", lambda n: FIT.duality_gap(HALVES, iterations=n)),
    "gap_rtol of chebyshev": ("gap_rtol", lambda tol: hasd.chebyshev(A, B, gap_rtol=tol)),
    "power of lp_fit": ("power", lambda power: hasd.lp_fit(A, B, power)),
    "reg of transport": ("reg", lambda reg: hasd.transport(COSTS, HALVES, HALVES, reg)),
    "error_tol of balance": ("error_tol", lambda tol: hasd.balance(COSTS, HALVES, HALVES, error_tol=tol)),
    "ridge": ("ridge", lambda ridge: objectives.LeastSquares(A, B, ridge=ridge)),
    "alpha": ("alpha", lambda alpha: objectives.LogSumExp(A, B, alpha=alpha)),
    "q": ("q", lambda q: objectives.Power(A, B, q)),
}


@pytest.mark.parametrize("given", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize(("name", "call"), NUMBERS.values(), ids=NUMBERS)
def test_what_is_no_number_is_refused_by_name(name, call, given):
    with pytest.raises(TypeError, match=f"^{name} must be a (real )?number") as caught:
        call(given)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize("given", [-1.0, float("nan")])
@pytest.mark.parametrize(("name", "call"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_out_of_range_are_refused_by_name(name, call, given):
    with pytest.raises(ValueError, match=f"^{name} must"):
        call(given)


NO_BUDGETS = [value for value in NO_NUMBERS.values() if value is not None] + [-1.0, 0, 0.5, float("nan")]


@pytest.mark.parametrize("given", NO_BUDGETS)
def test_what_is_no_budget_is_refused_by_name(given):
    """None is one: it means that there is none."""
    with pytest.raises((TypeError, ValueError), match=r"^budget must be"):
        hasd.compare(FIT, HALVES, "hasd", given)


def test_half_an_iteration_is_refused():
    with pytest.raises(ValueError, match=r"iterations must be a whole number, got 0\.5"):
        FIT.duality_gap(HALVES, iterations=0.5)


MATRICES = {
    "costs of transport": ("C must be a dense", lambda C: hasd.transport(C, HALVES, HALVES, 0.1), COSTS),
    "costs of its dual": ("C must be a dense", lambda C: EntropicTransport(C, HALVES, HALVES, 0.1), COSTS),
}


@pytest.mark.parametrize("kind", [csr_array, aslinearoperator])
@pytest.mark.parametrize(("sentence", "call", "matrix"), MATRICES.values(), ids=MATRICES)
def test_costs_are_dense(sentence, call, matrix, kind):
    with pytest.raises(TypeError, match=sentence):
        call(kind(matrix))


def test_balance_needs_the_entries():
    with pytest.raises(TypeError, match=r"balance needs the entries of K.*not a LinearOperator"):
        hasd.balance(aslinearoperator(A), B, [3.0, 4.0])


def test_rows_of_different_lengths_are_refused():
    for call in (hasd.chebyshev, hasd.lp_fit, objectives.LeastSquares):
        with pytest.raises(ValueError, match=r"^A must be an array of numbers"):
            call([[1.0, 2.0], [3.0], [4.0, 5.0]], B)


def test_an_empty_vector_is_refused():
    with pytest.raises(ValueError, match=r"b must be 1-D and not empty, got shape \(0,\)"):
        objectives.SymmetricSoftmax(b=[])
    with pytest.raises(ValueError, match=r"x must be 1-D and not empty, got shape \(0,\)"):
        objectives.SymmetricSoftmax()([])


def test_the_result_of_a_hopeless_balance_can_be_printed():
    """SciPy prints no empty dictionary: the trace has its columns, without rows."""
    res = hasd.balance(np.zeros((2, 2)), [1.0, 1.0], [1.0, 1.0])
    assert "No scaling exists" in str(res)
    assert set(res.trace) == {"seconds", "npass", "fun"} and all(column.size == 0 for column in res.trace.values())
