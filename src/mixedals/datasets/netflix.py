"""The Netflix Prize's layout: a line ``MOVIE:``, below it a line ``USER,RATING,DATE`` a rating."""

import re
from collections.abc import Iterable, Iterator
from typing import IO

import numpy as np
import polars as pl

from mixedals.datasets.text import (
    BLOCK,
    LineFormat,
    WrongLineError,
    blocks,
    decoded,
    id_and_title,
    quoted,
)

_RATING = LineFormat(
    "USER,RATING,DATE",
    b",",
    re.compile(rb"\d+,[1-5],\d{4}-\d\d-\d\d"),
    {"user": pl.Int32, "rating": pl.UInt8, "timestamp": pl.Date},
    (1, 5),
)
_RATINGS_NAME = re.compile(r"mv_\d+\.txt|combined_data_\d+\.txt")
_TITLES_NAMES = ("movie_titles.txt", "movie_titles.csv")


class NetflixLayout:
    """One file a movie, or files with many movies."""

    files = "training_set/mv_*.txt or combined_data_*.txt"

    def is_ratings(self, name: str) -> bool:
        """Tells whether the file of that name holds ratings."""
        return _RATINGS_NAME.fullmatch(name) is not None

    def is_titles(self, name: str) -> bool:
        """Tells whether the file of that name holds titles."""
        return name in _TITLES_NAMES

    def ratings(self, files: Iterable[tuple[str, IO[bytes]]]) -> Iterator[pl.DataFrame]:
        """The ratings of these files, in parts."""
        return map(_parsed, _gathered(files))

    def titles(self, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
        """Ids and titles; a line is ``MOVIE,YEAR,TITLE``."""
        for block in blocks(stream):
            for line in block.splitlines():
                yield id_and_title(line, decoded(line).split(",", 2), 2)


def _gathered(files: Iterable[tuple[str, IO[bytes]]]) -> Iterator[bytes]:
    """Texts of a good size to parse: several files, or a part of one. Each begins with a movie."""
    parts: list[bytes] = []
    for name, stream in files:
        movie = b""
        for block in blocks(stream):
            text = movie + block
            first = text[: text.index(b"\n")]
            if not re.fullmatch(rb"\d+:", first):
                raise ValueError(
                    f"{name}: {quoted(first)} isn't MOVIE:, with which such a file begins"
                )
            colon = text.rindex(b":")
            movie = text[text.rfind(b"\n", 0, colon) + 1 : colon + 2]
            parts.append(text)
            if sum(map(len, parts)) > BLOCK:
                yield b"".join(parts)
                parts = []
    if parts:
        yield b"".join(parts)


def _parsed(text: bytes) -> pl.DataFrame:
    """The ratings of a text that begins with a movie."""
    characters = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(characters == ord("\n"))
    colons = np.flatnonzero(characters == ord(":"))
    lines = np.searchsorted(ends, colons)
    starts = np.where(lines > 0, ends[lines - 1] + 1, 0)
    numbers = [text[start:colon] for start, colon in zip(starts, colons, strict=True)]
    for number, colon in zip(numbers, colons, strict=True):
        if not number.isdigit() or len(number) > 9 or text[colon + 1 : colon + 2] != b"\n":
            raise ValueError(f"{quoted(number + b':')} isn't MOVIE:")
    movies = np.array(numbers, dtype=np.int32)
    counts = np.diff(lines, append=len(ends)) - 1
    pieces = zip(colons + 2, [*starts[1:], len(text)], strict=True)
    try:
        frame = _RATING.frame(b"".join(text[low:high] for low, high in pieces))
    except WrongLineError as error:
        movie = movies[np.searchsorted(counts.cumsum(), error.number, side="right")]
        raise ValueError(f"movie {movie}: {error.reason}") from error
    return frame.with_columns(item=np.repeat(movies, counts))
