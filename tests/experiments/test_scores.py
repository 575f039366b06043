import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mixedals import MixedALS
from mixedals.experiments import Protocol
from mixedals.experiments.scores import N_GROUPS, Scorer, auc_without_each


@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3), st.integers(0, 2)), min_size=2).filter(
        lambda rows: len({positive for positive, *_ in rows}) == 2
    )
)
def test_auc_without_each_group(rows):
    ratings, scores, groups = (np.array(column) for column in zip(*rows, strict=True))
    found = auc_without_each(ratings.astype(np.float32), scores.astype(np.float32), groups, 3)
    for group in range(3):
        left = groups != group
        if len(np.unique(ratings[left])) == 2:
            assert found[group] == pytest.approx(roc_auc_score(ratings[left], scores[left]))
        else:
            assert np.isnan(found[group])


def test_scores_of_a_model(stars):
    parts = Protocol(stars).parts
    model = MixedALS(iterations=10, reg=1).fit(parts.train, validation=parts.validation)
    test = parts.test.to_frame()
    ratings = test["rating"].to_numpy()
    predicted = model.predict(test["user"], test["item"])
    scores = Scorer(parts).detailed_scores(model)
    assert scores.test_auc == pytest.approx(roc_auc_score(ratings, predicted))
    assert scores.test_rmse == pytest.approx(np.sqrt(np.mean((ratings - predicted) ** 2)))
    assert scores.validation_auc == model.history_["metric"].max()
    assert scores.n_parameters == model.n_parameters_
    assert [iteration for iteration, _ in scores.details["history"]] == [5, 10]
    assert len(scores.details["without"]) == N_GROUPS
    for side, dims in (("users", model.user_dims_), ("items", model.item_dims_)):
        parameters = scores.details["deciles"][side]["parameters"]
        assert sum(parameters) == dims.sum()
        assert parameters == sorted(parameters, reverse=True)
    of_item = dict(zip(parts.train.items, np.diff(parts.train.by_item.indptr), strict=True))
    popularity = np.array([of_item[item] for item in test["item"]])
    most = popularity > np.sort(list(of_item.values()))[::-1][len(of_item) // 10]
    first = scores.details["deciles"]["items"]["auc"][0]
    assert first == pytest.approx(roc_auc_score(ratings[most], predicted[most]), abs=0.02)
