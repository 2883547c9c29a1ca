"""The scikit-learn estimators: its own checks, what they minimise, weights, sparse data, pipelines, warnings."""

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("sklearn", minversion="1.6")

from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from hasd.problems._chebyshev import chebyshev
from hasd.problems._lp_fit import lp_fit
from hasd.sklearn import LpRegressor, MinimaxRegressor

with pytest.MonkeyPatch.context() as patch:  # without it the checks of scikit-learn 1.6 refuse to be imported
    patch.setenv("SCIPY_ARRAY_API", "1")
    from sklearn.utils.estimator_checks import parametrize_with_checks

MODELS = {"minimax": MinimaxRegressor, "lp": LpRegressor}
every_model = pytest.mark.parametrize("Model", MODELS.values(), ids=MODELS)
every_intercept = pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 100.0, 5.0, -3.0]
    return X, X @ [1.0, -0.2, 3.0, 0.0] + 7.0 + rng.uniform(-1, 1, 80)


def error(model, r):
    size = np.abs(r)
    return size.max() if isinstance(model, MinimaxRegressor) else np.sum(size**model.power) ** (1 / model.power)


def expected_failures(estimator):
    """Where rows are few, many models have the same largest error: which one is found depends on the rows' order."""
    if getattr(estimator, "power", 0.0) < np.inf:
        return {}
    many = "many models are best, and repeating a row may lead to another one"
    return {f"check_sample_weight_equivalence_on_{kind}_data": many for kind in ("dense", "sparse")}


@parametrize_with_checks(
    [
        MinimaxRegressor(),
        MinimaxRegressor(fit_intercept=False),
        LpRegressor(),
        LpRegressor(power=10.0, fit_intercept=False),
        LpRegressor(power=float("inf")),
    ],
    expected_failed_checks=expected_failures,
)
def test_the_estimators_pass_scikit_learns_own_checks(estimator, check):
    """Mutation: an x that is not the shortest makes weights and repetitions differ where rows are few."""
    check(estimator)


@every_intercept
@every_model
def test_a_model_has_the_error_it_reports_and_that_of_the_direct_fit(Model, intercept, data):
    """Against the problem with the column of ones written out; mutation: intercept without the centre taken back."""
    X, y = data
    model = Model(fit_intercept=intercept).fit(X, y)
    A = np.column_stack((X, np.ones(80))) if intercept else X
    direct = chebyshev(A, y) if Model is MinimaxRegressor else lp_fit(A, y, 4)
    assert error(model, model.predict(X) - y) == pytest.approx(model.value_, rel=1e-9)
    assert model.value_ == pytest.approx(direct.fun, rel=1e-7)
    assert 0.0 <= model.gap_ <= 1e-8 * model.value_
    assert model.value_ - model.gap_ <= direct.fun * (1 + 1e-12)
    assert intercept or model.intercept_ == 0.0
    assert model.coef_.shape == (4,) and model.n_features_in_ == 4 and isinstance(model.n_iter_, int)


def test_support_proves_the_minimax_error(data):
    """The rows of support_ alone have the same least largest error."""
    X, y = data
    model = MinimaxRegressor().fit(X, y)
    on = model.support_
    assert on.size <= 6 and (np.diff(on) > 0).all()
    assert MinimaxRegressor().fit(X[on], y[on]).value_ == pytest.approx(model.value_, rel=1e-8)
    np.testing.assert_allclose(np.abs(model.predict(X[on]) - y[on]), model.value_, rtol=1e-7)


@every_intercept
@every_model
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_matrix, sp.coo_array], ids=["csr", "csc", "coo"])
def test_sparse_is_dense(make, Model, intercept, data):
    X, y = data
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.4, X, 0.0)
    dense, sparse = (Model(fit_intercept=intercept, gap_rtol=1e-11).fit(A, y) for A in (X, make(X)))
    assert sparse.value_ == pytest.approx(dense.value_, rel=1e-10)
    assert error(sparse, sparse.predict(make(X)) - y) == pytest.approx(dense.value_, rel=1e-9)
    if Model is LpRegressor:  # a minimax fit to data with zeros need not be unique
        np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-4, atol=1e-6)


@every_model
def test_sparse_is_not_filled(Model, monkeypatch):
    """Mutation: centre a sparse X.  What the solver is given is sparse and has one entry a row more."""
    seen = []
    solver = "chebyshev" if Model is MinimaxRegressor else "lp_fit"
    original = getattr(sys.modules["hasd.sklearn.regressors"], solver)
    record = lambda A, *args, **kw: (seen.append(A), original(A, *args, **kw))[1]  # noqa: E731
    monkeypatch.setattr(f"hasd.sklearn.regressors.{solver}", record)
    X = sp.random_array((200, 20), density=0.1, random_state=np.random.default_rng(2), format="csr")
    Model().fit(X, np.random.default_rng(3).standard_normal(200))
    assert sp.issparse(seen[0]) and seen[0].nnz == X.nnz + 200


@every_intercept
@pytest.mark.parametrize("power", [2.0, 4.0, 12.0], ids="q={:g}".format)
def test_weights_are_repetitions(power, intercept, data):
    """Mutations: rows times w, not w^(1/q); value_ without the largest weight; rows of weight 0 kept."""
    X, y = data
    counts = np.random.default_rng(4).integers(0, 4, 80)
    weighed = LpRegressor(power, fit_intercept=intercept, gap_rtol=1e-12).fit(X, y, sample_weight=counts)
    repeated = LpRegressor(power, fit_intercept=intercept, gap_rtol=1e-12).fit(
        np.repeat(X, counts, 0), np.repeat(y, counts)
    )
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-5)
    assert weighed.value_ == pytest.approx(repeated.value_, rel=1e-11)
    assert weighed.intercept_ == pytest.approx(repeated.intercept_, rel=1e-5)


def test_weights_are_repetitions_where_many_models_fit():
    """Fewer rows than columns: the same one of them; mutation: an x that is not the shortest."""
    rng = np.random.default_rng(6)
    X, y, counts = rng.standard_normal((5, 9)), rng.standard_normal(5), np.array([1, 4, 2, 1, 3])
    weighed = LpRegressor().fit(X, y, sample_weight=counts)
    repeated = LpRegressor().fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(weighed.coef_, repeated.coef_, rtol=1e-8)


@pytest.mark.parametrize("weights", [-np.ones(80), np.zeros(80), np.ones(3)], ids=["negative", "all zero", "too few"])
def test_negative_all_zero_or_too_few_weights_are_refused(weights, data):
    with pytest.raises(ValueError, match="weight"):
        LpRegressor().fit(*data, sample_weight=weights)


def test_minimax_takes_no_sample_weight(data):
    with pytest.raises(TypeError, match="sample_weight"):
        MinimaxRegressor().fit(*data, sample_weight=np.ones(80))


@every_intercept
def test_sample_weights_of_an_infinite_power_only_leave_rows_out(intercept, data):
    """Repetition does not change a maximum.  Mutation: weights that multiply the errors."""
    X, y = data
    y = np.where(np.arange(80) % 7 == 3, 1e3, y)
    counts = np.where(y == 1e3, 0.0, np.random.default_rng(4).integers(1, 5, 80))
    model = LpRegressor(power=float("inf"), fit_intercept=intercept).fit(X, y, sample_weight=counts)
    there = counts > 0.0
    without = MinimaxRegressor(fit_intercept=intercept).fit(X[there], y[there])
    assert model.value_ == pytest.approx(without.value_, rel=1e-8) and model.value_ < 100.0


@every_intercept
def test_an_infinite_power_is_the_minimax_fit(intercept, data):
    model = LpRegressor(power=float("inf"), fit_intercept=intercept).fit(*data)
    minimax = MinimaxRegressor(fit_intercept=intercept).fit(*data)
    assert model.value_ == pytest.approx(minimax.value_, rel=1e-8) and model.gap_ <= 1e-8 * model.value_
    np.testing.assert_allclose(model.coef_, minimax.coef_, rtol=1e-5)


@every_intercept
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_error_weights_multiply_the_errors(make, intercept, data):
    """Against the linear program of the weighted rows; mutation: error weights ignored, or squared."""
    X, y = data
    e = np.random.default_rng(5).uniform(0.1, 3.0, 80)
    e[11] = 0.0
    model = MinimaxRegressor(fit_intercept=intercept).fit(make(X), y, error_weight=e)
    A = e[:, None] * (np.column_stack((X, np.ones(80))) if intercept else X)
    sides, d = np.vstack((np.column_stack((A, -np.ones(80))), np.column_stack((-A, -np.ones(80))))), A.shape[1]
    cost, bounds = np.append(np.zeros(d), 1.0), [(None, None)] * d + [(0, None)]
    least = linprog(cost, A_ub=sides, b_ub=np.concatenate((e * y, -e * y)), bounds=bounds).fun
    assert model.value_ == pytest.approx(least, rel=1e-7)
    assert np.max(e * np.abs(model.predict(X) - y)) == pytest.approx(model.value_, rel=1e-9)
    assert model.gap_ <= 1e-9 * model.value_ and 11 not in model.support_


def test_relative_errors_are_relative_to_y(data):
    X, y = data
    model = MinimaxRegressor(relative=True).fit(X, y)
    same = MinimaxRegressor().fit(X, y, error_weight=1.0 / np.abs(y))
    assert np.max(np.abs(model.predict(X) / y - 1.0)) == pytest.approx(model.value_, rel=1e-9)
    assert model.value_ == same.value_ and clone(model).relative
    y[5] = 0.0
    with pytest.raises(ValueError, match=r"y must not be 0 for relative errors, but y\[5\] is 0"):
        MinimaxRegressor(relative=True).fit(X, y)
    with pytest.raises(ValueError, match="give error_weight or relative=True, not both"):
        MinimaxRegressor(relative=True).fit(X, y, error_weight=np.ones(80))
    with pytest.raises(ValueError, match=r"error_weight must be at least 0, but error_weight\[2\] is -1"):
        MinimaxRegressor().fit(X, y, error_weight=np.where(np.arange(80) == 2, -1.0, 1.0))


def test_power_two_is_least_squares(data):
    X, y = data
    reference = LinearRegression().fit(X, y)
    model = LpRegressor(power=2).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(reference.intercept_, rel=1e-8)


@every_model
def test_a_column_far_from_zero_is_fitted_with_a_certificate(Model):
    """A year: without centring it and the ones are one direction; mutation: no centring (no certificate to 1e-6).

    The intercept is so large that its rounding, at most 6e-8, counts.
    """
    rng = np.random.default_rng(5)
    year = 1e9 + rng.uniform(0, 50, (60, 1))
    y = 0.5 * (year[:, 0] - 1e9) + rng.uniform(-1, 1, 60)
    model = Model().fit(year, y)
    assert model.coef_[0] == pytest.approx(0.5, abs=0.05)
    assert model.gap_ <= 1e-5 * model.value_


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8, 1e12])
def test_the_gap_bounds_that_of_the_returned_model(offset):
    """In fractions.  Mutation: nothing is charged for the rounding of the intercept."""
    rng = np.random.default_rng(1)
    X, y = offset + rng.standard_normal((40, 3)), rng.standard_normal(40)
    model = MinimaxRegressor().fit(X, y)
    w, c = [Fraction(value) for value in model.coef_.tolist()], Fraction(model.intercept_)
    rows = zip(X.tolist(), y.tolist(), strict=True)
    errors = [abs(sum(a * Fraction(v) for a, v in zip(w, row, strict=True)) + c - Fraction(v)) for row, v in rows]
    centred = chebyshev(np.column_stack((X - X.mean(axis=0), np.ones(40))), y)
    assert 0 < max(errors) - Fraction(centred.lower) <= Fraction(model.gap_)
    assert model.gap_ <= 1e-14 * (1.0 + offset) * 1e3


@every_model
def test_estimators_work_in_pipelines_and_grid_searches(Model, data):
    """Cloned, cross-validated, searched over; mutation: a parameter changed in __init__."""
    X, y = data
    steps = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False), Model())
    name = Model.__name__.lower()
    grid = {f"{name}__power": [2.0, 4.0, 8.0]} if Model is LpRegressor else {f"{name}__fit_intercept": [True, False]}
    search = GridSearchCV(steps, grid, cv=KFold(4), scoring="neg_mean_squared_error", error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.score(X, y) > 0.8
    assert clone(search.best_estimator_[-1]).get_params() == search.best_estimator_[-1].get_params()


@every_model
def test_feature_names_are_kept_and_checked_at_prediction(Model, data):
    pandas = pytest.importorskip("pandas")
    X, y = data
    model = Model().fit(pandas.DataFrame(X, columns=list("abcd")), y)
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame(X, columns=list("dcba")))


@every_model
def test_the_tolerance_is_the_relative_gap_that_is_certified(Model, data):
    model = Model(gap_rtol=1e-3).fit(*data)
    assert model.get_params()["gap_rtol"] == 1e-3 and model.gap_ <= 1e-3 * model.value_
    with pytest.raises(TypeError, match="tol"):
        Model(tol=1e-3)


def test_warns_where_the_certificate_falls_short(data):
    """Mutation: no warning.  Rounding leaves a gap, and nothing certifies to 0."""
    with pytest.warns(ConvergenceWarning, match=r"LpRegressor is within .* of the best fit"):
        LpRegressor(gap_rtol=0.0).fit(*data)


MISSING = """
sys.modules["sklearn"] = None
try:
    import hasd.sklearn
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [("import hasd; print('sklearn' in sys.modules)", "False"), (MISSING, 'pip install "hasd[sklearn]"')],
    ids=["lazy", "missing"],
)
def test_sklearn_is_imported_lazily_and_named_where_it_is_missing(code, said):
    done = subprocess.run([sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=True)
    assert said in done.stdout


@every_model
def test_masked_entries_are_refused_by_name(Model):
    """scikit-learn itself reads what lies under a mask."""
    X, y = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
    model = Model().fit(X, np.ma.masked_array(y))
    with pytest.raises(ValueError, match=r"X must have no masked entries, but entry \(3, 1\) is masked"):
        model.predict(np.ma.masked_equal(X, 49.0))
    with pytest.raises(ValueError, match=r"X must have no masked entries, but entry \(3, 1\) is masked"):
        Model().fit(np.ma.masked_equal(X, 49.0), y)
    with pytest.raises(ValueError, match="y must have no masked entries, but entry 4 is masked"):
        Model().fit(X, np.ma.masked_equal(y, 4.0))


def test_masked_weights_are_refused_by_name():
    X, y = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
    with pytest.raises(ValueError, match="sample_weight must have no masked entries, but entry 4 is masked"):
        LpRegressor().fit(X, y, sample_weight=np.ma.masked_equal(y, 4.0))
