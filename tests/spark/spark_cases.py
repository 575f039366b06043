"""What Spark's tests share."""

import os
import sys

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession

from mixedals import MixedALS

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
}


def builder(**more: str) -> SparkSession.Builder:
    """A session with the tests' settings and these."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    chosen = SparkSession.builder
    for name, value in (SETTINGS | more).items():
        chosen = chosen.config(name, value)
    return chosen


def in_spark(spark: SparkSession, table: pl.DataFrame) -> DataFrame:
    """A polars frame in Spark."""
    return spark.createDataFrame(table.to_arrow())


def assert_same_model(ours: MixedALS, theirs: MixedALS, tolerance: float = 0.0) -> None:
    """The same ids, sizes and embeddings."""
    assert ours.user_ids_.tolist() == theirs.user_ids_.tolist()
    assert ours.item_ids_.tolist() == theirs.item_ids_.tolist()
    np.testing.assert_array_equal(ours.user_dims_, theirs.user_dims_)
    np.testing.assert_array_equal(ours.item_dims_, theirs.item_dims_)
    np.testing.assert_allclose(ours.user_vectors_, theirs.user_vectors_, 0, tolerance)
    np.testing.assert_allclose(ours.item_vectors_, theirs.item_vectors_, 0, tolerance)
