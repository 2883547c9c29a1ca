"""lp_fit on tables whose columns depend on each other and are too many for Newton's method in all of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from hasd.problems import _lp_spaces as lp_spaces
from hasd.problems._lp_fit import lp_fit
from planted import table_of_counts, value


@pytest.fixture(autouse=True)
def fewer_columns_are_factored(monkeypatch):
    """As if 231 columns were too many; the limit of those that depend on each other stays above."""
    monkeypatch.setattr(lp_spaces, "WHOLE", 100)


@pytest.mark.parametrize("power", [4.0, 10.0])
def test_dependent_columns_are_factored_and_certified(power):
    """Never worse than least squares; `test_mutation_products_alone_do_not_certify_tables` shows that this can fail."""
    A, b, _ = table_of_counts(0, 1500)
    fit = lp_fit(A, b, power)
    assert fit.success and fit.gap <= 1e-8 * fit.fun, fit.message
    assert fit.fun <= value(A @ np.linalg.lstsq(A, b, rcond=None)[0] - b, power)
    assert fit.nit <= 40 and np.abs(A.T @ fit.dual).max() <= 1e-9 * np.abs(A).max()


def test_mutation_products_alone_do_not_certify_tables(monkeypatch):
    """Without the factors (WIDEST = 0) forty iterations prove nothing near 1e-8."""
    monkeypatch.setattr(lp_spaces, "WIDEST", 0)
    A, b, _ = table_of_counts(0, 1500)
    fit = lp_fit(A, b, 10.0, maxiter=40)
    assert not fit.success and fit.gap > 1e-5 * fit.fun


def test_few_or_dependent_columns_are_factored_and_operators_are_not():
    rng = np.random.default_rng(0)
    G, b = rng.standard_normal((400, 120)), rng.standard_normal(400)
    twin = np.column_stack((G[:, :-1], G[:, 0] + G[:, 1]))

    def factored(A):
        return isinstance(lp_spaces.space_of(lp_spaces.ScaledFit(A, b)), lp_spaces.Factored)

    assert factored(G[:, :100]) and not factored(G)
    assert factored(twin) and factored(sp.csr_array(twin)) and factored(np.column_stack((G, np.zeros(400))))
    assert not factored(aslinearoperator(twin)) and not factored(sp.csr_array(G))
