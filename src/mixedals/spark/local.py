"""Models from Spark to one machine and back."""

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from mixedals import MixedALS, estimator
from mixedals._ids import Vocabulary, encode
from mixedals.model import FittedModel, Seen
from mixedals.spark.arrays import series
from mixedals.spark.fitted import Fitted, FittedSide
from mixedals.spark.vectors import Vectors, column
from mixedals.tiers import Factorisation, Side, Tier


def to_local(fitted: Fitted, seen: DataFrame | None, columns: tuple[str, str]) -> MixedALS:
    """The model on the driver; ``seen`` has pairs in those columns."""
    user_ids, users = _side("users", fitted.users)
    item_ids, items = _side("items", fitted.items)
    model = FittedModel(
        factors=Factorisation(users, items),
        users=user_ids,
        items=item_ids,
        user_rules=fitted.users.rules,
        item_rules=fitted.items.rules,
        seen=_seen(seen, columns, user_ids, item_ids),
        mean_rating=fitted.mean_rating,
    )
    return estimator.restored(model, fitted.summary)


def _side(name: str, side: FittedSide) -> tuple[Vocabulary, Side]:
    vectors = side.vectors
    table = vectors.rows.toArrow().combine_chunks()
    vocabulary, positions = encode(series(table.column("id")), 1)
    features = table.column("features").combine_chunks()
    sizes = np.asarray(features.value_lengths())
    values = features.flatten().to_numpy()
    starts = sizes.cumsum() - sizes
    order = np.argsort(positions)

    def tier(p: int) -> Tier:
        mine = order[sizes[order] == p]
        factors = values[starts[mine][:, None] + np.arange(p)]
        return Tier(positions[mine], factors, vectors.projections.get(p))

    tiers = tuple(tier(p) for p in np.unique(sizes).tolist())
    return vocabulary, Side(name, len(vocabulary), vectors.d, tiers, None)


def _seen(
    pairs: DataFrame | None, columns: tuple[str, str], users: Vocabulary, items: Vocabulary
) -> Seen:
    nothing = Seen(np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32))
    if pairs is None:
        return nothing
    table = pairs.select(*map(column, columns)).toArrow()
    rows, answers = (
        vocabulary.encode(series(table.column(at))) for at, vocabulary in enumerate((users, items))
    )
    known = (rows >= 0) & (answers >= 0)
    return nothing.with_pairs(rows[known], answers[known], len(items), 1)


def from_local(model: MixedALS, spark: SparkSession) -> Fitted:
    """A model of one machine, in Spark."""
    known = model._fitted
    if model.mean_ or model.user_biases_ is not None:
        raise ValueError(
            "a model with biases or a global mean can't be brought to Spark: fit one without"
        )
    factors = known.factors
    return Fitted(
        FittedSide(_vectors(spark, factors.users, known.users), known.user_rules),
        FittedSide(_vectors(spark, factors.items, known.items), known.item_rules),
        known.mean_rating,
        estimator.summary_of(model),
    )


def _vectors(spark: SparkSession, side: Side, vocabulary: Vocabulary) -> Vectors:
    if vocabulary.kind == "uuid":
        raise TypeError("Spark has no type for UUIDs: fit the model to their text")
    starts = np.append(0, side.dims.cumsum(dtype=np.int64))
    values = np.empty(starts[-1], np.float32)
    for tier in side.tiers:
        values[starts[tier.rows][:, None] + np.arange(tier.p)] = tier.factors
    features = pa.LargeListArray.from_arrays(pa.array(starts), pa.array(values))
    table = pa.table({"id": vocabulary.values.to_arrow(), "features": features})
    projections = {t.p: t.projection for t in side.tiers if t.projection is not None}
    return Vectors(spark.createDataFrame(table), projections, side.d)
