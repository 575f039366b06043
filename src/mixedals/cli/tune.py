"""``mixedals tune``: a search for good parameters."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mixedals._atomic import check_writable, replacing
from mixedals.cli.columns import Columns, Files
from mixedals.cli.errors import INTERRUPTED
from mixedals.cli.fit import ModelOutput
from mixedals.cli.options import with_groups
from mixedals.cli.output import AsJson, PlotFile, note, print_facts, print_frame, print_json
from mixedals.cli.parts import PartsOptions, Validation, numbers
from mixedals.cli.sizing import amount_of, sizes_of
from mixedals.cli.training import TrainingOptions

if TYPE_CHECKING:
    from mixedals.tuning import Search, SearchSpace

_PANEL = "Search"


@dataclass(frozen=True)
class SpaceOptions:
    """Where to search."""

    dims: Annotated[
        list[str],
        typer.Option(
            metavar="P,P,...",
            help="A set of embedding sizes to try; say it once for each set.",
            rich_help_panel=_PANEL,
        ),
    ] = ("2,4,6", "4,8,16", "8,16,32")  # type: ignore[assignment]  # a default must not be mutable
    gamma: Annotated[
        str, typer.Option(metavar="LOW,HIGH", help="Of the sizing.", rich_help_panel=_PANEL)
    ] = "0.05,2"
    reg: Annotated[
        str,
        typer.Option(metavar="LOW,HIGH", help="Penalty of embeddings.", rich_help_panel=_PANEL),
    ] = "0.1,100"
    reg_exponent: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH", help="How it grows with popularity.", rich_help_panel=_PANEL
        ),
    ] = "0,1"
    projection_reg: Annotated[
        str,
        typer.Option(metavar="LOW,HIGH", help="Penalty of projections.", rich_help_panel=_PANEL),
    ] = "1,100000"

    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LOW,HIGH",
            help="Parameters for sizes that are found by themselves, as in 0.5M,2M: try these too.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def space(self) -> "SearchSpace":
        """The space."""
        from mixedals.tuning import SearchSpace

        try:
            return SearchSpace(
                tuple(map(sizes_of, self.dims)),
                _range(self.gamma, "--gamma"),
                _range(self.reg, "--reg"),
                _range(self.reg_exponent, "--reg-exponent"),
                _range(self.projection_reg, "--projection-reg"),
                None if self.budget is None else _budget_range(self.budget),
            )
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error


@with_groups
def tune(
    files: Files,
    columns: Columns,
    parts_options: PartsOptions,
    space: SpaceOptions,
    training: TrainingOptions,
    output: ModelOutput = None,
    validation: Validation = None,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials in all, those of the storage included.")
    ] = 50,
    timeout: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Begin no trial after this.")
    ] = None,
    storage: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Keep the search in this SQLite file, and go on from it."
        ),
    ] = None,
    max_parameters: Annotated[
        int | None, typer.Option(min=1, help="Pass over models that have more.")
    ] = None,
    plot: PlotFile = None,
    save_settings: Annotated[
        Path | None,
        typer.Option(metavar="TOML", help="Write the best settings, for fit --settings."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Search for the parameters with the best metric, and fit the best model.

    [dim]mixedals tune ratings.csv --split time --storage search.db -o best.mixedals[/dim]
    """
    from mixedals._extras import require
    from mixedals.tuning import Search

    for path in (output, plot, save_settings):
        if path is not None:
            check_writable(path)
    parts = parts_options.parts(files, columns, validation)
    if parts.validation is None:
        raise typer.BadParameter("say what to choose by: --split or --validation")
    logging = require("optuna", "tune").logging
    logging.set_verbosity(logging.ERROR)
    search = Search(
        parts.train,
        parts.validation,
        training.estimator(parts.train),
        space.space(),
        max_parameters=max_parameters,
        storage=storage,
        random_state=training.random_state,
    )
    interrupted = _run(search, trials, timeout)
    best = search.best_parameters
    result = {"trials": search.n_done, "metric": search.study.best_value, **best}
    if save_settings is not None:
        _write_settings(save_settings, asdict(parts_options), asdict(training), best)
    if plot is not None:
        from mixedals.plots import plot_search, save

        save(plot_search(search), plot)
    if output is not None:
        search.estimator().fit(parts.train, validation=parts.validation).save(output)
    if as_json:
        frontier = search.frontier().to_dicts()
        print_json({**result, "frontier": frontier, "interrupted": interrupted})
    else:
        shown = ["n_parameters", "metric", *best]
        print_frame(search.frontier().select(shown), "Best at each number of parameters")
        print_facts(result)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _run(search: "Search", n_trials: int, timeout: float | None) -> bool:
    """Run the search; tells whether Ctrl-C ended it."""
    if search.n_done:
        note(f"going on from {search.n_done} trials")
    try:
        search.run(n_trials, timeout)
    except KeyboardInterrupt:
        if search.trials.is_empty():
            raise
        return True
    return False


def _range(text: str, option: str) -> tuple[float, float]:
    bounds = numbers(text, option)
    if len(bounds) != 2:
        raise typer.BadParameter(f"{text!r} must be two numbers, LOW,HIGH", param_hint=option)
    return bounds[0], bounds[1]


def _budget_range(text: str) -> tuple[float, float]:
    amounts = [amount_of(amount) for amount in text.split(",")]
    if len(amounts) != 2 or not all("parameters" in amount for amount in amounts):
        raise typer.BadParameter(
            f"{text!r} must be two numbers of parameters, as in 0.5M,2M", param_hint="--budget"
        )
    return amounts[0]["parameters"], amounts[1]["parameters"]


def _write_settings(path: Path, *values: dict[str, Any]) -> None:
    """Write a TOML file from which ``fit`` makes the same model again."""
    merged = {name: of for group in values for name, of in group.items() if of is not None}
    merged.pop("settings", None)
    if "budget" in merged:  # it is a sizing by itself
        del merged["sizing"]
        merged["budget"] = str(merged["budget"])
    lines = [f"{name} = {json.dumps(of)}\n" for name, of in merged.items()]
    with replacing(path) as temporary:
        temporary.write_text("".join(lines), encoding="utf-8")
