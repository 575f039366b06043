"""Arrays and ids in the columns of Spark's rows, as bytes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

# What a binary column, and a row, can hold.
MOST_BYTES = 2**31 - 1


def to_bytes(values: pa.Array) -> bytes:
    """An Arrow array of any type."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return table_to_bytes(pa.record_batch([values], names=["values"]))


def from_bytes(data: pa.Buffer) -> pa.Array:
    """The Arrow array that ``to_bytes`` was given."""
    return table_from_bytes(data).column(0).combine_chunks()


def table_to_bytes(batch: pa.RecordBatch) -> bytes:
    """A batch of rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def table_from_bytes(data: pa.Buffer) -> pa.Table:
    """The rows that ``table_to_bytes`` was given."""
    if data.address % 8:  # a cell stands anywhere, its numbers may not
        data = pa.py_buffer(data.to_pybytes())
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


def cell(table: pa.Table, column: str, row: int = 0) -> pa.Buffer:
    """The bytes of a cell of a binary column, not copied."""
    return table.column(column)[row].as_buffer()


def array(buffer: pa.Buffer, dtype: Any) -> NDArray[Any]:
    """The numbers in a cell."""
    return np.frombuffer(buffer, dtype)


def series(values: pa.Array | pa.ChunkedArray) -> pl.Series:
    """Ids as polars has them."""
    return pl.Series(pl.from_arrow(values))


def arrow(values: pl.Series, dtype: pa.DataType) -> pa.Array:
    """Ids as Spark has them."""
    return values.to_arrow().cast(dtype)


def lists(rows: NDArray[Any] | pa.Array, width: int) -> pa.ListArray:
    """Values, row after row, as a list of that width for each row."""
    values = rows if isinstance(rows, pa.Array) else pa.array(rows.reshape(-1))
    n = len(values) // width
    return pa.ListArray.from_arrays(pa.array(np.arange(n + 1, dtype=np.int32) * width), values)


def in_chunks(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The batches in tables of at least ``size`` rows, the last one less."""
    waiting: list[pa.RecordBatch] = []
    n = 0
    for batch in batches:
        waiting.append(batch)
        n += len(batch)
        if n >= size:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, n = [], 0
    if n:
        yield pa.Table.from_batches(waiting).combine_chunks()
