"""What comes with a pair of user and item: checked, put in order, one for every pair."""

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals import _kernels
from mixedals._columns import to_array
from mixedals._ids import is_missing

Duplicates = Literal["error", "last", "mean"]


@dataclass
class Rows:
    """The ratings (n,) of pairs, and their timestamps and weights where they have some."""

    ratings: NDArray[np.float32]
    timestamps: NDArray[np.int64] | None
    weights: NDArray[np.float32] | None

    def take(self, positions: NDArray[np.uint32] | NDArray[np.int64], n_threads: int) -> Self:
        """Keep those at these positions, in place: what isn't needed any more is freed early."""
        self.ratings = _kernels.take(self.ratings, positions, n_threads)
        if self.weights is not None:
            self.weights = _kernels.take(self.weights, positions, n_threads)
        if self.timestamps is not None:
            self.timestamps = _kernels.take(self.timestamps, positions, n_threads)
        return self

    def latest(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the latest row of each run; of equally late ones the last."""
        ends = np.append(starts[1:], len(self.ratings))
        if self.timestamps is None:
            return ends - 1
        late = np.repeat(np.maximum.reduceat(self.timestamps, starts), ends - starts)
        positions = np.where(self.timestamps == late, np.arange(len(late)), -1)
        return np.maximum.reduceat(positions, starts)

    def mean(self, starts: NDArray[np.int64]) -> Self:
        """Merge each run: the mean by weight, the latest timestamp, the sum of weights."""
        timestamps, weights = self.timestamps, self.weights
        sizes = np.diff(starts, append=len(self.ratings))
        share = np.ones(len(self.ratings)) if weights is None else weights.astype(np.float64)
        total = np.add.reduceat(share, starts)
        share[np.repeat(total == 0, sizes)] = 1  # where nothing has weight, the plain mean
        mean = np.add.reduceat(share * self.ratings, starts) / np.add.reduceat(share, starts)
        if total.max(initial=0) > np.finfo(np.float32).max:
            raise ValueError("the weights of a pair's ratings sum to more than 32 bits can hold")
        return type(self)(
            mean.astype(np.float32),
            None if timestamps is None else np.maximum.reduceat(timestamps, starts),
            None if weights is None else total.astype(np.float32),
        )


def starts_of_pairs(
    indptr: NDArray[np.int64], indices: NDArray[np.int32]
) -> NDArray[np.int64] | None:
    """Give the position of the first rating of each pair; None where no pair repeats."""
    repeats = np.zeros(len(indices), dtype=bool)
    np.equal(indices[1:], indices[:-1], out=repeats[1:])
    repeats[indptr[:-1][indptr[:-1] < len(repeats)]] = False  # a row's first repeats nothing
    return np.flatnonzero(~repeats) if repeats.any() else None


def checked_rows(columns: dict[str, pl.Series]) -> Rows:
    """Check all of an input but the types of the ids and the duplicates."""
    lengths = {role: len(column) for role, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{role} {length:,}" for role, length in lengths.items())
        raise ValueError(f"the columns differ in length: {listed}")
    if not lengths["rating"]:
        raise ValueError("there are no ratings: the input is empty")
    for role in ("user", "item"):
        _refuse(columns, is_missing(columns[role]), f"have no {role}: drop them or fill them in")
    ratings = _numbers(columns, "rating")
    weights = timestamps = None
    if "weight" in columns:
        weights = _numbers(columns, "weight")
        _refuse(columns, pl.Series(weights) < 0, "have a negative weight")
    if "timestamp" in columns:
        timestamps = _moments(columns)
    return Rows(ratings, timestamps, weights)


def _refuse(columns: dict[str, pl.Series], bad: pl.Series, what: str) -> None:
    """Raise an error that counts the bad rows and shows the first."""
    if not bad.any():
        return
    row = int(bad.to_numpy().argmax())
    values = ", ".join(f"{role}={column[row]!r}" for role, column in columns.items())
    raise ValueError(
        f"{bad.sum():,} of {len(bad):,} rows {what}. The first is row {row}, counted from 0: "
        f"{values}"
    )


def _numbers(columns: dict[str, pl.Series], role: str) -> NDArray[np.float32]:
    column = columns[role]
    if column.dtype == pl.String:
        bad = column.cast(pl.Float64, strict=False).is_null() & column.is_not_null()
        _refuse(columns, bad, f"have a {role} that isn't a number: drop or mend them")
    if not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
        raise TypeError(f"{role}s must be numbers, but are of type {column.dtype}: convert them")
    if not (column.dtype.is_integer() or column.dtype.is_float()):
        column = column.cast(pl.Float32)
    with np.errstate(over="ignore"):
        numbers = to_array(column, np.float32)  # nulls become NaN
    if not np.isfinite([numbers.min(), numbers.max()]).all():
        bad = pl.Series(~np.isfinite(numbers))
        what = f"have a {role} that isn't a finite number in 32 bits: drop or mend them"
        _refuse(columns, bad, what)
    return numbers


def _moments(columns: dict[str, pl.Series]) -> NDArray[np.int64]:
    """Turn timestamps into integers: they serve only for order."""
    column = columns["timestamp"]
    if column.dtype == pl.String:
        try:
            column = column.str.to_datetime(time_unit="us")
        except pl.exceptions.PolarsError as error:
            raise ValueError(
                f"timestamps are text that isn't understood ({error}): convert them to datetimes "
                "or integers, or leave them out"
            ) from error
    if not (column.dtype.is_numeric() or column.dtype in (pl.Date, pl.Datetime, pl.Null)):
        raise TypeError(
            f"timestamps must be integers, dates or datetimes, but are of type {column.dtype}: "
            "convert them, or leave them out"
        )
    whole = column.cast(pl.Int64, strict=False)
    bad = whole.is_null()
    if column.dtype.is_numeric():
        bad |= (whole.cast(column.dtype, strict=False) != column).fill_null(True)
    _refuse(
        columns, bad, "have a timestamp that is missing or not a whole number: mend them, or scale "
        "them, or leave timestamps out"
    )  # fmt: skip
    return to_array(whole, np.int64)
