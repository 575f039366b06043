"""LensKit's explicit model; it takes biases from the ratings beforehand."""

from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from lenskit.als import BiasedMFScorer
from lenskit.data import Dataset, ItemList, RecQuery, from_interactions_df
from lenskit.pipeline import topn_pipeline
from lenskit.training import TrainingOptions
from numpy.typing import NDArray
from tables import read as read_table

VERSION = version("lenskit")


def read(path: str) -> Dataset:
    names = {"user": "user_id", "item": "item_id"}
    return from_interactions_df(read_table(path).rename(columns=names))


def fit(data: Dataset, dims: int, iterations: int, threads: int, **options: Any) -> BiasedMFScorer:
    scorer = BiasedMFScorer(embedding_size=dims, epochs=iterations, **options)
    scorer.train(data, TrainingOptions(rng=0))
    return scorer


def predict(model: BiasedMFScorer, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float32]:
    out = np.empty(len(users), np.float32)
    order = np.argsort(users, kind="stable")
    bounds = np.flatnonzero(np.diff(users[order], prepend=-1, append=-1))
    for first, last in pairwise(bounds):
        at = order[first:last]
        query = RecQuery(user_id=users[at[0]])
        out[at] = model(query, ItemList(item_ids=items[at])).scores()
    return out


def recommend(model: BiasedMFScorer, data: Dataset, users: NDArray[Any], k: int) -> None:
    from lenskit import recommend as recommend_one

    pipeline = topn_pipeline(model, n=k)
    pipeline.train(data, TrainingOptions(retrain=False))
    for user in users:
        recommend_one(pipeline, user, k)
