"""Columns of whatever holds them: frames, arrays, files; by their names or by known aliases."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

# Names as they are recognised: in lower case, without anything but letters and digits.
ALIASES = {
    "user": (
        "user", "userid", "uid", "userindex", "customer", "customerid", "member", "memberid",
        "reviewer", "reviewerid", "visitor", "visitorid",
    ),
    "item": (
        "item", "itemid", "iid", "itemindex", "movie", "movieid", "film", "filmid", "product",
        "productid", "asin", "parentasin", "article", "articleid", "book", "bookid", "isbn",
        "song", "songid", "track", "trackid", "artist", "artistid", "business", "businessid",
    ),
    "rating": ("rating", "ratings", "score", "stars", "starrating", "overall"),
    "timestamp": ("timestamp", "ts", "time", "date", "datetime", "unixtime", "ratedat"),
    "weight": ("weight",),
    "title": ("title", "name", "movietitle", "filmtitle", "booktitle", "itemtitle", "productname"),
}  # fmt: skip
REQUIRED = ("user", "item", "rating", "title")

_SCAN: dict[str, Callable[[Any], pl.LazyFrame]] = {
    ".csv": lambda files: pl.scan_csv(files, infer_schema_length=10_000, glob=False),
    ".tsv": lambda files: pl.scan_csv(
        files, separator="\t", infer_schema_length=10_000, glob=False
    ),
    ".parquet": lambda files: pl.scan_parquet(files, glob=False),
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}


def to_series(values: Any, what: str) -> pl.Series:
    """Make a polars series of a column or a scalar, without a copy where that is possible.

    UUIDs give a series of type Object. ``what`` names the values in errors.
    """
    if isinstance(values, pl.Series):
        return values
    if isinstance(values, str | bytes | int | float | date | UUID | np.generic):
        values = [values]
    elif hasattr(values, "isna") and hasattr(values, "to_numpy"):  # pandas
        if values.dtype == object:
            values = values.to_numpy(dtype=object, na_value=None)
        elif isinstance(values.dtype, np.dtype):
            values = values.to_numpy()
        else:
            try:
                return pl.Series(values)
            except ImportError:  # polars wants pyarrow for pandas' own types
                values = values.to_numpy(dtype=object, na_value=None)
    elif hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return pl.Series(values)
    if hasattr(values, "__array__"):
        values = np.atleast_1d(np.asarray(values))
        if values.ndim != 1:
            raise ValueError(f"{what} must have one dimension, but have shape {values.shape}")
        if values.dtype != object:
            return pl.Series(values)
    values = list(values)
    try:
        return pl.Series(values, strict=True)
    except TypeError as error:
        # Integers among floats, and NumPy's own unsigned integers, polars leaves to NumPy.
        if all(isinstance(value, int | float | np.number | None) for value in values):
            real = any(isinstance(value, float | np.floating) for value in values)
            with suppress(TypeError, OverflowError):
                return pl.Series(np.asarray(values, dtype=np.float64 if real else np.uint64))
        raise TypeError(f"{what} must all be of one type that polars knows: {error}") from error


def to_array(series: pl.Series, dtype: DTypeLike) -> NDArray[Any]:
    """Give a series as one array, the series' own memory where that is possible.

    A copy is NumPy's, of which the memory is free at once when it isn't needed any more; polars
    keeps what it has had for some time.
    """
    chunks = [chunk.to_numpy() for chunk in series.get_chunks()]
    if len(chunks) == 1:
        return chunks[0].astype(dtype, copy=False)
    return np.concatenate(chunks, dtype=dtype)


def recognise(names: list[str], given: Mapping[str, str | bool | None]) -> dict[str, str]:
    """Find the column of each role: the one given, else the only one with an alias of the role.

    A role given as ``False`` gets none; one that isn't required gets none where none is found.
    """
    taken: dict[str, str] = {}
    listed = ", ".join(map(repr, names))
    for role, column in given.items():
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"there is no column {column!r}; the columns are: {listed}")
            taken[role] = column
        elif column is None:
            found = [
                name
                for name in names
                if "".join(filter(str.isalnum, str(name).lower())) in ALIASES[role]
            ]
            if len(found) > 1:
                raise ValueError(
                    f"several columns could be the {role}s: {', '.join(map(repr, found))}; "
                    f'say which with {role}="..."'
                )
            if found:
                taken[role] = found[0]
            elif role in REQUIRED:
                explicit = (
                    " (this library learns from explicit ratings, so there must be some)"
                    if role == "rating"
                    else ""
                )
                raise ValueError(
                    f"no column is recognised as the {role}s{explicit}; the columns are: "
                    f'{listed}; say which with {role}="..."'
                )
    if len(set(taken.values())) < len(taken):
        raise ValueError(f"one column can't have two roles: {taken}")
    return taken


def columns_of(
    frame: Any, given: Mapping[str, str | bool | None]
) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Take the columns of a frame by their role, and tell the names that they had."""
    is_named = isinstance(frame, Mapping) or hasattr(frame, "iloc")  # pandas
    if not is_named and not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        if not hasattr(frame, "__arrow_c_stream__"):
            raise TypeError(
                f"a {type(frame).__name__} isn't a frame: give a polars or pandas DataFrame, an "
                "Arrow table or a dict of arrays; or use from_arrays, from_matrix or read"
            )
        frame = pl.DataFrame(frame)
    taken = recognise(list(frame if is_named else frame.collect_schema()), given)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.select(taken.values()).collect()
    return {role: to_series(frame[name], repr(name)) for role, name in taken.items()}, taken


def scan(source: str | Path | list[str | Path]) -> pl.LazyFrame:
    """Open files of one format, which their suffix says, as one lazy frame."""
    files: list[str] = []
    for given in source if isinstance(source, list | tuple) else [source]:
        path = Path(given)
        root = Path(path.anchor)
        found = [path] if path.exists() else sorted(root.glob(str(path.relative_to(root))))
        if not found:
            raise FileNotFoundError(f"there is no file {str(path)!r}")
        files += map(str, found)
    suffixes = {Path(file).suffix.lower() for file in files}
    if len(suffixes) != 1 or not suffixes <= set(_SCAN):
        raise ValueError(
            f"can't read files that end in {sorted(suffixes)}: give files of one format, of "
            f"{', '.join(_SCAN)}"
        )
    return _SCAN[suffixes.pop()](files)


def scan_bytes(data: bytes, suffix: str) -> pl.LazyFrame:
    """Open what a file with that suffix would hold, as a lazy frame."""
    return _SCAN[suffix](BytesIO(data))
