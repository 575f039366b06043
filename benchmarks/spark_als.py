"""Fits beside those of Spark MLlib: ``python -m benchmarks.spark_als RATINGS.parquet``.

Prints a JSON object for each measurement: whole fits from a Parquet file, recommendations for all
users, and the bytes that an iteration shuffles.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator

from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

from mixedals.spark import MixedALS


def session(memory: str) -> SparkSession:
    """Two threads, as the other measurements have."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", memory)
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    for name, value in {**quiet, "spark.log.level": "ERROR"}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def engines(rank: int, iterations: int, blocks: int) -> Iterator[tuple[str, MixedALS | ALS]]:
    """The estimators to compare, at the same rank, iterations and blocks."""
    columns = {"userCol": "user", "itemCol": "item", "ratingCol": "rating", "maxIter": iterations}
    cut = {"numUserBlocks": blocks, "numItemBlocks": blocks}
    yield "mllib", ALS(rank=rank, seed=0, **columns, **cut)
    yield "plain", MixedALS(rank=rank, **columns, **cut)
    if rank >= 6:
        dims = [rank // 4, rank // 2, rank] if rank > 6 else [2, 4, 6]
        yield "padded", MixedALS(dims=dims, projection="padded", **columns, **cut)


def seconds_to_recommend(model: object) -> float:
    """Ten items for every user, computed and thrown away."""
    began = time.perf_counter()
    model.recommendForAllUsers(10).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def shuffled(spark: SparkSession) -> int:
    """Bytes that this session has written to shuffles so far."""
    stages = spark.sparkContext._jsc.sc().statusStore().stageList(None)
    return sum(stages.apply(i).shuffleWriteBytes() for i in range(stages.size()))


def main() -> None:
    """Runs what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ratings", help="Parquet with columns user, item, rating")
    parser.add_argument("--rank", type=int, nargs="+", default=[6, 16, 64])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--blocks", type=int, default=10, help="of users, and of items")
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--recommend", action="store_true")
    chosen = parser.parse_args()
    spark = session(chosen.memory)
    ratings = spark.read.parquet(chosen.ratings).withColumnsRenamed({"movie": "item"})
    ratings = ratings.select("user", "item", "rating")
    ratings.limit(1000).agg({"rating": "avg"}).collect()
    for rank in chosen.rank:
        for name, estimator in engines(rank, chosen.iterations, chosen.blocks):
            before, began = shuffled(spark), time.perf_counter()
            model = estimator.fit(ratings)
            found = {"engine": name, "rank": rank, "iterations": chosen.iterations}
            found["fit"] = round(time.perf_counter() - began, 2)
            found["shuffled"] = shuffled(spark) - before
            if name != "mllib":
                found["an_iteration"] = round(float(model.history["seconds"].median()), 3)
            if chosen.recommend:
                found["recommend"] = round(seconds_to_recommend(model), 2)
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
