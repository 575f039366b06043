"""Fits a model on a cluster where something happens: MASTER MISHAP. Run by test_cluster."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pyspark.sql import SparkSession
from spark_cases import assert_same_model, builder, in_spark

from mixedals import MixedALS
from mixedals import spark as on_spark
from mixedals.spark.training import Training
from mixedals.synthetic import generate_ratings


def executors(spark: SparkSession) -> list[int]:
    """Processes of this driver's executors."""
    driver = f"@127.0.0.1:{spark.conf.get('spark.driver.port')}"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended
            continue
        if "CoarseGrainedExecutorBackend" in command and driver in command:
            found.append(int(folder.name))
    return sorted(found)


def children(parent: int) -> list[int]:
    """Processes that a process started."""
    folders = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(child) for file in folders for child in file.read_text().split()]


def kill_a_task(spark: SparkSession, until: threading.Event, killed: list[int]) -> None:
    """Kills the Python process of some task, three times in all."""
    while not until.wait(0.2) and len(killed) < 3:
        workers = [w for e in executors(spark) for daemon in children(e) for w in children(daemon)]
        if workers:
            killed.append(workers[len(killed) % len(workers)])
            os.kill(killed[-1], signal.SIGKILL)
            until.wait(3)


def fit_with_mishap(master: str, mishap: str) -> None:
    spark = builder(**{"spark.executor.memory": "640m"}).master(master).getOrCreate()
    data = generate_ratings(300, 120, 6000, random_state=1)
    parameters = {"dims": [2, 4], "projection": "padded"}
    estimator = on_spark.MixedALS(maxIter=4, numUserBlocks=2, numItemBlocks=2, **parameters)
    done, killed = threading.Event(), []
    if mishap == "tasks":
        threading.Thread(target=kill_a_task, args=(spark, done, killed), daemon=True).start()
    else:
        advance = Training.advance

        def advance_and_kill(self, model, iteration):
            if iteration == 3:
                killed.append(executors(spark)[0])
                os.kill(killed[0], signal.SIGKILL)
                time.sleep(1)
            return advance(self, model, iteration)

        Training.advance = advance_and_kill
    model = estimator.fit(in_spark(spark, data.to_frame().select("user", "item", "rating")))
    done.set()
    assert killed
    assert_same_model(model.toLocal(), MixedALS(iterations=4, **parameters).fit(data))
    spark.stop()


if __name__ == "__main__":
    fit_with_mishap(*sys.argv[1:3])
    print("as on one machine")
