"""``mixedals datasets``: the data sets that have a name."""

from pathlib import Path
from typing import Annotated

import typer

from mixedals.cli.output import AsJson, note, print_frame, print_json

app = typer.Typer(no_args_is_help=True, help="List, fetch and convert well-known data sets.")

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Name of a data set; see datasets list.", show_default=False
    ),
]


@app.command("list")
def show(as_json: AsJson = False) -> None:
    """List the data sets that have a name, and where they are to be had."""
    import polars as pl

    from mixedals.datasets import DATASETS

    rows = [
        {
            "name": dataset.name,
            "what": dataset.title,
            "ratings": dataset.ratings,
            "files": dataset.layout.files if dataset.layout else "none: generated",
            "where": dataset.url or dataset.elsewhere or "here",
        }
        for dataset in DATASETS.values()
    ]
    if as_json:
        print_json({"datasets": rows})
    else:
        print_frame(pl.DataFrame(rows))


@app.command(no_args_is_help=True)
def fetch(
    name: Name,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the archive goes.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Download a data set, going on from where a download broke off, and check it.

    The archive stays as it is: all commands that take a data set read it so.

    [dim]mixedals datasets fetch ml-25m --to data[/dim]
    """
    from mixedals import datasets

    archive = datasets.fetch(name, to)
    if as_json:
        print_json({"path": str(archive)})
    else:
        print(archive)


@app.command(no_args_is_help=True)
def convert(
    name: Name,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Folder or archive of the data set.", show_default=False
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Parquet file; by default beside the data set."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a data set as Parquet, which all commands read, and read fast.

    [dim]mixedals datasets convert netflix nf_prize_dataset.tar.gz -o netflix.parquet[/dim]
    """
    from mixedals import datasets

    note(f"reading {path}")
    files = datasets.convert(name, path, output)
    if as_json:
        print_json({"files": files})
    else:
        print(*files, sep="\n")
