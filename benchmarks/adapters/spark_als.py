"""Spark MLlib's ALS in local mode."""

from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.ml.recommendation import ALS, ALSModel
from pyspark.sql import DataFrame, SparkSession

VERSION = version("pyspark")


@cache
def session(threads: int = 2) -> SparkSession:
    settings = {
        "spark.driver.memory": "8g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(threads),
        "spark.log.level": "ERROR",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    builder = SparkSession.builder.master(f"local[{threads}]")
    return builder.config(map=settings).getOrCreate()


def read(path: str) -> DataFrame:
    reader = session().read
    if Path(path).suffix == ".csv":
        frame = reader.csv(path, header=True, schema="user INT, item INT, rating FLOAT")
    else:
        frame = reader.parquet(path)
    columns = ("cast(user as int) user", "cast(item as int) item", "cast(rating as float) rating")
    frame = frame.selectExpr(*columns).cache()
    frame.count()
    return frame


def fit(data: DataFrame, dims: int, iterations: int, threads: int, **options: Any) -> ALSModel:
    als = ALS(
        rank=dims,
        maxIter=iterations,
        userCol="user",
        itemCol="item",
        ratingCol="rating",
        numUserBlocks=threads,
        numItemBlocks=threads,
        seed=0,
        **options,
    )
    return als.fit(data)


def predict(model: ALSModel, users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.float32]:
    asked = pd.DataFrame({"row": range(len(users)), "user": users, "item": items})
    answer = model.transform(session().createDataFrame(asked)).toPandas()
    return answer.sort_values("row")["prediction"].to_numpy(np.float32)


def recommend(model: ALSModel, data: DataFrame, users: NDArray[Any], k: int) -> None:
    """Of all users, seen items among them: it can't leave them out."""
    model.recommendForAllUsers(k).write.format("noop").mode("overwrite").save()
