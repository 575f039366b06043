"""Where ratings come from: files or standard input, and the columns that are taken from them."""

import re
import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import polars as pl

    from mixedals import Interactions

STDIN = "-"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="CSV, TSV, Parquet, Arrow or NDJSON files of one format, patterns such as "
        "'parts/*.parquet', or - for standard input.",
        show_default=False,
    ),
]


class Format(StrEnum):
    """What standard input may hold."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    arrow = "arrow"
    ndjson = "ndjson"


class Duplicates(StrEnum):
    """What becomes of several ratings of an item by a user."""

    error = "error"
    last = "last"
    mean = "mean"


_PANEL = "Columns"
UserColumn = Annotated[
    str | None,
    typer.Option("--user", metavar="COLUMN", help="Column of the users.", rich_help_panel=_PANEL),
]
ItemColumn = Annotated[
    str | None,
    typer.Option("--item", metavar="COLUMN", help="Column of the items.", rich_help_panel=_PANEL),
]
StdinFormat = Annotated[
    Format,
    typer.Option("--stdin-format", help="Format of standard input.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True)
class Columns:
    """Which columns have which role; those that aren't given are recognised by common names."""

    user: UserColumn = None
    item: ItemColumn = None
    rating: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Column of the ratings.", rich_help_panel=_PANEL),
    ] = None
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the times; '' for none.", rich_help_panel=_PANEL
        ),
    ] = None
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="Column of the weights; '' for none.", rich_help_panel=_PANEL
        ),
    ] = None
    duplicates: Annotated[
        Duplicates,
        typer.Option(
            help="What becomes of several ratings of an item by a user.", rich_help_panel=_PANEL
        ),
    ] = Duplicates.error
    stdin_format: StdinFormat = Format.csv

    def read(self, files: list[str]) -> "Interactions":
        """The ratings of the files, or of standard input."""
        from mixedals import Interactions

        given: dict[str, Any] = asdict(self)
        stdin_format = given.pop("stdin_format")
        for role in ("timestamp", "weight"):
            given[role] = given[role] if given[role] != "" else False
        try:
            if files == [STDIN]:
                roles = {role: of for role, of in given.items() if role != "duplicates"}
                return Interactions.from_frame(scan_stdin(stdin_format, roles), **given)
            return Interactions.read([*files], **given)
        except (ValueError, TypeError) as error:
            raise type(error)(as_options(str(error))) from error


def scan_stdin(of: Format, given: dict[str, Any]) -> "pl.LazyFrame":
    """Standard input, of that format, as a frame; ``given`` are names of columns by role."""
    from mixedals._columns import scan_bytes

    return scan_bytes(sys.stdin.buffer.read(), f".{of}", given)


def as_options(message: str) -> str:
    """An error of the library, which speaks of Python's arguments, in terms of the shell's."""
    message = message.partition("\nRead it with")[0]
    return re.sub(r'\b([a-z]+)="([^"]*)"', r"--\1 \2", message)
