"""What commands say: results on stdout, notes on stderr where somebody sits there."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from mixedals._extras import require

if TYPE_CHECKING:
    import polars as pl

_WIDE = 200

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def note(text: str) -> None:
    """Say something to whom it may concern, not to files and programs."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        console.print(text, style="dim", markup=False)


def _checked_plot(path: Path | None) -> Path | None:
    """Refuse now what couldn't be drawn after hours of work."""
    if path is not None:
        if path.suffix not in (".png", ".svg", ".pdf"):
            raise typer.BadParameter(f"{path} must end in .png, .svg or .pdf")
        require("matplotlib", "plot")
    return path


PlotFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", callback=_checked_plot, help="Draw it into a .png, .svg or .pdf file."
    ),
]


def print_json(values: Mapping[str, Any]) -> None:
    """Print an object on one line; numbers that aren't finite as null."""
    print(json.dumps(_jsonable(values), ensure_ascii=False))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print a table of names and values, where a value may be such a table itself."""
    table = Table(show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        values = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, of in values:
            whole = isinstance(of, int) and not isinstance(of, bool)
            label = f"{name} {part}".strip()
            table.add_row(label, f"{of:,}" if whole else _as_text(of, ".4g"))
    _console().print(table)


def print_frame(frame: "pl.DataFrame", title: str | None = None) -> None:
    """Print a frame as a table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in frame.iter_rows():
        table.add_row(*(_as_text(value, ".4f") for value in row))
    _console().print(table)


def as_bytes(n: float) -> str:
    """A number of bytes in the unit that fits."""
    units = ["B", "kB", "MB", "GB", "TB"]
    power = min(int(math.log10(max(n, 1)) // 3), len(units) - 1)
    return f"{n / 1000**power:.3g} {units[power]}"


def _console() -> Console:
    """Stdout; without a terminal, tables are as wide as they need."""
    console = Console(markup=False)
    return console if console.is_terminal else Console(markup=False, width=_WIDE)


def _as_text(value: Any, precision: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return format(value, precision if abs(value) < 1000 else ",.0f")
    return str(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _jsonable(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(of) for of in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)
