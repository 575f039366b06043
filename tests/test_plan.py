import numpy as np
import pytest

from mixedals import MixedALS, PopularitySizing
from mixedals.plan import fitted_tiers, plan

VARIANTS = [
    {},
    {"projection": "padded"},
    {"biases": True},
    {"dims": 5},
    {"dims": (2, 16), "sizing": {"users": PopularitySizing(0.1), "items": PopularitySizing(2.0)}},
]


@pytest.mark.parametrize("parameters", VARIANTS)
def test_what_was_planned_is_what_is_fitted(stars, parameters):
    estimator = MixedALS(reg=0.1, projection_reg=1.0, iterations=1, **parameters)
    planned = plan(estimator, stars)
    model = estimator.fit(stars)
    assert planned.n_parameters == model.n_parameters_
    assert planned.tiers.equals(fitted_tiers(model))
    assert planned.tiers["parameters"].sum() == model.n_parameters_
    users = planned.tiers.filter(side="users")
    assert users["rows"].sum() == stars.n_users
    assert users["ratings"].sum() == len(stars)
    for p, rows in users.select("p", "rows").iter_rows():
        assert (model.user_dims_ == p).sum() == rows


def test_the_memory_of_ratings_is_that_of_both_views(stars):
    views = [stars.by_user, stars.by_item]
    n_bytes = sum(array.nbytes for view in views for array in (view.indices, view.values))
    planned = plan(MixedALS(), stars)
    assert planned.ratings_bytes == n_bytes + stars.timestamps.nbytes
    model = MixedALS(reg=0.1, iterations=1).fit(stars)
    assert planned.model_bytes > model.user_vectors_.nbytes + model.item_vectors_.nbytes


def test_parameters_are_checked(stars):
    with pytest.raises(ValueError, match=r"reg=-1"):
        plan(MixedALS(reg=-1), stars)


def test_nothing_is_trained_or_kept(stars):
    estimator = MixedALS()
    plan(estimator, stars)
    with pytest.raises(AttributeError):
        _ = estimator.user_vectors_
    assert np.isfinite(stars.by_user.values).all()
