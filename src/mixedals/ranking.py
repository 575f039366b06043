"""How good recommendations are: recall, NDCG, MAP and coverage of the best k, by popularity too."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals._threads import thread_count
from mixedals.interactions import Interactions
from mixedals.model import FittedModel
from mixedals.recommender import Recommender, best_items

N_DECILES = 10


@dataclass(frozen=True)
class RankingScores:
    """Means over the users that have something relevant among the held-out ratings.

    Attributes
    ----------
    k
        Length of the recommendations.
    relevant_above
        Held-out ratings above this are relevant.
    n_users, n_relevant
        Users and ratings that the scores are about.
    n_unknown, n_seen
        Relevant ratings that are left out because the model doesn't know their user or item, or
        because they were in training too.
    recall
        Share of a user's relevant items that are among the k.
    ndcg
        Discounted cumulative gain over the largest possible: 1 where the best ranks are relevant.
    map
        Sum of the precisions at the ranks of the relevant items, over the number of these.
    coverage
        Share of the model's items that somebody got among the k.
    deciles : polars.DataFrame
        The same for each tenth of the items, the most popular in training first, with the items of
        the other tenths not counted as relevant: ``decile``, its ``items``, the fewest and the most
        ratings of these in training, ``users``, and the scores, of which the first three are null
        where nobody has something relevant.

    Examples
    --------
    >>> from mixedals import MixedALS, split_at_random
    >>> from mixedals.synthetic import generate_ratings
    >>> train, test = split_at_random(generate_ratings(100, 50, 2000), (0.8, 0.2))
    >>> scores = evaluate_ranking(MixedALS(iterations=3).fit(train), test, k=5)
    >>> scores.deciles["decile"].to_list()
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    """

    k: int
    relevant_above: float
    n_users: int
    n_relevant: int
    n_unknown: int
    n_seen: int
    recall: float
    ndcg: float
    map: float
    coverage: float
    deciles: pl.DataFrame


def evaluate_ranking(
    model: Recommender, held_out: Interactions, k: int = 10, relevant_above: float | None = None
) -> RankingScores:
    """Scores of the k best items for each user, of those that the user didn't rate in training.

    Parameters
    ----------
    model
        A fitted model.
    held_out
        Ratings that it was not fitted to.
    k
        Items a user.
    relevant_above
        Held-out ratings above this are relevant; None takes the mean rating of training.

    Examples
    --------
    >>> from mixedals import MixedALS, split_at_random
    >>> from mixedals.synthetic import generate_ratings
    >>> train, test = split_at_random(generate_ratings(100, 50, 2000), (0.8, 0.2))
    >>> scores = evaluate_ranking(MixedALS(iterations=3).fit(train), test, k=5)
    >>> 0 < scores.recall < 1
    True
    """
    fitted = model._fitted
    limit = fitted.mean_rating if relevant_above is None else float(relevant_above)
    users, items, n_unknown, n_seen = _relevant_pairs(fitted, held_out, limit)
    popularity = np.bincount(fitted.seen.indices, minlength=len(fitted.items))
    decile = popularity_deciles(popularity)
    recommended = np.zeros(len(decile), bool)
    # Row 0 for all items, the others for the deciles; recall, NDCG, MAP and the number of users.
    sums = np.zeros((N_DECILES + 1, 4))
    everything = np.arange(len(decile), dtype=np.int32)
    for batch, found, _ in best_items(
        fitted, np.unique(users), k, everything,
        exclude_seen=True, n_threads=thread_count(model.n_threads),
    ):  # fmt: skip
        recommended[found[found >= 0]] = True
        part = slice(*np.searchsorted(users, [batch[0], batch[-1] + 1]))
        sums += _sums(batch, found, users[part], items[part], decile)
    of_decile = [
        {
            "decile": group,
            "items": int(np.sum(decile == group)),
            "fewest": int(popularity[decile == group].min()),
            "most": int(popularity[decile == group].max()),
            "users": int(sums[group, 3]),
            **_means(sums[group]),
            "coverage": float(recommended[decile == group].mean()),
        }
        for group in np.unique(decile).tolist()
    ]
    return RankingScores(
        k, limit, int(sums[0, 3]), len(users), n_unknown, n_seen,
        **_means(sums[0]),
        coverage=float(recommended.mean()),
        deciles=pl.DataFrame(of_decile).fill_nan(None),
    )  # fmt: skip


def _relevant_pairs(
    fitted: FittedModel, held_out: Interactions, limit: float
) -> tuple[NDArray[np.int32], NDArray[np.int32], int, int]:
    """Relevant pairs by user, as positions in the model; how many are unknown, and seen."""
    ratings = held_out.by_user
    relevant = ratings.values > limit
    users = np.repeat(fitted.users.match(held_out.user_vocabulary), np.diff(ratings.indptr))
    items = fitted.items.match(held_out.item_vocabulary)[ratings.indices]
    known = relevant & (users >= 0) & (items >= 0)
    n_items = len(fitted.items)
    pairs = np.sort(users[known].astype(np.int64) * n_items + items[known])
    seen_users = np.repeat(np.arange(len(fitted.users)), np.diff(fitted.seen.indptr))
    new = pairs[~_among(pairs, seen_users * n_items + fitted.seen.indices)]
    if not len(new):
        raise ValueError(
            f"nothing to rank: of {len(ratings.values):,} ratings {relevant.sum():,} are above "
            f"{limit:.4g} and so relevant, the model knows user and item of {len(pairs):,} of "
            "these, and it was fitted to all of those. Give ratings that it was not fitted to, or "
            "a lower relevant_above"
        )
    return (
        (new // n_items).astype(np.int32),
        (new % n_items).astype(np.int32),
        int(relevant.sum()) - len(pairs),
        len(pairs) - len(new),
    )


def _among(values: NDArray[np.int64], rising: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values occur among rising ones."""
    at = np.searchsorted(rising, values).clip(max=len(rising) - 1)
    out: NDArray[np.bool_] = rising[at] == values
    return out


def popularity_deciles(popularity: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tenth of each item from 1, the most popular: equally many items in each.

    Examples
    --------
    >>> popularity_deciles(np.array([5, 1, 9, 7])).tolist()
    [6, 8, 1, 3]
    """
    decile = np.empty(len(popularity), np.int64)
    order = np.argsort(-popularity, kind="stable")
    decile[order] = 1 + np.arange(len(order)) * N_DECILES // len(order)
    return decile


def _sums(
    batch: NDArray[np.int32],
    found: NDArray[np.int32],
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    decile: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Sums over a batch of users of their recall, NDCG and MAP, and of one for each user."""
    place = np.searchsorted(batch, users)
    cells = place * (N_DECILES + 1) + decile[items]
    n_relevant = np.bincount(cells, minlength=len(batch) * (N_DECILES + 1))
    n_relevant = n_relevant.reshape(len(batch), N_DECILES + 1)
    n_relevant[:, 0] = n_relevant.sum(axis=1)
    pairs = place * len(decile) + items
    cells = np.arange(len(batch))[:, None] * len(decile) + found
    hits = (found >= 0) & _among(cells.ravel(), pairs).reshape(found.shape)
    out = np.zeros((N_DECILES + 1, 4))
    for group in range(N_DECILES + 1):
        of_group = hits if group == 0 else hits & (decile[found] == group)
        out[group] = _user_sums(of_group, n_relevant[:, group])
    return out


def _user_sums(hits: NDArray[np.bool_], n_relevant: NDArray[np.int64]) -> NDArray[np.float64]:
    """Sums over users of the three scores and of one, of hits (n, k) by rank."""
    has_some = n_relevant > 0
    hits, n_relevant = hits[has_some], n_relevant[has_some]
    ranks = np.arange(1, hits.shape[1] + 1)
    discounts = 1 / np.log2(ranks + 1)
    ideal = discounts.cumsum()[np.minimum(n_relevant, len(ranks)) - 1]
    precisions = hits.cumsum(axis=1) / ranks
    return np.array(
        [
            (hits.sum(axis=1) / n_relevant).sum(),
            (hits @ discounts / ideal).sum(),
            ((hits * precisions).sum(axis=1) / n_relevant).sum(),
            len(hits),
        ]
    )


def _means(sums: NDArray[np.float64]) -> dict[str, float]:
    """Means by name; NaN over nobody."""
    n = sums[3]
    return {
        name: float(value / n) if n else float("nan")
        for name, value in zip(("recall", "ndcg", "map"), sums, strict=False)
    }
