import uuid

import numpy as np
import pytest

from mixedals import Interactions, MixedALS, UniformSizing, load

VARIANTS = {
    "plain": {"dims": 6},
    "padded": {"projection": "padded", "reg_exponent": 0.7},
    "projected": {"reg": {"users": 1.0, "items": 4.0}},
    "large": {"dims": (4, 24)},
    "biases": {"biases": True},
}


@pytest.fixture(scope="module", params=VARIANTS)
def model(request, stars) -> MixedALS:
    return MixedALS(**VARIANTS[request.param], iterations=3).fit(stars)


def of_users(data: Interactions, users: list[int], shift: int = 0) -> Interactions:
    frame = data.to_frame()
    frame = frame.filter(frame["user"].is_in(users))
    return Interactions.from_arrays(frame["user"] + shift, frame["item"], frame["rating"])


def test_a_training_user_gets_its_stored_vector(model, stars):
    folded = model.fold_in_users(of_users(stars, [3, 50, 120]))
    np.testing.assert_array_equal(folded.user_vectors_, model.user_vectors_)
    if model.user_biases_ is not None:
        np.testing.assert_array_equal(folded.user_biases_, model.user_biases_)


def test_new_users_get_what_old_ones_with_their_ratings_have(model, stars):
    folded = model.fold_in_users(of_users(stars, [3, 50, 120], shift=1000))
    assert len(folded.user_ids_) == len(model.user_ids_) + 3
    shift = np.array([1000, 0])
    for old in (3, 50, 120):
        pairs = np.column_stack([np.full(len(model.item_ids_), old), model.item_ids_])
        np.testing.assert_array_equal(folded.predict(pairs + shift), model.predict(pairs))
        want = model.recommend([old]).drop("user")
        assert folded.recommend([old + 1000]).drop("user").equals(want)
    assert folded.recommend(model.user_ids_).equals(model.recommend())


def test_the_model_itself_stays_as_it_is(model, stars):
    before = model.user_vectors_.copy()
    model.fold_in_users(of_users(stars, [3], shift=-1000))
    np.testing.assert_array_equal(model.user_vectors_, before)
    assert -997 not in model.user_ids_


def test_new_items(model, stars):
    frame = stars.to_frame()
    frame = frame.filter(frame["item"].is_in([5, 60]))
    new = Interactions.from_arrays(frame["user"], frame["item"] - 500, frame["rating"])
    folded = model.fold_in_items(new)
    assert len(folded.item_ids_) == len(model.item_ids_) + 2
    users = frame["user"].unique()
    seen = folded.recommend(users, len(folded.item_ids_))
    for old in (5, 60):
        raters = set(frame.filter(frame["item"] == old)["user"])
        offered = set(seen.filter(seen["item"] == old - 500)["user"])
        assert raters.isdisjoint(offered)
        assert raters | offered == set(users)
    anew = model.fold_in_items(
        Interactions.from_arrays(frame["user"], frame["item"], frame["rating"])
    )
    assert (
        anew.recommend().select("user", "item").shape
        == model.recommend().select("user", "item").shape
    )


def test_unknown_columns_are_named(model):
    with pytest.raises(ValueError, match=r"1 of 1 items are not in the model, first 999999"):
        model.fold_in_users(Interactions.from_arrays([1], [999999], [4.0]))


def test_sizes_of_new_rows(stars):
    data = of_users(stars, [3, 50], shift=1000)
    model = MixedALS(iterations=2).fit(stars)
    folded = model.fold_in_users(data, dims={1003: 2, 1050: 6})
    assert folded.user_dims_[-2:].tolist() == [2, 6]
    given = MixedALS(
        sizing={"users": np.full(stars.n_users, 4), "items": UniformSizing()},
        projection_reg=1.0,
        iterations=2,
    ).fit(stars)
    with pytest.raises(ValueError, match="pass dims="):
        given.fold_in_users(data)
    assert given.fold_in_users(data, dims=[4, 4]).user_dims_[-1] == 4
    known = given.fold_in_users(of_users(stars, [3, 50]))
    np.testing.assert_array_equal(known.user_vectors_, given.user_vectors_)


WIDER = {
    "uint8": (np.array([1, 2], np.uint8), [300], "uint16 int64"),
    "int32": (np.array([1, 2], np.int32), [2**40], "int64"),
    "float32": (np.array([0.1, 0.2], np.float32), [0.1], "float64"),
    "milliseconds": (
        np.array(["2020-01-01", "2020-01-02"], "datetime64[ms]"),
        np.array(["2020-01-01T00:00:00.000500"], "datetime64[us]"),
        "datetime64[us]",
    ),
}


@pytest.mark.parametrize("name", WIDER)
def test_ids_that_need_a_wider_type_get_it(name, tmp_path):
    ids, new, kinds = WIDER[name]
    model = MixedALS(dims=2, iterations=2).fit(Interactions.from_arrays(ids, [1, 1], [4.0, 2.0]))
    folded = model.fold_in_users(Interactions.from_arrays(new, [1], [3.0]))
    assert len(folded.user_ids_) == len(set(folded.user_ids_.tolist())) == 3
    assert str(folded.user_ids_.dtype) in kinds
    np.testing.assert_array_equal(folded.predict(ids, [1, 1]), model.predict(ids, [1, 1]))
    assert np.isfinite(folded.predict(new, [1])).all()
    folded.save(tmp_path / "m")
    assert load(tmp_path / "m").user_ids_.tolist() == folded.user_ids_.tolist()


def test_text_does_not_become_a_uuid():
    ids = [uuid.UUID(int=i) for i in range(2)]
    model = MixedALS(dims=2, iterations=1).fit(Interactions.from_arrays(ids, [1, 1], [4.0, 2.0]))
    with pytest.raises(TypeError, match="UUID objects"):
        model.fold_in_users(Interactions.from_arrays(["foo"], [1], [3.0]))
    assert np.isfinite(model.predict([str(ids[1]).upper()], [1])).all()


def test_folding_in_leaves_a_model_that_saves(model, stars, tmp_path):
    folded = model.fold_in_users(of_users(stars, [3], shift=1000))
    folded.save(tmp_path / "folded.mixedals")
    again = load(tmp_path / "folded.mixedals")
    np.testing.assert_array_equal(again.user_vectors_, folded.user_vectors_)
