"""Ratings as blocks: the rows of a side whose ids have the same hash, compressed.

A block knows which rows of the other side it needs (its columns, rising by id, each with the number
of its block there), and which of its own rows each block of the other side needs. Both sides derive
these lists from the same ratings and sort them by id, so they agree without a word exchanged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from mixedals import _kernels as kernels
from mixedals._ids import Vocabulary, encode
from mixedals._kernels import Csr
from mixedals._rows import starts_of_pairs
from mixedals.spark.arrays import (
    MOST_BYTES,
    array,
    arrow,
    cell,
    from_bytes,
    in_chunks,
    series,
    table_from_bytes,
    table_to_bytes,
    to_bytes,
)

SCHEMA = (
    "block bigint, ids binary, indptr binary, indices binary, ratings binary, weights binary, "
    "column_blocks binary, sent binary, sent_offsets binary, total double, weight double, "
    "error string"
)
_ARROW_SCHEMA = pa.schema(
    [
        ("block", pa.int64()),
        *[(name.split()[0], pa.binary()) for name in SCHEMA.split(", ")[1:-3]],
        ("total", pa.float64()),
        ("weight", pa.float64()),
        ("error", pa.string()),
    ]
)
_PACKED = "block bigint, rows binary, error string"
_ARROW_PACKED = pa.schema([("block", pa.int64()), ("rows", pa.binary()), ("error", pa.string())])

# Ratings that are sorted by block at a time.
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Layout:
    """The blocks of both sides.

    Attributes
    ----------
    users, items
        Labels of the sides' blocks, in the order of the blocks' numbers. Spark, which puts a row
        into a partition by a hash, puts each label into another one.
    """

    users: tuple[int, ...]
    items: tuple[int, ...]

    @property
    def n_partitions(self) -> int:
        """One for each block."""
        return len(self.users) + len(self.items)

    def of(self, side: str) -> tuple[int, ...]:
        """The labels of a side."""
        return self.users if side == "users" else self.items


def make_layout(spark: SparkSession, n_user_blocks: int, n_item_blocks: int) -> Layout:
    """Labels whose hashes differ."""
    n = n_user_blocks + n_item_blocks
    candidates = spark.range(64 * n)
    first = candidates.groupBy(F.pmod(F.hash("id"), F.lit(n)).alias("at")).agg(F.min("id"))
    labels = tuple(label for _, label in sorted(map(tuple, first.collect())))
    return Layout(labels[:n_user_blocks], labels[n_user_blocks:])


def rating_blocks(ratings: DataFrame, layout: Layout) -> DataFrame:
    """The blocks of both sides, a row each, in partitions by ``block``.

    Parameters
    ----------
    ratings
        Columns ``user``, ``item``, ``rating`` (float) and maybe ``weight`` (float).
    """
    n = layout.n_partitions

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for chunk in in_chunks(batches, _CHUNK):
            yield _packed(chunk, layout)

    def build(key: tuple[pa.Scalar, ...], packed: pa.Table) -> pa.Table:
        return _built(key[0].as_py(), packed, layout)

    packed = ratings.mapInArrow(pack, _PACKED).repartition(n, "block")
    return packed.groupBy("block").applyInArrow(build, SCHEMA).repartition(n, "block")


def _packed(chunk: pa.Table, layout: Layout) -> pa.RecordBatch:
    """The chunk's ratings for each block of users and again for each block of items."""
    error = _refused(chunk)
    if error is not None:
        return _batch([(layout.users[0], None, error)], _ARROW_PACKED)
    rows: list[tuple[object, ...]] = []
    for side in ("user", "item"):
        labels = layout.of(f"{side}s")
        vocabulary, codes = encode(series(chunk.column(side)), 1)
        blocks = _block_of(vocabulary.keys(), len(labels))[codes]
        in_order = chunk.take(pa.array(np.argsort(blocks, kind="stable"))).combine_chunks()
        bounds = np.append(0, np.bincount(blocks, minlength=len(labels)).cumsum())
        for label, first, end in zip(labels, bounds[:-1], bounds[1:], strict=True):
            if first < end:
                part = in_order.slice(first, end - first).to_batches()[0]
                rows.append((label, table_to_bytes(part), None))
    return _batch(rows, _ARROW_PACKED)


def _batch(rows: list[tuple[object, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows), schema)]  # noqa: B905
    return pa.record_batch(columns, schema=schema)


def _refused(chunk: pa.Table) -> str | None:
    """What is wrong with the first bad rating; None if nothing is."""
    columns = {name: chunk.column(name) for name in chunk.column_names}
    for name, column in columns.items():
        if name in ("user", "item"):
            missing = series(column)
            bad = missing.is_null() | (missing.is_nan() if missing.dtype.is_float() else False)
            what = f"has no {name}: drop such rows or fill them in"
        else:
            numbers = series(column).fill_null(np.nan)
            bad = ~numbers.is_finite() | ((numbers < 0) if name == "weight" else False)
            allowed = "a finite number from 0" if name == "weight" else "a finite number"
            what = f"has a {name} that isn't {allowed} in 32 bits: drop or mend such rows"
        if bad.any():
            row = int(bad.arg_max() or 0)
            values = ", ".join(f"{role}={c[row].as_py()!r}" for role, c in columns.items())
            return f"the row with {values} {what}"
    return None


def _block_of(keys: NDArray[np.uint64], n: int) -> NDArray[np.int32]:
    """Numbers of the blocks of ids with these hash keys: SplitMix64's finaliser, modulo."""
    x = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) % np.uint64(n)).astype(np.int32)


def _built(label: int, packed: pa.Table, layout: Layout) -> pa.Table:
    """The block of all those ratings; or what is wrong, in the column ``error``."""
    errors = packed.column("error").drop_null()
    if len(errors):
        return _row(block=label, error=errors[0].as_py())
    parts = [table_from_bytes(cell(packed, "rows", row)) for row in range(len(packed))]
    table = pa.concat_tables(parts)
    own, other = ("user", "item") if label in layout.users else ("item", "user")
    rows, row_codes = encode(series(table.column(own)), 1)
    columns, column_codes = encode(series(table.column(other)), 1)
    indptr, order = kernels.order_of_pairs(row_codes, column_codes, len(rows), len(columns), 1)
    indices = kernels.take(column_codes, order, 1)
    if 4 * len(indices) > MOST_BYTES:
        name = f"num{own.title()}Blocks"
        return _row(block=label, error=f"a block has {len(indices):,} ratings: raise {name}")
    if (starts := starts_of_pairs(indptr, indices)) is not None:
        at = starts[np.diff(starts, append=len(indices)) > 1][:1]
        row = np.searchsorted(indptr, at, side="right") - 1
        pair = {own: rows.decode(row)[0], other: columns.decode(indices[at])[0]}
        return _row(
            block=label,
            error=f"user={pair['user']!r} has more than one rating of item={pair['item']!r}: merge "
            "them first, as groupBy(user, item).avg(rating) does",
        )
    n_blocks = len(layout.of(f"{other}s"))
    column_blocks = _block_of(columns.keys(), n_blocks)
    sent, sent_offsets = _sent(indptr, indices, column_blocks, n_blocks)
    ratings, weights = kernels.take(_floats(table, "rating"), order, 1), None
    if "weight" in table.column_names:
        weights = kernels.take(_floats(table, "weight"), order, 1)
    return _row(
        block=label,
        ids=to_bytes(arrow(rows.values, table.schema.field(own).type)),
        indptr=indptr.tobytes(),
        indices=indices.tobytes(),
        ratings=ratings.tobytes(),
        weights=None if weights is None else weights.tobytes(),
        column_blocks=column_blocks.tobytes(),
        sent=sent.tobytes(),
        sent_offsets=sent_offsets.tobytes(),
        total=float(np.sum(ratings if weights is None else ratings * weights, dtype=np.float64)),
        weight=float(len(ratings) if weights is None else np.sum(weights, dtype=np.float64)),
    )


def _row(**values: object) -> pa.Table:
    columns = [pa.array([values.get(f.name)], f.type) for f in _ARROW_SCHEMA]
    return pa.table(columns, schema=_ARROW_SCHEMA)


def _floats(table: pa.Table, column: str) -> NDArray[np.float32]:
    return np.ascontiguousarray(table.column(column).to_numpy(), np.float32)


def _sent(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    column_blocks: NDArray[np.int32],
    n_blocks: int,
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The rows that each block of the other side needs, rising, and where each block's start."""
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
    needed = np.zeros((n_blocks, len(indptr) - 1), bool)
    needed[column_blocks[indices], rows] = True
    sent = np.nonzero(needed)[1].astype(np.int32)
    return sent, np.append(0, needed.sum(axis=1).cumsum())


@dataclass(frozen=True)
class Block:
    """A block, in a task.

    Attributes
    ----------
    label
        What it goes by.
    id_bytes
        Its rows' ids, rising, as ``to_bytes`` gives them.
    ratings
        Its ratings; columns are the rows that it needs of the other side.
    column_blocks
        Number of each column's block there, int32 (columns,).
    sent, sent_offsets
        The rows that the other side's block k needs are ``sent[sent_offsets[k] :
        sent_offsets[k + 1]]``, rising.
    """

    label: int
    id_bytes: pa.Buffer
    ratings: Csr
    column_blocks: NDArray[np.int32]
    sent: NDArray[np.int32]
    sent_offsets: NDArray[np.int64]

    @classmethod
    def from_row(cls, table: pa.Table, row: int = 0) -> "Block":
        """The block in a row of the frame of blocks."""

        def numbers(column: str, dtype: type) -> NDArray[Any]:
            return array(cell(table, column, row), dtype)

        column_blocks = numbers("column_blocks", np.int32)
        weighted = table.column("weights")[row].is_valid
        return cls(
            label=table.column("block")[row].as_py(),
            id_bytes=cell(table, "ids", row),
            ratings=Csr(
                numbers("indptr", np.int64),
                numbers("indices", np.int32),
                numbers("ratings", np.float32),
                len(column_blocks),
                numbers("weights", np.float32) if weighted else None,
            ),
            column_blocks=column_blocks,
            sent=numbers("sent", np.int32),
            sent_offsets=numbers("sent_offsets", np.int64),
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of ratings of each row, int64 (n,)."""
        return np.diff(self.ratings.indptr)

    @property
    def vocabulary(self) -> Vocabulary:
        """The rows' ids."""
        return encode(series(from_bytes(self.id_bytes)), 1)[0]

    def rows_for(self, number: int) -> NDArray[np.int32]:
        """Rows that the other side's block of that number needs."""
        return self.sent[self.sent_offsets[number] : self.sent_offsets[number + 1]]

    def columns_from(self, n_blocks: int) -> list[NDArray[np.int32]]:
        """Columns that each of the other side's blocks has the rows of, rising."""
        order = np.argsort(self.column_blocks, kind="stable").astype(np.int32)
        bounds = np.bincount(self.column_blocks, minlength=n_blocks).cumsum()
        return np.split(order, bounds[:-1])
