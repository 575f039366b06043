"""What commands that ask a model share: its file, ids as they are typed, titles of items."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import polars as pl

    from mixedals._ids import Vocabulary

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)
]
Count = Annotated[int, typer.Option("--count", "-k", min=1, help="How many for each.")]


def ids_of(vocabulary: "Vocabulary", texts: list[str], side: str) -> "pl.Series":
    """Ids that were typed, in the type that the model's have."""
    import polars as pl

    from mixedals import UnknownIdError

    typed = pl.Series(texts, dtype=pl.String)
    if vocabulary.kind == "uuid":
        return typed
    if vocabulary.kind == "bool":
        ids = typed.replace_strict({"true": True, "false": False}, default=None)
    else:
        ids = typed.cast(vocabulary.values.dtype, strict=False)
    if ids.null_count():
        raise UnknownIdError(
            f"{typed.filter(ids.is_null())[0]!r} is not in the model, whose {side} have ids of "
            f"type {vocabulary.kind}"
        )
    return ids


@dataclass(frozen=True)
class Titles:
    """A file with titles of items."""

    titles: Annotated[
        str | None, typer.Option(metavar="FILE", help="Take titles of items from this file.")
    ] = None
    item: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the items there.")
    ] = None
    title: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the titles there.")
    ] = None

    def add(
        self, batches: Iterator["pl.DataFrame"], items: "Vocabulary", column: str
    ) -> Iterator["pl.DataFrame"]:
        """The frames with a column ``title`` behind that of items; null where there is none."""
        import polars as pl

        if self.titles is None:
            return batches
        given = self._columns(self.titles, items)
        titles = pl.DataFrame({"at": items.encode(given["item"]), "title": given["title"]})
        titles = titles.unique("at", keep="first")

        def with_titles(frame: pl.DataFrame) -> pl.DataFrame:
            at = pl.DataFrame({"at": items.encode(frame[column])})
            found = at.join(titles, on="at", how="left", maintain_order="left")["title"]
            return frame.insert_column(frame.get_column_index(column) + 1, found)

        return map(with_titles, batches)

    def _columns(self, path: str, items: "Vocabulary") -> dict[str, "pl.Series"]:
        from mixedals._columns import columns_of_files

        given = {"item": self.item, "title": self.title}
        try:
            return columns_of_files(path, given, {"item": items.values.dtype})[0]
        except (ValueError, TypeError) as error:
            raise type(error)(f"{path}: {error}") from error
