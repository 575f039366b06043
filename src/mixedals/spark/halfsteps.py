"""The half-steps of an iteration, block by block: what runs in Spark's tasks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mixedals.model import SideRules
from mixedals.spark import embeddings
from mixedals.spark.arrays import array, cell, from_bytes
from mixedals.spark.blocks import Block
from mixedals.spark.embeddings import failed_row, rows_of, tiers_of
from mixedals.tiers import FloatArray, Side, Tier, initial_side
from mixedals.updates import ProjectionProblem, ProjectionSums, SolveError, solve_rows

_SUMS = "tier int, part bigint, sums binary"
_ARROW_SUMS = pa.schema([("tier", pa.int32()), ("part", pa.int64()), ("sums", pa.binary())])

# Sums are added in tasks, so many at a time, until the driver gets less than so many bytes.
_FAN_IN = 8
_DRIVER_BYTES = 64 << 20


@dataclass(frozen=True)
class SideState:
    """What every task knows of a side.

    Attributes
    ----------
    name
        ``users`` or ``items``.
    labels
        Of its blocks, by number.
    rules
        Sizes and penalties by number of ratings.
    projections
        The learned ones, by size.
    """

    name: str
    labels: tuple[int, ...]
    rules: SideRules
    projections: Mapping[int, FloatArray]

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes that rows have, rising."""
        assert self.rules.steps is not None
        return tuple(sorted(set(self.rules.steps.dims)))

    def dims_of(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        """Sizes of rows with so many ratings."""
        assert self.rules.steps is not None
        return self.rules.steps(counts)


@dataclass(frozen=True)
class HalfStep:
    """An update of ``own`` with ``other`` fixed, in a common space of dimension ``d``."""

    own: SideState
    other: SideState
    d: int

    def initial(self, blocks: DataFrame, seed: int) -> DataFrame:
        """Embeddings of the side before the first iteration."""
        step = self

        def start(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                for row in range(len(table)):
                    yield from step._initial(Block.from_row(table, row), seed).to_batches()

        mine = blocks.where(F.col("block").isin(list(self.own.labels)))
        return mine.mapInArrow(start, embeddings.SCHEMA)

    def solve(self, blocks: DataFrame, other: DataFrame) -> DataFrame:
        """Embeddings of the side solved anew, from those of the other one."""
        step = self

        def solve(block: pa.Table, messages: pa.Table) -> pa.Table:
            return step._solved(Block.from_row(block), messages)

        return self._mapped(blocks, other, solve, embeddings.SCHEMA)

    def projections(
        self, blocks: DataFrame, own: DataFrame, other: DataFrame, beta: float
    ) -> dict[int, FloatArray]:
        """The side's projections solved anew, by size."""
        step = self

        def add_ratings(block: pa.Table, messages: pa.Table) -> pa.Table:
            return step._sums(Block.from_row(block), messages)

        here = own.where("target = source")
        sums = self._mapped(blocks, other.unionAll(here), add_ratings, _SUMS)
        return {p: total.solve(beta, self.own.name) for p, total in self._total(sums).items()}

    def _mapped(
        self,
        blocks: DataFrame,
        messages: DataFrame,
        function: Callable[[pa.Table, pa.Table], pa.Table],
        schema: str,
    ) -> DataFrame:
        """What the function gives for each of the side's blocks and what is sent to it."""
        mine = blocks.where(F.col("block").isin(list(self.own.labels)))
        n = len(self.own.labels) + len(self.other.labels)
        sent = messages.where(F.col("target").isin(list(self.own.labels)))
        sent = sent.select("target", "source", "tiers", "factors").repartition(n, "target")
        groups = mine.groupBy("block").cogroup(sent.groupBy("target"))
        return groups.applyInArrow(function, schema)

    def _initial(self, block: Block, seed: int) -> pa.Table:
        side = initial_side(
            block.vocabulary.keys(),
            self.own.dims_of(block.counts),
            self.d,
            learned=False,
            biases=False,
            name=self.own.name,
            seed=seed,
            n_threads=1,
        )
        return rows_of(block, side, self.own.dims, self.other.labels)

    def _solved(self, block: Block, messages: pa.Table) -> pa.Table:
        side = self._side(block)
        try:
            solution = solve_rows(
                side,
                self._other_side(block, messages),
                block.ratings,
                self.own.rules.ridge(block.counts),
                mean=0.0,
            )
        except SolveError as error:
            row_id = from_bytes(block.id_bytes)[error.row].as_py()
            return failed_row(block.label, f"{error} Its id: {row_id!r}")
        return rows_of(
            block,
            solution.side,
            self.own.dims,
            self.other.labels,
            solution.squared_error,
            solution.penalty,
        )

    def _sums(self, block: Block, messages: pa.Table) -> pa.Table:
        """Each tier's projection sums over the block's ratings."""
        is_own = np.equal(messages.column("source").to_numpy(), block.label)
        row = int(np.flatnonzero(is_own)[0])
        everything = np.arange(block.ratings.n_rows, dtype=np.int32)
        tiers = tiers_of([(everything, messages, row)], self.own.dims, self.own.projections)
        side = replace(self._side(block), tiers=tiers)
        other = self._other_side(block, messages.filter(pa.array(~is_own)))
        number = self.own.labels.index(block.label)
        rows = []
        for tier in tiers:
            if tier.projection is not None:
                problem = ProjectionProblem(side, other, block.ratings, 0.0, 0.0, tier)
                rows.append((tier.p, number, _to_bytes(problem.sums())))
        return _sums_table(rows)

    def _side(self, block: Block) -> Side:
        """The block's rows at their sizes, without embeddings."""
        dims = self.own.dims_of(block.counts)

        def tier(p: int) -> Tier:
            rows = np.flatnonzero(dims == p).astype(np.int32)
            return Tier(rows, np.empty((len(rows), p), np.float32), self.own.projections.get(p))

        tiers = tuple(tier(p) for p in np.unique(dims).tolist())
        return Side(self.own.name, len(dims), self.d, tiers, None)

    def _other_side(self, block: Block, messages: pa.Table) -> Side:
        """The rows of the other side that the block needs."""
        columns = block.columns_from(len(self.other.labels))
        cells = [
            (columns[self.other.labels.index(source)], messages, row)
            for row, source in enumerate(messages.column("source").to_pylist())
        ]
        n = block.ratings.n_columns
        if sum(len(positions) for positions, _, _ in cells) != n:
            raise RuntimeError("a block lacks some of the embeddings that it needs")
        tiers = tiers_of(cells, self.other.dims, self.other.projections)
        return Side(self.other.name, n, self.d, tiers, None)

    def _total(self, sums: DataFrame) -> dict[int, ProjectionSums]:
        """The sums over all blocks, by size; the order of additions is fixed."""
        step = self

        def add(key: tuple[pa.Scalar, ...], parts: pa.Table) -> pa.Table:
            return step._added(key[0].as_py(), key[1].as_py(), parts.sort_by("order"))

        n = len(self.own.labels)
        sizes = [self.d * p * ((self.d + 1) * (p + 1) // 4 + 1) * 8 for p in self.own.projections]
        while n > _FAN_IN and n * sum(sizes) > _DRIVER_BYTES:
            part = F.floor(F.col("part") / _FAN_IN).alias("part")
            groups = sums.select("tier", part, F.col("part").alias("order"), "sums")
            sums = groups.groupBy("tier", "part").applyInArrow(add, _SUMS)
            n = -(-n // _FAN_IN)
        rows = sums.toArrow().sort_by([("tier", "ascending"), ("part", "ascending")])
        totals: dict[int, ProjectionSums] = {}
        for row, p in enumerate(rows.column("tier").to_pylist()):
            more = _from_bytes(cell(rows, "sums", row), self.d, p)
            totals[p] = totals[p] + more if p in totals else more
        return totals

    def _added(self, p: int, part: int, parts: pa.Table) -> pa.Table:
        total = _from_bytes(cell(parts, "sums"), self.d, p)
        for row in range(1, len(parts)):
            total = total + _from_bytes(cell(parts, "sums", row), self.d, p)
        return _sums_table([(p, part, _to_bytes(total))])


def _sums_table(rows: list[tuple[int, int, bytes]]) -> pa.Table:
    columns = [[row[at] for row in rows] for at in range(3)]
    arrays = [pa.array(c, field.type) for c, field in zip(columns, _ARROW_SUMS, strict=True)]
    return pa.table(arrays, schema=_ARROW_SUMS)


def _to_bytes(sums: ProjectionSums) -> bytes:
    return sums.packed.tobytes() + sums.rhs.tobytes()


def _from_bytes(data: pa.Buffer, d: int, p: int) -> ProjectionSums:
    numbers = array(data, np.float64)
    cut = len(numbers) - d * p
    return ProjectionSums(numbers[:cut].reshape(d * (d + 1) // 2, -1), numbers[cut:].reshape(d, p))
