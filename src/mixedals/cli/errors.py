"""What a user can mend is one line on stderr and an exit code that says what kind it was."""

import re
import signal
import sys
import warnings
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

FAILED, USAGE, DATA, MODEL, UNKNOWN_ID, MISSING_EXTRA, INTERRUPTED = 1, 2, 3, 4, 5, 6, 130

EXIT_CODES = {
    0: "done",
    FAILED: "a file can't be read or written",
    USAGE: "wrong options or settings",
    DATA: "ratings that can't be used",
    MODEL: "not a whole model file",
    UNKNOWN_ID: "an id that the model doesn't know",
    MISSING_EXTRA: "a package of an extra is missing",
    INTERRUPTED: "stopped by Ctrl-C, what is whole is kept",
}

_OF_PYTHON = re.compile(r'\b([a-z_]+)="([^"]*)"')

# Typer has its own copy of click since 0.26: both have this class above what Typer exports.
UsageError: type[Any] = typer.BadParameter.__bases__[0]


class Commands(TyperGroup):
    """The group of all commands, which turns their errors into lines and codes."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run the command that was asked for, and exit."""
        warnings.showwarning = _show_warning
        if hasattr(signal, "SIGPIPE"):  # in `mixedals ... | head`, end when head does
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":
                print(error.ctx.get_help())
            else:
                where = f"; {error.ctx.command_path} --help says what is right" if error.ctx else ""
                _say(error.format_message().rstrip(".") + where)
            code = USAGE
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            _say(_message(error))
        if code == INTERRUPTED:
            _say("interrupted")
        sys.exit(code)


def exit_code(error: Exception) -> int | None:
    """The exit code of an error; None for one that isn't the user's."""
    from polars.exceptions import PolarsError

    from mixedals import ModelFileError, UnknownIdError
    from mixedals._extras import MissingExtraError

    codes: dict[type[Exception] | tuple[type[Exception], ...], int] = {
        ModelFileError: MODEL,
        UnknownIdError: UNKNOWN_ID,
        MissingExtraError: MISSING_EXTRA,
        (OSError, MemoryError): FAILED,
        (ValueError, TypeError, ArithmeticError, PolarsError): DATA,
    }
    return next((code for kind, code in codes.items() if isinstance(error, kind)), None)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    message = str(error).partition("\nRead it with")[0]  # which is for Python
    return _OF_PYTHON.sub(_as_option, message) or type(error).__name__


def _as_option(argument: re.Match[str]) -> str:
    """An argument of Python as the shell has it: ``--metric rmse`` for ``metric="rmse"``."""
    name, value = argument.groups()
    return f"--{name.replace('_', '-')} {value}"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


def _say(text: str) -> None:
    print(f"mixedals: {' '.join(text.split())}", file=sys.stderr)
