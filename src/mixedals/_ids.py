"""Ids of users and items: any type outside, positions in a sorted vocabulary inside."""

import itertools
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals import _kernels
from mixedals._columns import to_array, to_series
from mixedals._threads import forked

_STORED_AS: dict[str, pl.DataType] = {
    **{f"int{bits}": getattr(pl, f"Int{bits}")() for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(pl, f"UInt{bits}")() for bits in (8, 16, 32, 64)},
    "float32": pl.Float32(),
    "float64": pl.Float64(),
    "bool": pl.Boolean(),
    "date": pl.Date(),
    **{f"datetime64[{unit}]": pl.Datetime(unit) for unit in ("ms", "us", "ns")},
    "str": pl.String(),
    "bytes": pl.Binary(),
    "uuid": pl.String(),  # the canonical text: polars has no type for them
}
_KIND_OF = {dtype: kind for kind, dtype in _STORED_AS.items() if kind != "uuid"}

Positions = NDArray[np.int32]

# Up to so many ids are looked up in the sorted vocabulary; more are joined with it.
_FEW = 100_000


def is_missing(ids: pl.Series) -> pl.Series:
    """Tell which ids are null or NaN, as a Boolean series."""
    return ids.is_null() | ids.is_nan().fill_null(True) if ids.dtype.is_float() else ids.is_null()


def _stored(ids: pl.Series) -> tuple[pl.Series, str]:
    """Give ids as a vocabulary stores them, and their kind; categories stay categories."""
    if ids.dtype == pl.Object:
        values = ids.to_list()
        if all(isinstance(value, uuid.UUID | None) for value in values):
            text = [None if value is None else str(value) for value in values]
            return pl.Series(text, dtype=pl.String), "uuid"
    elif ids.dtype in (pl.Categorical, pl.Enum):
        return ids, "str"
    elif ids.dtype in _KIND_OF:
        if ids.dtype.is_float():
            # NumPy's zero makes -0.0 the same id as 0.0; polars leaves out an addition of zero.
            ids = pl.Series(ids.to_numpy() + 0)
        return ids, _KIND_OF[ids.dtype]
    elif ids.dtype.is_integer():
        raise TypeError("integer ids must fit into 64 bits: give larger ones as strings")
    raise TypeError(
        f"ids can't be of type {ids.dtype}: give integers, strings, bytes, UUIDs, floats, "
        "booleans, dates, or datetimes without a time zone"
    )


def _family(dtype: pl.DataType) -> str:
    """Name what is shared by the types that are compared by value."""
    if dtype.is_integer():
        return "integers"
    return "floats" if dtype.is_float() else f"{dtype.base_type()}"


def _comparable(ids: pl.Series) -> NDArray[Any]:
    """Give stored ids, none missing, as an array that NumPy compares as polars does."""
    return (ids.to_physical() if ids.dtype.is_temporal() else ids).to_numpy()


def _common_type(a: pl.Series, b: pl.Series) -> pl.DataType:
    """Find the type of ids that holds those of both, of one family: that of ``a`` if it can."""
    for dtype in (a.dtype, b.dtype, pl.Int64()):
        if _family(dtype) == _family(a.dtype) and _fits(a, dtype) and _fits(b, dtype):
            return dtype
    raise TypeError(f"no type holds ids of both {a.dtype} and {b.dtype}: convert one of them")


def _fits(ids: pl.Series, dtype: pl.DataType) -> bool:
    return bool(ids.cast(dtype, strict=False).cast(ids.dtype, strict=False).eq_missing(ids).all())


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The distinct ids of a side in ascending order, so that input order never matters.

    Parameters
    ----------
    values : polars.Series
        The ids, distinct and ascending, in the type that ``kind`` stands for.
    kind : str
        The NumPy name of the ids' type (``"int32"``, ``"datetime64[us]"``...), or ``"str"``,
        ``"bytes"``, ``"date"`` or ``"uuid"``. UUIDs are stored as their canonical text.
    """

    values: pl.Series
    kind: str

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Vocabulary: {len(self):,} ids of type {self.kind}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self.kind == other.kind and self.values.equals(other.values)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.values, self.kind)

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The ids (n,) in the type they came in; strings, bytes and UUIDs as objects."""
        if self.kind == "uuid":
            ids = np.array([uuid.UUID(text) for text in self.values.to_list()], dtype=object)
        else:
            ids = self.values.to_numpy()
        ids.flags.writeable = False
        return ids

    def encode(self, ids: Any) -> Positions:
        """Give the positions (int32) of ids, one or many; -1 for those that aren't here.

        Integers are compared by value, whatever their width, and UUIDs with their text.
        """
        series = to_series(ids, "ids")
        if series.dtype == pl.Null:
            return np.full(len(series), -1, dtype=np.int32)
        stored, kind = _stored(series)
        if stored.dtype in (pl.Categorical, pl.Enum):
            stored = stored.cast(pl.String)
        if self.kind == "uuid" and kind == "str":
            stored = stored.str.to_lowercase()
        dtype = self.values.dtype
        if stored.dtype != dtype:
            if _family(stored.dtype) != _family(dtype):
                raise TypeError(
                    f"the ids here are of type {self.kind}, but those asked for are of type "
                    f"{kind}: convert them to {self.kind}"
                )
            cast = stored.cast(dtype, strict=False)
            survives = cast.cast(stored.dtype, strict=False) == stored
            stored = pl.select(pl.when(survives).then(cast)).to_series()
        return self._positions_of(stored)

    def _positions_of(self, stored: pl.Series) -> Positions:
        """Give the positions of ids of the right type.

        Few are found by NumPy alone, and all of them after a fork.
        """
        if len(stored) <= _FEW or forked():
            there = np.flatnonzero(~is_missing(stored).to_numpy())
            asked = _comparable(stored.gather(there))
            at = np.searchsorted(self._sorted, asked)
            found = at < len(self)
            found[found] = self._sorted[at[found]] == asked[found]
            positions = np.full(len(stored), -1, dtype=np.int32)
            positions[there[found]] = at[found]
            return positions
        table = pl.LazyFrame(
            {
                "id": self.values,
                "position": pl.int_range(len(self), dtype=pl.Int32, eager=True),
            }
        )
        query = pl.LazyFrame({"id": stored})
        joined = query.join(table, on="id", how="left", maintain_order="left")
        position = joined.select(pl.col("position").fill_null(-1)).collect().to_series()
        return to_array(position, np.int32)

    @cached_property
    def _sorted(self) -> NDArray[Any]:
        return _comparable(self.values)

    def decode(self, positions: NDArray[np.integer[Any]]) -> pl.Series:
        """Give the ids at these positions as a polars series; null at -1, UUIDs as objects."""
        at = pl.Series(positions)
        at = at.set(at < 0, None) if (at < 0).any() else at
        if self.kind == "uuid":
            return pl.Series(self.ids, dtype=pl.Object).gather(at)
        return self.values.gather(at)

    def take(self, positions: NDArray[np.integer[Any]]) -> Self:
        """Keep the ids at these positions, which must ascend."""
        return type(self)(self.values.gather(pl.Series(positions)), self.kind)

    def match(self, other: "Vocabulary") -> Positions:
        """Give the positions here (int32) of another vocabulary's ids; -1 where there is none."""
        return self.encode(other.values)

    def merge(self, other: "Vocabulary") -> tuple[Self, Positions, Positions]:
        """Give the vocabulary of both's ids, and where in it are those of this and of the other."""
        here = self.match(other)
        new = np.flatnonzero(here < 0)
        if not len(new):
            return self, np.arange(len(self), dtype=np.int32), here
        if self.kind == "uuid" and other.kind != "uuid":
            raise TypeError("the ids here are UUIDs: give the new ones as uuid.UUID objects too")
        dtype = _common_type(self.values, other.values)
        both = [self.values.cast(dtype), other.values.gather(pl.Series(new)).cast(dtype)]
        kind = self.kind if dtype == self.values.dtype else _KIND_OF[dtype]
        merged = type(self)(pl.concat(both).sort(multithreaded=False), kind)
        return merged, merged.match(self), merged.match(other)

    def keys(self) -> NDArray[np.uint64]:
        """Give every id a key for hashing (uint64): the same for equal ids of any vocabulary.

        Of integers the value in 64-bit two's complement, otherwise FNV-1a of the UTF-8 text; of
        bytes theirs.
        """
        if self.values.dtype.is_integer():
            wide = pl.UInt64 if self.kind == "uint64" else pl.Int64
            return self.values.cast(wide).to_numpy().view(np.uint64)
        values = self.values.to_list()
        texts = values if self.kind == "bytes" else [str(value).encode() for value in values]
        if self.kind == "datetime64[ns]":  # Python's own end at microseconds
            beyond = (self.values.to_physical() % 1000).to_list()
            texts = [
                text + f"{ns:03}".encode() * (ns > 0)
                for text, ns in zip(texts, beyond, strict=True)
            ]
        arrays = _packed(texts)
        return _kernels.hash_strings(arrays["bytes"], arrays["offsets"])

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Give plain arrays to save; with ``kind``, ``from_arrays`` makes the same vocabulary."""
        if self.values.dtype == pl.String:
            return _packed([text.encode() for text in self.values.to_list()])
        if self.values.dtype == pl.Binary:
            return _packed(self.values.to_list())
        plain = self.values.to_physical() if self.values.dtype.is_temporal() else self.values
        return {"ids": plain.to_numpy()}

    @classmethod
    def from_arrays(cls, kind: str, arrays: dict[str, NDArray[Any]]) -> Self:
        """Take back what ``to_arrays`` gave; ValueError on whatever it can't have given."""
        dtype = _dtype_of(kind)
        if dtype in (pl.String, pl.Binary):
            values = pl.Series(_unpacked(arrays, text=dtype == pl.String), dtype=dtype)
        else:
            number = {"date": "int32"}.get(kind, "int64") if dtype.is_temporal() else kind
            values = pl.Series(_checked(arrays, "ids", number)).cast(dtype)
        return cls.from_series(kind, values)

    @classmethod
    def from_series(cls, kind: str, values: pl.Series) -> Self:
        """Take back a kind and its ``values``; ValueError on those that no vocabulary has."""
        if values.dtype != _dtype_of(kind):
            raise ValueError(f"saved ids of type {kind} are of type {values.dtype}")
        if is_missing(values).any():
            raise ValueError("some saved id is missing")
        if not (values.slice(1) > values.head(max(len(values) - 1, 0))).all():
            raise ValueError("saved ids aren't distinct and ascending")
        if kind == "uuid" and any(str(uuid.UUID(text)) != text for text in values.to_list()):
            raise ValueError("saved UUIDs aren't in their canonical text")
        return cls(values, kind)


def _dtype_of(kind: Any) -> pl.DataType:
    if not isinstance(kind, str) or kind not in _STORED_AS:
        raise ValueError(f"there is no kind of ids {kind!r}")
    return _STORED_AS[kind]


def _packed(texts: list[bytes]) -> dict[str, NDArray[Any]]:
    """Put strings into one array of bytes, with the offsets (n + 1) between them."""
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
    return {"bytes": np.frombuffer(b"".join(texts), dtype=np.uint8), "offsets": offsets}


def _unpacked(arrays: dict[str, NDArray[Any]], *, text: bool) -> list[Any]:
    raw = _checked(arrays, "bytes", "uint8").tobytes()
    offsets = _checked(arrays, "offsets", "int64")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(raw):
        raise ValueError("offsets of saved ids don't span their bytes")
    if (offsets[1:] < offsets[:-1]).any():
        raise ValueError("offsets of saved ids fall")
    bounds = offsets.tolist()
    pieces = [raw[a:b] for a, b in itertools.pairwise(bounds)]
    return [piece.decode() for piece in pieces] if text else pieces


def _checked(arrays: dict[str, NDArray[Any]], name: str, dtype: str) -> NDArray[Any]:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise ValueError(f"saved ids need a one-dimensional array {name!r} of type {dtype}")
    return array


def encode(ids: pl.Series, n_threads: int) -> tuple[Vocabulary, Positions]:
    """Make the vocabulary of ids, some and none missing, and give their positions (int32)."""
    stored, kind = _stored(ids)
    dtype = stored.dtype
    if dtype.is_integer():
        narrow = dtype in (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16)
        width = "int32" if narrow else "int64"
        signed = stored.cast(_STORED_AS[width], strict=False)
        if not signed.null_count():  # but for UInt64 beyond 2^63
            found = _kernels.encode_integers(to_array(signed, width), n_threads)
            if found is not None:
                return Vocabulary(pl.Series(found[0]).cast(dtype), kind), found[1]
    if forked():
        stored = stored.cast(_STORED_AS[kind])
        distinct = pl.Series(np.unique(_comparable(stored))).cast(_STORED_AS[kind])
    elif _STORED_AS[kind] == pl.String:
        return _encode_categories(stored, kind, n_threads)
    else:
        distinct = stored.unique().sort()
    vocabulary = Vocabulary(distinct, kind)
    return vocabulary, vocabulary._positions_of(stored)


def _encode_categories(texts: pl.Series, kind: str, n_threads: int) -> tuple[Vocabulary, Positions]:
    """Encode strings as polars' categories do: hashed once, without a table of all rows."""
    if texts.dtype == pl.String:
        texts = texts.cast(pl.Categorical)
    distinct = texts.unique()
    values = distinct.cast(pl.String)
    order = values.arg_sort()
    category = distinct.to_physical().gather(order).to_numpy()
    position_of = np.zeros(int(category.max()) + 1, dtype=np.int32)
    position_of[category] = np.arange(len(category), dtype=np.int32)
    positions = _kernels.take(
        position_of, texts.to_physical().cast(pl.UInt32).to_numpy(), n_threads
    )
    return Vocabulary(values.gather(order), kind), positions
