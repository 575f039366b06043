"""A side's embeddings as a frame: a row for each id, with as many features as its size."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, DataType, FloatType, StructField, StructType

from mixedals import _kernels as kernels
from mixedals.spark.arrays import cell, from_bytes, lists
from mixedals.spark.embeddings import tiers_of
from mixedals.spark.halfsteps import SideState
from mixedals.tiers import FloatArray

# Rows that a task gives to Spark at a time.
_BATCH = 1 << 16


@dataclass(frozen=True)
class Vectors:
    """A side of a fitted model.

    Attributes
    ----------
    rows
        Columns ``id`` and ``features``, an array of floats: each row's embedding at its own size.
    projections
        Learned projections, float32 (d, p), by size; other sizes are padded with zeros.
    d
        Dimension of the common space.
    """

    rows: DataFrame
    projections: Mapping[int, FloatArray]
    d: int

    @property
    def id_type(self) -> DataType:
        """Spark's type of the ids."""
        return self.rows.schema["id"].dataType

    def in_common_space(self) -> DataFrame:
        """Columns ``id`` and ``features``, d of them in every row."""
        projections, d = self.projections, self.d

        def project(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                features = lists(common_space(batch.column("features"), projections, d), d)
                yield pa.record_batch([batch.column("id"), features], names=["id", "features"])

        return self.rows.mapInArrow(project, self.rows.schema)


def vectors_of(embeddings: DataFrame, state: SideState, id_type: DataType, d: int) -> Vectors:
    """The side whose blocks have those embeddings."""
    dims = state.dims

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for row in range(len(table)):
                yield from _unpacked(table, row, dims)

    fields = [StructField("id", id_type), StructField("features", ArrayType(FloatType()))]
    mine = embeddings.where("target = source").select("ids", "tiers", "factors")
    return Vectors(mine.mapInArrow(unpack, StructType(fields)), state.projections, d)


def _unpacked(table: pa.Table, row: int, dims: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
    """The rows of a block."""
    ids = from_bytes(cell(table, "ids", row))
    tiers = tiers_of([(np.arange(len(ids), dtype=np.int32), table, row)], dims, {})
    sizes = np.zeros(len(ids), np.int64)
    for tier in tiers:
        sizes[tier.rows] = tier.p
    ends = sizes.cumsum()
    starts = ends - sizes
    values = np.empty(sizes.sum(), np.float32)
    for tier in tiers:
        values[starts[tier.rows][:, None] + np.arange(tier.p)] = tier.factors
    for first in range(0, len(ids), _BATCH):
        end = min(first + _BATCH, len(ids))
        offsets = np.append(starts[first:end], ends[end - 1]) - starts[first]
        features = pa.ListArray.from_arrays(
            pa.array(offsets.astype(np.int32)), pa.array(values[starts[first] : ends[end - 1]])
        )
        yield pa.record_batch([ids.slice(first, end - first), features], names=["id", "features"])


def common_space(
    features: pa.ListArray, projections: Mapping[int, FloatArray], d: int
) -> FloatArray:
    """Embeddings in the common space, float32 (n, d); zeros for null."""
    sizes = features.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = features.flatten().to_numpy()
    starts = sizes.cumsum() - sizes
    out = np.zeros((len(features), d), np.float32)
    for p in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == p).astype(np.int32)
        factors = values[starts[rows][:, None] + np.arange(p)]
        kernels.common_space(factors, projections.get(p), rows, out, 1)
    return out


def with_predictions(
    pairs: DataFrame, users: Vectors, items: Vectors, columns: tuple[str, str, str], how: str
) -> DataFrame:
    """The pairs with predicted ratings.

    Parameters
    ----------
    columns
        Of users, items and predictions.
    how
        ``left`` predicts NaN for pairs whose user or item has no vector, ``inner`` drops them.
    """
    user_projections, item_projections, d = users.projections, items.projections, users.d

    def dot(left: pa.Array, right: pa.Array) -> pa.Array:
        x = common_space(left, user_projections, d)
        y = common_space(right, item_projections, d)
        return pa.array(kernels.predict_pairs(x, y, _rows(left), _rows(right), 1))

    joined = pairs
    for name, given, side in zip(("user", "item"), columns, (users, items), strict=False):
        rows = side.rows.select(
            F.col("id").alias(f"_mixedals_{name}"), F.col("features").alias(f"_mixedals_x_{name}")
        )
        joined = joined.join(rows, column(given) == F.col(f"_mixedals_{name}"), how)
    # The stubs want the kind of the function, but at that it warns: it goes by the annotations.
    dotted = arrow_udf(dot, FloatType())  # type: ignore[call-overload]
    predicted = dotted("_mixedals_x_user", "_mixedals_x_item")
    temporary = (f"_mixedals_{part}" for part in ("user", "item", "x_user", "x_item"))
    return joined.withColumn(columns[2], predicted).drop(*temporary)


def column(name: str) -> Column:
    """A column of that very name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


def _rows(vectors: pa.Array) -> NDArray[np.int32]:
    """Each vector's position, -1 for null."""
    there = vectors.is_valid().to_numpy(zero_copy_only=False)
    return np.where(there, np.arange(len(vectors)), -1).astype(np.int32)
