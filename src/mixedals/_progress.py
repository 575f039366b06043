"""Progress bars, in terminals and notebooks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mixedals.trainer import TrainingState


@contextmanager
def progress_bar(
    shown: bool | None, what: str, total: int, done: int
) -> Iterator[Callable[[int, str], None]]:
    """A function that shows how much is done and how it stands.

    ``shown`` None shows the bar to people, not to files.
    """
    if shown is False:
        yield lambda _done, _standing: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    visible = shown or console.is_terminal or console.is_jupyter
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[standing]}"),
    )
    with Progress(*columns, console=console, disable=not visible, transient=True) as progress:
        task = progress.add_task(what, total=total, completed=done, standing="")
        yield lambda done, standing: progress.update(task, completed=done, standing=standing)


@contextmanager
def training_progress(
    shown: bool | None, iterations: int, done: int, metric: str
) -> Iterator[Callable[[TrainingState[Any]], None]]:
    """An observer that shows where training stands."""
    with progress_bar(shown, "Training", iterations, done) as show:

        def observe(state: TrainingState[Any]) -> None:
            standing = f"objective {state.history[-1].objective.total:.5g}"
            evaluated = [record for record in state.history if record.metric is not None]
            if evaluated:
                standing += f"  {metric} {evaluated[-1].metric:.4f}"
            show(state.iteration, standing)

        yield observe
