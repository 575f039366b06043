"""The study: a grid search for the penalties of each arm, then the sweep over its models."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals import MixedALS
from mixedals._progress import progress_bar
from mixedals.checkpoint import digest_of
from mixedals.experiments.arms import ARMS, PAPER, Arm, Point
from mixedals.experiments.protocol import N_FOLDS, Parts, Protocol
from mixedals.experiments.records import Fit, Records
from mixedals.experiments.scores import Scorer, Scores
from mixedals.interactions import Interactions
from mixedals.trainer import IterationRecord, TrainingInterrupted

_ITERATIONS = 30
_TRAINING = {"iterations": _ITERATIONS, "eval_every": 5, "metric": "roc_auc"}
_BINS_PER_DECADE = 10


@dataclass(frozen=True)
class _Task:
    """A fit to be done, and the parameters of its model."""

    fit: Fit
    parameters: Mapping[str, Any]


class Study:
    """The paper's experiments on some ratings; what is finished is in the records.

    A study that was stopped goes on where it was, with the same records, and gives the same
    results.

    Parameters
    ----------
    ratings
        With timestamps.
    records
        Where finished fits are, and go.
    name
        What the ratings are called in the report.
    arms
        Methods to compare: names of ``ARMS``, or arms of one's own.
    seeds
        How many times each model of the sweep is trained, each time from other initial values.
    grid
        Search for the penalties; else they are those of the arms.
    ends_only
        Of each arm only the smallest and the largest model.
    bounds
        Ratings up to the first become 0, those from the second become 1.
    n_threads
        None uses the CPUs that this process may use.

    Examples
    --------
    >>> import tempfile
    >>> from mixedals.synthetic import generate_ratings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Records(f"{folder}/study.sqlite") as records:
    ...         ratings = generate_ratings(100, 50, 2000)
    ...         Study(ratings, records, arms=["plain"], grid=False).run(progress=False)
    ...         len(records.fits("sweep"))
    15
    """

    def __init__(
        self,
        ratings: Interactions,
        records: Records,
        *,
        name: str = "ratings",
        arms: Sequence[str | Arm] = PAPER,
        seeds: int = 3,
        grid: bool = True,
        ends_only: bool = False,
        bounds: tuple[float, float] = (2, 4),
        n_threads: int | None = None,
    ) -> None:
        self._arms = [_arm(arm) for arm in arms]
        self._records = records
        self._seeds = range(seeds)
        self._grid = grid
        self._ends_only = ends_only
        self._n_threads = n_threads
        self._protocol = Protocol(ratings, bounds)
        parts = self._protocol.parts  # before anything is recorded: it raises if they don't fit
        self._check_identity(
            {"ratings": digest_of(ratings), "bounds": list(bounds), "grid search": grid}
        )
        records.set_fact("arms", self._definitions())
        records.set_fact("name", name)
        titles = {arm.name: arm.title for arm in self._arms}
        records.set_fact("titles", (records.fact("titles") or {}) | titles)
        records.set_fact("parts", _described(parts))

    def run(self, progress: bool | None = None) -> None:
        """Do all that isn't done yet.

        Parameters
        ----------
        progress
            Show a progress bar; None does in terminals and notebooks.
        """
        grid = [self._grid_tasks(fold) for fold in range(N_FOLDS)] if self._grid else []
        n_open_in_grid = sum(self._is_open(task) for tasks in grid for task in tasks)
        n_sweep = len(self._seeds) * sum(len(self._points(arm)) for arm in self._arms)
        n_open = n_open_in_grid + (
            n_sweep if n_open_in_grid else sum(map(self._is_open, self._sweep_tasks()))
        )
        total = _ITERATIONS * (sum(map(len, grid)) + n_sweep)
        done = total - _ITERATIONS * n_open
        with progress_bar(progress, "Iterations", total, done) as show:
            runner = _Runner(self._records, self._n_threads, show, done)
            if n_open_in_grid:
                for tasks, parts in zip(grid, self._protocol.folds(), strict=True):
                    runner.run(filter(self._is_open, tasks), parts, Scorer.scores)
            sweep = filter(self._is_open, self._sweep_tasks())
            runner.run(sweep, self._protocol.parts, Scorer.detailed_scores)

    def _penalties(self, arm: Arm) -> dict[str, float]:
        """The penalties of the arm's models: those with the best mean over the folds."""
        if not self._grid:
            return dict(arm.penalties)

        def mean_auc(penalties: Mapping[str, float]) -> float:
            aucs = [
                self._records.test_auc(self._grid_task(arm, penalties, fold).fit)
                for fold in range(N_FOLDS)
            ]
            return fmean(auc for auc in aucs if auc is not None)

        return max(_combinations(arm), key=mean_auc)

    def _grid_tasks(self, fold: int) -> list[_Task]:
        return [
            self._grid_task(arm, penalties, fold)
            for arm in self._arms
            for penalties in _combinations(arm)
        ]

    def _grid_task(self, arm: Arm, penalties: Mapping[str, float], fold: int) -> _Task:
        return _task("grid", arm, arm.points[-1], penalties, 0, fold)

    def _sweep_tasks(self) -> list[_Task]:
        penalties = {arm.name: self._penalties(arm) for arm in self._arms}
        return [
            _task("sweep", arm, point, penalties[arm.name], seed)
            for seed in self._seeds
            for arm in self._arms
            for point in self._points(arm)
        ]

    def _points(self, arm: Arm) -> Sequence[Point]:
        if self._ends_only and len(arm.points) > 1:
            return arm.points[0], arm.points[-1]
        return arm.points

    def _is_open(self, task: _Task) -> bool:
        return self._records.test_auc(task.fit) is None

    def _check_identity(self, identity: Mapping[str, Any]) -> None:
        there = self._records.fact("identity")
        if there is not None and there != identity:
            differ = [name for name, value in identity.items() if there.get(name) != value]
            raise ValueError(
                f"the records are of a study that differs in {', '.join(differ)}: give another "
                "place for the records"
            )
        self._records.set_fact("identity", identity)

    def _definitions(self) -> dict[str, str]:
        """What each arm's name stands for, of those in the records and those of this study."""
        known: dict[str, str] = self._records.fact("arms") or {}
        for arm in self._arms:
            points = [_task("sweep", arm, point, arm.penalties, 0).fit for point in arm.points]
            models = [(fit.point, fit.settings) for fit in points]
            definition = json.dumps([models, dict(arm.grid)], sort_keys=True, default=repr)
            if known.setdefault(arm.name, definition) != definition:
                raise ValueError(
                    f"there is another arm {arm.name!r} in the study, with other models or "
                    "penalties: give it another name, or another place for the records"
                )
        return known


class _Runner:
    """Does tasks one after the other, and shows where it is."""

    def __init__(
        self,
        records: Records,
        n_threads: int | None,
        show: Callable[[int, str], None],
        iterations_done: int,
    ) -> None:
        self._records = records
        self._n_threads = n_threads
        self._show = show
        self._iterations_done = iterations_done

    def run(
        self,
        tasks: Iterable[_Task],
        parts: Parts,
        score: Callable[[Scorer, MixedALS], Scores],
    ) -> None:
        """Do tasks on the same parts, each of which is recorded as soon as it is done."""
        scorer = None
        for task in tasks:
            scorer = scorer or Scorer(parts, self._n_threads)
            began = time.perf_counter()
            model = self._fitted(task, parts)
            seconds = time.perf_counter() - began
            self._records.add(task.fit, score(scorer, model), seconds)
            self._iterations_done += _ITERATIONS

    def _fitted(self, task: _Task, parts: Parts) -> MixedALS:
        fit = task.fit
        place = f"fold {fit.fold + 1}" if fit.stage == "grid" else f"seed {fit.seed}"
        what = f"{fit.stage}: {fit.arm}, {fit.point}, {place}"

        def show(record: IterationRecord) -> None:
            self._show(self._iterations_done + record.iteration, what)

        model = MixedALS(
            **task.parameters,
            random_state=fit.seed,
            n_threads=self._n_threads,
            progress=False,
            callback=show,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error", TrainingInterrupted)
            # Some of a grid's penalties are too large, which the scores tell.
            warnings.filterwarnings("ignore", "the predictions are all but 0")
            try:
                return model.fit(parts.train, validation=parts.validation)
            except TrainingInterrupted as stopped:  # a fit is whole or not there
                raise KeyboardInterrupt from stopped


def _arm(arm: str | Arm) -> Arm:
    if isinstance(arm, Arm):
        return arm
    if arm not in ARMS:
        raise ValueError(f"there is no arm {arm!r}; there are {', '.join(ARMS)}")
    return ARMS[arm]


def _combinations(arm: Arm) -> list[dict[str, float]]:
    """All of the grid's penalties."""
    return [dict(zip(arm.grid, values, strict=True)) for values in product(*arm.grid.values())]


def _task(
    stage: str, arm: Arm, point: Point, penalties: Mapping[str, float], seed: int, fold: int = -1
) -> _Task:
    parameters = {**point.parameters, **penalties, **_TRAINING}
    settings = json.dumps(parameters, sort_keys=True, default=repr)
    return _Task(Fit(stage, arm.name, point.label, settings, seed, fold), parameters)


def _described(parts: Parts) -> dict[str, Any]:
    """Sizes of the parts, and the popularity distributions of the training's rows."""
    sizes = {
        name: {"ratings": len(part), "users": part.n_users, "items": part.n_items}
        for name, part in vars(parts).items()
    }
    return {
        **sizes,
        "popularity": {
            "users": _histogram(np.diff(parts.train.by_user.indptr)),
            "items": _histogram(np.diff(parts.train.by_item.indptr)),
        },
    }


def _histogram(counts: NDArray[np.int64]) -> dict[str, list[float]]:
    """Number of rows by the logarithm of their number of ratings, in steps of a tenth."""
    steps = np.floor(np.log10(counts) * _BINS_PER_DECADE).astype(np.int64)
    first = int(steps.min())
    rows = np.bincount(steps - first)
    edges = (first + np.arange(len(rows) + 1)) / _BINS_PER_DECADE
    return {"edges": edges.tolist(), "rows": rows.tolist()}
