"""Search for parameters with Optuna: resumed from SQLite, poor trials ended early."""

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from sklearn.base import clone

from mixedals._extras import require
from mixedals._parameters import check_parameters
from mixedals._progress import progress_bar
from mixedals.budget import BudgetSizing
from mixedals.checkpoint import digest_of
from mixedals.estimator import MixedALS
from mixedals.interactions import Interactions
from mixedals.metrics import metric_of
from mixedals.plan import plan
from mixedals.sizing import PopularitySizing
from mixedals.trainer import IterationRecord, TrainingInterrupted

if TYPE_CHECKING:
    import optuna

Range = tuple[float, float]

_SEARCHED = ("sizing", "budget", "dims", "gamma", "reg", "projection_reg", "reg_exponent")
_MEASURED = ("n_parameters", "best_iteration", "seconds")


@dataclass(frozen=True)
class SearchSpace:
    """Where parameters are searched, all of them jointly.

    Attributes
    ----------
    dims
        Sets of embedding sizes to choose from.
    gamma, reg, projection_reg
        Least and largest value, on a logarithmic scale.
    reg_exponent
        Least and largest value.
    budget
        Least and largest number of parameters, on a logarithmic scale, for sizes that are found by
        themselves: the search chooses between them and the popularity rule too. None leaves them
        out.

    Examples
    --------
    >>> SearchSpace(dims=((2, 4), (4, 8, 16)), reg=(1.0, 10.0)).reg
    (1.0, 10.0)
    """

    dims: Sequence[Sequence[int]] = ((2, 4, 6), (4, 8, 16), (8, 16, 32))
    gamma: Range = (0.05, 2.0)
    reg: Range = (0.1, 100.0)
    reg_exponent: Range = (0.0, 1.0)
    projection_reg: Range = (1.0, 1e5)
    budget: Range | None = None

    def __post_init__(self) -> None:
        if not self.dims or any(not sizes or min(sizes) < 1 for sizes in self.dims):
            raise ValueError(f"dims={self.dims!r}: it must be sets of sizes, each from 1")
        names = ["gamma", "reg", "reg_exponent", "projection_reg"]
        for name in names + (["budget"] if self.budget is not None else []):
            bounds = getattr(self, name)
            least = 0 if name == "reg_exponent" else np.nextafter(0, 1)
            if len(bounds) != 2 or not least <= bounds[0] <= bounds[1] < np.inf:
                raise ValueError(
                    f"{name}={bounds!r}: it must be a least and a largest value, "
                    + ("from 0" if least == 0 else "above 0")
                )

    def suggest(self, trial: "optuna.Trial", *, learned: bool) -> dict[str, Any]:
        """Values for a trial, by name; one of ``projection_reg`` where there are projections."""
        values: dict[str, Any] = {}
        if self.budget is not None:
            values["sizing"] = trial.suggest_categorical("sizing", ["popularity", "budget"])
        if values.get("sizing") == "budget":
            low, high = map(int, self.budget or ())
            values["budget"] = trial.suggest_int("budget", low, high, log=True)
        else:
            sets = [",".join(map(str, sizes)) for sizes in self.dims]
            values["dims"] = trial.suggest_categorical("dims", sets)
            values["gamma"] = trial.suggest_float("gamma", *self.gamma, log=True)
        values |= {
            name: trial.suggest_float(name, *getattr(self, name), log=True)
            for name in ("reg", *(["projection_reg"] if learned else []))
        }
        values["reg_exponent"] = trial.suggest_float("reg_exponent", *self.reg_exponent)
        return values


class Search:
    """A search for the parameters of ``MixedALS`` with the best metric on validation ratings.

    Parameters
    ----------
    train, validation
        Ratings to fit to, and to evaluate on.
    estimator
        What isn't searched is as in this one: the metric, biases, iterations...
    space
        Where to search.
    max_parameters
        Models that would have more parameters are passed over.
    storage
        An SQLite file in which the search is kept, and from which it goes on; None keeps it in
        memory. A search that was stopped and goes on gives the same trials as one that wasn't.
    random_state
        Seed of the search.

    Attributes
    ----------
    study : optuna.Study
        Optuna's, for its own tools.

    Examples
    --------
    >>> from mixedals import split_at_random
    >>> from mixedals.synthetic import generate_ratings
    >>> data = generate_ratings(100, 50, 2000).binarise()
    >>> train, valid = split_at_random(data, (0.8, 0.2))
    >>> search = Search(train, valid.restrict_to(train), MixedALS(iterations=5))
    >>> search.run(3)
    >>> len(search.trials)
    3
    """

    def __init__(
        self,
        train: Interactions,
        validation: Interactions,
        estimator: MixedALS | None = None,
        space: SearchSpace | None = None,
        *,
        max_parameters: int | None = None,
        storage: str | os.PathLike[str] | None = None,
        random_state: int = 0,
    ) -> None:
        self._optuna = require("optuna", "tune")
        self._train, self._validation = train, validation
        self._template = estimator or MixedALS()
        check_parameters(self._template.get_params(deep=False))
        self._space = space or SearchSpace()
        self._max_parameters = max_parameters
        self._random_state = random_state
        self._metric = metric_of(self._template.metric)
        self.study = self._opened(None if storage is None else Path(storage).resolve())
        self._check_identity()

    def run(self, n_trials: int, timeout: float | None = None) -> None:
        """Go on until there are ``n_trials`` in all, those of the storage included.

        Parameters
        ----------
        n_trials
            Trials that are to be there.
        timeout
            Begin no more after so many seconds.
        """
        began = time.monotonic()
        shown = self._template.progress
        with progress_bar(shown, "Searching", n_trials, self.n_done) as show:
            for done in range(self.n_done, n_trials):
                if timeout is not None and time.monotonic() - began >= timeout:
                    break
                # A sampler a trial: it depends on the seed and on the trials before alone.
                seed = (self._random_state + done) % 2**32
                self.study.sampler = self._optuna.samplers.TPESampler(seed=seed)
                self.study.optimize(self._try, n_trials=1, catch=(ArithmeticError,))
                show(done + 1, self._standing())

    @property
    def n_done(self) -> int:
        """How many trials are done: trained to their end, or ended early."""
        done = (self._optuna.trial.TrialState.COMPLETE, self._optuna.trial.TrialState.PRUNED)
        return len(self.study.get_trials(deepcopy=False, states=done))

    @property
    def trials(self) -> pl.DataFrame:
        """A row for each trial that was trained to its end, in their order.

        ``number``, the parameters, ``metric``, ``n_parameters``, ``best_iteration``, ``seconds``.
        """
        complete = (self._optuna.trial.TrialState.COMPLETE,)
        rows = [
            {
                "number": trial.number,
                **{name: trial.params[name] for name in _SEARCHED if name in trial.params},
                "metric": trial.value,
                **{name: trial.user_attrs[name] for name in _MEASURED},
            }
            for trial in self.study.get_trials(deepcopy=False, states=complete)
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def best_parameters(self) -> dict[str, Any]:
        """The parameters of the best trial, by name; ValueError where no trial came to its end."""
        if self.trials.is_empty():
            raise ValueError("no trial came to its end: there is no best one")
        return dict(self.study.best_trial.params)

    def frontier(self) -> pl.DataFrame:
        """The best trial at each budget: those that no trial with as few parameters beats.

        Columns as in ``trials``; from few parameters and a poor metric to many and the best.
        """
        trials = self.trials
        if trials.is_empty():
            return trials
        greater = self._metric.greater_is_better
        trials = trials.sort(
            "n_parameters", "metric", descending=[False, greater], maintain_order=True
        )
        metric = trials["metric"] if greater else -trials["metric"]
        before = metric.cum_max().shift(1)
        return trials.filter((metric > before).fill_null(True))

    def estimator(self, trial: Mapping[str, Any] | None = None) -> MixedALS:
        """An unfitted estimator with the parameters of a trial, a row of ``trials``; or the best's.

        Fitted with the same ratings, it is the model of that trial.
        """
        return self._estimator(self.best_parameters if trial is None else trial)

    def _estimator(self, values: Mapping[str, Any]) -> MixedALS:
        estimator: MixedALS = clone(self._template)
        names = ("reg", "reg_exponent", "projection_reg")
        estimator.set_params(**{name: values[name] for name in names if name in values})
        if values.get("budget") is not None:
            given = self._template.sizing
            candidates = given.candidates if isinstance(given, BudgetSizing) else None
            budget = BudgetSizing(parameters=int(values["budget"]), candidates=candidates)
            estimator.set_params(sizing=budget)
        else:
            dims = tuple(map(int, values["dims"].split(",")))
            estimator.set_params(dims=dims, sizing=PopularitySizing(values["gamma"]))
        return estimator

    def _opened(self, storage: Path | None) -> "optuna.Study":
        """Optuna's study, new or as the file has it."""
        if storage is not None and not storage.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {storage.parent}")
        try:
            return self._optuna.create_study(  # type: ignore[no-any-return]
                study_name="mixedals",
                storage=None if storage is None else f"sqlite:///{storage}",
                direction="maximize" if self._metric.greater_is_better else "minimize",
                pruner=self._optuna.pruners.MedianPruner(n_startup_trials=5),
                load_if_exists=True,
            )
        except require("sqlalchemy.exc", "tune").SQLAlchemyError as error:
            raise ValueError(f"{storage} is not a search that goes on: {error.orig}") from error

    def _standing(self) -> str:
        if self.trials.is_empty():
            return ""
        return f"{self._metric.name} {self.study.best_value:.4f}"

    def _try(self, trial: "optuna.Trial") -> float:
        learned = self._template.projection == "learned"
        model = self._estimator(self._space.suggest(trial, learned=learned))
        if self._max_parameters is not None:
            n_parameters = plan(model, self._train).n_parameters
            if n_parameters > self._max_parameters:
                raise self._optuna.TrialPruned(f"it would have {n_parameters} parameters")

        def report(record: IterationRecord) -> None:
            if record.metric is not None:
                trial.report(record.metric, record.iteration)
                if trial.should_prune():
                    raise self._optuna.TrialPruned

        model.set_params(callback=report, progress=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error", TrainingInterrupted)
            # A trial may be poor; the metric says so.
            warnings.filterwarnings("ignore", "the predictions are all but 0")
            try:
                model.fit(self._train, validation=self._validation)
            except TrainingInterrupted as stopped:  # a trial is whole or not there
                raise KeyboardInterrupt from stopped
        trial.set_user_attr("n_parameters", model.n_parameters_)
        trial.set_user_attr("best_iteration", model.best_iteration_)
        trial.set_user_attr("seconds", float(model.history_["seconds"].sum()))
        return float(model.history_["metric"][model.best_iteration_ - 1])

    def _check_identity(self) -> None:
        """A search goes on only with the ratings and the settings that it began with."""
        fixed = self._template.get_params(deep=False)
        for name in ("dims", "sizing", "reg", "reg_exponent", "projection_reg", "progress"):
            del fixed[name]
        for name in ("n_threads", "callback", "metric"):
            del fixed[name]
        identity = {
            "train": digest_of(self._train),
            "validation": digest_of(self._validation),
            "metric": self._metric.name,
            "estimator": repr(sorted(fixed.items())),
            "space": repr(asdict(self._space)),
            "max_parameters": self._max_parameters,
            "random_state": self._random_state,
        }
        there = self.study.user_attrs.get("identity", identity)
        if differ := [name for name, value in identity.items() if there[name] != value]:
            raise ValueError(
                f"the storage holds a search that differs in {', '.join(differ)}: give another "
                "file, or remove it to start anew"
            )
        self.study.set_user_attr("identity", identity)
