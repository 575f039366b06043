"""The layouts of MovieLens: a line a rating, and a file of titles beside it."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import polars as pl

from mixedals.datasets.text import LineFormat, WrongLineError, blocks, decoded, id_and_title, quoted

_SCHEMA = {"user": pl.Int32, "item": pl.Int32, "rating": pl.Float32, "timestamp": pl.Int64}


def _lines(separator: str) -> LineFormat:
    between = re.escape(separator).encode()
    number, rating = rb"\d+", rb"\d(?:\.\d)?"
    return LineFormat(
        separator.join(("USER", "ITEM", "RATING", "TIMESTAMP")).replace("\t", "<tab>"),
        separator.encode(),
        re.compile(between.join((number, number, rating, number))),
        _SCHEMA,
        (0.5, 5),
    )


@dataclass(frozen=True)
class MovieLensLayout:
    """A file of ratings and one of titles.

    Attributes
    ----------
    files
        Name of the file of ratings.
    titles_file
        Name of the file of titles.
    line
        What a line of ratings is.
    values
        The values of a line of titles, of which the first two are the id and the title.
    header
        The first lines, where there are such.
    """

    files: str
    titles_file: str
    line: LineFormat
    values: Callable[[str], list[str]]
    header: bytes | None = None

    def is_ratings(self, name: str) -> bool:
        """Tells whether the file of that name holds ratings."""
        return name == self.files

    def is_titles(self, name: str) -> bool:
        """Tells whether the file of that name holds titles."""
        return name == self.titles_file

    def ratings(self, files: Iterable[tuple[str, IO[bytes]]]) -> Iterator[pl.DataFrame]:
        """The ratings of these files, in parts."""
        for name, stream in files:
            before = 0
            for block in blocks(stream):
                text = block
                if self.header is not None and before == 0:
                    text, before = self._without_header(name, block), 1
                try:
                    yield self.line.frame(text)
                except WrongLineError as error:
                    raise ValueError(
                        f"{name}, line {before + error.number + 1:,}: {error.reason}"
                    ) from error
                before += text.count(b"\n")

    def titles(self, stream: IO[bytes]) -> Iterator[tuple[int, str]]:
        """Ids and titles."""
        for block in blocks(stream):
            for line in block.splitlines():
                values = self.values(decoded(line))
                if values[:1] != ["movieId"]:
                    yield id_and_title(line, values, 1)

    def _without_header(self, name: str, text: bytes) -> bytes:
        first, _, rest = text.partition(b"\n")
        assert self.header is not None
        if decoded(first).encode() != self.header:
            raise ValueError(
                f"{name}: its first line is {quoted(first)}, not {quoted(self.header)}"
            )
        return rest


def _comma_values(line: str) -> list[str]:
    """The values of a line of CSV; none where it isn't such."""
    try:
        return next(csv.reader([line]))
    except csv.Error:
        return []


TABS = MovieLensLayout("u.data", "u.item", _lines("\t"), lambda line: line.split("|"))
COLONS = MovieLensLayout("ratings.dat", "movies.dat", _lines("::"), lambda line: line.split("::"))
COMMAS = MovieLensLayout(
    "ratings.csv",
    "movies.csv",
    _lines(","),
    _comma_values,
    b"userId,movieId,rating,timestamp",
)
