"""mixedals itself."""

from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals import Interactions, MixedALS

VERSION = version("mixedals")


def read(path: str) -> Interactions:
    return Interactions.read(path)


def fit(data: Interactions, dims: int, iterations: int, threads: int, **options: Any) -> MixedALS:
    parameters = {"dims": dims} | options
    return MixedALS(iterations=iterations, n_threads=threads, progress=False, **parameters).fit(
        data
    )


def predict(model: MixedALS, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float32]:
    return model.predict(users, items)


def recommend(model: MixedALS, data: Interactions, users: NDArray[Any], k: int) -> None:
    model.recommend(users, k=k)
