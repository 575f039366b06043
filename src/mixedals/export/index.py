"""A vector index of the items (USearch), and how often it finds what is there to find."""

import os
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._atomic import replacing
from mixedals._extras import require
from mixedals._threads import thread_count
from mixedals.export.vectors import made, write_frame
from mixedals.recommender import Recommender

if TYPE_CHECKING:
    from usearch.index import Index


# USearch's effort in a search: its default, and one that finds nearly all.
_EXPANSIONS = (64, 256)


def build_index(model: Recommender, *, connectivity: int = 32, expansion_add: int = 256) -> "Index":
    """An index of the items for inner products with :func:`query_vectors`.

    Keys are positions in ``item_ids_``. Vectors are those of the common space; in models with
    biases the item's bias stands behind.

    Parameters
    ----------
    connectivity, expansion_add
        USearch's: larger values find more and take longer to build.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> len(build_index(model)) == len(model.item_ids_)
    True
    """
    items = model.item_vectors_
    if model.item_biases_ is not None:
        items = np.column_stack([items, model.item_biases_])
    index: Index = require("usearch.index", "export").Index(
        ndim=items.shape[1],
        metric="ip",
        dtype="f32",
        connectivity=connectivity,
        expansion_add=expansion_add,
    )
    keys = np.arange(len(items), dtype=np.uint64)
    index.add(keys, items, threads=thread_count(model.n_threads))
    return index


def query_vectors(model: Recommender) -> NDArray[np.float32]:
    """What to search the index with, for all users: their vectors, and 1 where items have biases.

    An inner product is the prediction less what is the same for all items: the mean and the user's
    bias.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> keys = build_index(model).search(query_vectors(model)[0], 5).keys
    >>> len(model.item_ids_[keys])
    5
    """
    users = model.user_vectors_
    if model.item_biases_ is None:
        return users
    return np.column_stack([users, np.ones(len(users), np.float32)])


def index_recall(
    index: "Index", model: Recommender, k: int = 10, n_users: int = 1000, random_state: int = 0
) -> float:
    """Share of the k best items, by an exact search of all, that the index finds.

    Parameters
    ----------
    index
        As :func:`build_index` makes it, with the ``expansion_search`` that it will be used with.
    model
        The model that it was made of.
    k
        Items a user.
    n_users, random_state
        How many users are drawn, and the seed of the draw.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> index_recall(build_index(model), model, k=5) > 0.9
    True
    """
    n_all = len(model.user_ids_)
    chosen = np.sort(np.random.default_rng(random_state).permutation(n_all)[:n_users])
    users, items = model._fitted.factors.scoring
    nothing = np.zeros(len(chosen) + 1, np.int64), np.empty(0, np.int32)
    threads = thread_count(model.n_threads)
    exact, _ = kernels.top_k(users[chosen], items, min(k, len(items)), *nothing, threads)
    keys = index.search(query_vectors(model)[chosen], exact.shape[1], threads=threads).keys
    found = np.asarray(keys).reshape(len(chosen), 1, -1).astype(np.int64)
    return float((exact[:, :, None] == found).any(axis=2).mean())


def write_index(
    model: Recommender, folder: str | os.PathLike[str], k: int = 10
) -> dict[int, float]:
    """Write the index, the items' ids and the users to search with; measure what it finds.

    ``items.usearch``, ``items.parquet`` (``key``, ``item``) and ``users.parquet`` (``user``,
    ``vector``).

    Returns
    -------
    dict
        Recall at k of the index as read from the file, by ``expansion_search``, which the file
        doesn't keep.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> list(write_index(model, folder, k=5))  # recall by effort
    [64, 256]
    """
    path = made(folder) / "items.usearch"
    with replacing(path) as temporary:
        build_index(model).save(temporary)
    fitted = model._fitted
    keys = np.arange(len(fitted.items), dtype=np.uint64)
    write_frame(pl.DataFrame({"key": keys, "item": fitted.items.values}), folder, "items.parquet")
    queries = {"user": fitted.users.values, "vector": pl.Series(query_vectors(model))}
    write_frame(pl.DataFrame(queries), folder, "users.parquet")
    index = require("usearch.index", "export").Index.restore(path)
    recall = {}
    for index.expansion_search in _EXPANSIONS:
        recall[index.expansion_search] = index_recall(index, model, k)
    return recall
