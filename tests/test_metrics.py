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
    with pytest.raises(ValueError, match=r"binarise"):
        roc_auc(np.array(ratings, np.float32), np.zeros(len(ratings), np.float32))


def test_rmse():
    assert rmse(np.array([1, 2], np.float32), np.array([1, 4], np.float32)) == pytest.approx(2**0.5)


def test_better():
    assert metric_of("roc_auc").better(0.9, 0.8)
    assert metric_of("rmse").better(0.8, 0.9)
    assert not Metric("m", rmse).better(float("nan"), 0.1)
