"""libmf's stochastic gradient descent: not least squares, but the same model."""

from importlib.metadata import version
from typing import Any

import numpy as np
from libmf.mf import MF
from numpy.typing import NDArray
from tables import read as read_table

VERSION = version("libmf")


def read(path: str) -> NDArray[np.float32]:
    frame = read_table(path)
    return frame[["user", "item", "rating"]].to_numpy(np.float32)


def fit(data: NDArray[np.float32], dims: int, iterations: int, threads: int, **options: Any) -> MF:
    model = MF(k=dims, nr_iters=iterations, nr_threads=threads, quiet=True, **options)
    model.fit(data)
    return model


def predict(model: MF, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float32]:
    return model.predict(np.column_stack([users, items]))
