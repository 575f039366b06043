"""The training on Spark: blocks, sizes, iterations. The driver never holds a side."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote
from pyspark.storagelevel import StorageLevel

from mixedals.model import SideRules
from mixedals.sizing import PopularitySizing
from mixedals.spark.blocks import Block, Layout, make_layout, rating_blocks
from mixedals.spark.halfsteps import HalfStep, SideState
from mixedals.tiers import initial_projection
from mixedals.trainer import Objective
from mixedals.updates import SolveError

# Iterations whose history Spark Connect can send: it does so with every frame, as a message that
# may be nested 100 deep, and an iteration nests it by about 17.
_MOST_REMOTE = 2


@dataclass(frozen=True)
class Settings:
    """What the estimator's parameters say of the training."""

    dims: tuple[int, ...]
    gamma: float
    learned: bool
    reg: float
    reg_exponent: float
    projection_reg: float
    seed: int
    n_user_blocks: int
    n_item_blocks: int
    checkpoint_interval: int
    storage: StorageLevel

    @property
    def d(self) -> int:
        """Dimension of the common space."""
        return self.dims[-1]


@dataclass(frozen=True)
class SparkSide:
    """A side: what tasks are told of it, and its embeddings as rows of Spark's."""

    state: SideState
    embeddings: DataFrame


@dataclass(frozen=True)
class SparkFactors:
    """Both sides."""

    users: SparkSide
    items: SparkSide


@dataclass
class Training:
    """The ratings in blocks, and the steps over them.

    Every frame that a step makes stays in Spark until it is released.
    """

    settings: Settings
    layout: Layout
    blocks: DataFrame
    mean_rating: float = float("nan")
    _kept: list[DataFrame] = field(default_factory=list)

    @classmethod
    def of(cls, ratings: DataFrame, settings: Settings) -> "Training":
        """Cuts ratings into blocks: columns ``user``, ``item``, ``rating``, maybe ``weight``."""
        spark = ratings.sparkSession
        layout = make_layout(spark, settings.n_user_blocks, settings.n_item_blocks)
        blocks = rating_blocks(ratings, layout).persist(settings.storage)
        training = cls(settings, layout, blocks)
        training._kept.append(blocks)
        # The first action on the blocks keeps them: later ones know that they are in partitions.
        columns = blocks.select("block", "total", "weight", "error").toArrow()
        errors = columns.column("error").drop_null()
        if len(errors) or not len(columns):
            training.release()
            raise ValueError(errors[0].as_py() if len(errors) else "there are no ratings")
        of_users = pc.is_in(columns.column("block"), pa.array(layout.users))
        columns = columns.filter(of_users).sort_by("block")
        total, weight = (float(np.sum(columns.column(c).to_numpy())) for c in ("total", "weight"))
        if weight == 0:
            training.release()
            raise ValueError("every rating has the weight 0: there is nothing to learn from")
        training.mean_rating = total / weight
        return training

    def start(self) -> SparkFactors:
        """Both sides at the paper's initial values."""
        histograms = self._histograms()
        users, items = (self._state(name, *histograms[name]) for name in ("users", "items"))
        return SparkFactors(
            SparkSide(users, self._keep(self._step(users, items).initial(self.blocks, self._seed))),
            SparkSide(items, self._keep(self._step(items, users).initial(self.blocks, self._seed))),
        )

    def advance(self, model: SparkFactors, iteration: int) -> tuple[SparkFactors, Objective]:
        """One iteration in the paper's order: B, A, Y, X."""
        items = self._with_projections(model.items, model.users)
        users = self._with_projections(model.users, items)
        items, _, penalty_items = self._solved(items, users)
        users, squared_error, penalty_users = self._solved(users, items)
        interval = self.settings.checkpoint_interval
        if is_remote():
            interval = min(interval, _MOST_REMOTE) if interval > 0 else _MOST_REMOTE
        if interval > 0 and iteration % interval == 0:
            users, items = self._cut(users), self._cut(items)
        square = sum(
            float(np.sum(np.square(projection, dtype=np.float64)))
            for side in (users, items)
            for projection in side.state.projections.values()
        )
        return SparkFactors(users, items), Objective(
            squared_error, penalty_users, penalty_items, self.settings.projection_reg * square
        )

    def release(self, *needed: SparkFactors) -> None:
        """Frees what isn't needed for these; the blocks too where nothing is."""
        keep = [side.embeddings for model in needed for side in (model.users, model.items)]
        keep += [self.blocks] if needed else []
        for frame in self._kept:
            if not any(frame is kept for kept in keep):
                frame.unpersist()
        self._kept = keep

    @property
    def _seed(self) -> int:
        return self.settings.seed

    def _step(self, own: SideState, other: SideState) -> HalfStep:
        return HalfStep(own, other, self.settings.d)

    def _keep(self, frame: DataFrame) -> DataFrame:
        with _static_plans(frame.sparkSession):
            self._kept.append(frame.persist(self.settings.storage))
        return self._kept[-1]

    def _state(self, name: str, counts: NDArray[np.int64], rows: NDArray[np.int64]) -> SideState:
        """Sizes and penalties of a side with so many rows of each number of ratings."""
        settings = self.settings
        below = rows.cumsum()
        middle = [(below[-1] - 1) // 2, below[-1] // 2]
        median = counts[np.searchsorted(below, middle, side="right")].mean()
        steps = PopularitySizing(settings.gamma).steps(float(median), settings.dims)
        steps = steps.among(np.unique(steps(counts)).tolist())
        mean = float(counts @ rows / below[-1])
        projections = {
            p: initial_projection(name, p, settings.d, settings.seed)
            for p in set(steps.dims)
            if settings.learned and p != settings.d
        }
        rules = SideRules(settings.reg, settings.reg_exponent, mean, steps)
        return SideState(name, self.layout.of(name), rules, projections)

    def _histograms(self) -> dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For each side the numbers of ratings that rows have, rising, and how many rows do.

        Exact, and small: N ratings have at most sqrt(2 N) different counts.
        """
        users = frozenset(self.layout.users)

        def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                table = pa.Table.from_batches([batch])
                for row in range(len(table)):
                    block = Block.from_row(table, row)
                    counts, rows = np.unique(block.counts, return_counts=True)
                    is_user = np.full(len(counts), block.label in users)
                    yield pa.record_batch([is_user, counts, rows], names=["is_user", "count", "n"])

        found = self.blocks.mapInArrow(count, "is_user boolean, count bigint, n bigint")
        total = found.groupBy("is_user", "count").agg(F.sum("n").alias("n")).toArrow()
        total = total.sort_by("count")
        is_user, counts, rows = (column.to_numpy() for column in total.columns)
        return {
            "users": (counts[is_user], rows[is_user]),
            "items": (counts[~is_user], rows[~is_user]),
        }

    def _with_projections(self, own: SparkSide, other: SparkSide) -> SparkSide:
        """The side with its projections solved anew."""
        if not own.state.projections:
            return own
        projections = self._step(own.state, other.state).projections(
            self.blocks, own.embeddings, other.embeddings, self.settings.projection_reg
        )
        return replace(own, state=replace(own.state, projections=projections))

    def _solved(self, own: SparkSide, other: SparkSide) -> tuple[SparkSide, float, float]:
        """The side with its embeddings solved anew, the squared error, and the penalty."""
        step = self._step(own.state, other.state)
        frame = self._keep(step.solve(self.blocks, other.embeddings))
        mine = frame.where("target = source")
        found = mine.select("source", "squared_error", "penalty", "error").toArrow()
        found = found.sort_by("source")
        if len(errors := found.column("error").drop_null()):
            raise SolveError(errors[0].as_py(), own.state.name)
        squared_error, penalty = (
            float(np.sum(found.column(name).to_numpy())) for name in ("squared_error", "penalty")
        )
        return replace(own, embeddings=frame), squared_error, penalty

    def _cut(self, side: SparkSide) -> SparkSide:
        """The side without its history: by a checkpoint, where Spark has a directory for those."""
        spark = side.embeddings.sparkSession
        if _has_checkpoint_directory(spark):
            frame = side.embeddings.checkpoint()
        else:
            frame = side.embeddings.localCheckpoint(True, self.settings.storage)
        return replace(side, embeddings=self._keep(frame))


_conf_lock = threading.Lock()


@contextlib.contextmanager
def _static_plans(spark: SparkSession) -> Iterator[None]:
    """Frames that are persisted in here aren't planned adaptively.

    Spark describes an adaptive plan twice, as planned and as run, and in both all kept frames that
    it reads: each half-step would double what Spark writes about it.
    """
    name = "spark.sql.adaptive.enabled"
    with _conf_lock:
        before = spark.conf.get(name, "true") or "true"
        spark.conf.set(name, "false")
        try:
            yield
        finally:
            spark.conf.set(name, before)


def _has_checkpoint_directory(spark: SparkSession) -> bool:
    if spark.conf.get("spark.checkpoint.dir", None) is not None:
        return True
    return not is_remote() and spark.sparkContext.getCheckpointDir() is not None
