"""Ratings and a model in files, and the commands in this process and in one of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mixedals import Interactions, MixedALS


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, Any]]:
        assert self.code == 0, self.err
        return [json.loads(line) for line in self.out.splitlines()]


Run = "Callable[..., Answer]"


@pytest.fixture
def run() -> Iterator[Callable[..., Answer]]:
    """The command line in this process; what it does to the process is undone."""
    from mixedals.cli.app import app

    shown, pipe = warnings.showwarning, signal.getsignal(signal.SIGPIPE)

    def answer(*args: object, stdin: bytes = b"") -> Answer:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    yield answer
    warnings.showwarning = shown
    signal.signal(signal.SIGPIPE, pipe)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """The command line in a process of its own."""
    processes = []

    def begin(*args: object, **options: Any) -> subprocess.Popen[str]:
        environment = os.environ | options.pop("env", {})
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-m", "mixedals", *map(str, args)],
            **{"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True} | options,
            env=environment,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def ratings(stars: Interactions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One to five stars as CSV."""
    path = tmp_path_factory.mktemp("ratings") / "ratings.csv"
    stars.to_frame().write_csv(path)
    return path


@pytest.fixture(scope="session")
def fitted(stars: Interactions) -> MixedALS:
    from mixedals import MixedALS, split_by_time

    train, _ = split_by_time(stars, (0.8, 0.2))
    return MixedALS(dims=(2, 4), iterations=4, metric="rmse").fit(train)


@pytest.fixture(scope="session")
def saved(fitted: MixedALS, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.mixedals"
    fitted.save(path)
    return path


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    """A model file in a folder of the test's own."""
    return Path(shutil.copy(saved, tmp_path))
