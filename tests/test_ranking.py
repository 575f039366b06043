import numpy as np
import polars as pl
import pytest
import recometrics
from scipy.sparse import csr_matrix
from sklearn.metrics import ndcg_score

from mixedals import Interactions, MixedALS, split_at_random
from mixedals.ranking import evaluate_ranking
from mixedals.synthetic import generate_ratings


@pytest.fixture(scope="module")
def parts(stars) -> tuple[Interactions, Interactions]:
    return split_at_random(stars, (0.7, 0.3), random_state=0)


@pytest.fixture(scope="module", params=[{}, {"biases": True}])
def model(request, parts) -> MixedALS:
    return MixedALS(iterations=3, **request.param).fit(parts[0])


def matrix(model: MixedALS, pairs: pl.DataFrame) -> csr_matrix:
    rows = np.searchsorted(model.user_ids_, pairs["user"])
    columns = np.searchsorted(model.item_ids_, pairs["item"])
    shape = len(model.user_ids_), len(model.item_ids_)
    return csr_matrix((np.ones(len(pairs), np.float32), (rows, columns)), shape)


def relevant_pairs(model: MixedALS, held_out: Interactions, limit: float) -> pl.DataFrame:
    frame = held_out.to_frame().filter(pl.col("rating") > limit)
    users, items = model.user_ids_.tolist(), model.item_ids_.tolist()
    return frame.filter(pl.col("user").is_in(users) & pl.col("item").is_in(items))


@pytest.mark.parametrize("k", [2, 10])
def test_scores_are_those_of_recometrics(model, parts, k):
    train, test = parts
    scores = evaluate_ranking(model, test, k, relevant_above=3)
    relevant = relevant_pairs(model, test, 3)
    left, right = model._fitted.factors.scoring
    reference = recometrics.calc_reco_metrics(
        matrix(model, train.to_frame()), matrix(model, relevant), left, right, k,
        precision=False, recall=True, break_ties_with_noise=False, nthreads=1,
    )  # fmt: skip
    assert scores.n_relevant == len(relevant)
    assert scores.n_users == relevant["user"].n_unique() == reference[f"R@{k}"].count()
    for name, column in (("recall", "R"), ("map", "AP"), ("ndcg", "NDCG")):
        want = reference[f"{column}@{k}"].mean()
        assert getattr(scores, name) == pytest.approx(want, rel=1e-5)


def test_ndcg_is_scikit_learns(model, parts):
    train, test = parts
    grid = model.predict_grid(model.user_ids_, model.item_ids_)
    grid[matrix(model, train.to_frame()).toarray() > 0] = -1e9
    wanted = matrix(model, relevant_pairs(model, test, 3)).toarray()
    has_some = wanted.any(axis=1)
    expected = ndcg_score(wanted[has_some], grid[has_some], k=10)
    got = evaluate_ranking(model, test, relevant_above=3)
    assert got.ndcg == pytest.approx(expected, rel=1e-6)


def test_coverage_is_that_of_the_recommendations(model, parts):
    scores = evaluate_ranking(model, parts[1], 5, relevant_above=3)
    users = relevant_pairs(model, parts[1], 3)["user"].unique()
    recommended = model.recommend(users, 5)["item"].n_unique()
    assert scores.coverage == pytest.approx(recommended / len(model.item_ids_))
    sizes = scores.deciles["items"]
    assert (scores.deciles["coverage"] * sizes).sum() == pytest.approx(recommended)


def test_deciles_are_the_scores_with_the_others_irrelevant(model, parts):
    train, test = parts
    scores = evaluate_ranking(model, test, 10, relevant_above=3)
    counts = train.to_frame()["item"].value_counts().rename({"count": "n"})
    assert scores.deciles["decile"].to_list() == list(range(1, 11))
    assert scores.deciles["items"].sum() == len(model.item_ids_)
    assert (scores.deciles["fewest"][:-1] >= scores.deciles["most"][1:]).all()
    for row in scores.deciles.filter(pl.col("fewest") > pl.col("most").shift(-1)).iter_rows(
        named=True
    ):
        if row["decile"] > 1 and row["most"] == scores.deciles["fewest"][row["decile"] - 2]:
            continue  # equally popular items on both sides of the bound
        items = counts.filter(pl.col("n").is_between(row["fewest"], row["most"]))["item"]
        frame = test.to_frame().filter(pl.col("item").is_in(items.to_list()))
        alone = evaluate_ranking(model, Interactions.from_frame(frame), 10, relevant_above=3)
        assert row["users"] == alone.n_users
        for name in ("recall", "ndcg", "map"):
            assert row[name] == pytest.approx(getattr(alone, name))


def test_what_is_left_out_is_counted(model, parts):
    train, test = parts
    frame = pl.concat([train.to_frame(), test.to_frame()])
    strange = frame.head(7).with_columns(
        user=pl.lit(10**6).cast(frame["user"].dtype), rating=pl.lit(5.0, pl.Float32)
    )
    mixed = Interactions.from_frame(
        pl.concat([frame, strange.unique("item", maintain_order=True)]).sort("user", "item")
    )
    alone, with_more = (evaluate_ranking(model, data, relevant_above=3) for data in (test, mixed))
    assert with_more.n_seen == train.to_frame().filter(pl.col("rating") > 3).height
    assert with_more.n_unknown - alone.n_unknown == strange["item"].n_unique()
    assert with_more.recall == alone.recall
    with pytest.raises(ValueError, match=r"nothing to rank: of .* not fitted to"):
        evaluate_ranking(model, train)


def test_relevance_is_above_the_mean_unless_said(model, parts):
    mean = float(parts[0].by_user.values.mean())
    assert evaluate_ranking(model, parts[1]).relevant_above == pytest.approx(mean)


def test_fewer_items_than_k_and_than_deciles():
    data = generate_ratings(60, 7, 200, random_state=2)
    train, test = split_at_random(data, (0.6, 0.4))
    scores = evaluate_ranking(MixedALS(iterations=2).fit(train), test, k=50, relevant_above=0)
    assert scores.recall == 1.0
    assert scores.coverage == 1.0
    assert scores.deciles["items"].to_list() == [1] * len(scores.deciles)


def test_batches_don_t_matter(model, parts, monkeypatch):
    from mixedals import recommender

    whole = evaluate_ranking(model, parts[1])
    monkeypatch.setattr(recommender, "_BATCH", 13)
    parted = evaluate_ranking(model, parts[1])
    assert parted.recall == pytest.approx(whole.recall)
    assert parted.coverage == whole.coverage
