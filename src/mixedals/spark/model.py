"""The fitted model on Spark."""

from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pyspark.ml import Model
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame, SparkSession

import mixedals
from mixedals.persist import history_from, rules_from
from mixedals.spark import local
from mixedals.spark.files import FolderReader, FolderWriter, frame_path
from mixedals.spark.fitted import Fitted, FittedSide
from mixedals.spark.params import ModelParams, with_accessors
from mixedals.spark.recommending import recommendations
from mixedals.spark.vectors import Vectors, column, with_predictions
from mixedals.tiers import FloatArray
from mixedals.trainer import history_frame


@with_accessors
class MixedALSModel(Model, ModelParams, MLWritable, MLReadable["MixedALSModel"]):
    """Embeddings of users and items, in Spark."""

    def __init__(self, fitted: Fitted | None = None) -> None:
        super().__init__()
        self._fitted = fitted

    def setParams(self, **parameters: Any) -> Self:
        """Sets parameters by name, as in :class:`mixedals.spark.params.ModelParameters`."""
        self.keep(**parameters)
        return self

    @property
    def _known(self) -> Fitted:
        if self._fitted is None:
            raise ValueError("this MixedALSModel holds nothing: fit a MixedALS, or load a model")
        return self._fitted

    @property
    def rank(self) -> int:
        """Dimension of the common space."""
        return self._known.users.vectors.d

    @property
    def userFactors(self) -> DataFrame:
        """Users in the common space: columns ``id`` and ``features``."""
        return self._known.users.vectors.in_common_space()

    @property
    def itemFactors(self) -> DataFrame:
        """Items in the common space: columns ``id`` and ``features``."""
        return self._known.items.vectors.in_common_space()

    @property
    def userEmbeddings(self) -> DataFrame:
        """Users at their own sizes: columns ``id`` and ``features``."""
        return self._known.users.vectors.rows

    @property
    def itemEmbeddings(self) -> DataFrame:
        """Items at their own sizes: columns ``id`` and ``features``."""
        return self._known.items.vectors.rows

    @property
    def userProjections(self) -> dict[int, FloatArray]:
        """Learned projections, float32 (rank, p), of users of size p; others get zeros."""
        return dict(self._known.users.vectors.projections)

    @property
    def itemProjections(self) -> dict[int, FloatArray]:
        """Learned projections, float32 (rank, p), of items of size p; others get zeros."""
        return dict(self._known.items.vectors.projections)

    @property
    def history(self) -> pl.DataFrame:
        """A row for each iteration: objective by term, metric, seconds."""
        return history_frame(history_from(self._known.summary["history"]))

    @property
    def bestIteration(self) -> int:
        """The iteration that the model was taken from."""
        return int(self._known.summary["best_iteration"])

    def recommendForAllUsers(self, numItems: int) -> DataFrame:
        """The items of highest predicted rating for each user.

        Column ``userCol``, and ``recommendations``: an array of structs of ``itemCol`` and
        ``rating``, best first. Items that a user has rated are among them, as with Spark's ALS.
        """
        return self._recommended(self._known.users.vectors, to_users=True, k=numItems)

    def recommendForAllItems(self, numUsers: int) -> DataFrame:
        """The users of highest predicted rating for each item."""
        return self._recommended(self._known.items.vectors, to_users=False, k=numUsers)

    def recommendForUserSubset(self, dataset: DataFrame, numItems: int) -> DataFrame:
        """As :meth:`recommendForAllUsers`, for the users in ``dataset`` that the model knows."""
        some = _among(self._known.users.vectors, dataset, self.getOrDefault("userCol"))
        return self._recommended(some, to_users=True, k=numItems)

    def recommendForItemSubset(self, dataset: DataFrame, numUsers: int) -> DataFrame:
        """As :meth:`recommendForAllItems`, for the items in ``dataset`` that the model knows."""
        some = _among(self._known.items.vectors, dataset, self.getOrDefault("itemCol"))
        return self._recommended(some, to_users=False, k=numUsers)

    def toLocal(self, seen: DataFrame | None = None) -> mixedals.MixedALS:
        """The model on one machine: the driver, whose memory must hold it.

        Parameters
        ----------
        seen
            Pairs of ``userCol`` and ``itemCol`` that recommendations are to leave out. The model in
            Spark doesn't keep the pairs that it was fitted to.
        """
        columns = self.getOrDefault("userCol"), self.getOrDefault("itemCol")
        return local.to_local(self._known, seen, columns)

    @classmethod
    def fromLocal(cls, model: mixedals.MixedALS, spark: SparkSession) -> "MixedALSModel":
        """A model of one machine, in Spark."""
        return cls(local.from_local(model, spark))

    def write(self) -> MLWriter:
        """A writer to a folder in Spark's file systems."""
        known = self._known
        facts: dict[str, Any] = {
            "mean_rating": known.mean_rating,
            "summary": known.summary,
            "d": known.users.vectors.d,
        }
        for name, side in (("users", known.users), ("items", known.items)):
            learned = {str(p): a.tolist() for p, a in side.vectors.projections.items()}
            facts[name] = {"rules": asdict(side.rules), "projections": learned}
        frames = {"users": known.users.vectors.rows, "items": known.items.vectors.rows}
        return FolderWriter(self, facts, frames)

    @classmethod
    def read(cls) -> MLReader["MixedALSModel"]:
        """A reader of what ``write`` wrote."""
        return _ModelReader(cls)

    def _transform(self, dataset: DataFrame) -> DataFrame:
        known = self._known
        columns = tuple(self.getOrDefault(name) for name in ("userCol", "itemCol"))
        how = {"nan": "left", "drop": "inner"}.get(self.getOrDefault("coldStartStrategy"))
        if how is None:
            raise ValueError(
                f"coldStartStrategy={self.getOrDefault('coldStartStrategy')!r}: it must be 'nan' "
                "or 'drop'"
            )
        users, items = known.users.vectors, known.items.vectors
        for name, side in zip(columns, (users, items), strict=True):
            _check_ids(dataset, name, side)
        return with_predictions(
            dataset, users, items, (*columns, self.getOrDefault("predictionCol")), how
        )

    def _recommended(self, queries: Vectors, *, to_users: bool, k: int) -> DataFrame:
        if k < 1:
            raise ValueError(f"{k} recommendations: it must be an integer from 1")
        known = self._known
        answers = known.items.vectors if to_users else known.users.vectors
        names = (self.getOrDefault("userCol"), self.getOrDefault("itemCol"))
        return recommendations(
            queries, answers, names if to_users else names[::-1], k, self.getOrDefault("blockSize")
        )


class _ModelReader(FolderReader):
    def completed(self, instance: Any, metadata: dict[str, Any], path: str) -> Any:
        d = int(metadata["d"])

        def side(name: str) -> FittedSide:
            rows = self.sparkSession.read.parquet(frame_path(path, name, int(metadata["place"])))
            facts = metadata[name]
            learned = {int(p): _matrix(a, d, int(p)) for p, a in facts["projections"].items()}
            steps = facts["rules"]["steps"]
            rules = rules_from(facts["rules"], name, steps["dims"] if steps else ())
            return FittedSide(Vectors(rows, learned, d), rules)

        instance._fitted = Fitted(
            side("users"),
            side("items"),
            float(metadata["mean_rating"]),
            metadata["summary"],
        )
        return instance


def _matrix(numbers: Any, d: int, p: int) -> NDArray[np.float32]:
    matrix = np.asarray(numbers, np.float32)
    if matrix.shape != (d, p) or not np.isfinite(matrix).all():
        raise ValueError(f"the projection from dimension {p} isn't {d} x {p} finite numbers")
    return matrix


def _among(side: Vectors, dataset: DataFrame, name: str) -> Vectors:
    _check_ids(dataset, name, side)
    ids = dataset.select(column(name).alias("id")).distinct()
    return replace(side, rows=side.rows.join(ids, "id", "left_semi"))


def _check_ids(dataset: DataFrame, name: str, side: Vectors) -> None:
    """Refuses ids of another kind than the model's, which Spark would convert silently."""
    if name not in dataset.columns:
        raise ValueError(f"there is no column {name!r}: the frame has {dataset.columns}")
    found, known = dataset.schema[name].dataType, side.id_type
    if found != known and not _are_integers(found, known):
        raise TypeError(
            f"the column {name!r} is of type {found.simpleString()}, but the model's ids are of "
            f"type {known.simpleString()}: cast one of them"
        )


def _are_integers(*types: Any) -> bool:
    return all(t.typeName() in ("byte", "short", "integer", "long") for t in types)
