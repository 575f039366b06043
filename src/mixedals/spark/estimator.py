"""The estimator: ratings in a frame of Spark's in, a fitted model out."""

from dataclasses import dataclass
from typing import Any, Unpack

from pyspark.ml import Estimator
from pyspark.ml.util import MLReadable, MLReader, MLWritable, MLWriter
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NumericType,
    ShortType,
    StringType,
)
from pyspark.storagelevel import StorageLevel

from mixedals.metrics import METRICS
from mixedals.persist import history_to
from mixedals.spark.files import FolderReader, FolderWriter
from mixedals.spark.fitted import Fitted, FittedSide
from mixedals.spark.model import MixedALSModel
from mixedals.spark.params import EstimatorParams, Parameters, with_accessors
from mixedals.spark.training import Settings, SparkFactors, SparkSide, Training
from mixedals.spark.validation import Validation
from mixedals.spark.vectors import Vectors, column, vectors_of
from mixedals.trainer import TrainingState, train

_ID_TYPES = (
    ByteType, ShortType, IntegerType, LongType, StringType, BinaryType, BooleanType, DateType,
    FloatType, DoubleType,
)  # fmt: skip

# The columns that a fit reads: the parameters that name them, their types.
_ROLES = {
    "user": "userCol",
    "item": "itemCol",
    "rating": "ratingCol",
    "weight": "weightCol",
    "held_out": "validationIndicatorCol",
}
_TYPES: dict[str, tuple[Any, str]] = {
    "user": (_ID_TYPES, "integers or strings: cast it to bigint or string"),
    "item": (_ID_TYPES, "integers or strings: cast it to bigint or string"),
    "rating": (NumericType, "numeric"),
    "weight": (NumericType, "numeric"),
    "held_out": (BooleanType, "boolean"),
}


@with_accessors
class MixedALS(Estimator[MixedALSModel], EstimatorParams, MLWritable, MLReadable["MixedALS"]):
    """Alternating least squares with embeddings of mixed dimensions, in place of Spark's ALS.

    Its model is that of :class:`mixedals.MixedALS` to the tolerance of single precision. It doesn't
    depend on blocks, partitions or tasks that run again.

    Parameters
    ----------
    **parameters
        By name, as in :class:`mixedals.spark.params.Parameters`.

    Examples
    --------
    >>> MixedALS(dims=[2, 4, 6], maxIter=30).getDims()
    [2, 4, 6]
    """

    def __init__(self, **parameters: Unpack[Parameters]) -> None:
        super().__init__()
        self.setParams(**parameters)

    def setParams(self, **parameters: Unpack[Parameters]) -> "MixedALS":
        """Sets parameters by name."""
        self.keep(**parameters)
        return self

    def write(self) -> MLWriter:
        """A writer of the parameters."""
        return FolderWriter(self)

    @classmethod
    def read(cls) -> MLReader["MixedALS"]:
        """A reader of what ``write`` wrote."""
        return FolderReader(cls)

    def _fit(self, dataset: DataFrame) -> MixedALSModel:
        self.check()
        table = _Table.of(dataset, self)
        validation = None
        if table.held_out is not None:
            validation = Validation(table.held_out, self.getOrDefault("metric"))
        training = Training.of(table.ratings, self._settings())
        try:
            return self._trained(training, table, validation)
        finally:
            training.release()

    def _settings(self) -> Settings:
        return Settings(
            dims=self.allowed_dims(),
            gamma=self.getOrDefault("gamma"),
            learned=self.getOrDefault("projection") == "learned",
            reg=self.getOrDefault("regParam"),
            reg_exponent=self.getOrDefault("regExponent"),
            projection_reg=self.getOrDefault("projectionReg"),
            seed=self.getOrDefault("seed"),
            n_user_blocks=self.getOrDefault("numUserBlocks"),
            n_item_blocks=self.getOrDefault("numItemBlocks"),
            checkpoint_interval=self.getOrDefault("checkpointInterval"),
            storage=_storage_level(self, "intermediateStorageLevel"),
        )

    def _trained(
        self, training: Training, table: "_Table", validation: Validation | None
    ) -> MixedALSModel:
        d = training.settings.d

        def vectors(side: SparkSide) -> Vectors:
            of_users = side.state.name == "users"
            id_type = table.user_type if of_users else table.item_type
            return vectors_of(side.embeddings, side.state, id_type, d)

        def evaluate(model: SparkFactors) -> float:
            assert validation is not None
            return validation(vectors(model.users), vectors(model.items))

        def release(state: TrainingState[SparkFactors]) -> None:
            training.release(state.model, state.best)

        start = training.start()
        state = train(
            training.advance,
            TrainingState(start, start),
            iterations=self.getOrDefault("maxIter"),
            evaluate=evaluate if validation is not None else None,
            eval_every=self.getOrDefault("evalEvery"),
            metric=METRICS[self.getOrDefault("metric")],
            patience=None,
            observers=[release],
        )
        fitted = Fitted(
            FittedSide(vectors(state.best.users), state.best.users.state.rules),
            FittedSide(vectors(state.best.items), state.best.items.state.rules),
            training.mean_rating,
            {
                "parameters": self._parameters_of_one_machine(),
                "seed": training.settings.seed,
                "best_iteration": state.best_iteration,
                "history": history_to(state.history),
            },
        )
        model = MixedALSModel(fitted.persisted(_storage_level(self, "finalStorageLevel")))
        model._resetUid(self.uid)
        return self._copyValues(model)

    def _parameters_of_one_machine(self) -> dict[str, Any]:
        """The parameters of :class:`mixedals.MixedALS` that say the same."""
        return {
            "dims": list(self.allowed_dims()),
            "projection": self.getOrDefault("projection"),
            "reg": self.getOrDefault("regParam"),
            "reg_exponent": self.getOrDefault("regExponent"),
            "projection_reg": self.getOrDefault("projectionReg"),
            "iterations": self.getOrDefault("maxIter"),
            "eval_every": self.getOrDefault("evalEvery"),
            "metric": self.getOrDefault("metric"),
        }


@dataclass(frozen=True)
class _Table:
    """The ratings: columns ``user``, ``item``, ``rating`` and maybe ``weight``."""

    ratings: DataFrame
    held_out: DataFrame | None
    user_type: DataType
    item_type: DataType

    @classmethod
    def of(cls, dataset: DataFrame, params: MixedALS) -> "_Table":
        given = {role: param for role, param in _ROLES.items() if params.isDefined(param)}
        columns = []
        for role, param in given.items():
            name = params.getOrDefault(param)
            if name not in dataset.columns:
                raise ValueError(f"{param}={name!r}: the frame has the columns {dataset.columns}")
            values, found = column(name), dataset.schema[name].dataType
            types, allowed = _TYPES[role]
            if not isinstance(found, types):
                raise TypeError(
                    f"{param}={name!r} is of type {found.simpleString()}: it must be {allowed}"
                )
            if role in ("rating", "weight"):
                values = values.cast("float")
            if role == "held_out":
                missing = F.raise_error(F.lit(f"{param}={name!r} is null in some row"))
                values = F.coalesce(values, missing.cast("boolean"))
            columns.append(values.alias(role))
        table = dataset.select(*columns)
        user_type, item_type = (table.schema[side].dataType for side in ("user", "item"))
        if "held_out" not in given:
            return cls(table, None, user_type, item_type)
        ratings = table.where(~F.col("held_out")).drop("held_out")
        held_out = table.where("held_out").select("user", "item", "rating")
        return cls(ratings, held_out, user_type, item_type)


def _storage_level(params: EstimatorParams, name: str) -> StorageLevel:
    value = params.getOrDefault(name)
    level = getattr(StorageLevel, value, None)
    if not isinstance(level, StorageLevel) or level == StorageLevel.NONE:
        raise ValueError(f"{name}={value!r}: it must be one such as 'MEMORY_AND_DISK'")
    return level
