import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mixedals.metrics import Metric, metric_of, rmse, roc_auc


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2).filter(
        lambda rows: len({positive for positive, _ in rows}) == 2
    )
)
def test_roc_auc_is_scikit_learns(rows):
    ratings, scores = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    assert roc_auc(ratings, scores) == pytest.approx(roc_auc_score(ratings, scores))


@pytest.mark.parametrize("ratings", [[1, 2, 3], [1, 1], []])
def test_roc_auc_needs_two_values(ratings):
    with pytest.raises(ValueError, match=r"Binarise"):
        roc_auc(np.array(ratings, np.float32), np.zeros(len(ratings), np.float32))


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint8, np.float64])
def test_ratings_may_be_of_any_type_of_number(dtype):
    ratings = np.array([0, 0, 1, 1], dtype)
    assert roc_auc(ratings, [0.1, 0.4, 0.35, 0.8]) == 0.75
    assert rmse(ratings, [0, 0, 1, 0]) == 0.5


@pytest.mark.parametrize("metric", [roc_auc, rmse])
def test_nan_and_too_few_predictions_are_errors(metric):
    with pytest.raises(ValueError, match=r"2 of 3 predictions are NaN.*leave them out"):
        metric([0, 1, 1], [0.5, np.nan, np.nan])
    with pytest.raises(ValueError, match="1 of 2 ratings are NaN"):
        metric([0, np.nan], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"a prediction for each rating.*\(3,\).*\(2,\)"):
        metric([0, 1, 1], [0.5, 0.2])


def test_rmse_needs_ratings():
    with pytest.raises(ValueError, match="there are none"):
        rmse([], [])


def test_rmse():
    assert rmse(np.array([1, 2], np.float32), np.array([1, 4], np.float32)) == pytest.approx(2**0.5)


def test_better():
    assert metric_of("roc_auc").better(0.9, 0.8)
    assert metric_of("rmse").better(0.8, 0.9)
    assert not Metric("m", rmse).better(float("nan"), 0.1)
