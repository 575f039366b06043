"""What a user can mend is one line on stderr and an exit code that says what kind it was."""

import signal
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

FAILED, DATA, MODEL, UNKNOWN_ID, MISSING_EXTRA, INTERRUPTED = 1, 3, 4, 5, 6, 130

EXIT_CODES = {
    0: "done",
    FAILED: "a file can't be read or written, or anything not below",
    2: "the command line or the settings are wrong",
    DATA: "the ratings can't be used as they are",
    MODEL: "the model file can't be used",
    UNKNOWN_ID: "the model doesn't know an id",
    MISSING_EXTRA: "a package of an extra isn't installed",
    INTERRUPTED: "stopped by Ctrl-C; fit has saved the model of the last whole iteration",
}


class Commands(TyperGroup):
    """The group of all commands, which turns their errors into lines and codes."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        warnings.showwarning = _show_warning
        if hasattr(signal, "SIGPIPE"):  # in `mixedals ... | head`, end when head does
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _say("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            _say(str(error))
            raise typer.Exit(code) from error


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


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"warning: {message}")


def _say(text: str) -> None:
    print(f"mixedals: {' '.join(text.split())}", file=sys.stderr)
