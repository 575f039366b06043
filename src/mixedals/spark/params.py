"""The parameters: those of ``pyspark.ml.recommendation.ALS`` by its names, and this library's."""

import math
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasBlockSize,
    HasCheckpointInterval,
    HasMaxIter,
    HasPredictionCol,
    HasRegParam,
    HasSeed,
    HasValidationIndicatorCol,
    HasWeightCol,
)

from mixedals.metrics import METRICS

_T = TypeVar("_T", bound=type[Params])
_Range = tuple[Callable[[Any], bool], str]


class ModelParameters(TypedDict, total=False):
    """Keywords of the fitted model.

    userCol, itemCol, predictionCol
        Names of columns.
    coldStartStrategy
        What ``transform`` does with pairs whose user or item the model doesn't know: predict
        ``"nan"``, or ``"drop"`` them.
    blockSize
        Rows of either side that recommendations are made of at a time.
    """

    userCol: str
    itemCol: str
    predictionCol: str
    coldStartStrategy: str
    blockSize: int


class Parameters(ModelParameters, total=False):
    """Keywords of the estimator.

    rank
        Dimension of all embeddings, where ``dims`` isn't given.
    dims
        Embedding sizes that rows may have; the largest is that of the common space.
    gamma
        Which row gets which size: see :class:`mixedals.PopularitySizing`.
    projection
        ``"learned"`` or ``"padded"``.
    regParam, regExponent
        Penalty of the embedding of a row with ``n`` ratings: ``regParam * (n / mean n) **
        regExponent``. ALS's own penalty ``c * n`` is ``regParam = c * mean n``, ``regExponent =
        1``.
    projectionReg
        Penalty of learned projections.
    maxIter, seed
        Iterations, and the seed of the initial values.
    ratingCol, weightCol
        Names of columns. Without ``weightCol`` every rating has the weight 1.
    validationIndicatorCol
        A boolean column: rows with true are held out, and the iteration with the best ``metric``
        on them is kept. ``metric`` is ``"rmse"`` or ``"roc_auc"``.
    evalEvery
        Iterations between evaluations.
    numUserBlocks, numItemBlocks
        Blocks that the sides are cut into. A block is solved by one task, in one thread.
    checkpointInterval
        Iterations after which lineage is cut, by a checkpoint where Spark has a directory for
        those and by a local one elsewhere; -1 never does.
    intermediateStorageLevel, finalStorageLevel
        Where ratings and embeddings are kept during training, and the model's embeddings.
    """

    rank: int
    dims: list[int]
    gamma: float
    projection: str
    regParam: float
    regExponent: float
    projectionReg: float
    maxIter: int
    seed: int
    ratingCol: str
    weightCol: str
    validationIndicatorCol: str
    metric: str
    evalEvery: int
    numUserBlocks: int
    numItemBlocks: int
    checkpointInterval: int
    intermediateStorageLevel: str
    finalStorageLevel: str


def _param(name: str, doc: str, converter: Callable[[Any], Any]) -> Any:
    return Param(Params._dummy(), name, doc, typeConverter=converter)


class ModelParams(HasPredictionCol, HasBlockSize):
    """Parameters of the fitted model."""

    userCol = _param("userCol", "column of user ids", TypeConverters.toString)
    itemCol = _param("itemCol", "column of item ids", TypeConverters.toString)
    coldStartStrategy = _param(
        "coldStartStrategy",
        "what becomes of pairs with an unknown user or item: 'nan' or 'drop'",
        TypeConverters.toString,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(userCol="user", itemCol="item", coldStartStrategy="nan", blockSize=4096)

    def keep(self, **given: Any) -> None:
        """Sets parameters by name; None leaves the default."""
        for name in given:
            if not self.hasParam(name):
                known = sorted(param.name for param in self.params)
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}: it has {known}")
        self._set(**given)


class EstimatorParams(
    ModelParams,
    HasMaxIter,
    HasRegParam,
    HasSeed,
    HasCheckpointInterval,
    HasWeightCol,
    HasValidationIndicatorCol,
):
    """Parameters of the estimator."""

    rank = _param("rank", "dimension where dims isn't set", TypeConverters.toInt)
    dims = _param("dims", "embedding sizes that rows may have", TypeConverters.toListInt)
    gamma = _param("gamma", "smaller: larger embeddings", TypeConverters.toFloat)
    projection = _param("projection", "'learned' or 'padded'", TypeConverters.toString)
    projectionReg = _param("projectionReg", "penalty of projections", TypeConverters.toFloat)
    regExponent = _param(
        "regExponent", "penalty by the number of ratings to this power", TypeConverters.toFloat
    )
    ratingCol = _param("ratingCol", "column of ratings", TypeConverters.toString)
    metric = _param("metric", "chooses the best iteration: 'rmse', 'roc_auc'", str)
    evalEvery = _param("evalEvery", "iterations between evaluations", TypeConverters.toInt)
    numUserBlocks = _param("numUserBlocks", "blocks of users", TypeConverters.toInt)
    numItemBlocks = _param("numItemBlocks", "blocks of items", TypeConverters.toInt)
    intermediateStorageLevel = _param(
        "intermediateStorageLevel", "storage level during training", TypeConverters.toString
    )
    finalStorageLevel = _param(
        "finalStorageLevel", "storage level of the model", TypeConverters.toString
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(
            rank=10, gamma=0.2, projection="learned", regParam=3.0, regExponent=0.0,
            projectionReg=1000.0, maxIter=10, seed=0, ratingCol="rating", metric="rmse",
            evalEvery=5, numUserBlocks=10, numItemBlocks=10, checkpointInterval=10,
            intermediateStorageLevel="MEMORY_AND_DISK", finalStorageLevel="MEMORY_AND_DISK",
        )  # fmt: skip

    def allowed_dims(self) -> tuple[int, ...]:
        """The embedding sizes, rising."""
        if self.isSet("dims"):
            return tuple(sorted(self.getOrDefault("dims")))
        return (self.getOrDefault("rank"),)

    def check(self) -> None:
        """Raises ValueError for the first parameter that is out of its range."""
        for name in self._ranges:
            holds, allowed = self._ranges[name]
            if self.isDefined(name) and not holds(value := self.getOrDefault(name)):
                raise ValueError(f"{name}={value!r}: it must be {allowed}")
        if self.isSet("rank") and self.isSet("dims"):
            rank, dims = self.getOrDefault("rank"), self.allowed_dims()
            if rank != dims[-1]:
                raise ValueError(f"rank={rank} and dims={list(dims)}: set one of them")

    _from_1: _Range = (lambda v: v >= 1, "an integer from 1")
    _from_0: _Range = (lambda v: 0 <= v < math.inf, "a number from 0")
    _ranges: dict[str, _Range] = {  # noqa: RUF012 - read only
        "rank": _from_1,
        "dims": (
            lambda v: v and min(v) >= 1 and len(set(v)) == len(v) <= 256,
            "distinct integers from 1, at most 256 of them",
        ),
        "gamma": (lambda v: 0 < v < math.inf, "a number above 0"),
        "projection": (lambda v: v in ("learned", "padded"), "'learned' or 'padded'"),
        "regParam": _from_0,
        "regExponent": _from_0,
        "projectionReg": _from_0,
        "maxIter": _from_1,
        "seed": (lambda v: 0 <= v < 2**64, "an integer from 0"),
        "metric": (lambda v: v in METRICS, f"one of {sorted(METRICS)}"),
        "evalEvery": _from_1,
        "numUserBlocks": _from_1,
        "numItemBlocks": _from_1,
        "blockSize": _from_1,
        "checkpointInterval": (lambda v: v == -1 or v >= 1, "-1 or an integer from 1"),
        "coldStartStrategy": (lambda v: v in ("nan", "drop"), "'nan' or 'drop'"),
    }


def with_accessors(cls: _T) -> _T:
    """Adds ``setX`` and ``getX`` for each parameter ``x``, as ``pyspark.ml`` has them."""
    for name in dir(cls):
        if isinstance(getattr(cls, name), Param):
            suffix = name[0].upper() + name[1:]
            for method in (_getter(name, f"get{suffix}"), _setter(name, f"set{suffix}")):
                if not hasattr(cls, method.__name__):
                    setattr(cls, method.__name__, method)
    return cls


def _getter(name: str, method: str) -> Callable[[Params], Any]:
    def get(self: Params) -> Any:
        return self.getOrDefault(name)

    get.__name__, get.__doc__ = method, f"The value of ``{name}`` or its default."
    return get


def _setter(name: str, method: str) -> Callable[[Params, Any], Params]:
    def set_(self: Params, value: Any) -> Params:
        return self._set(**{name: value})

    set_.__name__, set_.__doc__ = method, f"Sets ``{name}`` and returns the object."
    return set_
