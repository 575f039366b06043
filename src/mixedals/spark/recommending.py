"""The best answers for every query: both sides in chunks, each chunk with each, then merged."""

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

from mixedals import _kernels as kernels
from mixedals._ids import encode
from mixedals.spark.arrays import array, cell, from_bytes, in_chunks, lists, series, to_bytes
from mixedals.spark.vectors import Vectors, common_space

_CHUNK = "ids binary, vectors binary"
_CANDIDATES = "query bigint, ids binary, answers binary, scores binary"
_ARROW_CANDIDATES = pa.schema(
    [("query", pa.int64()), *[(name, pa.binary()) for name in ("ids", "answers", "scores")]]
)

# Answers that one task reads, in bytes; and most tasks that queries are spread over.
_ANSWER_BYTES = 256 << 20
_MOST_TASKS = 2000


def recommendations(
    queries: Vectors, answers: Vectors, names: tuple[str, str], k: int, chunk_rows: int
) -> DataFrame:
    """The k answers of highest score for each query.

    Parameters
    ----------
    names
        Of the queries' and the answers' ids in the result.
    chunk_rows
        Rows of a chunk.

    Returns
    -------
    Column ``names[0]``, and ``recommendations``: an array of structs of ``names[1]`` and
    ``rating``, best first, equal ones by id.
    """
    n_queries, n_answers = queries.rows.count(), answers.rows.count()
    n_tasks = min(max(-(-n_queries // chunk_rows), 1), _MOST_TASKS)
    n_parts = max(-(-n_answers * answers.d * 4 // _ANSWER_BYTES), 1)
    left = _chunked(queries, chunk_rows).repartition(n_tasks)
    left = left.select(F.xxhash64("ids").alias("query"), "ids", "vectors")
    right = _chunked(answers, chunk_rows).repartition(n_parts)
    right = right.select(F.col("ids").alias("answers"), F.col("vectors").alias("answer_vectors"))
    d = queries.d

    def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for row in range(len(table)):
                yield _candidates(table, row, d, k)

    def merge(pairs: pa.Table) -> pa.Table:
        return _merged(pairs, names, k)

    answer = StructType(
        [StructField(names[1], answers.id_type), StructField("rating", FloatType())]
    )
    result = StructType(
        [
            StructField(names[0], queries.id_type),
            StructField("recommendations", ArrayType(answer)),
        ]
    )
    pairs = left.crossJoin(right).mapInArrow(score, _CANDIDATES)
    return pairs.groupBy("query").applyInArrow(merge, result)


def _chunked(side: Vectors, size: int) -> DataFrame:
    """The side's ids and common-space vectors, some rows at a time."""
    projections, d = side.projections, side.d

    def chunk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in in_chunks(batches, size):
            for first in range(0, len(table), size):
                part = table.slice(first, size).combine_chunks()
                vectors = common_space(part.column("features").chunk(0), projections, d)
                yield pa.record_batch(
                    [[to_bytes(part.column("id"))], [vectors.tobytes()]], names=["ids", "vectors"]
                )

    return side.rows.mapInArrow(chunk, _CHUNK)


def _candidates(table: pa.Table, row: int, d: int, k: int) -> pa.RecordBatch:
    """The best of a chunk of answers for a chunk of queries."""
    queries, answers = (
        array(cell(table, column, row), np.float32).reshape(-1, d)
        for column in ("vectors", "answer_vectors")
    )
    nothing = np.zeros(len(queries) + 1, np.int64), np.empty(0, np.int32)
    found, scores = kernels.top_k(queries, answers, min(k, len(answers)), *nothing, 1)
    ids = from_bytes(cell(table, "answers", row)).take(pa.array(found.reshape(-1)))
    columns = [
        [table.column("query")[row].as_py()],
        [cell(table, "ids", row).to_pybytes()],
        [to_bytes(ids)],
        [scores.tobytes()],
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, _ARROW_CANDIDATES, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW_CANDIDATES)


def _merged(pairs: pa.Table, names: tuple[str, str], k: int) -> pa.Table:
    """The best of all answers for a chunk of queries."""
    queries = from_bytes(cell(pairs, "ids"))
    n = len(queries)
    parts = [from_bytes(cell(pairs, "answers", row)) for row in range(len(pairs))]
    ids = pa.concat_arrays(parts)
    # Answers by number in the parts, a row for each query; and in the order of their ids.
    bounds = np.cumsum([0, *map(len, parts)])
    numbers = np.hstack([np.arange(a, b).reshape(n, -1) for a, b in itertools.pairwise(bounds)])
    scores = np.hstack(
        [array(cell(pairs, "scores", row), np.float32).reshape(n, -1) for row in range(len(pairs))]
    )
    codes = encode(series(ids), 1)[1][numbers]
    best = np.lexsort((codes, -scores), axis=1)[:, :k]
    chosen = ids.take(pa.array(np.take_along_axis(numbers, best, axis=1).reshape(-1)))
    rating = pa.array(np.take_along_axis(scores, best, axis=1).reshape(-1))
    answers = pa.StructArray.from_arrays([chosen, rating], [names[1], "rating"])
    return pa.table({names[0]: queries, "recommendations": lists(answers, best.shape[1])})
