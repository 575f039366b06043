"""The training loop: iterations of B, A, Y, X, evaluation, and the choice of the best iteration."""

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals._kernels import Csr
from mixedals.metrics import Metric
from mixedals.tiers import STREAMS, Factorisation, Side
from mixedals.updates import Sample, solve_projections, solve_rows

Model = TypeVar("Model")


class TrainingInterrupted(UserWarning):
    """Ctrl-C ended a training; the model is that of whole iterations."""


@dataclass(frozen=True)
class Problem:
    """What is minimised: equation als_proj for these ratings and penalties.

    Attributes
    ----------
    by_user, by_item
        The ratings, by either side.
    user_ridge, item_ridge
        Penalty of each row's embedding and bias, float32 (n,).
    user_beta, item_beta
        Penalties of the sides' learned projections.
    user_keys, item_keys
        The ids' hash keys, uint64 (n,).
    sampled
        Fit projections to the paper's sample instead of all ratings.
    seed
        Seed of the samples.
    """

    by_user: Csr
    by_item: Csr
    user_ridge: NDArray[np.float32]
    item_ridge: NDArray[np.float32]
    user_beta: float
    item_beta: float
    user_keys: NDArray[np.uint64]
    item_keys: NDArray[np.uint64]
    sampled: bool
    seed: int

    @cached_property
    def total_weight(self) -> float:
        """Sum of the ratings' weights, 1 for each where they have none."""
        weights = self.by_user.weights
        return float(self.by_user.nnz if weights is None else weights.sum(dtype=np.float64))

    def sample(self, iteration: int, side: str) -> Sample | None:
        """The sample that the projections of a side see in an iteration."""
        if not self.sampled:
            return None
        seed = np.random.SeedSequence([self.seed, iteration, STREAMS[side]])
        keys = (self.user_keys, self.item_keys)
        row_keys, column_keys = keys if side == "users" else keys[::-1]
        return Sample(int(seed.generate_state(1, np.uint64)[0]), row_keys, column_keys)


@dataclass(frozen=True)
class Objective:
    """The objective by term."""

    squared_error: float
    penalty_users: float
    penalty_items: float
    penalty_projections: float

    @property
    def total(self) -> float:
        """What the iterations minimise."""
        return (
            self.squared_error + self.penalty_users + self.penalty_items + self.penalty_projections
        )


@dataclass(frozen=True)
class IterationRecord:
    """What is known of one iteration. ``metric`` is None where it wasn't evaluated."""

    iteration: int
    objective: Objective
    metric: float | None
    seconds: float

    def as_row(self) -> dict[str, float | int | None]:
        """A flat row for a table."""
        return {
            "iteration": self.iteration,
            "objective": self.objective.total,
            **asdict(self.objective),
            "metric": self.metric,
            "seconds": self.seconds,
        }


def history_frame(records: Iterable[IterationRecord]) -> pl.DataFrame:
    """A row for each record; types don't depend on what is in them."""
    rows = [record.as_row() for record in records]
    return pl.DataFrame(rows, schema_overrides={"metric": pl.Float64}, infer_schema_length=None)


@dataclass(frozen=True)
class TrainingState(Generic[Model]):
    """Where a training stands after whole iterations: all that is needed to go on."""

    model: Model
    best: Model
    best_iteration: int = 0
    best_metric: float = float("nan")
    history: tuple[IterationRecord, ...] = field(default=())

    @property
    def iteration(self) -> int:
        """How many iterations are done."""
        return len(self.history)


def iterate(
    model: Factorisation, problem: Problem, iteration: int
) -> tuple[Factorisation, Objective]:
    """One iteration in the paper's order: B, A, Y, X. It ends on users.

    With biases it begins with the mean: at the last users' biases, the weighted errors of a user
    sum to ``ridge * bias``, so that all of them together say how far the mean is from its best.
    """
    mean = model.mean
    if model.users.biases is not None:
        pull = np.einsum("i,i->", problem.user_ridge, model.users.biases, dtype=np.float64)
        mean += float(pull) / problem.total_weight
    items = solve_projections(
        model.items, model.users, problem.by_item, problem.item_beta, mean,
        problem.sample(iteration, "items"),
    )  # fmt: skip
    users = solve_projections(
        model.users, items, problem.by_user, problem.user_beta, mean,
        problem.sample(iteration, "users"),
    )  # fmt: skip
    solved = solve_rows(items, users, problem.by_item, problem.item_ridge, mean)
    items, penalty_items = solved.side, solved.penalty
    solved = solve_rows(users, items, problem.by_user, problem.user_ridge, mean)
    users = solved.side
    return Factorisation(users, items, mean), Objective(
        squared_error=solved.squared_error,
        penalty_users=solved.penalty,
        penalty_items=penalty_items,
        penalty_projections=problem.user_beta * _projections_square(users)
        + problem.item_beta * _projections_square(items),
    )


def _projections_square(side: Side) -> float:
    learned = (t.projection for t in side.tiers if t.projection is not None)
    return sum(float(np.sum(np.square(a, dtype=np.float64))) for a in learned)


def train(
    advance: Callable[[Model, int], tuple[Model, Objective]],
    state: TrainingState[Model],
    *,
    iterations: int,
    evaluate: Callable[[Model], float] | None,
    eval_every: int,
    metric: Metric,
    patience: int | None,
    observers: Iterable[Callable[[TrainingState[Model]], object]],
) -> TrainingState[Model]:
    """Iterates until ``iterations`` are done in all, and returns the last state.

    ``advance`` makes one iteration of a model, given its number from 1. After each iteration every
    observer is called with the state; one that returns True ends the training. So does Ctrl-C,
    with a warning, once an iteration is whole.
    """
    observers = tuple(observers)
    try:
        while state.iteration < iterations and not _exhausted(state, patience):
            number = state.iteration + 1
            began = time.perf_counter()
            model, objective = advance(state.model, number)
            seconds = time.perf_counter() - began
            due = evaluate is not None and (number % eval_every == 0 or number == iterations)
            value = float(evaluate(model)) if evaluate is not None and due else None
            record = IterationRecord(number, objective, value, seconds)
            state = _advanced(state, model, record, metric, has_validation=evaluate is not None)
            answers = [observer(state) for observer in observers]
            if any(answer is True for answer in answers):
                break
    except KeyboardInterrupt:
        if state.iteration == 0:
            raise
        warnings.warn(
            f"training was interrupted: the model is that of iteration {state.best_iteration}, "
            f"of {state.iteration} whole ones",
            TrainingInterrupted,
            stacklevel=3,
        )
    if np.isnan(state.best_metric) and any(r.metric is not None for r in state.history):
        warnings.warn(
            f"{metric.name} was NaN at every evaluation: the model is that of the last iteration",
            stacklevel=3,
        )
    return state


def _advanced(
    state: TrainingState[Model],
    model: Model,
    record: IterationRecord,
    metric: Metric,
    *,
    has_validation: bool,
) -> TrainingState[Model]:
    advanced = replace(state, model=model, history=(*state.history, record))
    value = record.metric
    # Until a metric is known, and without validation, the last iteration is the best known.
    nothing_known = np.isnan(state.best_metric) or not has_validation
    if nothing_known or (value is not None and metric.better(value, state.best_metric)):
        advanced = replace(
            advanced,
            best=model,
            best_iteration=record.iteration,
            best_metric=state.best_metric if value is None else value,
        )
    return advanced


def _exhausted(state: TrainingState[Model], patience: int | None) -> bool:
    """Tells whether the last ``patience`` evaluations brought nothing better."""
    later = [r for r in state.history if r.iteration > state.best_iteration]
    return patience is not None and sum(r.metric is not None for r in later) >= patience
