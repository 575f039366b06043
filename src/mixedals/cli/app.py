"""The command ``mixedals`` and its subcommands."""

from typing import Annotated

import typer

import mixedals
from mixedals.cli import datasets
from mixedals.cli.errors import EXIT_CODES, Commands
from mixedals.cli.evaluate import evaluate
from mixedals.cli.export import export
from mixedals.cli.fit import fit
from mixedals.cli.inspect import inspect
from mixedals.cli.predict import predict
from mixedals.cli.recommend import recommend
from mixedals.cli.reproduce import reproduce
from mixedals.cli.similar import similar
from mixedals.cli.tune import tune

app = typer.Typer(
    name="mixedals",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: " + ", ".join(f"{code} {what}" for code, what in EXIT_CODES.items()),
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mixedals {mixedals.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Say the version."),
    ] = False,
) -> None:
    """Matrix factorisation in which every user and item has an embedding of its own size."""


for command in (fit, evaluate, predict, recommend, similar, inspect, tune, export, reproduce):
    app.command(no_args_is_help=True)(command)
app.add_typer(datasets.app, name="datasets")


def main() -> None:
    """Run the command that the shell's arguments name."""
    app()
