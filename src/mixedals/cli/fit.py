"""``mixedals fit``: ratings in, a model file out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixedals._atomic import check_writable
from mixedals.cli.columns import Columns, Files
from mixedals.cli.errors import INTERRUPTED
from mixedals.cli.fitting import fit_and_save, fit_frontier
from mixedals.cli.options import with_groups
from mixedals.cli.output import AsJson, PlotFile, as_bytes, print_facts, print_frame, print_json
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
    plot: PlotFile = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say sizes, parameters and memory, and train nothing."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to ratings and save it.

    With several budgets, fit a model to each from one pilot, and plot their quality beside that of
    the popularity rule and of plain ALS.

    [dim]mixedals fit ratings.csv -o movies.mixedals --dims 2,4,6 --reg 3 --split time[/dim]
    [dim]mixedals fit ratings.csv -o movies.mixedals --budget 1.2M --reg 6 --split time[/dim]
    """
    if output is None and not dry_run:
        raise typer.BadParameter("say where the model goes", param_hint="--output")
    from sklearn.base import clone

    budgets = sizing.budgets()
    if len(budgets) > 1 and (start or checkpoint):
        raise typer.BadParameter("several budgets go without --start and --checkpoint")
    outputs = _outputs(output, list(budgets)) if output is not None else []
    for path in (*outputs, *([plot] if plot else [])):
        check_writable(path)
    parts = parts_options.parts(files, columns, validation)
    model = training.estimator(parts.train, **sizing.parameters(), **penalties.parameters())
    models = [clone(model).set_params(sizing=budget) for budget in budgets.values()] or [model]
    if dry_run:
        for planned in models:
            _print_plan(planned, parts, as_json=as_json)
    elif len(models) > 1:
        fit_frontier(model, dict(zip(outputs, models, strict=True)), parts, plot, as_json=as_json)
    else:
        _fit_one(models[0], outputs[0], parts, start, checkpoint, plot, as_json=as_json)


def _outputs(output: Path, budgets: list[str]) -> list[Path]:
    """Where the models go: of several, each with its budget in the name."""
    if len(budgets) < 2:
        return [output]
    return [output.with_stem(f"{output.stem}-{budget}") for budget in budgets]


def _fit_one(
    model: "MixedALS",
    output: Path,
    parts: Parts,
    start: Path | None,
    checkpoint: Path | None,
    plot: Path | None,
    *,
    as_json: bool,
) -> None:
    from mixedals import load

    interrupted, facts = fit_and_save(
        model,
        output,
        parts,
        start=None if start is None else load(start),
        checkpoint=checkpoint,
    )
    if plot is not None:
        from mixedals.plots import plot_model, save

        save(plot_model(model), plot)
    if as_json:
        print_json({**facts, "interrupted": interrupted, "columns": dict(parts.train.columns)})
    else:
        print_facts(facts)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _print_plan(model: "MixedALS", parts: Parts, *, as_json: bool) -> None:
    from mixedals import BudgetSizing
    from mixedals.plan import plan

    planned = plan(model, parts.train)
    by_budget = isinstance(model.sizing, BudgetSizing)
    facts = {
        "users": parts.train.n_users,
        "items": parts.train.n_items,
        "ratings": len(parts.train),
        "parameters, at most" if by_budget and not as_json else "parameters": planned.n_parameters,
    }
    if as_json:
        memory = {"ratings_bytes": planned.ratings_bytes, "model_bytes": planned.model_bytes}
        print_json({**facts, **memory, "tiers": planned.tiers.to_dicts()})
        return
    print_frame(planned.tiers, "The pilot, from which sizes are chosen" if by_budget else None)
    ratings, of_model = as_bytes(planned.ratings_bytes), as_bytes(planned.model_bytes)
    print_facts({**facts, "memory": f"{ratings} of ratings, {of_model} of the model"})
