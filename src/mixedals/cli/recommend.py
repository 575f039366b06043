"""``mixedals recommend``: the best items for users."""

import sys
from typing import Annotated

import typer

from mixedals.cli.models import Count, ModelFile, Titles, ids_of
from mixedals.cli.options import with_groups
from mixedals.cli.rows import RowOutput


@with_groups
def recommend(
    model: ModelFile,
    rows: RowOutput,
    titles: Titles,
    users: Annotated[
        list[str] | None, typer.Argument(metavar="USERS", help="Ids; everybody if none.")
    ] = None,
    k: Count = 10,
    include_seen: Annotated[
        bool, typer.Option("--include-seen", help="Also items that the user has rated.")
    ] = False,
) -> None:
    """Recommend items to users.

    [dim]mixedals recommend movies.mixedals 42 --titles movies.csv
    mixedals recommend movies.mixedals -o everyone.parquet[/dim]
    """
    from mixedals import load

    if not users and rows.output is None and sys.stdout.isatty():
        raise typer.BadParameter("name users, or give everybody a file with --output")
    fitted = load(model)
    vocabulary = fitted._fitted.users
    batches = fitted.recommend_batches(
        ids_of(vocabulary, users, "users") if users else None, k, exclude_seen=not include_seen
    )
    rows.write(titles.add(batches, fitted._fitted.items, "item"))
