"""``mixedals similar``: the nearest items or users."""

from enum import StrEnum
from typing import Annotated

import typer

from mixedals.cli.models import Count, ModelFile, Titles, ids_of
from mixedals.cli.options import with_groups
from mixedals.cli.rows import RowOutput


class Likeness(StrEnum):
    """How near two vectors are."""

    cosine = "cosine"
    dot = "dot"


@with_groups
def similar(
    model: ModelFile,
    ids: Annotated[list[str], typer.Argument(metavar="IDS", help="Ids of items.")],
    rows: RowOutput,
    titles: Titles,
    users: Annotated[bool, typer.Option("--users", help="The ids are users'.")] = False,
    k: Count = 10,
    metric: Annotated[Likeness, typer.Option(help="How near two vectors are.")] = Likeness.cosine,
) -> None:
    """Find the items that are most like an item, or users like a user.

    [dim]mixedals similar movies.mixedals 318 --titles movies.csv[/dim]
    """
    from mixedals import load

    fitted = load(model)
    if users:
        if titles.titles is not None:
            raise typer.BadParameter("only items have titles", param_hint="--titles")
        of_users = ids_of(fitted._fitted.users, ids, "users")
        rows.write([fitted.similar_users(of_users, k, metric=metric.value)])
        return
    items = fitted._fitted.items
    found = fitted.similar_items(ids_of(items, ids, "items"), k, metric=metric.value)
    rows.write(titles.add(iter([found]), items, "similar_item"))
