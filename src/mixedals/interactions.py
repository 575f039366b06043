"""Who rated what: the ratings in compressed rows of users and of items, with the ids of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from mixedals import _kernels
from mixedals._columns import columns_of, columns_of_files, to_series
from mixedals._ids import Positions, Vocabulary, encode
from mixedals._rows import Duplicates, Rows, checked_rows, starts_of_pairs
from mixedals._threads import thread_count

OptionalColumn = str | Literal[False] | None


@dataclass(frozen=True, eq=False, repr=False)
class Interactions:
    """Ratings by users of items, immutable and in canonical order: by user id, then by item id.

    Make them with ``from_frame``, ``from_arrays``, ``from_matrix`` or ``read``. The order of the
    input makes no difference. A pair of user and item occurs once.

    Attributes
    ----------
    user_vocabulary, item_vocabulary : Vocabulary
        The ids; the position of an id is its row in all that is computed from these ratings.
    by_user : Csr
        The ratings, float32, in a row for every user, items ascending; and their weights.
    timestamps : int64 (len,) or None
        In the order of ``by_user``.
    columns : mapping of str to str
        From which column of a frame or file each role was taken; empty for arrays and matrices.

    Examples
    --------
    >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
    >>> data
    Interactions: 3 ratings by 2 users of 2 items (75.00% filled)
    >>> data.users
    array([1, 2])
    """

    user_vocabulary: Vocabulary
    item_vocabulary: Vocabulary
    by_user: _kernels.Csr
    timestamps: NDArray[np.int64] | None
    columns: Mapping[str, str]

    @classmethod
    def from_frame(
        cls,
        df: Any,
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: OptionalColumn = None,
        weight: OptionalColumn = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Take the ratings from the columns of a frame.

        Parameters
        ----------
        df : frame
            A polars DataFrame or LazyFrame, a pandas DataFrame, a dict of arrays, or whatever
            has the Arrow PyCapsule interface (a pyarrow Table, a DuckDB relation...).
        user, item, rating, timestamp, weight : str, optional
            Names of columns. One that isn't given is recognised among common names whatever
            their case (``userId``, ``movie_id``, ``stars``, ``date``..., all of them in
            ``mixedals._columns.ALIASES``), where exactly one column has such a name; ``repr``
            tells which. ``False`` leaves timestamps or weights out.
        duplicates : {"error", "last", "mean"}
            What becomes of several ratings of an item by a user: an error; the latest by
            timestamp, and then by position; or their mean by weight, with the sum of the
            weights and the latest timestamp.

        Examples
        --------
        >>> frame = {"userId": [1, 1, 2], "movieId": [10, 20, 10], "stars": [5.0, 3.0, 4.0]}
        >>> dict(Interactions.from_frame(frame).columns)
        {'user': 'userId', 'item': 'movieId', 'rating': 'stars'}
        """
        given = {
            "user": user, "item": item, "rating": rating, "timestamp": timestamp, "weight": weight
        }  # fmt: skip
        return cls._from_columns(*columns_of(df, given), duplicates)

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        ratings: Any,
        timestamps: Any = None,
        weights: Any = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        """Take the ratings from arrays, lists or series of equal length.

        Ids are integers, strings, bytes, ``uuid.UUID`` objects, floats, booleans, dates or
        datetimes. Timestamps are whole numbers, dates, datetimes, or their text. ``duplicates``
        is as in ``from_frame``.

        Examples
        --------
        >>> len(Interactions.from_arrays([1, 1], ["a", "a"], [5.0, 3.0], duplicates="mean"))
        1
        """
        given = {
            "user": users, "item": items, "rating": ratings, "timestamp": timestamps,
            "weight": weights,
        }  # fmt: skip
        columns = {
            role: to_series(values, f"{role}s")
            for role, values in given.items()
            if values is not None
        }
        return cls._from_columns(columns, {}, duplicates)

    @classmethod
    def from_matrix(cls, matrix: Any, duplicates: Duplicates = "error") -> Self:
        """Take the ratings from a SciPy sparse matrix with users as rows and items as columns.

        Ids are the positions 0 to n - 1, also of rows and columns without ratings. Zeros that
        the matrix stores are ratings. ``duplicates`` is as in ``from_frame``.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Interactions.from_matrix(sp.csr_array([[5.0, 0.0], [0.0, 3.0]])).n_users
        2
        """
        if not hasattr(matrix, "tocoo") or len(matrix.shape) != 2:
            raise TypeError(
                f"from_matrix needs a two-dimensional SciPy sparse matrix, not {type(matrix)}; "
                "of a dense one, scipy.sparse.coo_array keeps the entries that aren't zero"
            )
        if max(matrix.shape) > np.iinfo(np.int32).max:
            raise ValueError(f"a matrix of shape {matrix.shape}: a side has at most 2^31 - 1 rows")
        coo = matrix.tocoo()
        pairs = {
            "user": pl.Series(coo.row.astype(np.int32, copy=False)),
            "item": pl.Series(coo.col.astype(np.int32, copy=False)),
            "rating": pl.Series(coo.data),
        }
        rows = checked_rows(pairs)
        users, items = (Vocabulary(pl.Series(np.arange(n)), "int64") for n in coo.shape)
        pair_codes = [pairs["user"].to_numpy(), pairs["item"].to_numpy()]
        return cls._from_codes(users, items, pair_codes, rows, {}, duplicates)

    @classmethod
    def read(
        cls,
        path: str | Path | list[str | Path],
        user: str | None = None,
        item: str | None = None,
        rating: str | None = None,
        timestamp: OptionalColumn = None,
        weight: OptionalColumn = None,
        duplicates: Duplicates = "error",
    ) -> Self:
        r"""Take the ratings from files, of which only the columns needed are read.

        Parameters
        ----------
        path : str, Path or list of them
            Files of one format, by their suffix: csv, tsv, parquet, arrow, feather, ipc, ndjson
            or jsonl. A path may be a pattern (``"ratings-*.parquet"``). CSV and TSV need a line
            with names; ids that look like integers become integers, without leading zeros.
        user, item, rating, timestamp, weight, duplicates
            As in ``from_frame``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "ratings.csv"
        >>> _ = path.write_text("user,item,rating\nann,1,5\nbob,1,3.5\n")
        >>> Interactions.read(path).users.tolist()
        ['ann', 'bob']
        """
        given = {
            "user": user, "item": item, "rating": rating, "timestamp": timestamp, "weight": weight
        }  # fmt: skip
        return cls._from_columns(*columns_of_files(path, given), duplicates)

    @classmethod
    def _from_columns(
        cls, columns: dict[str, pl.Series], names: Mapping[str, str], duplicates: Duplicates
    ) -> Self:
        rows = checked_rows(columns)
        n_threads = thread_count(None)
        sides = (encode(columns.pop(side), n_threads) for side in ("user", "item"))
        (users, items), codes = map(list, zip(*sides, strict=True))
        columns.clear()
        return cls._from_codes(users, items, codes, rows, names, duplicates)

    @classmethod
    def _from_codes(
        cls,
        users: Vocabulary,
        items: Vocabulary,
        codes: list[Positions],
        rows: Rows,
        names: Mapping[str, str],
        duplicates: Duplicates,
    ) -> Self:
        """Put checked rows into canonical order. ``codes`` is emptied, to free its arrays early."""
        if duplicates not in get_args(Duplicates):
            raise ValueError(
                f"duplicates must be one of {get_args(Duplicates)}, not {duplicates!r}"
            )
        n_threads = thread_count(None)
        indptr, order = _kernels.order_of_pairs(
            codes[0], codes[1], len(users), len(items), n_threads
        )
        codes.pop(0)
        indices = _kernels.take(codes.pop(), order, n_threads)
        starts = starts_of_pairs(indptr, indices)
        if starts is not None and duplicates == "error":
            at = starts[np.diff(starts, append=len(indices)) > 1][0]
            row = np.searchsorted(indptr, [at], side="right") - 1
            user, item = users.decode(row)[0], items.decode(indices[[at]])[0]
            raise ValueError(
                f"{len(indices) - len(starts):,} of {len(indices):,} rows rate an item that the "
                f"same user has rated before. The first pair: user={user!r}, "
                f"item={item!r} in rows {order[at]} and {order[at + 1]}, counted "
                'from 0. Say duplicates="last" to keep the latest rating of a pair, or '
                'duplicates="mean" for their mean'
            )
        rows.take(order, n_threads)
        if starts is not None:
            indptr, indices = np.searchsorted(starts, indptr), indices[starts]
            if duplicates == "mean":
                rows = rows.mean(starts)
            else:
                rows.take(rows.latest(starts), n_threads)
        return cls._of(users, items, indptr, indices, rows, names)

    @classmethod
    def _of(
        cls,
        users: Vocabulary,
        items: Vocabulary,
        indptr: NDArray[np.int64],
        indices: Positions,
        rows: Rows,
        names: Mapping[str, str],
    ) -> Self:
        for array in (indptr, indices, rows.ratings, rows.weights, rows.timestamps):
            if array is not None:
                array.flags.writeable = False
        by_user = _kernels.Csr(indptr, indices, rows.ratings, len(items), rows.weights)
        return cls(users, items, by_user, rows.timestamps, names)

    def __reduce__(self) -> tuple[Any, ...]:
        csr = self.by_user
        rows = Rows(csr.values, self.timestamps, csr.weights)
        return self._of, (
            self.user_vocabulary, self.item_vocabulary, csr.indptr, csr.indices, rows, self.columns
        )  # fmt: skip

    def __len__(self) -> int:
        return self.by_user.nnz

    def __repr__(self) -> str:
        filled = len(self) / max(self.n_users * self.n_items, 1)
        extra = [
            name
            for name, values in (("timestamps", self.timestamps), ("weights", self.by_user.weights))
            if values is not None
        ]
        taken = ", ".join(f"{role}={name!r}" for role, name in self.columns.items())
        return (
            f"Interactions: {len(self):,} ratings by {self.n_users:,} users of {self.n_items:,} "
            f"items ({filled:.2%} filled)"
            + (f", with {' and '.join(extra)}" if extra else "")
            + (f", from columns {taken}" if taken else "")
        )

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.user_vocabulary)

    @property
    def n_items(self) -> int:
        """The number of items."""
        return len(self.item_vocabulary)

    @property
    def users(self) -> NDArray[Any]:
        """The ids (n_users,) of the users, ascending, in their own type."""
        return self.user_vocabulary.ids

    @property
    def items(self) -> NDArray[Any]:
        """The ids (n_items,) of the items, ascending, in their own type."""
        return self.item_vocabulary.ids

    @cached_property
    def by_item(self) -> _kernels.Csr:
        """The ratings in a row for every item, users ascending; made when first asked for."""
        return self.by_user.transposed(thread_count(None))

    def to_frame(self) -> pl.DataFrame:
        """Give columns user, item and rating, and timestamp and weight where there are some.

        Examples
        --------
        >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
        >>> data.to_frame().rows()
        [(1, 'a', 5.0), (1, 'b', 3.0), (2, 'a', 4.0)]
        """
        csr = self.by_user
        columns = {
            "user": self.user_vocabulary.decode(self._user_rows()),
            "item": self.item_vocabulary.decode(csr.indices),
            "rating": csr.values,
            "timestamp": self.timestamps,
            "weight": csr.weights,
        }
        return pl.DataFrame({name: of for name, of in columns.items() if of is not None})

    def subset(self, which: ArrayLike) -> Self:
        """Keep some of the ratings, and only the users and items that have one among them.

        Parameters
        ----------
        which : bool (len,) or integers (k,)
            A mask over the ratings in the order of ``by_user``, or distinct positions there.

        Examples
        --------
        >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
        >>> data.subset([2]).to_frame().rows()
        [(2, 'a', 4.0)]
        """
        n_threads = thread_count(None)
        csr = self.by_user
        positions = self._positions(which)
        indptr = np.searchsorted(positions, csr.indptr)
        indices = _kernels.take(csr.indices, positions, n_threads)
        users = np.flatnonzero(np.diff(indptr))
        has_rating = np.zeros(self.n_items, dtype=bool)
        has_rating[indices] = True
        new_index = np.cumsum(has_rating, dtype=np.int32) - 1
        return self._of(
            self.user_vocabulary.take(users),
            self.item_vocabulary.take(np.flatnonzero(has_rating)),
            np.append(indptr[users], len(positions)),
            new_index[indices],
            Rows(csr.values, self.timestamps, csr.weights).take(positions, n_threads),
            self.columns,
        )

    def binarise(self, at_most: float = 2, at_least: float = 4) -> Self:
        """Make ratings up to ``at_most`` 0, and those from ``at_least`` 1.

        The ratings between the two are removed, and with them users and items that have no others.

        Examples
        --------
        >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
        >>> data.binarise(at_most=3, at_least=5).to_frame().rows()
        [(1, 'a', 1.0), (1, 'b', 0.0)]
        """
        if not at_most < at_least:
            raise ValueError(f"at_most ({at_most}) must be less than at_least ({at_least})")
        values = self.by_user.values
        kept = self.subset((values <= at_most) | (values >= at_least))
        csr = kept.by_user
        binary = (csr.values >= at_least).astype(np.float32)
        rows = Rows(binary, kept.timestamps, csr.weights)
        return self._of(
            kept.user_vocabulary, kept.item_vocabulary, csr.indptr, csr.indices, rows, self.columns
        )

    def at_least(self, user: int = 0, item: int = 0) -> Self:
        """Keep the users with ``user`` ratings or more and the items with ``item`` or more.

        Counted once: afterwards some may have fewer, as ratings went with the other side.

        Examples
        --------
        >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
        >>> data.at_least(user=2).users.tolist()
        [1]
        """
        csr = self.by_user
        return self._among(
            np.diff(csr.indptr) >= user,
            np.bincount(csr.indices, minlength=self.n_items) >= item,
        )

    def restrict_to(self, other: "Interactions") -> Self:
        """Keep the ratings of which ``other`` has both the user and the item.

        Examples
        --------
        >>> data = Interactions.from_arrays([1, 1, 2], ["a", "b", "a"], [5.0, 3.0, 4.0])
        >>> later = Interactions.from_arrays([2, 3], ["b", "b"], [1.0, 2.0])
        >>> later.restrict_to(data).to_frame().rows()
        [(2, 'b', 1.0)]
        """
        return self._among(
            other.user_vocabulary.match(self.user_vocabulary) >= 0,
            other.item_vocabulary.match(self.item_vocabulary) >= 0,
        )

    def _among(self, users: NDArray[np.bool_], items: NDArray[np.bool_]) -> Self:
        csr = self.by_user
        return self.subset(np.repeat(users, np.diff(csr.indptr)) & items[csr.indices])

    def _user_rows(self) -> Positions:
        return np.repeat(np.arange(self.n_users, dtype=np.int32), np.diff(self.by_user.indptr))

    def _positions(self, which: ArrayLike) -> NDArray[np.int64]:
        """Ascending positions of ratings, from a mask or from positions in any order."""
        chosen = np.asarray(which)
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise ValueError(
                    f"a mask needs one entry for each of the {len(self):,} ratings, but has shape "
                    f"{chosen.shape}"
                )
            return np.flatnonzero(chosen)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise TypeError("which must be a mask or a one-dimensional array of positions")
        positions = np.sort(chosen).astype(np.int64)
        if len(positions) and (positions[0] < 0 or positions[-1] >= len(self)):
            raise ValueError(f"positions must be from 0 to {len(self) - 1}")
        if (positions[1:] == positions[:-1]).any():
            raise ValueError("positions must be distinct")
        return positions
