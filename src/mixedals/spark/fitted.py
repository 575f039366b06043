"""A fitted model on Spark as data."""

import contextlib
import weakref
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.storagelevel import StorageLevel

from mixedals.model import SideRules
from mixedals.spark.vectors import Vectors


@dataclass(frozen=True)
class FittedSide:
    """A side of the model: its embeddings, and what sized and penalised them."""

    vectors: Vectors
    rules: SideRules


@dataclass(frozen=True)
class Fitted:
    """All that a fitted model knows.

    Attributes
    ----------
    mean_rating
        Weighted mean of the training's ratings.
    summary
        The rest, as :func:`mixedals.estimator.summary_of` gives it.
    """

    users: FittedSide
    items: FittedSide
    mean_rating: float
    summary: dict[str, Any]

    def persisted(self, level: StorageLevel) -> "Fitted":
        """The same with its embeddings kept in Spark until nothing refers to them any more."""

        def kept(side: FittedSide) -> FittedSide:
            rows = side.vectors.rows.persist(level)
            rows.count()
            vectors = replace(side.vectors, rows=rows)
            weakref.finalize(vectors, _unpersist, rows).atexit = False
            return replace(side, vectors=vectors)

        return replace(self, users=kept(self.users), items=kept(self.items))


def _unpersist(frame: DataFrame) -> None:
    with contextlib.suppress(Exception):  # the session may have ended long ago
        frame.unpersist()
