"""Logistic regression with a certificate.

Problem.    min over w, c of C sum_i s_i loss_i(Xw + c) + 1/2 ||w||^2, the problem of scikit-learn's LogisticRegression:
            the logistic loss of two classes, the multinomial one of more, and no penalty on the intercepts c.
Algorithm.  `hasd.minimize` on `hasd.objectives.Logistic` or `Multinomial`, which minimise over c at every w: the
            function of w that is left is strongly convex, and so the gap is certified.
Guarantee.  ``value_ - gap_`` is a lower bound on the objective of every w and c, with rounding counted.

>>> import numpy as np
>>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
>>> model = LogisticClassifier().fit(X, ["no", "no", "yes", "yes"])
>>> model.predict([[0.4], [2.6]]).tolist(), bool(model.gap_ <= 1e-6 * model.value_)
(['no', 'yes'], True)
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import scipy.sparse
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import _inputs as inputs
from .._checks import check_flags
from .._math.arrays import refuse_masked
from .._math.doubt import EPS
from .._minimize import minimize
from .._run.report import Result
from .._run.status import Status
from ..objectives import Logistic, Multinomial
from ._linear import Array, SparseEstimator, check_weights, score_rounding


class LogisticClassifier(ClassifierMixin, SparseEstimator):
    """Logistic regression: minimises C sum_i s_i loss_i + 1/2 ||w||^2 over the coefficients w and the intercepts.

    This is the problem of ``sklearn.linear_model.LogisticRegression``, with the same C, and with a certificate of how
    well it was solved.

    Parameters
    ----------
    C : float
        The weight of the losses beside the penalty 1/2 ||w||^2, positive and finite.
    fit_intercept : bool
        Whether to fit an intercept, on which there is no penalty; otherwise it is 0.
    class_weight : None, "balanced" or dict
        What the rows of each class are weighted by beside ``sample_weight``, as everywhere in scikit-learn.
    gap_rtol : float
        The relative gap to certify, ``gap_ / value_``.  If it is not reached, a ConvergenceWarning says which gap was.
    max_iter : int
        The most iterations.

    Attributes
    ----------
    classes_ : array
        The labels of the rows whose weight is not 0, sorted.
    coef_, intercept_ : arrays
        A row and an entry for each class; for two classes one, that of the second class.
    value_ : float
        The objective, C sum_i s_i loss_i + 1/2 ||w||^2.
    gap_ : float
        No coefficients and intercepts have an objective below ``value_ - gap_``.  The objective of ``coef_`` and
        ``intercept_``, computed without rounding, is at most ``gap_`` above the least one.
    n_iter_ : int
        Iterations.
    n_features_in_, feature_names_in_ : int, array
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticClassifier().fit(X, y)
    >>> round(model.score(X, y), 2), model.coef_.shape, round(model.value_, 3), bool(model.gap_ <= 1e-4)
    (0.97, (3, 4), 28.886, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        gap_rtol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        """Keep the parameters."""
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.gap_rtol = gap_rtol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to the rows of X and the labels y; a row with weight 2 counts twice, and one with weight 0 not at all."""
        C = inputs.number("C", self.C, least=0.0, strict=True)
        rtol = inputs.number("gap_rtol", self.gap_rtol, least=0.0)
        check_flags(fit_intercept=self.fit_intercept)
        X, labels, weights = self._data(X, y, sample_weight)
        mass = float(len(labels)) if weights is None else float(weights.sum())
        centre = np.zeros(X.shape[1])
        if self.fit_intercept and not scipy.sparse.issparse(X):
            X, centre = _without_centre(X)
        two = len(self.classes_) == 2
        Objective, y = (Logistic, 2.0 * labels - 1.0) if two else (Multinomial, labels)
        f = Objective(X, y, 1.0 / (C * mass), weights, bool(self.fit_intercept))
        res = _minimize_to(f, rtol, self.max_iter)
        self.coef_ = res.x.reshape(X.shape[1], -1).T.copy()
        best = np.reshape(f.best_intercept(res.x), -1)
        self.intercept_ = best - self.coef_ @ centre
        self.n_iter_, self.value_ = int(res.nit), C * mass * float(res.fun)
        # The true value at res.x differs from `known` by upper - known at most, in either direction.
        known, upper, lower = res.certificate.cut.f, res.certificate.upper, res.lower
        if upper - lower > rtol * res.fun:
            lower = max(lower, known - (upper - known) - f.duality_gap(res.x))
        upper = max(upper, res.fun)  # the gap is of value_, too, which may be known to fewer digits
        moved = 0.0
        if centre.any():  # the proof is about columns that were rounded, and intercepts that were not
            together, each = score_rounding(X, self.coef_, centre, best)
            moved = _change_of_value(X @ self.coef_.T + best, labels, weights, together) + 4.0 * each
        self.gap_ = C * mass * (float(upper - lower) + moved) + 4.0 * EPS * self.value_
        if not self.gap_ <= rtol * self.value_:
            # The gap was met before rounding was added, or at least in the run, which its callback then ended.
            is_rounding = upper - lower <= rtol * res.fun or res.status == Status.CALLBACK.code
            why = "columns are far from 0, and rounding counts" if is_rounding else res.message
            short = f"within {self.gap_:.3g} of the best fit, which is not what gap_rtol asks for: {why}"
            warnings.warn(f"LogisticClassifier is {short}", ConvergenceWarning, stacklevel=2)
        return self

    def _data(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        """The rows that count, the numbers of their classes, and their weights, None where all are 1."""
        refuse_masked(X, "X")
        refuse_masked(y, "y")
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        is_whole = y.dtype.kind in "biu"  # whole numbers are labels in any case, and this check takes a while
        if not is_whole:
            check_classification_targets(y)
        weights: Any = None
        if sample_weight is not None or self.class_weight is not None:
            X, y, weights = _rows_with_weight(X, y, check_weights(sample_weight, X))
        if self.class_weight is not None:
            X, y, weights = _rows_with_weight(X, y, weights * _weights_by_class(self.class_weight, y, weights))
        self.classes_, labels = np.unique(y, return_inverse=True)
        if is_whole and 2 * len(self.classes_) > len(y):
            check_classification_targets(y)  # which warns where nearly every row is a class of its own
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold at least two classes, got one class only: {self.classes_}")
        return X, labels, weights

    def decision_function(self, X: Any) -> Array:
        """Xw + c: a column for each class, one vector for two classes."""
        check_is_fitted(self)
        refuse_masked(X, "X")
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T + self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Array:
        """The likeliest class for every row of X."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0.0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes, a column for each."""
        scores = self.decision_function(X)
        return expit(np.column_stack((-scores, scores))) if scores.ndim == 1 else softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Their logarithms."""
        scores = self.decision_function(X)
        return log_expit(np.column_stack((-scores, scores))) if scores.ndim == 1 else log_softmax(scores, axis=1)


def _rows_with_weight(X: Any, y: Array, weights: Array) -> tuple[Any, Array, Array]:
    """The rows whose weight is not 0."""
    there = weights > 0.0
    return (X, y, weights) if there.all() else (X[there], y[there], weights[there])


def _without_centre(X: Array) -> tuple[Array, Array]:
    """The columns less their means, and the means: beside an intercept these matter for rounding alone.

    So they stay where none is larger than the standard deviation of its column.
    """
    with np.errstate(over="ignore"):
        centre = X.mean(axis=0)
        moved = X - centre
        squares = np.einsum("ij,ij->j", moved, moved)
    if np.isfinite(squares).all() and (np.abs(centre) <= np.sqrt(squares / len(X))).all():
        return X, np.zeros(len(centre))
    return moved, centre


def _weights_by_class(class_weight: Any, y: Array, weights: Array) -> Array:
    """What the rows are weighted by for their classes; balanced classes have the same weight in all."""
    classes, labels = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(labels, weights=weights)
        return (counts.sum() / (len(classes) * counts))[labels]
    each = np.asarray(compute_class_weight(class_weight, classes=classes, y=y), dtype=np.float64)
    for name, weight in zip(classes.tolist(), each.tolist(), strict=True):
        inputs.number(f"class_weight[{name!r}]", weight, least=0.0)
    return each[labels]


def _change_of_value(scores: Array, labels: Array, weights: Array | None, shift: float) -> float:
    """What the mean loss changes by, at most, where the intercepts are moved by up to the shift.

    Its slope in the intercepts, which is about 0 at the best ones, and half its curvature, which is at most 1.
    """
    p = expit(scores[:, 0]) - labels if scores.shape[1] == 1 else softmax(scores, axis=1)
    if p.ndim == 2:
        p[np.arange(len(labels)), labels] -= 1.0
    slope = float(np.sum(np.abs(np.average(p, axis=0, weights=weights))))
    return 2.0 * (slope + EPS * len(labels)) * shift + shift * shift


def _minimize_to(f: Logistic | Multinomial, rtol: float, maxiter: int) -> Result:
    """A run from 0 that ends where the certified gap is so small beside the value."""

    def stop(*, intermediate_result: Result) -> None:
        if intermediate_result.gap <= rtol * intermediate_result.fun:
            raise StopIteration

    return minimize(f, np.zeros(f.dimension), gap_tol=0.0, maxiter=maxiter, callback=stop, trace=False)
