"""What a fitted model answers: predictions, recommendations, likenesses, new rows."""

import copy
from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from mixedals import _kernels as kernels
from mixedals import foldin
from mixedals._columns import column_names, two_columns
from mixedals._ids import Vocabulary
from mixedals._threads import thread_count
from mixedals.interactions import Interactions
from mixedals.model import FittedModel, Seen

# Recommendations that are made at once: bounds the memory beside the result.
_BATCH = 1 << 18


class UnknownIdError(KeyError):
    """An id that the model was not fitted to.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> try:
    ...     model.recommend("nobody")
    ... except TypeError as error:  # not even an id of the right type
    ...     print(error)
    the ids here are of type int64, but those asked for are of type str: convert them to int64
    >>> try:
    ...     model.recommend(-1)
    ... except UnknownIdError as error:
    ...     print(error)
    1 of 1 users are not in the model, first -1: fold_in_users adds those that have ratings
    """

    def __str__(self) -> str:
        return str(self.args[0])


class Recommender:
    """The questions that a fitted model answers. ``MixedALS`` is one."""

    n_threads: int | None
    _model: FittedModel | None = None

    @property
    def _fitted(self) -> FittedModel:
        if self._model is None:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._model

    @property
    def user_ids_(self) -> NDArray[Any]:
        """Ids of the users, sorted: the order of ``user_vectors_``."""
        return self._fitted.users.ids

    @property
    def item_ids_(self) -> NDArray[Any]:
        """Ids of the items, sorted: the order of ``item_vectors_``."""
        return self._fitted.items.ids

    @property
    def user_vectors_(self) -> NDArray[np.float32]:
        """Users in the common space, float32 (n_users, d)."""
        return self._fitted.factors.users.common

    @property
    def item_vectors_(self) -> NDArray[np.float32]:
        """Items in the common space, float32 (n_items, d)."""
        return self._fitted.factors.items.common

    @property
    def user_dims_(self) -> NDArray[np.int32]:
        """Embedding size of each user, int32 (n_users,)."""
        return self._fitted.factors.users.dims

    @property
    def item_dims_(self) -> NDArray[np.int32]:
        """Embedding size of each item, int32 (n_items,)."""
        return self._fitted.factors.items.dims

    @property
    def user_biases_(self) -> NDArray[np.float32] | None:
        """Bias of each user, float32 (n_users,); None in a model without biases."""
        return _read_only(self._fitted.factors.users.biases)

    @property
    def item_biases_(self) -> NDArray[np.float32] | None:
        """Bias of each item, float32 (n_items,); None in a model without biases."""
        return _read_only(self._fitted.factors.items.biases)

    @property
    def mean_(self) -> float:
        """The constant in every prediction: the mean rating, or 0 in a model without one."""
        return self._fitted.factors.mean

    @property
    def n_parameters_(self) -> int:
        """Sum of all dimensions, the learned projections, and biases where there are any."""
        return self._fitted.factors.n_parameters

    def predict(
        self,
        users: ArrayLike,
        items: ArrayLike | None = None,
        *,
        unknown: Literal["nan", "mean"] = "nan",
    ) -> NDArray[np.float32]:
        """Predicted ratings of pairs, float32 (n,).

        Parameters
        ----------
        users, items
            Ids, as many of one as of the other. A table of two columns, users and items, may stand
            in place of both.
        unknown
            What a pair gets whose user or item the model doesn't know: NaN, or the mean rating.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model.predict([1, 2], [3, 4]).shape
        (2,)
        >>> model.predict([-1], [3])
        array([nan], dtype=float32)
        """
        if unknown not in ("nan", "mean"):
            raise ValueError(f"unknown={unknown!r}: it must be 'nan' or 'mean'")
        model = self._fitted
        if items is None:
            self._check_names(users)
            users, items = two_columns(users)
        user_rows, item_rows = model.users.encode(users), model.items.encode(items)
        if len(user_rows) != len(item_rows):
            raise ValueError(f"{len(user_rows)} users but {len(item_rows)} items: give pairs")
        left, right = model.factors.scoring
        out = kernels.predict_pairs(left, right, user_rows, item_rows, self._threads)
        if unknown == "mean":
            out[(user_rows < 0) | (item_rows < 0)] = model.mean_rating
        return out

    def predict_grid(self, users: ArrayLike, items: ArrayLike) -> NDArray[np.float32]:
        """Predicted ratings of every given user for every given item, float32 (users, items).

        Rows and columns of unknown ids are NaN.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model.predict_grid([1, 2], [3, 4, 5]).shape
        (2, 3)
        """
        model = self._fitted
        rows, columns = model.users.encode(users), model.items.encode(items)
        left, right = model.factors.scoring
        out = kernels.predict_grid(left[rows], right[columns], self._threads)
        out[rows < 0] = np.nan
        out[:, columns < 0] = np.nan
        return out

    def recommend(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        among: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
    ) -> pl.DataFrame:
        """The k items of highest predicted rating for each user, best first.

        Parameters
        ----------
        users
            Ids; None is everybody.
        k
            Items a user. A user gets fewer only where fewer are left.
        exclude_seen
            Leave out the items that the user has rated in training.
        among, exclude
            Ids of the only items that may appear, and of items that may not. Ids that the model
            doesn't know never appear.

        Returns
        -------
        polars.DataFrame
            Columns ``user``, ``item``, ``score`` and ``rank`` (from 1), ids in their own type,
            users in the order given. Memory beside it doesn't grow with the number of users.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model.recommend([1, 2], k=3).columns
        ['user', 'item', 'score', 'rank']
        >>> len(model.recommend([1, 2], k=3, exclude=[4, 5]))
        6
        """
        first, *others = self.recommend_batches(
            users, k, exclude_seen=exclude_seen, among=among, exclude=exclude
        )
        for batch in others:  # not pl.concat, whose threads a fork doesn't bring along
            first.vstack(batch, in_place=True)
        return first

    def recommend_batches(
        self,
        users: ArrayLike | None = None,
        k: int = 10,
        *,
        exclude_seen: bool = True,
        among: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
    ) -> Iterator[pl.DataFrame]:
        """As :meth:`recommend`, some thousands of users at a time: for what memory can't hold.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> sum(len(batch) for batch in model.recommend_batches(k=2)) == 2 * len(model.user_ids_)
        True
        """
        model = self._fitted
        _check_k(k)
        if users is None:
            user_rows = np.arange(len(model.users), dtype=np.int32)
        else:
            user_rows = _known(model.users, users, "users")
        candidates = _candidates(model.items, among, exclude)
        for batch, found, scores in best_items(
            model, user_rows, k, candidates, exclude_seen=exclude_seen, n_threads=self._threads
        ):
            yield _ranking(
                ("user", model.users, batch), ("item", model.items, candidates), found, scores
            )

    def similar_items(
        self, items: ArrayLike, k: int = 10, *, metric: Literal["cosine", "dot"] = "cosine"
    ) -> pl.DataFrame:
        """The k items nearest to each item in the common space, itself left out.

        Returns
        -------
        polars.DataFrame
            Columns ``item``, ``similar_item``, ``score`` and ``rank``.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model.similar_items([3], k=2)["rank"].to_list()
        [1, 2]
        """
        return self._similar("item", self._fitted.items, self.item_vectors_, items, k, metric)

    def similar_users(
        self, users: ArrayLike, k: int = 10, *, metric: Literal["cosine", "dot"] = "cosine"
    ) -> pl.DataFrame:
        """The k users nearest to each user in the common space, themselves left out.

        Returns
        -------
        polars.DataFrame
            Columns ``user``, ``similar_user``, ``score`` and ``rank``.

        Examples
        --------
        >>> from mixedals import MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model.similar_users([1], k=2).columns
        ['user', 'similar_user', 'score', 'rank']
        """
        return self._similar("user", self._fitted.users, self.user_vectors_, users, k, metric)

    def fold_in_users(self, interactions: Interactions, *, dims: foldin.GivenSizes = None) -> Self:
        """The model with these users in it, everything else fixed; this one stays as it is.

        Parameters
        ----------
        interactions
            The users' ratings, all that they have: a user whom the model knows is solved anew from
            these alone. Items must be in the model.
        dims
            Sizes of the users, as an array in their order or a mapping. By default the fitted
            sizing gives them from the number of ratings; that of a budget, from the ratings.

        Examples
        --------
        >>> from mixedals import Interactions, MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model = model.fold_in_users(Interactions.from_arrays([-1, -1], [3, 4], [5.0, 1.0]))
        >>> len(model.recommend(-1, k=5))
        5
        """
        return self._with(foldin.fold_in_users, interactions, dims)

    def fold_in_items(self, interactions: Interactions, *, dims: foldin.GivenSizes = None) -> Self:
        """The model with these items in it; as :meth:`fold_in_users` with the sides exchanged.

        Examples
        --------
        >>> from mixedals import Interactions, MixedALS
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> model = model.fold_in_items(Interactions.from_arrays([1, 2], [-1, -1], [5.0, 4.0]))
        >>> model.similar_items([-1], k=3).height
        3
        """
        return self._with(foldin.fold_in_items, interactions, dims)

    def _check_names(self, pairs: Any) -> None:
        """Refuses a table with other column names, or in another order, than that of ``fit``."""
        names, fitted = column_names(pairs), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and names != fitted.tolist():
            raise ValueError(f"expected the columns {fitted.tolist()} of fit, but got {names}")

    @property
    def _threads(self) -> int:
        return thread_count(self.n_threads)

    def _with(self, fold_in: Any, interactions: Interactions, dims: foldin.GivenSizes) -> Self:
        if not isinstance(interactions, Interactions):
            raise TypeError(
                f"new rows come as Interactions, not {type(interactions).__name__}: make them with "
                "Interactions.from_frame or from_arrays"
            )
        out = copy.copy(self)
        out._model = fold_in(self._fitted, interactions, dims)
        return out

    def _similar(
        self,
        name: str,
        vocabulary: Vocabulary,
        vectors: NDArray[np.float32],
        ids: ArrayLike,
        k: int,
        metric: str,
    ) -> pl.DataFrame:
        if metric not in ("cosine", "dot"):
            raise ValueError(f"metric={metric!r}: it must be 'cosine' or 'dot'")
        _check_k(k)
        rows = _known(vocabulary, ids, f"{name}s")
        if metric == "cosine":
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = (vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        each_itself = np.arange(len(rows) + 1)
        found, scores = kernels.top_k(
            vectors[rows], vectors, min(k, len(vectors)), each_itself, rows, self._threads
        )
        everyone = np.arange(len(vocabulary), dtype=np.int32)
        return _ranking(
            (name, vocabulary, rows), (f"similar_{name}", vocabulary, everyone), found, scores
        )


def _read_only(array: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    if array is not None:
        array = array.view()
        array.flags.writeable = False
    return array


def _check_k(k: int) -> None:
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r}: it must be an integer from 1")


def best_items(
    model: FittedModel,
    users: NDArray[np.int32],
    k: int,
    candidates: NDArray[np.int32],
    *,
    exclude_seen: bool,
    n_threads: int,
) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]]:
    """The k best of the candidates for each user, some thousands at a time.

    Parameters
    ----------
    users, candidates
        Positions; the candidates rise.

    Yields
    ------
    The users (n,) of a batch, where among the candidates their best stand, and the scores of these,
    (n, k), or narrower where there are fewer than k candidates. Where fewer are left, -1.
    """
    position = np.full(len(model.items), -1, np.int32)
    position[candidates] = np.arange(len(candidates), dtype=np.int32)
    left, right = model.factors.scoring
    right = right if len(candidates) == len(model.items) else right[candidates]
    k = max(min(k, len(candidates)), 1)
    size = max(_BATCH // k, 1)
    for first in range(0, max(len(users), 1), size):
        batch = users[first : first + size]
        left_out = (
            model.seen.of(batch).relabelled(position)
            if exclude_seen
            else Seen(np.zeros(len(batch) + 1, np.int64), np.empty(0, np.int32))
        )
        found, scores = kernels.top_k(
            left[batch], right, k, left_out.indptr, left_out.indices, n_threads
        )
        yield batch, found, scores


def _known(vocabulary: Vocabulary, ids: ArrayLike, side: str) -> NDArray[np.int32]:
    """Positions of ids, all of which the model must know."""
    rows = vocabulary.encode(ids)
    unknown = np.flatnonzero(rows < 0)
    if len(unknown):
        first = ids if np.ndim(ids) == 0 else list(ids)[unknown[0]]  # type: ignore[arg-type]  # sized: it has unknown ids
        raise UnknownIdError(
            f"{len(unknown)} of {len(rows)} {side} are not in the model, first {first!r}: "
            f"fold_in_{side} adds those that have ratings"
        )
    return rows


def _candidates(
    items: Vocabulary, among: ArrayLike | None, exclude: ArrayLike | None
) -> NDArray[np.int32]:
    allowed = np.ones(len(items), bool)
    if among is not None:
        allowed[:] = False
        rows = items.encode(among)
        allowed[rows[rows >= 0]] = True
    if exclude is not None:
        rows = items.encode(exclude)
        allowed[rows[rows >= 0]] = False
    return np.flatnonzero(allowed).astype(np.int32)


def _ranking(
    queries: tuple[str, Vocabulary, NDArray[np.int32]],
    answers: tuple[str, Vocabulary, NDArray[np.int32]],
    found: NDArray[np.int32],
    scores: NDArray[np.float32],
) -> pl.DataFrame:
    """A row for each answer: query, answer, score, rank."""
    there = found >= 0
    query_name, query_ids, rows = queries
    answer_name, answer_ids, candidates = answers
    rank = np.broadcast_to(np.arange(1, found.shape[1] + 1, dtype=np.int32), found.shape)
    return pl.DataFrame(
        {
            query_name: query_ids.decode(np.repeat(rows, there.sum(axis=1))),
            answer_name: answer_ids.decode(candidates[found[there]]),
            "score": scores[there],
            "rank": rank[there],
        }
    )
