"""Real clusters, processes on this machine of which some are killed; and Spark Connect."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SPARK_HOME = Path(pyspark.__file__).parent


def run(*command: object, **environment: str) -> str:
    """What a command prints that must succeed, in an environment without the tests' Spark."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    done = subprocess.run(
        [sys.executable, *map(str, command)], env=inherited | environment,
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers, each with room for one executor."""
    folder = tmp_path_factory.mktemp("standalone")
    port = 20_000 + os.getpid() % 20_000
    url = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_WORKER_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def start(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with (folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    processes = [
        start("master.Master", "--port", str(port)),
        start("worker.Worker", "--cores", "1", "--memory", "1g", url),
        start("worker.Worker", "--cores", "1", "--memory", "1g", url),
    ]
    yield url
    for process in reversed(processes):
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("killed", ["executor", "tasks"])
def test_a_fit_goes_on_when_processes_are_killed(standalone, killed):
    assert run(HERE / "fit_on_cluster.py", standalone, killed).endswith("as on one machine\n")


@pytest.mark.skipif("MIXEDALS_SPARK_REMOTE" in os.environ, reason="this is such a run")
def test_all_of_it_on_a_server_of_spark_connect():
    suite = [HERE / "test_spark_fit.py", HERE / "test_spark_model.py"]
    print(run("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *suite,
              MIXEDALS_SPARK_REMOTE="local[2]"))  # fmt: skip
