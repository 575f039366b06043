"""One Spark for all tests: they run one after the other in one process."""

import os
import sys
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
    os.environ["PYSPARK_PYTHON"] = sys.executable
    if remote := os.environ.get("MIXEDALS_SPARK_REMOTE"):  # its server has settings of its own
        session = SparkSession.builder.remote(remote).getOrCreate()
        session.conf.set("spark.sql.shuffle.partitions", "4")
    else:
        warehouse = str(tmp_path_factory.mktemp("warehouse"))
        local = builder(**{"spark.sql.warehouse.dir": warehouse}).master("local[2]")
        session = local.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def star_frame(spark: SparkSession, stars: Interactions) -> DataFrame:
    """The ratings of ``stars``."""
    return in_spark(spark, stars.to_frame().select("user", "item", "rating"))
