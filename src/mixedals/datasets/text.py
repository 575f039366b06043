"""Text in blocks of whole lines, so that a file is never in memory as a whole."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import polars as pl

BLOCK = 1 << 25
_LONGEST_LINE = 1 << 20


class WrongLineError(ValueError):
    """A line isn't what the layout wants.

    Attributes
    ----------
    number
        Which line of the text it is, from 0.
    reason
        What is wrong, in words.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number + 1:,}: {reason}")
        self.number = number
        self.reason = reason


@dataclass(frozen=True)
class LineFormat:
    """What a line of ratings is.

    Attributes
    ----------
    shown
        The line as people write it down, for errors.
    separator
        What stands between values.
    pattern
        What a right line looks like.
    schema
        Names and types of its values.
    ratings
        The least rating that there may be, and the greatest.
    """

    shown: str
    separator: bytes
    pattern: re.Pattern[bytes]
    schema: Mapping[str, type[pl.DataType]]
    ratings: tuple[float, float]

    def frame(self, text: bytes) -> pl.DataFrame:
        """The values of whole lines, each of which ends with a newline."""
        reason = ""
        try:
            frame = self._read(text)
        except pl.exceptions.PolarsError as error:
            reason = str(error).partition("\n")[0]
        else:
            whole = frame.height == text.count(b"\n") and not any(frame.null_count().row(0))
            if whole and (len(self.separator) == 1 or b"\t" not in text):
                self._check_ratings(frame["rating"], text)
                return frame
        for number, line in enumerate(text.splitlines()):
            if not self.pattern.fullmatch(line):
                raise WrongLineError(number, f"{quoted(line)} isn't {self.shown}")
        self._check_types(text)
        raise ValueError(f"lines aren't {self.shown}: {reason}")

    def _read(self, text: bytes, *, ignore_errors: bool = False) -> pl.DataFrame:
        separator = self.separator
        if len(separator) > 1:  # which polars doesn't take
            text, separator = text.replace(separator, b"\t"), b"\t"
        return pl.read_csv(
            text,
            has_header=False,
            schema=self.schema,
            separator=separator.decode(),
            quote_char=None,
            glob=False,
            ignore_errors=ignore_errors,
        )

    def _check_ratings(self, ratings: pl.Series, text: bytes) -> None:
        least, most = self.ratings
        wrong = ~ratings.is_between(least, most)
        if wrong.any():
            number = int(wrong.to_numpy().argmax())
            line = quoted(text.splitlines()[number])
            raise WrongLineError(
                number, f"{line} has a rating that isn't between {least:g} and {most:g}"
            )

    def _check_types(self, text: bytes) -> None:
        """Finds the value that looks right and yet isn't one, an id beyond its type say."""
        frame = self._read(text, ignore_errors=True)
        for at, values in enumerate(frame):
            if values.has_nulls():
                number = int(values.is_null().to_numpy().argmax())
                line = text.splitlines()[number]
                wrong = quoted(line.split(self.separator)[at])
                raise WrongLineError(
                    number, f"{quoted(line)} has a {values.name} that can't be: {wrong}"
                )


def blocks(stream: IO[bytes]) -> Iterator[bytes]:
    r"""Whole lines of a file, many at a time, each of which ends with \n."""
    rest = b""
    while data := stream.read(BLOCK):
        text = rest + data
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        rest = text[end:]
        if len(rest) > _LONGEST_LINE:
            raise ValueError(
                f"a line is longer than {_LONGEST_LINE:,} bytes: {quoted(rest)} and so on isn't "
                "text of a data set"
            )
        if lines := _plain(text[:end]):
            yield lines
    if rest:
        yield _plain(rest + b"\n")


def _plain(text: bytes) -> bytes:
    r"""The text without empty lines, and with \n where lines end with \r\n or \r."""
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n\n" in text:
        text = re.sub(rb"\n{2,}", b"\n", text)
    return text.removeprefix(b"\n")


def id_and_title(line: bytes, values: Sequence[str], at: int) -> tuple[int, str]:
    """The id, which is the first value of a line, and the title, which is the one at ``at``."""
    right = len(values) > at and values[0].isascii() and values[0].isdigit() and len(values[0]) < 10
    if not right:
        raise ValueError(f"among the titles, {quoted(line)} isn't a line with an id and a title")
    return int(values[0]), values[at]


def quoted(line: bytes) -> str:
    """A line for an error, cut where it is long."""
    return repr(decoded(line[:60]))


def decoded(text: bytes) -> str:
    """Text in UTF-8 or, as older sets have it, Latin-1."""
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError:
        return text.decode("latin-1")
