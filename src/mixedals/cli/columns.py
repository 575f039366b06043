"""Where ratings come from: files or standard input, and the columns that are taken from them."""

import sys
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from mixedals import Interactions
    from mixedals._ids import Vocabulary

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

    def read(
        self, files: list[str], types: "Mapping[str, pl.DataType] | None" = None
    ) -> "Interactions":
        """The ratings of the files, or of standard input; ``types`` as for ``read_columns``."""
        from mixedals import Interactions

        given: dict[str, Any] = asdict(self)
        duplicates, stdin_format = given.pop("duplicates").value, given.pop("stdin_format")
        for role in ("timestamp", "weight"):
            given[role] = given[role] if given[role] != "" else False
        return Interactions._from_columns(
            *read_columns(files, stdin_format, given, types), duplicates
        )


def read_columns(
    files: list[str],
    stdin_format: Format,
    given: "Mapping[str, str | bool | None]",
    types: "Mapping[str, pl.DataType] | None" = None,
) -> tuple[dict[str, "pl.Series"], dict[str, str]]:
    """The columns by role, and their names; ``types`` of roles, where text doesn't say them."""
    from mixedals._columns import columns_of_bytes, columns_of_files

    if files == [STDIN]:
        data = sys.stdin.buffer.read()
        return columns_of_bytes(data, f".{stdin_format}", "standard input", given, types)
    return columns_of_files([*files], given, types)


def types_of_ids(users: "Vocabulary", items: "Vocabulary") -> dict[str, "pl.DataType"]:
    """Types in which ids that are text are to be read, so that they are like those known."""
    return {"user": users.values.dtype, "item": items.values.dtype}
