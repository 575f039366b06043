"""``mixedals fit``: ratings in, a model file out."""

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixedals._atomic import check_writable
from mixedals.cli.columns import Columns, Files
from mixedals.cli.errors import INTERRUPTED
from mixedals.cli.evaluate import scores
from mixedals.cli.options import with_groups
from mixedals.cli.output import AsJson, as_bytes, print_facts, print_frame, print_json
from mixedals.cli.parts import Parts, PartsOptions, Validation
from mixedals.cli.sizing import SizingOptions
from mixedals.cli.training import PenaltyOptions, TrainingOptions

if TYPE_CHECKING:
    from mixedals import MixedALS

ModelOutput = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where the model goes.", show_default=False
    ),
]


@with_groups
def fit(
    files: Files,
    columns: Columns,
    parts_options: PartsOptions,
    sizing: SizingOptions,
    penalties: PenaltyOptions,
    training: TrainingOptions,
    output: ModelOutput = None,
    validation: Validation = None,
    start: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Start from a fitted model, of older ratings say."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the training's state here, and go on from it if it is there already.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say sizes, parameters and memory, and train nothing."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to ratings and save it.

    [dim]mixedals fit ratings.csv -o movies.mixedals --dims 2,4,6 --reg 3 --split time[/dim]
    """
    if not dry_run:
        if output is None:
            raise typer.BadParameter("say where the model goes", param_hint="--output")
        check_writable(output)
    parts = parts_options.parts(files, columns, validation)
    model = training.estimator(parts.train, **sizing.parameters(), **penalties.parameters())
    if dry_run:
        _print_plan(model, parts, as_json=as_json)
        return
    began = time.perf_counter()
    interrupted = _train(model, parts, start, checkpoint)
    seconds = time.perf_counter() - began
    assert output is not None
    model.save(output)
    facts: dict[str, Any] = {
        "model": str(output),
        "users": len(model.user_ids_),
        "items": len(model.item_ids_),
        "ratings": len(parts.train),
        "parameters": model.n_parameters_,
        "iterations": len(model.history_),
        "best_iteration": model.best_iteration_,
        "seconds": seconds,
    }
    for name, part in {"validation": parts.validation, "test": parts.test}.items():
        if part is not None and len(part):
            facts[name] = {**scores(model, part), "left_out": parts.left_out[name]}
    if as_json:
        print_json({**facts, "interrupted": interrupted, "columns": dict(parts.train.columns)})
    else:
        print_facts(facts)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _print_plan(model: "MixedALS", parts: Parts, *, as_json: bool) -> None:
    from mixedals.plan import plan

    planned = plan(model, parts.train)
    facts = {
        "users": parts.train.n_users,
        "items": parts.train.n_items,
        "ratings": len(parts.train),
        "parameters": planned.n_parameters,
    }
    if as_json:
        memory = {"ratings_bytes": planned.ratings_bytes, "model_bytes": planned.model_bytes}
        print_json({**facts, **memory, "tiers": planned.tiers.to_dicts()})
        return
    print_frame(planned.tiers)
    ratings, of_model = as_bytes(planned.ratings_bytes), as_bytes(planned.model_bytes)
    print_facts({**facts, "memory": f"{ratings} of ratings, {of_model} of the model"})


def _train(model: "MixedALS", parts: Parts, start: Path | None, checkpoint: Path | None) -> bool:
    """Fit the model; tells whether Ctrl-C ended it early."""
    from mixedals import load
    from mixedals.trainer import TrainingInterrupted

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(
            parts.train,
            validation=parts.validation,
            start=None if start is None else load(start),
            checkpoint=checkpoint,
        )
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return any(issubclass(warning.category, TrainingInterrupted) for warning in caught)
