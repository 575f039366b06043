"""The same models on Apache Spark, in place of ``pyspark.ml.recommendation.ALS``."""

from mixedals._extras import require

require("pyspark", "spark")
require("pyarrow", "spark")

from mixedals.spark.estimator import MixedALS  # noqa: E402 - what it imports was asked for above
from mixedals.spark.model import MixedALSModel  # noqa: E402

__all__ = ["MixedALS", "MixedALSModel"]
