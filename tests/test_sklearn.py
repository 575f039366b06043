"""scikit-learn's own tools and checks."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import make_scorer, roc_auc_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from mixedals import Interactions, MixedALS, PopularitySizing
from mixedals.metrics import roc_auc


class FirstTwoColumns(MixedALS):
    """The checks' tables have any number of columns: of more than two it takes the first two."""

    def fit(self, X, y=None):
        return super().fit(first_two(X), y)

    def predict(self, users, items=None, **options):
        return super().predict(first_two(users) if items is None else users, items, **options)


def first_two(X):
    if hasattr(X, "iloc") and X.shape[1] > 2:
        return X.iloc[:, :2]
    if issparse(X):
        return X
    array = np.asarray(X)
    return array[:, :2] if array.ndim == 2 and array.shape[1] > 2 else X


TWICE = "its table has the same pair twice, which is an error here"
EXPECTED_FAILURES = {
    "check_complex_data": "has one column, which is what the error says first",
    "check_estimators_empty_data_messages": "no column isn't two: the error has other words",
    "check_fit2d_1feature": "one column isn't two: the error has other words",
    "check_estimators_nan_inf": "a missing id is refused, but infinity is an id like any other",
    "check_estimators_dtypes": TWICE,
    "check_positive_only_tag_during_fit": TWICE,
    "check_n_features_in_after_fitting": "the adapter takes tables of any width",
    "check_parameters_default_constructible": "the default sizing is an object, an immutable one",
}


@parametrize_with_checks(
    [FirstTwoColumns(metric="rmse", n_threads=1, projection="padded", reg=0.01)],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table(stars) -> tuple[pd.DataFrame, np.ndarray]:
    frame = stars.to_frame()
    X = pd.DataFrame({"userId": frame["user"], "movieId": frame["item"]})
    return X, frame["rating"].to_numpy()


def test_score_is_the_metric_greater_is_better(stars, likes, table):
    X, y = table
    model = MixedALS(iterations=3, metric="rmse").fit(X, y)
    expected = -root_mean_squared_error(y, model.predict(X))
    assert model.score(X, y) == pytest.approx(expected)
    assert model.score(stars) == pytest.approx(expected)
    strange = X.assign(userId=-1)
    mean = np.full(len(y), y.mean())
    assert model.score(strange, y) == pytest.approx(-root_mean_squared_error(y, mean))
    model = MixedALS(iterations=3).fit(likes)
    pairs = likes.to_frame()
    assert model.score(likes) == roc_auc(
        pairs["rating"].to_numpy(), model.predict(pairs["user"], pairs["item"])
    )


@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "list", "object array"])
def test_tables_of_all_kinds_are_the_same(table, kind):
    X, y = table
    of_kind = {
        "pandas": X,
        "polars": pl.DataFrame({name: X[name].to_numpy() for name in X}),
        "array": X.to_numpy(),
        "list": X.to_numpy().tolist(),
        "object array": X.to_numpy().astype(object),
    }[kind]
    model = MixedALS(iterations=2, metric="rmse")
    expected = clone(model).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(of_kind, y).predict(of_kind), expected)
    assert model.n_features_in_ == 2


def test_names_must_be_those_of_fit(table, stars):
    X, y = table
    model = MixedALS(iterations=1).fit(X, y)
    assert model.feature_names_in_.tolist() == ["userId", "movieId"]
    with pytest.raises(ValueError, match=r"expected the columns \['userId', 'movieId'\]"):
        model.predict(X[["movieId", "userId"]])
    model.predict(X.to_numpy())
    model.fit(stars).predict(X[["movieId", "userId"]])  # no names to hold to


def test_ratings_are_needed(table):
    X, y = table
    with pytest.raises(ValueError, match="the target y is None"):
        MixedALS().fit(X)
    with pytest.raises(ValueError, match="differ in length"):
        MixedALS().fit(X, y[:-1])
    with pytest.warns(DataConversionWarning):
        MixedALS(iterations=1).fit(X, y[:, None])
    with pytest.raises(TypeError, match=r"from_matrix"):
        MixedALS().fit(csr_array(X.to_numpy()), y)


def test_grid_search(table):
    X, y = table
    grid = {
        "sizing": [PopularitySizing(0.2), PopularitySizing(1.0)],
        "reg": [0.01, 5.0],
        "dims": [2, (2, 4)],
    }
    folds = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(MixedALS(iterations=3, metric="rmse"), grid, cv=folds).fit(X, y)
    assert search.best_params_["reg"] == 5.0
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ == pytest.approx(
        cross_val_score(clone(search.best_estimator_), X, y, cv=folds).mean()
    )
    search.predict(X)


def test_scorers_of_scikit_learn(likes):
    frame = likes.to_frame()
    X, y = frame.select("user", "item").to_numpy(), frame["rating"].to_numpy()
    folds = KFold(3, shuffle=True, random_state=0)
    model = MixedALS(iterations=3)
    assert is_regressor(model)
    assert len(cross_val_predict(model, X, y, cv=folds)) == len(y)
    assert np.isfinite(cross_val_score(model, X, y, cv=folds)).all()
    model.fit(X, y)
    assert make_scorer(roc_auc_score)(model, X, y) == pytest.approx(model.score(X, y))


def test_pipeline(table):
    X, y = table
    wide = X.assign(genre="drama", year=1999)
    for output in ("default", "pandas", "polars"):
        choose = ColumnTransformer(
            [("ids", "passthrough", ["userId", "movieId"])], verbose_feature_names_out=False
        ).set_output(transform=output)
        pipeline = make_pipeline(choose, MixedALS(iterations=2, metric="rmse"))
        expected = MixedALS(iterations=2, metric="rmse").fit(X, y).predict(X)
        np.testing.assert_array_equal(pipeline.fit(wide, y).predict(wide), expected)
        assert pipeline.score(wide, y) < 0
    grid = {"mixedals__reg": [0.1, 1.0]}
    GridSearchCV(pipeline, grid, cv=KFold(2, shuffle=True, random_state=0)).fit(wide, y)


def test_strings_and_numbers_side_by_side(table):
    X, y = table
    mixed = X.assign(userId="u" + X["userId"].astype(str))
    model = MixedALS(iterations=2).fit(mixed.to_numpy(), y)
    assert model.user_ids_[0] == "u1"
    assert model.item_ids_.dtype.kind == "i"
    assert isinstance(Interactions.from_frame(mixed.assign(rating=y)), Interactions)
