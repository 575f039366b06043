"""Answers that are rows: a table in a terminal, CSV or JSON in a pipe, or a file."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from mixedals.cli.output import print_frame

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".parquet", ".csv", ".ndjson")


def _checked(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in SUFFIXES:
        raise typer.BadParameter(f"{path} must end in one of {', '.join(SUFFIXES)}")
    return path


@dataclass(frozen=True)
class RowOutput:
    """Where rows go."""

    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", callback=_checked,
            help="Write a .parquet, .csv or .ndjson file.",
        ),
    ] = None  # fmt: skip
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, for programs.")
    ] = False

    def write(self, batches: Iterable["pl.DataFrame"]) -> None:
        """Write frames one after the other, never all at once but in a terminal's table.

        A file is there whole or not at all.
        """
        import polars as pl

        from mixedals._atomic import replacing

        batches = map(_plain, batches)
        if self.output is not None:
            with replacing(self.output) as path:
                if self.output.suffix == ".parquet":
                    _sink_parquet(batches, path)
                else:
                    with path.open("wb") as file:
                        _write_text(batches, file, as_json=self.output.suffix == ".ndjson")
        elif self.as_json or not sys.stdout.isatty():
            _write_text(batches, sys.stdout.buffer, as_json=self.as_json)
        else:
            print_frame(pl.concat(batches))


def _plain(frame: "pl.DataFrame") -> "pl.DataFrame":
    """The frame with UUIDs, for which polars has no type, as text."""
    import polars as pl

    objects = [name for name, dtype in frame.schema.items() if dtype == pl.Object]
    texts = (pl.Series(name, list(map(str, frame[name])), pl.String) for name in objects)
    return frame.with_columns(texts)


def _write_text(batches: Iterable["pl.DataFrame"], file: IO[bytes], *, as_json: bool) -> None:
    for number, frame in enumerate(batches):
        if as_json:
            frame.write_ndjson(file)
        else:
            frame.write_csv(file, include_header=number == 0)


def _sink_parquet(batches: Iterator["pl.DataFrame"], path: Path) -> None:
    from polars.io.plugins import register_io_source

    first = next(batches)
    frames = register_io_source(lambda *_: itertools.chain([first], batches), schema=first.schema)
    frames.sink_parquet(path)
