"""How good predictions of held-out ratings are, computed in Spark."""

import warnings
from dataclasses import dataclass

from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mixedals.spark.vectors import Vectors, with_predictions


@dataclass
class Validation:
    """The metric of a model on held-out ratings: columns ``user``, ``item`` and ``rating``."""

    held_out: DataFrame
    metric: str

    def __post_init__(self) -> None:
        low, high = F.min("rating").alias("low"), F.max("rating").alias("high")
        found = self.held_out.agg(low, high, F.count("rating").alias("n"))
        self._low, self._high, self._n = found.toArrow().to_pylist()[0].values()
        if not self._n:
            raise ValueError("validation: no row is marked as held out")
        if self.metric == "roc_auc":
            between = (F.col("rating") > self._low) & (F.col("rating") < self._high)
            if self._low == self._high or self.held_out.where(between).count():
                raise ValueError(
                    "roc_auc needs held-out ratings of two values: make them 0 and 1, or choose "
                    "metric='rmse'"
                )
        self._warned = False

    def __call__(self, users: Vectors, items: Vectors) -> float:
        """The metric over the pairs that the model knows."""
        columns = ("user", "item", "prediction")
        predicted = with_predictions(self.held_out, users, items, columns, "inner")
        error = F.col("prediction").cast("double") - F.col("rating")
        found = predicted.agg(F.count("rating"), F.sqrt(F.avg(error * error))).toArrow()
        n, rmse = (column[0].as_py() for column in found.columns)
        if not n:
            raise ValueError(
                "validation: none of its ratings has both a user and an item of training"
            )
        if n < self._n and not self._warned:
            self._warned = True
            warnings.warn(
                f"validation: {self._n - n} of {self._n} ratings have a user or an item that "
                "training doesn't, and are left out",
                stacklevel=2,
            )
        if self.metric == "roc_auc":
            label = (F.col("rating") == self._high).cast("double").alias("label")
            pairs = predicted.select(label, F.col("prediction").cast("double"))
            exact = BinaryClassificationEvaluator(rawPredictionCol="prediction", numBins=0)
            return float(exact.evaluate(pairs))
        return float(rmse)
