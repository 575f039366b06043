"""Finished fits, each kept in an SQLite file as soon as it is done."""

import json
import os
import platform
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import polars as pl

import mixedals
from mixedals import _kernels as kernels
from mixedals.experiments.scores import Scores

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS fits (
    stage TEXT NOT NULL, arm TEXT NOT NULL, point TEXT NOT NULL, settings TEXT NOT NULL,
    seed INTEGER NOT NULL, fold INTEGER NOT NULL,
    n_parameters INTEGER NOT NULL, best_iteration INTEGER NOT NULL,
    validation_auc REAL NOT NULL, test_auc REAL NOT NULL, test_rmse REAL NOT NULL,
    details TEXT NOT NULL,
    seconds REAL NOT NULL, machine TEXT NOT NULL, version TEXT NOT NULL, finished TEXT NOT NULL,
    PRIMARY KEY (stage, arm, point, settings, seed, fold)
);
"""
_IDENTITY = "stage = ? AND arm = ? AND point = ? AND settings = ? AND seed = ? AND fold = ?"

# What may differ between two runs of the same study.
_OF_THE_RUN = ("seconds", "machine", "version", "finished")


@dataclass(frozen=True)
class Fit:
    """Which fit it is.

    Attributes
    ----------
    stage
        ``grid`` or ``sweep``.
    arm, point
        Name of the arm, label of the point.
    settings
        Parameters of ``MixedALS`` that aren't its defaults, as JSON.
    seed
        Of the initial values.
    fold
        Of the grid search, from 0; -1 in the sweep.
    """

    stage: str
    arm: str
    point: str
    settings: str
    seed: int
    fold: int = -1


class Records:
    """The finished fits of a study, and facts about it, in a file.

    Parameters
    ----------
    path
        An SQLite file; made where there is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not Path(path).parent.is_dir():
            raise FileNotFoundError(f"there is no folder {Path(path).parent}")
        with _errors(path):
            self._file = sqlite3.connect(path)
            try:
                self._file.executescript(_TABLES)
                self._file.execute("SELECT settings, details FROM fits LIMIT 1")
            except sqlite3.Error:
                self._file.close()
                raise
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def test_auc(self, fit: Fit) -> float | None:
        """The test AUC of a fit, None where it isn't finished."""
        query = f"SELECT test_auc FROM fits WHERE {_IDENTITY}"
        found = self._file.execute(query, astuple(fit)).fetchone()
        return None if found is None else float(found[0])

    def add(self, fit: Fit, scores: Scores, seconds: float) -> None:
        """Keep a finished fit: it is on the disk when this returns."""
        row = {
            **asdict(fit),
            **asdict(scores),
            "details": json.dumps(scores.details),
            "seconds": seconds,
            "machine": _machine(),
            "version": mixedals.__version__,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        names = ", ".join(row)
        values = ", ".join("?" * len(row))
        with _errors(self._path), self._file:
            self._file.execute(
                f"INSERT OR REPLACE INTO fits ({names}) VALUES ({values})", [*row.values()]
            )

    def fits(self, stage: str) -> pl.DataFrame:
        """The finished fits of a stage, a row each: all columns of the file but the stage.

        In an order that doesn't depend on when they were made.
        """
        cursor = self._file.execute(
            "SELECT * FROM fits WHERE stage = ? ORDER BY arm, point, settings, seed, fold", (stage,)
        )
        names = [column[0] for column in cursor.description]
        frame = pl.DataFrame(
            cursor.fetchall(), schema=names, orient="row", infer_schema_length=None
        )
        return frame.drop("stage")

    def results(self) -> pl.DataFrame:
        """All finished fits without what differs from run to run, such as seconds."""
        frames = [self.fits(stage).with_columns(stage=pl.lit(stage)) for stage in ("grid", "sweep")]
        return pl.concat(frames, how="vertical_relaxed").drop(*_OF_THE_RUN)

    def fact(self, name: str) -> Any:
        """A fact by its name, None where it isn't known."""
        found = self._file.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else json.loads(found[0])

    def set_fact(self, name: str, value: Any) -> None:
        """Keep a fact, which JSON can hold."""
        with _errors(self._path), self._file:
            self._file.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value))
            )


@contextmanager
def _errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns SQLite's errors into those that say what is wrong with a file."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise ValueError(f"{path} doesn't hold a study: {error}") from error


def _machine() -> str:
    """What the seconds depend on, without the machine's name."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        pass
    return f"{model}, {kernels.LEVEL}, {platform.system()}, Python {platform.python_version()}"
