"""One Spark for all tests: they run one after the other in one process."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mixedals import Interactions

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame, SparkSession
from spark_cases import builder, in_spark

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    chosen = builder(**{"spark.sql.warehouse.dir": warehouse})
    remote = os.environ.get("MIXEDALS_SPARK_REMOTE")
    session = (chosen.remote(remote) if remote else chosen.master("local[2]")).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def star_frame(spark: SparkSession, stars: Interactions) -> DataFrame:
    """The ratings of ``stars``."""
    return in_spark(spark, stars.to_frame().select("user", "item", "rating"))
