"""``mixedals export``: a model in forms that other software takes."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mixedals.cli.models import ModelFile
from mixedals.cli.output import AsJson, as_bytes, print_facts, print_json


class Form(StrEnum):
    """Forms of a model."""

    parquet = "parquet"
    numpy = "numpy"
    usearch = "usearch"
    compact = "compact"


def export(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")
    ],
    form: Annotated[
        Form,
        typer.Option(
            "--as",
            help="Vectors of the common space as Parquet or NumPy files; a USearch index; or each "
            "row's own numbers and the projections, the smallest.",
        ),
    ] = Form.parquet,
    k: Annotated[
        int, typer.Option("--count", "-k", min=1, help="Of the index, measure the recall at this.")
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Export a model's vectors, or an index of them.

    [dim]mixedals export movies.mixedals --as compact -o vectors/[/dim]
    """
    from mixedals import export, load

    fitted = load(model)
    facts: dict[str, Any] = {"output": str(output)}
    if form == Form.usearch:
        recall = export.write_index(fitted, output, k)
        facts |= {
            f"recall_at_{k}": {f"expansion_search={effort}": of for effort, of in recall.items()}
        }
        names = ["items.usearch", "items.parquet", "users.parquet"]
        paths = [output / name for name in names]
    else:
        write = {
            Form.parquet: export.write_parquet,
            Form.numpy: export.write_numpy,
            Form.compact: export.write_compact,
        }[form]
        paths = write(fitted, output)
    sizes = {path.name: path.stat().st_size for path in paths}
    if as_json:
        print_json({**facts, "bytes": sizes})
    else:
        print_facts({**facts, **{name: as_bytes(size) for name, size in sizes.items()}})
