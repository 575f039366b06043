"""Vectors of the common space as Parquet and as NumPy files."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals._atomic import replacing
from mixedals._ids import Vocabulary
from mixedals.recommender import Recommender
from mixedals.tiers import Side


class ExportedSide(NamedTuple):
    """A side under its name in the singular, ``user`` or ``item``."""

    name: str
    vocabulary: Vocabulary
    side: Side
    biases: NDArray[np.float32] | None


def sides_of(model: Recommender) -> tuple[ExportedSide, ExportedSide]:
    """Both sides of a fitted model, the mean in the items' biases."""
    fitted = model._fitted
    users, items, mean = fitted.factors.users, fitted.factors.items, fitted.factors.mean
    return (
        ExportedSide("user", fitted.users, users, users.biases),
        ExportedSide("item", fitted.items, items, items.known(mean)),
    )


def write_parquet(model: Recommender, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``users.parquet`` and ``items.parquet``: id, ``vector`` (float32, d), ``bias``.

    The column of the ids is ``user`` or ``item``; UUIDs are text. Without biases there is no such
    column.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in write_parquet(model, folder)]
    ['users.parquet', 'items.parquet']
    """
    paths = []
    for name, vocabulary, side, biases in sides_of(model):
        columns = {name: vocabulary.values, "vector": pl.Series(side.common)}
        if biases is not None:
            columns["bias"] = pl.Series(biases)
        paths.append(write_frame(pl.DataFrame(columns), folder, f"{name}s.parquet"))
    return paths


def write_numpy(model: Recommender, folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``user_vectors.npy`` (float32, n x d), ``user_ids.npy``, ``user_biases.npy``; so items.

    Vectors can be mapped into memory (``np.load(path, mmap_mode="r")``); nothing is pickled: ids of
    strings are NumPy's strings, UUIDs their text.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in write_numpy(model, folder)]
    ['user_vectors.npy', 'user_ids.npy', 'item_vectors.npy', 'item_ids.npy']
    """
    paths = []
    for name, vocabulary, side, biases in sides_of(model):
        arrays = {"vectors": side.common, "ids": _unpickled_ids(vocabulary), "biases": biases}
        for what, array in arrays.items():
            if array is not None:
                paths.append(made(folder) / f"{name}_{what}.npy")
                with replacing(paths[-1]) as temporary, temporary.open("wb") as file:
                    np.save(file, array, allow_pickle=False)
    return paths


def write_frame(frame: pl.DataFrame, folder: str | os.PathLike[str], name: str) -> Path:
    """Write a frame as a Parquet file of that name."""
    path = made(folder) / name
    with replacing(path) as temporary:
        frame.write_parquet(temporary)
    return path


def made(folder: str | os.PathLike[str]) -> Path:
    """The folder, made where it isn't there."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path


def _unpickled_ids(vocabulary: Vocabulary) -> NDArray[Any]:
    """The ids in a type of NumPy's own."""
    if vocabulary.values.dtype in (pl.String, pl.Binary):
        return np.array(vocabulary.values.to_list())
    return vocabulary.ids
