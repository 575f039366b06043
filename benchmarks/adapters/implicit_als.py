"""implicit's ALS. It has no explicit model: ratings are its confidences, for scale alone."""

from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from implicit.als import AlternatingLeastSquares
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from tables import read as read_table

VERSION = version("implicit")


def read(path: str) -> csr_matrix:
    frame = read_table(path)
    users, items = (pd.factorize(frame[side], sort=True)[0] for side in ("user", "item"))
    return csr_matrix((frame["rating"].to_numpy(np.float32), (users, items)))


def fit(
    data: csr_matrix, dims: int, iterations: int, threads: int, **options: Any
) -> AlternatingLeastSquares:
    model = AlternatingLeastSquares(
        factors=dims, iterations=iterations, num_threads=threads, random_state=0, **options
    )
    model.fit(data, show_progress=False)
    return model


def recommend(
    model: AlternatingLeastSquares, data: csr_matrix, users: NDArray[Any], k: int
) -> None:
    rows = np.arange(min(len(users), data.shape[0]))
    model.recommend(rows, data[rows], N=k, filter_already_liked_items=True)
