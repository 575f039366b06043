"""The command ``mixedals``: its subcommands, and errors in one line."""

import sys

import typer

import mixedals

app = typer.Typer(
    name="mixedals",
    help="Matrix factorisation in which every user and item has an embedding of its own size.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"mixedals {mixedals.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Runs the command; an error that a user can mend is one line and exit code 1."""
    try:
        app()
    except (ValueError, TypeError, ArithmeticError, LookupError, OSError) as error:
        sys.exit(f"mixedals: {error}")
