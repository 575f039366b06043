"""One measurement of one library, in a process of its own.

``python worker.py ADAPTER TASK ARGUMENTS``, run by a Python that has the library; the arguments
are a JSON object, as is the last line that is printed. Needs nothing but NumPy and the adapter,
which has VERSION, ``read``, ``fit``, and where the library can, ``predict`` and ``recommend``.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Result = dict[str, Any]
THREADS = 2

# A task is given up beyond so many seconds where it may stop early.
ENOUGH = 100.0


def seconds_of(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


class Worker:
    """The tasks, for one library and one set of options."""

    def __init__(self, adapter: str, arguments: Result) -> None:
        sys.path.insert(0, str(Path(__file__).parent / "adapters"))
        self.library: Any = importlib.import_module(adapter)
        self.path: str = arguments["path"]
        self.test: str = arguments["test"]
        self.dims: Any = arguments["dims"]
        self.options: Result = arguments["options"]
        self.size: Result = arguments["size"]

    def fit(self, data: Any, iterations: int) -> Any:
        return self.library.fit(data, self.dims, iterations, THREADS, **self.options)

    def iteration(self) -> Result:
        """Seconds an iteration, by runs of two lengths: what a fit does once is in both."""
        data = self.library.read(self.path)
        more = self.size["iterations"]
        short, long = [], []
        self.fit(data, 1)  # compiles what is compiled, and touches the memory
        for _ in range(self.size["repeats"]):
            short.append(seconds_of(lambda: self.fit(data, 1)))
            long.append(seconds_of(lambda: self.fit(data, 1 + more)))
        return {"seconds": (min(long) - min(short)) / more}

    def memory(self) -> Result:
        """Bytes at the peak of a fit, beyond those that hold the ratings as the library has them.

        Children count too: Spark's data are in one.
        """
        data = self.library.read(self.path)
        for process in processes():
            (process / "clear_refs").write_text("5")
        before = total_memory("VmRSS")
        self.fit(data, 3)
        return {"bytes": total_memory("VmHWM") - before}

    def quality(self) -> Result:
        """Seconds and held-out error of fits of several lengths."""
        import polars as pl

        data = self.library.read(self.path)
        test = pl.read_parquet(self.test)
        users, items = test["user"].to_numpy(), test["item"].to_numpy()
        ratings = test["rating"].to_numpy()
        self.fit(data, 1)
        lengths, seconds, errors = [], [], []
        for length in (1, 2, 3, 4, 6, 8, 12, 16, 24):
            began = time.perf_counter()
            model = self.fit(data, length)
            seconds.append(time.perf_counter() - began)
            lengths.append(length)
            error = self.library.predict(model, users, items) - ratings
            errors.append(float(np.sqrt(np.nanmean(error * error))))
            if sum(seconds) > ENOUGH:
                break
        return {"iterations": lengths, "seconds": seconds, "rmse": errors}

    def recommend(self) -> Result:
        """Seconds a user for the ten best items, those seen left out."""
        import polars as pl

        data = self.library.read(self.path)
        users = pl.read_parquet(self.path, columns=["user"])["user"].unique().sort().to_numpy()
        users = users[: self.size["users"]]
        model = self.fit(data, 2)
        self.library.recommend(model, data, users[:10], 10)
        run = lambda: self.library.recommend(model, data, users, 10)  # noqa: E731
        return {"seconds": min(seconds_of(run) for _ in range(2)) / len(users)}

    def file(self) -> Result:
        """Seconds from a file to the library's own form of the ratings, and to a fitted model."""
        began = time.perf_counter()
        data = self.library.read(self.path)
        read = time.perf_counter() - began
        self.fit(data, 30)
        return {"read": read, "seconds": time.perf_counter() - began}


def processes() -> list[Path]:
    """The folders in /proc of the process and of all its descendants."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")")[-1].split()[1]
            )
        except OSError:
            continue  # it has ended
    found = [os.getpid()]
    for process in found:
        found += [child for child, parent in parents.items() if parent == process]
    return [Path("/proc") / str(process) for process in found]


def total_memory(field: str) -> int:
    """VmRSS (now) or VmHWM (at the peak), in bytes."""
    lines = (
        line
        for folder in processes()
        for line in (folder / "status").read_text().splitlines()
        if line.startswith(field)
    )
    return sum(int(line.split()[1]) * 1024 for line in lines)


if __name__ == "__main__":
    worker = Worker(sys.argv[1], json.loads(sys.argv[3]))
    print(json.dumps(getattr(worker, sys.argv[2])() | {"version": worker.library.VERSION}))
