"""What the machine can do, what the kernels must do at the least, and how near they come.

``python machine.py limits`` or ``reading``, in a process whose libraries know how many threads they
may use.
"""

import json
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.data import ratings_file
from benchmarks.worker import THREADS
from mixedals import Interactions, _kernels
from mixedals._kernels import Csr

Result = dict[str, Any]
FLOAT = 4


def describe() -> str:
    """The processor, the threads that are used, and the kernels' instruction set."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.machine())}, {THREADS} threads, {_kernels.LEVEL}"


def least_seconds(run: Callable[[], object], repeats: int = 5) -> float:
    """What the machine's other work adds is never less than nothing."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def bandwidth() -> float:
    """Bytes a second that all threads together read from memory."""
    parts = np.array_split(np.ones(1 << 27, np.float32), THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        seconds = least_seconds(lambda: list(pool.map(np.max, parts)))
    return sum(part.nbytes for part in parts) / seconds


def product_rate() -> float:
    """Operations a second of a large matrix product in single precision, by NumPy's BLAS."""
    n = 4096
    a, b = np.ones((n, n), np.float32), np.ones((n, n), np.float32)
    return 2 * n**3 / least_seconds(lambda: a @ b)


def least_operations(counts: NDArray[np.int64], p: int) -> float:
    """Multiplications and additions of a half-step: each row by its cheaper system."""
    n = counts.astype(np.float64)
    primal = n * p * (p + 1) + 2 * n * p + p**3 / 3 + 2 * p**2
    dual = p * n * (n + 1) + n**3 / 3 + 2 * n**2 + 2 * n * p
    return float(np.where(n < p, dual, primal).sum())


def least_bytes(ratings: Csr, p: int, cache: int = 32 << 20) -> float:
    """Bytes that a half-step moves from and to memory.

    An index and a value a rating, the features a rating (once a column where caches hold them
    all), the result.
    """
    table = ratings.n_columns * p * FLOAT
    gathered = table if table <= cache else ratings.nnz * p * FLOAT
    return float(8 * ratings.nnz + gathered + ratings.n_rows * p * FLOAT)


def half_steps(product: float, memory: float) -> list[Result]:
    """Every kernel's time beside the least that its operations, or its bytes, would take."""
    data = Interactions.read(ratings_file("13M"))
    rng = np.random.default_rng(0)
    out = []
    for d in (6, 16, 64, 128):
        for side, ratings in (("users", data.by_user), ("items", data.by_item)):
            common = rng.uniform(-0.1, 0.1, (ratings.n_columns, d)).astype(np.float32)
            rows = np.arange(ratings.n_rows, dtype=np.int32)
            ridge = np.full(len(rows), 3.0, np.float32)

            def run(
                threads: int,
                of: tuple[Any, ...] = (ratings, rows, common, None, None, d, False, ridge),
            ) -> object:
                return _kernels.solve_rows(*of, threads)

            repeats = 7 if d < 64 else 3
            seconds = least_seconds(lambda: run(THREADS), repeats)
            alone = least_seconds(lambda: run(1), max(repeats // 2, 1))
            counts = np.diff(ratings.indptr)
            operations, moved = least_operations(counts, d), least_bytes(ratings, d)
            out.append(
                {
                    "kernel": f"{side}, d = {d}",
                    "seconds": seconds,
                    "alone": alone,
                    "operations": operations / product / seconds,
                    "bytes": moved / memory / seconds,
                }
            )
    return out


def limits() -> Result:
    """The machine's rates, and the share of them that each half-step reaches."""
    product, memory = product_rate(), bandwidth()
    return {"product": product, "memory": memory, "half_steps": half_steps(product, memory)}


def reading() -> Result:
    """25 M rows from CSV: by polars alone, and to ratings with both compressed views."""
    path = ratings_file("25M", suffix="csv")

    def ours() -> object:
        return Interactions.read(path).by_item

    polars, whole = [], []
    for _ in range(3):
        polars.append(least_seconds(lambda: pl.read_csv(path), 1))
        whole.append(least_seconds(ours, 1))
    return {"read_csv": min(polars), "views": min(whole)}


if __name__ == "__main__":
    print(json.dumps({"limits": limits, "reading": reading}[sys.argv[1]]()))
