"""Columns of whatever holds them: frames, arrays, files; by their names or by known aliases."""

import glob
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from functools import partial
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

_SCAN: dict[str, Callable[..., pl.LazyFrame]] = {
    ".csv": partial(pl.scan_csv, infer_schema_length=10_000),
    ".tsv": partial(pl.scan_csv, infer_schema_length=10_000, separator="\t"),
    ".parquet": pl.scan_parquet,
    ".arrow": pl.scan_ipc,
    ".feather": pl.scan_ipc,
    ".ipc": pl.scan_ipc,
    ".ndjson": pl.scan_ndjson,
    ".jsonl": pl.scan_ndjson,
}


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, str(name).lower()))


def to_series(values: Any, what: str) -> pl.Series:
    """Make a polars series of a column or a scalar, without a copy where that is possible.

    UUIDs give a series of type Object. ``what`` names the values in errors.
    """
    if isinstance(values, pl.Series):
        return values
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # None where it is masked
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
        if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] in ("h", "m", "s"):
            values = values.astype("datetime64[ms]")  # the coarsest that polars has
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
        if column is False:
            continue
        if column is not None:
            if column not in names:
                raise ValueError(f"there is no column {column!r}; the columns are: {listed}")
            taken[role] = column
        else:
            found = [name for name in names if _plain(name) in ALIASES[role]]
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
    frame = _opened(frame)
    taken = recognise(_names(frame), given)
    if isinstance(frame, pl.LazyFrame):
        frame = frame.select(taken.values()).collect()
    return {role: to_series(frame[name], repr(name)) for role, name in taken.items()}, taken


def column_names(table: Any) -> list[Any] | None:
    """Give the names of a frame's columns; None for what has none."""
    return _names(_opened(table)) if _is_frame(table) else None


def two_columns(pairs: Any) -> tuple[pl.Series, pl.Series]:
    """Take the columns of a frame, or an array, that has two: users and items."""
    if hasattr(pairs, "tocoo"):
        raise TypeError(
            "sparse data is not two columns: give Interactions.from_matrix the matrix, and fit that"
        )
    if _is_frame(pairs):
        frame = _opened(pairs)
        frame = frame.collect() if isinstance(frame, pl.LazyFrame) else frame
        columns = [frame[name] for name in _names(frame)]
        shape: tuple[int, ...] = (len(columns[0]) if columns else 0, len(columns))
    else:
        array = np.asarray(pairs)
        columns, shape = list(array.T), array.shape
    if len(shape) != 2 or shape[1] != 2:
        raise ValueError(
            f"Reshape your data: expected two columns, users and items, not the shape {shape}"
        )
    users, items = columns
    return to_series(users, "users"), to_series(items, "items")


def _is_frame(table: Any) -> bool:
    pandas = hasattr(table, "iloc") and hasattr(table, "columns")
    arrow = hasattr(table, "__arrow_c_stream__")
    return pandas or arrow or isinstance(table, Mapping | pl.LazyFrame)


def _opened(frame: Any) -> Any:
    """Give what has names and, by name, columns: the frame itself, or one of polars."""
    if not _is_frame(frame):
        raise TypeError(
            f"a {type(frame).__name__} isn't a frame: give a polars or pandas DataFrame, an "
            "Arrow table or a dict of arrays; or use from_arrays, from_matrix or read"
        )
    if isinstance(frame, Mapping | pl.LazyFrame) or hasattr(frame, "iloc"):
        return frame
    return pl.DataFrame(frame)


def _names(frame: Any) -> list[Any]:
    polars = isinstance(frame, pl.DataFrame | pl.LazyFrame)
    return list(frame.collect_schema() if polars else frame)


def columns_of_files(
    source: str | Path | list[str | Path],
    given: Mapping[str, str | bool | None],
    types: Mapping[str, pl.DataType] | None = None,
) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Take the columns of files of one format, which their suffix says; as ``columns_of``.

    ``types`` are those that roles have if the files are text, which doesn't say any.
    """
    files = _files_of(source)
    suffixes = {path.suffix.lower() for path in files}
    listed = ", ".join(map(str, source)) if isinstance(source, list | tuple) else str(source)
    if len(suffixes) != 1 or not suffixes <= set(_SCAN):
        raise ValueError(
            f"can't read {listed}, because of the suffix: give files of one format, of "
            f"{', '.join(_SCAN)}"
        )
    suffix = suffixes.pop()
    paths = [glob.escape(str(file)) for file in files]  # polars takes them for patterns
    return _columns_of_format(partial(_SCAN[suffix], paths), suffix, listed, given, types)


def columns_of_bytes(
    data: bytes,
    suffix: str,
    name: str,
    given: Mapping[str, str | bool | None],
    types: Mapping[str, pl.DataType] | None = None,
) -> tuple[dict[str, pl.Series], dict[str, str]]:
    """Take the columns of what a file with that suffix would hold; as ``columns_of_files``."""

    def opened(**options: Any) -> pl.LazyFrame:
        return _SCAN[suffix](BytesIO(data), **options)

    return _columns_of_format(opened, suffix, name, given, types)


def _files_of(source: str | Path | list[str | Path]) -> list[Path]:
    files: list[Path] = []
    for one in source if isinstance(source, list | tuple) else [source]:
        path = Path(one)
        root = Path(path.anchor)
        found = [path] if path.exists() else sorted(root.glob(str(path.relative_to(root))))
        if not found:
            raise FileNotFoundError(f"there is no file {str(path)!r}")
        if path.is_dir():
            raise ValueError(f"{path} is a folder: give its files, as in {path / '*.parquet'}")
        files += found
    return files


def _columns_of_format(
    opened: Callable[..., pl.LazyFrame],
    suffix: str,
    name: str,
    given: Mapping[str, str | bool | None],
    types: Mapping[str, pl.DataType] | None,
) -> tuple[dict[str, pl.Series], dict[str, str]]:
    try:
        if suffix in (".csv", ".tsv"):
            return _columns_of_text(opened, given, types or {})
        return columns_of(opened(), given)
    except (FileNotFoundError, PermissionError):
        raise
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        what = str(error).partition("\n")[0]  # below that, polars' advice on its own options
        raise ValueError(
            f"can't read {name}: {what}. Read it with polars or pandas, with options that fit it, "
            "and give the frame to from_frame"
        ) from error


def _columns_of_text(
    opened: Callable[..., pl.LazyFrame],
    given: Mapping[str, str | bool | None],
    types: Mapping[str, pl.DataType],
) -> tuple[dict[str, pl.Series], dict[str, str]]:
    schema = opened().collect_schema()
    taken = recognise(list(schema), given)
    told = {taken[role]: dtype for role, dtype in types.items()}
    # Numbers that are whole in the first lines may have halves further on.
    numbers = [taken[role] for role in ("rating", "weight") if role in taken]
    told |= {name: pl.Float64() for name in numbers if schema[name].is_integer()}
    try:
        return columns_of(opened(schema_overrides=told), given)
    except pl.exceptions.ComputeError:  # further on is what the first lines don't announce
        # Ids that are to be text aren't made numbers by it: what would become of a leading zero?
        texts = {taken[role]: dtype for role, dtype in types.items() if dtype == pl.String}
        return columns_of(opened(infer_schema_length=None, schema_overrides=texts), given)
