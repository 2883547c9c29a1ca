"""Linear models fitted in the maximum norm and in l_q, each with a certificate.

Problem.    min over w, c of ||Xw + c - y||, in the maximum norm (`MinimaxRegressor`) or in l_q (`LpRegressor`); errors
            in the maximum norm may have weights of their own, or be relative to y.
Algorithm.  `hasd.chebyshev` and `hasd.lp_fit`; the intercept is a column of ones, beside which the columns of a dense X
            are centred.  A sparse X stays sparse.
Guarantee.  ``value_ - gap_`` is a lower bound on the error of every linear model on the training data.

>>> import numpy as np
>>> X = np.linspace(-1, 1, 101)[:, None]
>>> model = MinimaxRegressor().fit(X, np.exp(X[:, 0]))
>>> model.coef_.round(4), round(model.value_, 4), model.support_.size
(array([1.1752]), 0.2788, 3)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _inputs as inputs
from .._checks import check_flags
from .._math.arrays import refuse_masked
from .._run.report import Result
from ..problems._chebyshev import chebyshev
from ..problems._lp_fit import lp_fit
from ..problems._weights import as_weights, relative_weights
from ._linear import Array, SparseEstimator, check_weights, score_rounding


class _Linear(RegressorMixin, SparseEstimator):
    """What the two share: data in, X w + c out."""

    fit_intercept: bool
    gap_rtol: float

    def predict(self, X: Any) -> Array:
        """X w + c for every row of X."""
        check_is_fitted(self)
        refuse_masked(X, "X")
        X = validate_data(self, X, accept_sparse="csr", dtype=(np.float64, np.float32), reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)

    def _data(self, X: Any, y: Any) -> tuple[Any, Array]:
        """X and y checked; X stays sparse where it is."""
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), y_numeric=True)
        return X, np.asarray(y, dtype=np.float64)

    def _solve(self, solver: Callable[..., Result], X: Any, y: Array, weights: Array | None, of_ones: float) -> Result:
        """The fit by a solver, and the attributes that follow from it; of_ones: the value of errors that are all 1."""
        A, centre = _design(X, self.fit_intercept)
        result = solver(A, y, weights=weights, gap_rtol=self.gap_rtol)
        self.coef_ = result.x[: centre.size]
        self.intercept_ = float(result.x[-1] - centre @ self.coef_) if self.fit_intercept else 0.0
        self.n_iter_, self.value_, self.gap_ = int(result.nit), float(result.fun), float(result.gap)
        if centre.any():  # the proof is about columns that were rounded, and an intercept that was not
            self.gap_ += 2.0 * of_ones * sum(score_rounding(A[:, :-1], self.coef_, centre, result.x[-1]))
        if not result.success:
            short = f"within {self.gap_:.3g} of the best fit, which is not what gap_rtol asks for: {result.message}"
            warnings.warn(f"{type(self).__name__} is {short}", ConvergenceWarning, stacklevel=3)
        return result


class MinimaxRegressor(_Linear):
    """The linear model with the smallest largest error: minimises max_i e_i |<x_i, w> + c - y_i| over w and c.

    The weights e_i of the errors are 1, 1/|y_i| with ``relative=True``, or the ``error_weight`` given to ``fit``.
    There is no ``sample_weight``, which means repetition: repeating a row does not change a maximum.

    Parameters
    ----------
    fit_intercept : bool
        Whether to fit the intercept c; otherwise it is 0.
    gap_rtol : float
        The relative gap to certify, ``gap_ / value_``.  If it is not reached, a ConvergenceWarning says which gap was.
    relative : bool
        Whether to minimise the largest error relative to y_i, none of which may then be 0.

    Attributes
    ----------
    coef_, intercept_ : array, float
        w and c.
    value_ : float
        The largest error on the training data, times its weight.
    gap_ : float
        No linear model has a largest error times its weight below ``value_ - gap_``.
    support_ : array
        The rows that prove this.
    n_iter_ : int
        Iterations of the smoothed problem.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Examples
    --------
    >>> MinimaxRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0]).predict([[5.0]])
    array([0.5])
    >>> MinimaxRegressor(fit_intercept=False, relative=True).fit([[1.0], [1.0]], [1.0, 3.0]).coef_  # 50% off both
    array([1.5])
    """

    def __init__(self, fit_intercept: bool = True, gap_rtol: float = 1e-9, relative: bool = False) -> None:
        """Keep the parameters."""
        self.fit_intercept = fit_intercept
        self.gap_rtol = gap_rtol
        self.relative = relative

    def fit(self, X: Any, y: Any, error_weight: Any = None) -> Self:
        """Fit to the rows of X and the values y.

        ``error_weight`` has the numbers e_i by which the errors are multiplied; a row with weight 0 is left out.
        """
        check_flags(relative=self.relative)
        X, y = self._data(X, y)
        weights = None if error_weight is None else as_weights(error_weight, len(y), "error_weight")
        if self.relative and weights is not None:
            raise ValueError("give error_weight or relative=True, not both: relative errors have the weights 1/|y_i|")
        if self.relative:
            weights = relative_weights(y, "y")
        of_ones = 1.0 if weights is None else float(weights.max())
        self.support_ = np.sort(self._solve(chebyshev, X, y, weights, of_ones).active)
        return self


class LpRegressor(_Linear):
    """The linear model that minimises the q-norm of its errors, (sum_i s_i |<x_i, w> + c - y_i|^q)^(1/q), over w and c.

    Parameters
    ----------
    power : float
        The exponent q, at least 2.  2 is least squares; the larger q, the more the largest errors count, and with
        ``float("inf")`` only the largest one does.
    fit_intercept : bool
        Whether to fit the intercept c; otherwise it is 0.
    gap_rtol : float
        The relative gap to certify, ``gap_ / value_``.  If it is not reached, a ConvergenceWarning says which gap was.

    Attributes
    ----------
    coef_, intercept_ : array, float
        w and c.
    value_ : float
        The q-norm of the errors on the training data.
    gap_ : float
        No linear model has a q-norm of the errors below ``value_ - gap_``.
    n_iter_ : int
        Iterations over all stages.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Examples
    --------
    >>> model = LpRegressor(power=4, fit_intercept=False).fit([[1.0], [1.0], [1.0]], [0.0, 0.0, 1.0])
    >>> model.coef_.round(4), bool(model.gap_ <= 1e-8 * model.value_)
    (array([0.4425]), True)
    """

    def __init__(self, power: float = 4.0, fit_intercept: bool = True, gap_rtol: float = 1e-8) -> None:
        """Keep the parameters."""
        self.power = power
        self.fit_intercept = fit_intercept
        self.gap_rtol = gap_rtol

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the rows of X and the values y; a row with weight 2 counts twice, and one with weight 0 not at all.

        Where the power is infinite, rows that count twice change nothing.
        """
        power = inputs.number("power", self.power, least=2.0, finite=False)
        X, y = self._data(X, y)
        weights = None
        if sample_weight is not None:
            weights = check_weights(sample_weight, X)
            there = weights > 0.0
            X, y, weights = X[there], y[there], weights[there]
        if power == math.inf:
            self._solve(chebyshev, X, y, None, 1.0)
        else:
            of_ones = float(len(y) if weights is None else weights.sum()) ** (1.0 / power)
            self._solve(partial(lp_fit, power=power), X, y, weights, of_ones)
        return self


def _design(X: Any, intercept: bool) -> tuple[Any, Array]:
    """X with a column of ones where there is an intercept, and what was taken off its columns.

    Centring keeps a column that varies little beside its mean apart from the ones; and where many models are best, the
    shortest x is then the one with the shortest w.  Of a sparse X nothing is taken off, as that would fill it.
    """
    n, d = X.shape
    if not intercept:
        return X, np.zeros(d)
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack((X, np.ones((n, 1))), format="csr"), np.zeros(d)
    X = X.astype(np.float64, copy=False)
    centre = X.mean(axis=0)
    return np.column_stack((X - centre, np.ones(n))), centre
