"""``mixedals predict``: ratings of pairs."""

from typing import Annotated

import typer

from mixedals.cli.columns import (
    Files,
    Format,
    ItemColumn,
    StdinFormat,
    UserColumn,
    read_columns,
    types_of_ids,
)
from mixedals.cli.models import ModelFile
from mixedals.cli.options import with_groups
from mixedals.cli.output import note
from mixedals.cli.rows import RowOutput


@with_groups
def predict(
    model: ModelFile,
    files: Files,
    rows: RowOutput,
    user: UserColumn = None,
    item: ItemColumn = None,
    stdin_format: StdinFormat = Format.csv,
    mean: Annotated[
        bool,
        typer.Option("--mean", help="Predict the mean rating where the model knows nothing."),
    ] = False,
) -> None:
    """Predict ratings of pairs of users and items.

    A pair whose user or item the model doesn't know gets NaN.

    [dim]mixedals predict movies.mixedals pairs.csv -o predicted.parquet[/dim]
    """
    import polars as pl

    from mixedals import load

    fitted = load(model)
    types = types_of_ids(fitted._fitted.users, fitted._fitted.items)
    pairs, names = read_columns(files, stdin_format, {"user": user, "item": item}, types)
    if pairs["user"].is_empty():
        raise ValueError("there are no pairs: the input is empty")
    predicted = fitted.predict(pairs["user"], pairs["item"], unknown="mean" if mean else "nan")
    n_unknown = int(pl.Series(predicted).is_nan().sum())
    note(f"{len(predicted):,} pairs; the model doesn't know user or item of {n_unknown:,}")
    columns = {names[role]: pairs[role] for role in ("user", "item")}
    rows.write([pl.DataFrame({**columns, "prediction": predicted})])
