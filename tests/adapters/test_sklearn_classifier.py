"""The logistic classifier: scikit-learn's own checks, agreement with LogisticRegression, and the certified gap."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn", minversion="1.6")

from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.multiclass import check_classification_targets

from hasd import minimize
from hasd.objectives import _intercept
from hasd.sklearn import LogisticClassifier, classifier

with pytest.MonkeyPatch.context() as patch:  # without it the checks of scikit-learn 1.6 refuse to be imported
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils.estimator_checks import parametrize_with_checks

every_number_of_classes = pytest.mark.parametrize("classes", [2, 4], ids=["two classes", "four classes"])
every_kind_of_data = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
every_intercept = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


def data(classes, n=120, d=5):
    """Rows of classes that overlap and are not equally frequent, columns that are not centred, and weights."""
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((n, d)) * [1.0, 3.0, 0.3, 1.0, 1.0] + [0.0, 2.0, -1.0, 0.5, 0.0]
    scores = (X - X.mean(axis=0)) @ rng.standard_normal((d, classes)) + np.linspace(0.0, 1.0, classes)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), rng.uniform(0.2, 3.0, n)


def objective(model, X, y, weights=1.0, coef=None, intercept=None):
    """C sum_i s_i loss_i + 1/2 ||w||^2 in the words of scikit-learn, independent of hasd."""
    coef, intercept = (model.coef_, model.intercept_) if coef is None else (coef, intercept)
    scores = X @ coef.T + intercept
    scores = np.hstack((np.zeros((len(X), 1)), scores)) if scores.shape[1] == 1 else scores
    losses = -log_softmax(scores, axis=1)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return model.C * np.sum(weights * losses) + 0.5 * np.sum(coef**2)


def reference(X, y, weights=None, **settings):
    """LogisticRegression to the last digits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last digits are not reached by its own measure
        return LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=500, **settings).fit(X, y, weights)


def known_failures(estimator):
    """Without an intercept no weights of classes make all predictions one class, as this check asks."""
    reason = "LogisticRegression(fit_intercept=False) fails it too"
    return {} if estimator.fit_intercept else {"check_class_weight_classifiers": reason}


@parametrize_with_checks(
    [LogisticClassifier(), LogisticClassifier(fit_intercept=False), LogisticClassifier(C=0.01)],
    expected_failed_checks=known_failures,
)
def test_the_classifier_passes_scikit_learns_own_checks(estimator, check):
    check(estimator)


@every_intercept
@every_number_of_classes
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0], ids="C={:g}".format)
def test_coefficients_are_those_of_logistic_regression(C, classes, intercept):
    """Mutations: a ridge on the intercept; 1/C without the number of rows; the centre not taken back."""
    X, y, weights = data(classes)
    model = LogisticClassifier(C=C, fit_intercept=intercept, gap_rtol=1e-12).fit(X, y, weights)
    other = reference(X, y, weights, C=C, fit_intercept=intercept)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        model.intercept_ - model.intercept_.mean() * (classes > 2),
        other.intercept_ - other.intercept_.mean() * (classes > 2),
        rtol=1e-5,
        atol=1e-5,
    )
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


@every_intercept
@every_number_of_classes
@pytest.mark.parametrize("rtol", [1e-1, 1e-3, 1e-6, 1e-10], ids="rtol={:g}".format)
def test_gap_bounds_the_true_gap_with_intercept_and_weights(rtol, classes, intercept):
    """Against an optimum of scikit-learn's.  Mutations: a gap without C or without the weights; half of the gap."""
    X, y, weights = data(classes)
    model = LogisticClassifier(C=2.0, fit_intercept=intercept, gap_rtol=rtol).fit(X, y, weights)
    other = reference(X, y, weights, C=2.0, fit_intercept=intercept)
    best = objective(model, X, y, weights, other.coef_, other.intercept_)
    value = objective(model, X, y, weights)
    assert value == pytest.approx(model.value_, rel=1e-12)
    assert 0.0 < model.gap_ <= rtol * model.value_
    assert value - best <= model.gap_ + 1e-12 * value


def objective_in_sixty_digits(X, y, C=1.0):
    """1/2 ||w||^2 plus C times the losses for labels 0 and 1, its slope and its Hessian at w, all in mpmath."""
    rows, signs = [[mpmath.mpf(float(entry)) for entry in row] for row in X], [2 * int(label) - 1 for label in y]
    d, C = len(rows[0]), mpmath.mpf(float(C))

    def at(w):
        value, slope, hessian = mpmath.fdot(w, w) / 2, list(w), mpmath.eye(d)
        for row, sign in zip(rows, signs, strict=True):
            z = sign * mpmath.fdot(row, w)
            p = 1 / (1 + mpmath.exp(z))
            value += C * mpmath.log1p(mpmath.exp(-z))
            for i in range(d):
                slope[i] -= C * sign * p * row[i]
                for j in range(d):
                    hessian[i, j] += C * p * (1 - p) * row[i] * row[j]
        return value, slope, hessian

    return at


def value_and_least(at, w):
    """The objective at w, and its least value, by Newton's method in mpmath's precision."""
    w = [mpmath.mpf(float(entry)) for entry in w]
    value = at(w)[0]
    for _ in range(40):
        _, slope, hessian = at(w)
        step = mpmath.lu_solve(hessian, mpmath.matrix(slope))
        w = [entry - step[i] for i, entry in enumerate(w)]
        if mpmath.norm(step) < 1e-40:
            break
    least, slope, _ = at(w)
    assert mpmath.norm(slope) < 1e-30
    return value, least


@every_kind_of_data
def test_no_model_is_below_the_bound_where_products_cancel(sparse):
    """Columns of 1e8 and noise, which nothing centres.  Mutation: the duality gap without what the value may be off by.

    f* is found by Newton's method in sixty digits.
    """
    found = []
    for seed in range(345, 357):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 20))
        X, y = rng.standard_normal((n, 2)) + 1e8, np.arange(n) % 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LogisticClassifier(fit_intercept=False).fit(sp.csr_array(X) if sparse else X, y)
        with mpmath.workdps(60):
            value, least = value_and_least(objective_in_sixty_digits(X, y), model.coef_[0])
            found.append((model.value_ - model.gap_ - least, value - least - model.gap_))
    assert all(below <= 0 and beyond <= 0 for below, beyond in found)


@pytest.mark.parametrize("seed", range(25))
def test_gap_bounds_the_true_gap_whatever_digits_the_value_has(seed):
    """A certificate may be of a value with more digits than value_.  Mutation: gap_ counted from that value alone."""
    rng = np.random.default_rng(seed)
    n, C, rtol = int(rng.integers(4, 12)), 10.0 ** rng.integers(-4, 3), float(rng.choice([1e-6, 1e-9, 1e-12]))
    X, y = rng.standard_normal((n, 2)) + 10.0 ** rng.integers(3, 10), np.arange(n) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticClassifier(C=C, fit_intercept=False, gap_rtol=rtol).fit(X, y)
    with mpmath.workdps(60):
        value, least = value_and_least(objective_in_sixty_digits(X, y, C), model.coef_[0])
        assert model.gap_ >= 0.0
        assert mpmath.mpf(model.value_) - mpmath.mpf(model.gap_) <= least
        assert value - least <= mpmath.mpf(model.gap_)


@every_number_of_classes
def test_a_curvature_that_f_does_not_have_makes_the_gap_false(classes, monkeypatch):
    """The mutation that shows that the bound above can fail: the run is told of two hundred times the ridge."""
    X, y, weights = data(classes)
    best = LogisticClassifier(C=2.0, gap_rtol=1e-12).fit(X, y, weights).value_
    monkeypatch.setattr(classifier, "minimize", lambda f, *args, **kw: minimize(f, *args, **kw, mu=200.0 * f.ridge))
    model = LogisticClassifier(C=2.0, gap_rtol=0.5).fit(X, y, weights)
    assert model.value_ - model.gap_ > best * (1.0 + 1e-3)


def test_a_search_for_the_intercept_that_is_given_up_makes_the_gap_false(monkeypatch):
    """Mutation: the first intercept is taken for the best one, and the slope is that of the next step."""
    X, y, weights = data(2)
    best = LogisticClassifier(C=2.0, gap_rtol=1e-12).fit(X, y, weights).value_
    monkeypatch.setattr(_intercept, "NEAR", 1e12)
    monkeypatch.setattr(_intercept, "EPS", 1e12)
    monkeypatch.setattr(_intercept.InterceptLoss, "doubt", lambda self, *at: self.inner.doubt(*at))
    monkeypatch.setattr(_intercept.InterceptLoss, "image_doubt", lambda self, size: 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticClassifier(C=2.0).fit(X, y, weights)
    assert model.value_ - model.gap_ > best * (1.0 + 1e-6)


@every_intercept
@every_number_of_classes
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix], ids=["csr", "csc"])
def test_sparse_is_dense(make, classes, intercept):
    X, y, weights = data(classes)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
    dense, sparse = (
        LogisticClassifier(fit_intercept=intercept, gap_rtol=1e-12).fit(A, y, weights) for A in (X, make(X))
    )
    assert sparse.value_ == pytest.approx(dense.value_, rel=1e-11)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(sparse.decision_function(make(X)), dense.decision_function(X), rtol=1e-4, atol=1e-4)


@every_number_of_classes
def test_sparse_is_not_filled(classes, monkeypatch):
    """Mutation: centre a sparse X.  What is multiplied is the X that was given, entry for entry."""
    seen = []
    name = "Logistic" if classes == 2 else "Multinomial"
    original = getattr(classifier, name)
    monkeypatch.setattr(classifier, name, lambda A, *rest: (seen.append(A), original(A, *rest))[1])
    X = sp.random_array((200, 20), density=0.1, random_state=np.random.default_rng(2), format="csr")
    LogisticClassifier().fit(X, np.arange(200) % classes)
    assert sp.issparse(seen[0]) and seen[0].nnz == X.nnz


@every_number_of_classes
def test_weights_are_repetitions(classes):
    """Mutations: no weights in the ridge's share; rows of weight 0 kept."""
    X, y, _ = data(classes)
    counts = np.random.default_rng(4).integers(0, 4, len(y))
    weighed = LogisticClassifier(gap_rtol=1e-12).fit(X, y, sample_weight=counts)
    repeated = LogisticClassifier(gap_rtol=1e-12).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    assert weighed.value_ == pytest.approx(repeated.value_, rel=1e-11)
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)


@every_number_of_classes
@pytest.mark.parametrize("by", ["balanced", {0: 3.0, 1: 0.5}], ids=["balanced", "by number"])
def test_class_weights_are_those_of_scikit_learn(by, classes):
    X, y, weights = data(classes)
    by = by if by == "balanced" else by | dict.fromkeys(range(2, classes), 1.0)
    model = LogisticClassifier(class_weight=by, gap_rtol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference(X, y, class_weight=by).coef_, rtol=1e-5, atol=1e-6)
    both = LogisticClassifier(class_weight="balanced", gap_rtol=1e-12).fit(X, y, weights)
    mass = np.bincount(y, weights=weights)
    product = LogisticClassifier(gap_rtol=1e-12).fit(X, y, weights * (mass.sum() / (classes * mass))[y])
    np.testing.assert_allclose(both.coef_, product.coef_, rtol=1e-7, atol=1e-9)


def test_a_class_without_weight_is_no_class():
    X, y, _ = data(4)
    model = LogisticClassifier().fit(X, y, sample_weight=(y != 2).astype(float))
    assert model.classes_.tolist() == [0, 1, 3] and model.coef_.shape == (3, 5)
    with pytest.raises(ValueError, match="at least two classes, got one class only"):
        LogisticClassifier().fit(X, y, sample_weight=(y == 2).astype(float))


@every_number_of_classes
def test_columns_far_from_zero_are_fitted_with_a_certificate(classes):
    """A year: mutation: no centring (rounding hides the gap)."""
    X, y, _ = data(classes)
    near, far = (LogisticClassifier().fit(X + np.array([shift, 0.0, 0.0, 0.0, 0.0]), y) for shift in (0.0, 2.0**30))
    assert far.value_ == pytest.approx(near.value_, rel=1e-6)
    assert far.gap_ <= 1e-6 * far.value_


@every_number_of_classes
def test_one_zero_in_a_column_does_not_keep_it_far_from_zero(classes):
    """As where a missing value was written as 0."""
    X, y, _ = data(classes)
    X = X + 1e4
    X[np.arange(5), np.arange(5)] = 0.0
    assert classifier._without_centre(X)[1].all()
    model = LogisticClassifier().fit(X, y)
    assert model.gap_ <= 1e-6 * model.value_


def test_columns_near_zero_stay_where_they_are():
    X, _, _ = data(2)
    stayed, centre = classifier._without_centre(X - X.mean(axis=0))
    assert not centre.any()
    moved, centre = classifier._without_centre(X + 10.0)
    np.testing.assert_allclose(moved, stayed, atol=1e-12)
    np.testing.assert_allclose(centre, X.mean(axis=0) + 10.0)


def test_columns_whose_sum_overflows_are_refused():
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="must be finite"):
        LogisticClassifier().fit(np.full((4, 1), 1.7e308) * [[1.0], [1.0], [1.0], [-1.0]], [0, 1, 0, 1])


@pytest.mark.parametrize("dtype", [int, float])
def test_warns_as_scikit_learn_does_where_every_row_is_a_class_of_its_own(dtype):
    """Its oldest supported version does not.  Mutation: whole numbers are never checked."""
    X, _, _ = data(2)
    y = np.arange(30, dtype=dtype)
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        check_classification_targets(y)
    with warnings.catch_warnings(record=True) as ours:
        warnings.simplefilter("always")
        LogisticClassifier().fit(X[:30], y)
    assert {str(one.message) for one in ours} == {str(one.message) for one in theirs}


@every_number_of_classes
def test_classes_that_can_be_told_apart_are_fitted_at_any_C(classes):
    """Separable data: without a penalty there is no best model; here the penalty is small."""
    X, y, _ = data(classes)
    X = np.column_stack((X, 5.0 * np.eye(classes)[y]))
    model = LogisticClassifier(C=1e6).fit(X, y)
    assert model.score(X, y) == 1.0 and model.gap_ <= 1e-6 * model.value_


def test_warns_where_the_certificate_falls_short():
    """Mutation: no warning.  Rounding leaves a gap, and nothing certifies to 0."""
    X, y, _ = data(2)
    with pytest.warns(ConvergenceWarning, match=r"LogisticClassifier is within .* of the best fit"):
        model = LogisticClassifier(gap_rtol=0.0).fit(X, y)
    assert 0.0 < model.gap_ <= 1e-12 * model.value_
    with pytest.warns(ConvergenceWarning, match="maxiter|iterations"):
        LogisticClassifier(max_iter=1).fit(X, y)


@pytest.mark.parametrize("C", [0.0, -1.0, np.inf, np.nan])
def test_a_C_that_is_not_positive_and_finite_is_refused(C):
    with pytest.raises(ValueError, match="C must be"):
        LogisticClassifier(C=C).fit(*data(2)[:2])


@pytest.mark.parametrize("weight", [-5.0, float("nan"), float("inf")])
def test_a_class_weight_that_is_no_weight_is_refused_by_name(weight):
    X, y, _ = data(3)
    with pytest.raises(ValueError, match=r"^class_weight\[1\] must be"):
        LogisticClassifier(class_weight={0: 1.0, 1: weight, 2: 1.0}).fit(X, y)


def test_fit_intercept_must_be_true_or_false():
    X, y, _ = data(2)
    with pytest.raises(TypeError, match="fit_intercept must be True or False, got 'no'"):
        LogisticClassifier(fit_intercept="no").fit(X, y)


def test_the_classifier_works_in_pipelines_and_grid_searches():
    X, y, _ = data(4)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticClassifier()),
        {"logisticclassifier__C": [0.1, 1.0]},
        cv=3,
        scoring="neg_log_loss",
        error_score="raise",
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert clone(search.best_estimator_[-1]).get_params() == search.best_estimator_[-1].get_params()


def test_masked_entries_are_refused_by_name():
    """scikit-learn itself reads what lies under a mask."""
    X, y = np.arange(12.0).reshape(6, 2) ** 2, np.array([0, 1, 0, 1, 4, 1])
    with pytest.raises(ValueError, match=r"X must have no masked entries, but entry \(3, 1\) is masked"):
        LogisticClassifier().fit(np.ma.masked_equal(X, 49.0), y)
    with pytest.raises(ValueError, match="y must have no masked entries, but entry 4 is masked"):
        LogisticClassifier().fit(X, np.ma.masked_equal(y, 4))
    with pytest.raises(ValueError, match=r"X must have no masked entries, but entry \(3, 1\) is masked"):
        LogisticClassifier().fit(X, y).predict(np.ma.masked_equal(X, 49.0))
