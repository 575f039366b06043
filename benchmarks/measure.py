"""One measurement in a process of its own: ``python -m benchmarks.measure NAME``.

Each prints one JSON object. Times are the least of some repetitions: what the machine's other
work adds is never less than nothing.
"""

import json
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import polars as pl

from benchmarks.data import ratings_file
from mixedals import Interactions, MixedALS

THREADS = 2


def seconds_an_iteration(iterations: int, **parameters: object) -> dict[str, float]:
    """The median of a fit's iterations but for the first, which touches memory anew."""
    data = Interactions.read(ratings_file())
    _ = data.by_item
    model = MixedALS(iterations=iterations, n_threads=THREADS, **parameters).fit(data)
    seconds = model.history_["seconds"][1:]
    return {"seconds": float(np.median(seconds)), "least": float(seconds.min())}


def reading() -> dict[str, float]:
    """25 M rows: polars from CSV to a frame, and from that frame to both compressed views."""
    path = ratings_file(25_000_000, suffix="csv")
    csv, views = [], []
    for _ in range(3):
        began = time.perf_counter()
        frame = pl.read_csv(path)
        csv.append(time.perf_counter() - began)
        began = time.perf_counter()
        data = Interactions.from_frame(frame)
        _ = data.by_item
        views.append(time.perf_counter() - began)
        del data
    return {"read_csv": min(csv), "views": min(views)}


def memory() -> dict[str, float]:
    """Bytes a rating that a fit needs at its peak, beyond the caller's frame."""
    frame = pl.read_parquet(ratings_file())
    before = _resident_bytes()
    MixedALS(iterations=3, n_threads=THREADS).fit(Interactions.from_frame(frame))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"bytes_a_rating": (peak - before) / len(frame)}


def _resident_bytes() -> int:
    with open("/proc/self/status") as status:  # noqa: PTH123 - a file of the kernel
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


MEASUREMENTS: dict[str, Callable[[], dict[str, float]]] = {
    "plain-6": lambda: seconds_an_iteration(21, dims=6),
    "padded-6": lambda: seconds_an_iteration(21, dims=(2, 4, 6), projection="padded"),
    "projected-6": lambda: seconds_an_iteration(21, dims=(2, 4, 6)),
    "sampled-6": lambda: seconds_an_iteration(21, dims=(2, 4, 6), projection_sampling="paper"),
    "plain-64": lambda: seconds_an_iteration(5, dims=64),
    "projected-64": lambda: seconds_an_iteration(5, dims=(16, 32, 64)),
    "reading": reading,
    "memory": memory,
}

if __name__ == "__main__":
    print(json.dumps(MEASUREMENTS[sys.argv[1]]()))
