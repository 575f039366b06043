import os
import signal
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from mixedals import Interactions, MixedALS, UnknownIdError, recommender


@pytest.fixture(scope="module")
def data(stars) -> Interactions:
    """User ids are strings, item ids integers."""
    frame = stars.to_frame()
    return Interactions.from_arrays("u" + frame["user"].cast(str), frame["item"], frame["rating"])


@pytest.fixture(scope="module", params=[{}, {"biases": True}, {"global_mean": True}])
def model(request, data) -> MixedALS:
    return MixedALS(iterations=3, **request.param).fit(data)


def grid(model: MixedALS) -> np.ndarray:
    """Every prediction, from the public attributes."""
    out = model.user_vectors_ @ model.item_vectors_.T + model.mean_
    if model.user_biases_ is not None:
        out += model.user_biases_[:, None] + model.item_biases_
    return out


def test_predictions(model, data):
    frame = data.to_frame()
    users = np.searchsorted(model.user_ids_.astype(str), frame["user"].to_numpy().astype(str))
    items = np.searchsorted(model.item_ids_, frame["item"])
    got = model.predict(frame["user"], frame["item"])
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, grid(model)[users, items], rtol=1e-4, atol=1e-5)
    as_pairs = model.predict(frame.select("user", "item"))
    np.testing.assert_array_equal(as_pairs, got)


def test_a_grid_of_predictions(model):
    users, items = ["u5", "nobody", "u7"], [3, -1]
    got = model.predict_grid(users, items)
    assert got.shape == (3, 2)
    assert np.isnan(got[1]).all()
    assert np.isnan(got[:, 1]).all()
    np.testing.assert_allclose(got[[0, 2], 0], model.predict(["u5", "u7"], [3, 3]), rtol=1e-5)


def test_unknown_ids(model, data):
    assert np.isnan(model.predict(["nobody", "u5"], [1, -7])).all()
    mean = np.average(data.by_user.values)
    assert model.predict(["nobody"], [1], unknown="mean") == pytest.approx(mean)
    with pytest.raises(ValueError, match="unknown="):
        model.predict(["u5"], [1], unknown="zero")
    with pytest.raises(UnknownIdError, match=r"1 of 2 users .*'nobody'.*fold_in_users"):
        model.recommend(["u5", "nobody"])


def test_pairs_must_be_pairs(model):
    with pytest.raises(ValueError, match="2 users but 1 items"):
        model.predict(["u5", "u7"], [1])
    with pytest.raises(ValueError, match="two columns"):
        model.predict(np.zeros((2, 3)))


def brute_force(model, data, users, k, allowed, exclude_seen):
    rows = []
    scores = grid(model)
    seen = data.to_frame()
    for user in users:
        row = np.flatnonzero(model.user_ids_ == user)[0]
        gone = set(seen.filter(pl.col("user") == user)["item"]) if exclude_seen else set()
        left = [(-scores[row, c], i) for c, i in enumerate(model.item_ids_.tolist())
                if i in allowed and i not in gone]  # fmt: skip
        rows += [(user, item, -s, rank + 1) for rank, (s, item) in enumerate(sorted(left)[:k])]
    return pl.DataFrame(rows, ["user", "item", "score", "rank"], orient="row")


@pytest.mark.parametrize("exclude_seen", [True, False])
@pytest.mark.parametrize("k", [1, 7, 500])
@pytest.mark.parametrize("restricted", [False, True])
def test_recommendations_are_the_best_by_full_sort(model, data, k, exclude_seen, restricted):
    every = set(model.item_ids_.tolist())
    among = [*sorted(every)[::2], 10**9] if restricted else None
    exclude = sorted(every)[::6] if restricted else None
    allowed = every if among is None else set(among) - set(exclude)
    users = ["u9", "u3", "u200"]
    got = model.recommend(users, k, exclude_seen=exclude_seen, among=among, exclude=exclude)
    want = brute_force(model, data, users, k, allowed, exclude_seen)
    assert got.columns == want.columns
    assert got["user"].to_list() == want["user"].to_list()
    np.testing.assert_allclose(got["score"], want["score"], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(got["rank"], want["rank"])
    assert (got["item"] == want["item"]).mean() > 0.99  # where rounding orders near-equal scores


def test_everybody_in_batches(model, monkeypatch):
    whole = model.recommend(k=3)
    assert whole["user"].unique(maintain_order=True).to_list() == model.user_ids_.tolist()
    monkeypatch.setattr(recommender, "_BATCH", 17 * 3)
    assert sum(1 for _ in model.recommend_batches(k=3)) == -(-len(model.user_ids_) // 17)
    assert model.recommend(k=3).equals(whole)


def test_more_items_than_there_are_need_no_memory(model):
    assert model.recommend(["u5"], 10**15).equals(model.recommend(["u5"], len(model.item_ids_)))
    assert len(model.similar_items([1], 10**15)) == len(model.item_ids_) - 1


@pytest.mark.parametrize("k", [0, 2.5, "3"])
def test_k_is_an_integer_from_1(model, k):
    with pytest.raises(ValueError, match=r"k=.*integer from 1"):
        model.recommend(["u5"], k)
    with pytest.raises(ValueError, match=r"k=.*integer from 1"):
        model.similar_items([1], k)


def test_pairs_of_every_kind_of_table(model, data):
    pairs = data.to_frame().select("user", "item").head(20)
    want = model.predict(pairs["user"], pairs["item"])
    for table in (pairs, pairs.lazy(), pairs.to_dict(), pairs.to_arrow(), pairs.to_pandas()):
        np.testing.assert_array_equal(model.predict(table), want)


def in_a_forked_process(answers) -> bool:
    """Whether ``answers()`` is true in a child; servers load a model and then fork."""
    pl.DataFrame({"a": range(100_000)}).sort("a", descending=True)  # starts polars' threads
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that a process with threads forks
        child = os.fork()
    if child == 0:
        signal.alarm(20)  # a hang ends as a failure
        failed = True
        try:
            failed = not answers()
        finally:
            os._exit(failed)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_answers(model, data):
    frame = data.to_frame().head(3)
    want = model.predict(frame["user"], frame["item"]).tolist()
    new_user = "new" if model.user_ids_.dtype == object else 10**6

    def answers() -> bool:
        new = Interactions.from_arrays([new_user] * 2, frame["item"][:2], frame["rating"][:2])
        return (
            model.predict(frame["user"], frame["item"]).tolist() == want
            and len(model.recommend(["u5"], 4)) == 4
            and len(model.similar_items([1], 3)) == 3
            and len(model.fold_in_users(new).recommend([new_user], 2)) == 2
        )

    assert in_a_forked_process(answers)


@pytest.mark.parametrize("ids", [int, str])
def test_a_forked_process_gives_large_answers(ids):
    n = 40_000
    users, items = np.arange(n) % 30_000, np.arange(n) // 30_000
    users = users if ids is int else users.astype(str)
    model = MixedALS(dims=1, iterations=1, progress=False)
    model.fit(Interactions.from_arrays(users, items, np.ones(n)))
    users, items = np.tile(users, 4), np.tile(items, 4)

    def answers() -> bool:
        return (
            len(model.recommend(k=1, exclude_seen=False)) == 30_000
            and np.isfinite(model.predict(users, items)).all()
            and len(model.similar_items([0], 1)) == 1
        )

    assert in_a_forked_process(answers)


def test_one_user_and_no_user(model):
    assert model.recommend("u5", 4)["user"].to_list() == ["u5"] * 4
    assert model.recommend([], 4).is_empty()


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_similar_items(model, metric):
    vectors = model.item_vectors_.astype(np.float64)
    if metric == "cosine":
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -np.inf)
    got = model.similar_items(model.item_ids_, 5, metric=metric)
    assert (got["item"] != got["similar_item"]).all()
    best = np.sort(scores, axis=1)[:, :-6:-1]
    np.testing.assert_allclose(got["score"].to_numpy().reshape(-1, 5), best, rtol=1e-4, atol=1e-5)


def test_similar_users(model):
    got = model.similar_users(["u5", "u6"], 2)
    assert got.columns == ["user", "similar_user", "score", "rank"]
    assert got["user"].to_list() == ["u5", "u5", "u6", "u6"]
    with pytest.raises(ValueError, match="metric="):
        model.similar_users(["u5"], metric="euclid")


def test_nothing_before_fit():
    with pytest.raises(NotFittedError, match="call fit"):
        MixedALS().predict([1], [1])
