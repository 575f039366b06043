"""cmfrec's explicit model, without biases."""

from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from cmfrec import CMF
from numpy.typing import NDArray
from tables import read as read_table

VERSION = version("cmfrec")


def read(path: str) -> pd.DataFrame:
    return read_table(path).rename(columns={"user": "UserId", "item": "ItemId", "rating": "Rating"})


def fit(data: pd.DataFrame, dims: int, iterations: int, threads: int, **options: Any) -> CMF:
    model = CMF(
        k=dims,
        method="als",
        niter=iterations,
        nthreads=threads,
        user_bias=False,
        item_bias=False,
        verbose=False,
        precompute_for_predictions=False,
        **options,
    )
    return model.fit(data)


def predict(model: CMF, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float32]:
    return model.predict(users, items)


def recommend(model: CMF, data: pd.DataFrame, users: NDArray[Any], k: int) -> None:
    seen = data[data["UserId"].isin(users)].groupby("UserId")["ItemId"]
    for user, items in seen:
        model.topN(user=user, n=k, exclude=items.to_numpy())
