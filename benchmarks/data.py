"""The ratings that are measured on, as Parquet and CSV files that are kept between runs."""

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl

from mixedals.datasets import read
from mixedals.synthetic import generate_ratings

CACHE = Path(__file__).parent / ".cache"
TEST_SHARE = 0.05

# As many as MovieLens 25M has after the paper's filtering. The mean row has 2 (users) and 12
# (items) times as many ratings as the median row: in the Netflix Prize data 2.2 and 10, in
# MovieLens 25M, whose items are skewed more, 2.2 and about 20.
USERS, ITEMS, RATINGS = 150_000, 30_000, 13_000_000
USER_SKEW, ITEM_SKEW = 1.0, 1.8


def _generated(n_ratings: int) -> pl.DataFrame:
    """Users, items and ratings grow together."""
    scale = n_ratings / RATINGS
    data = generate_ratings(
        int(USERS * scale),
        int(ITEMS * scale),
        n_ratings,
        user_skew=USER_SKEW,
        item_skew=ITEM_SKEW,
    )
    return data.to_frame().drop("timestamp")


def _real(name: str) -> Path:
    folder = os.environ.get("MIXEDALS_DATA")
    if folder is None:
        raise FileNotFoundError(f"MIXEDALS_DATA must name the folder that has {name}")
    return Path(folder) / name


def _movielens() -> pl.DataFrame:
    return read("ml-1m", _real("ml-1m")).interactions.to_frame().drop("timestamp")


def _netflix() -> pl.DataFrame:
    frame = pl.read_parquet(_real("netflix-quarter.parquet"))
    return frame.select("user", pl.col("movie").alias("item"), pl.col("rating").cast(pl.Float32))


SOURCES: dict[str, Callable[[], pl.DataFrame]] = {
    "ml-1m": _movielens,
    "netflix-quarter": _netflix,
    "13M": lambda: _generated(RATINGS),
    "25M": lambda: _generated(25_000_000),
    "26M": lambda: _generated(2 * RATINGS),
    "100M": lambda: _generated(100_000_000),
}


def ratings_file(size: str, part: str = "all", suffix: str = "parquet") -> Path:
    """The ratings of a size in random order; ``part`` may be ``train`` or ``test``."""
    path = CACHE / f"{size}-{part}.{suffix}"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        frame = SOURCES[size]().sample(fraction=1.0, shuffle=True, seed=0)
        n_test = int(len(frame) * TEST_SHARE)
        if part != "all":
            frame = frame.tail(n_test) if part == "test" else frame.head(len(frame) - n_test)
        # A killed run leaves no half of a file under the name.
        unfinished = path.with_suffix(".unfinished")
        if suffix == "csv":
            frame.write_csv(unfinished)
        else:
            frame.write_parquet(unfinished)
        unfinished.rename(path)
    return path
