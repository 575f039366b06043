"""``mixedals reproduce``: the paper's experiments on a data set or on ratings of one's own."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixedals.cli.columns import Columns
from mixedals.cli.errors import INTERRUPTED
from mixedals.cli.options import with_groups
from mixedals.cli.output import AsJson, note, print_facts, print_json
from mixedals.cli.parts import numbers
from mixedals.cli.training import Threads

if TYPE_CHECKING:
    from mixedals import Interactions
    from mixedals.experiments.claims import Claim

_PAPER = "plain,padded,projected,sampled"


def _known_arms(text: str) -> str:
    """Refuse now what would be refused after the ratings are read."""
    from mixedals.experiments.arms import ARMS

    if unknown := [name for name in text.split(",") if name not in ARMS]:
        raise typer.BadParameter(f"no arm {', '.join(unknown)}; there are {', '.join(ARMS)}")
    return text


@with_groups
def reproduce(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET",
            help="Name of a data set (see datasets list), or a file of ratings.",
            show_default=False,
        ),
    ],
    columns: Columns,
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]", help="Folder or archive of the data set.", show_default=False
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where the report goes.", show_default=False),
    ] = None,
    arms: Annotated[
        str,
        typer.Option(
            metavar="ARM,ARM,...",
            callback=_known_arms,
            help="Methods to compare. Beyond the paper's there are projected-wide and sampled-wide "
            "(more penalties to choose from), plain-root, padded-root and projected-root (the "
            "penalty grows with popularity), budget (the best sizes for a number of parameters), "
            "plain-large, padded-large and projected-large (to 16 dimensions), power-law (another "
            "sizing).",
        ),
    ] = _PAPER,
    seeds: Annotated[
        int, typer.Option(min=1, help="How many times each model is trained from scratch.")
    ] = 3,
    grid: Annotated[
        bool, typer.Option(help="Search for the penalties, or take usual ones.")
    ] = True,
    fast: Annotated[
        bool,
        typer.Option(
            "--fast",
            help="One seed, the smallest and the largest model of each arm, no search.",
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the study that the folder holds.")
    ] = False,
    binarise: Annotated[
        str,
        typer.Option(metavar="LOW,HIGH", help="Ratings up to LOW become 0, those from HIGH 1."),
    ] = "2,4",
    n_threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the paper's experiments: grid search, sweep, and a report to look at.

    What is finished is kept: a study that was stopped goes on with --resume.

    [dim]mixedals reproduce ml-25m ml-25m.zip --out study[/dim]

    [dim]mixedals reproduce ratings.csv --user customer --item product --out study[/dim]
    """
    from mixedals._extras import require
    from mixedals.experiments import Records, Study
    from mixedals.experiments.report import write_report

    if out is None:
        raise typer.BadParameter("say where the report goes", param_hint="--out")
    require("matplotlib", "plot")
    bounds = numbers(binarise, "--binarise")
    if len(bounds) != 2 or not bounds[0] < bounds[1]:
        raise typer.BadParameter(
            f"{binarise!r} must be two rising numbers", param_hint="--binarise"
        )
    file = out / "study.sqlite"
    if not resume and _holds_a_study(file):
        raise typer.BadParameter(
            f"{out} holds a study: --resume goes on with it, another --out begins anew"
        )
    out.mkdir(parents=True, exist_ok=True)
    ratings = _ratings(dataset, path, columns)
    note(f"read {ratings!r}")
    with Records(file) as records:
        study = Study(
            ratings,
            records,
            name=dataset if path is None else f"{dataset} ({path.name})",
            arms=[*dict.fromkeys(arms.split(","))],
            seeds=1 if fast else seeds,
            grid=grid and not fast,
            ends_only=fast,
            bounds=(bounds[0], bounds[1]),
            n_threads=n_threads,
        )
        del ratings
        try:
            study.run()
        except KeyboardInterrupt:
            warnings.warn(f"{out} keeps what is finished: --resume goes on with it", stacklevel=1)
            raise typer.Exit(INTERRUPTED) from None
        page, found = write_report(records, out)
        n_fits = len(records.results())
    if as_json:
        print_json({"report": str(page), "fits": n_fits, "claims": [vars(of) for of in found]})
    else:
        _print_claims(found)
        print_facts({"report": str(page), "fits": n_fits})


def _holds_a_study(file: Path) -> bool:
    from mixedals.experiments import Records

    if not file.exists():
        return False
    with Records(file) as records:
        return records.fact("identity") is not None


def _ratings(dataset: str, path: Path | None, columns: Columns) -> "Interactions":
    from mixedals import datasets

    if dataset in datasets.DATASETS:
        if columns != Columns():
            raise typer.BadParameter(f"{dataset} has a known layout: columns can't be chosen")
        return datasets.read(dataset, path).interactions
    if path is not None:
        raise typer.BadParameter(
            f"{dataset!r} is no data set; there are {', '.join(datasets.DATASETS)}"
        )
    if not Path(dataset).exists():
        raise typer.BadParameter(
            f"{dataset!r} is neither a file nor a data set; there are "
            f"{', '.join(datasets.DATASETS)}"
        )
    return columns.read([dataset])


def _print_claims(found: list["Claim"]) -> None:
    import polars as pl

    from mixedals.cli.output import print_frame

    if found:
        rows = [{"claim": of.text, "": of.verdict, "measured": of.measured} for of in found]
        print_frame(pl.DataFrame(rows), "What the paper claims, and what was measured")
