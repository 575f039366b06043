"""The estimator: parameters in, a fitted model out."""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import RegressorTags, column_or_1d

from mixedals import persist
from mixedals._columns import column_names, two_columns
from mixedals._parameters import check_parameters, seed_of
from mixedals._progress import progress_bar, training_progress
from mixedals._threads import thread_count
from mixedals.budget import BudgetSizing
from mixedals.checkpoint import Checkpoint, identity_of
from mixedals.interactions import Interactions
from mixedals.metrics import MetricFunction, metric_of
from mixedals.model import FittedModel, Seen
from mixedals.modelfile import read_file, understood, write_file
from mixedals.pilot import is_pilot, sized_by_budget, train_pilot
from mixedals.preparation import (
    PreparedSide,
    Validation,
    initial_state,
    make_problem,
    mean_rating,
    prepare_side,
    warm_state,
)
from mixedals.recommender import Recommender
from mixedals.sizing import PopularitySizing, SideSizing, Sizing
from mixedals.tiers import Factorisation
from mixedals.trainer import (
    IterationRecord,
    Problem,
    TrainingState,
    history_frame,
    iterate,
    train,
)
from mixedals.updates import SolveError


class MixedALS(Recommender, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Matrix factorisation by alternating least squares with embeddings of mixed dimensions.

    Parameters
    ----------
    dims
        Embedding sizes that rows may have; the largest is that of the common space. One integer
        is plain ALS.
    sizing
        Which row gets which size: a sizing for both sides (``PopularitySizing``,
        ``PowerLawSizing``, ``UniformSizing`` or an object of your own), or
        ``{"users": ..., "items": ...}`` with a sizing, an array in the order of the interactions'
        ids or a mapping from id to size for each. ``BudgetSizing`` finds the best size of every
        row under a budget of parameters; its candidates then take the place of ``dims``.
    projection
        How smaller embeddings get into the common space: by matrices that are ``"learned"``, or
        ``"padded"`` with zeros.
    reg
        Penalty of embeddings (the paper's lambda), or ``{"users": ..., "items": ...}``.
    reg_exponent
        The penalty of a row with ``n`` ratings is ``reg * (n / mean n) ** reg_exponent``.
    projection_reg
        Penalty of learned projections (the paper's beta), or one for each side as in ``reg``.
    projection_sampling
        None fits projections to all ratings, exactly; ``"paper"`` to a sample, as the paper does.
    global_mean
        Add the mean rating to every prediction.
    biases
        Learn a bias for every user and item, and the mean, together with the embeddings.
    iterations
        Iterations in all.
    eval_every
        Iterations between evaluations on the validation ratings.
    metric
        ``"roc_auc"``, ``"rmse"``, or a function of ratings and predictions of which greater values
        are better. Chooses the best iteration.
    patience
        End after so many evaluations without a better one; None never does.
    random_state
        Seed, or a NumPy generator that gives one. The same seed gives the same model for any
        number of threads and any order of ratings.
    n_threads
        None uses the CPUs that this process may use.
    progress
        Show a progress bar; None does in terminals and notebooks.
    callback
        Called after each iteration with the ``IterationRecord``; True ends the training.

    Attributes
    ----------
    history_ : polars.DataFrame
        A row for each iteration: objective by term, metric, seconds.
    best_iteration_ : int
        The iteration that the model was taken from.
    seed_ : int
        The seed that was used.

    Examples
    --------
    >>> import numpy as np
    >>> from mixedals import Interactions, MixedALS
    >>> data = Interactions.from_arrays(["ann", "ann", "bob"], [1, 2, 1], [5.0, 3.0, 4.0])
    >>> model = MixedALS(dims=2, reg=0.1, iterations=10).fit(data)
    >>> model.predict(["bob"], [2]).shape
    (1,)
    """

    feature_names_in_: NDArray[np.object_]

    def __init__(
        self,
        dims: int | Sequence[int] = (2, 4, 6),
        sizing: Sizing | BudgetSizing | Mapping[str, SideSizing] = PopularitySizing(gamma=0.2),  # noqa: B008 - immutable
        projection: Literal["learned", "padded"] = "learned",
        *,
        reg: float | Mapping[str, float] = 3.0,
        reg_exponent: float = 0.0,
        projection_reg: float | Mapping[str, float] = 1000.0,
        projection_sampling: Literal["paper"] | None = None,
        global_mean: bool = False,
        biases: bool = False,
        iterations: int = 30,
        eval_every: int = 5,
        metric: str | MetricFunction = "roc_auc",
        patience: int | None = None,
        random_state: Any = 0,
        n_threads: int | None = None,
        progress: bool | None = None,
        callback: Callable[[IterationRecord], object] | None = None,
    ) -> None:
        self.dims = dims
        self.sizing = sizing
        self.projection = projection
        self.reg = reg
        self.reg_exponent = reg_exponent
        self.projection_reg = projection_reg
        self.projection_sampling = projection_sampling
        self.global_mean = global_mean
        self.biases = biases
        self.iterations = iterations
        self.eval_every = eval_every
        self.metric = metric
        self.patience = patience
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress
        self.callback = callback

    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        validation: Interactions | None = None,
        start: Recommender | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fits the model to ratings.

        Parameters
        ----------
        X
            Interactions, or a table of two columns, users and items, whose ratings are ``y``.
        y
            Ratings, where ``X`` is a table.
        validation
            Ratings to evaluate on. The iteration with the best metric is the one that is kept.
        start
            A fitted model to start from: rows that it knows, at the size that they have here,
            start from their embeddings, and projections from its projections. With a
            ``BudgetSizing`` the pilot starts so; a plain model of the largest candidate that knows
            every row is the pilot itself.
        checkpoint
            A file that the training's state is written to, every ``eval_every`` iterations. Where
            it is there already, the training goes on from it and ends in the same bits as one
            that never stopped.

        Examples
        --------
        >>> from mixedals import split_at_random
        >>> from mixedals.synthetic import generate_ratings
        >>> train, valid = split_at_random(generate_ratings(100, 50, 2000), (0.9, 0.1))
        >>> model = MixedALS(metric="rmse", iterations=10).fit(train, validation=valid)
        >>> model.history_["metric"].drop_nulls().len()
        2
        """
        check_parameters(self.get_params(deep=False))
        if checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError("checkpoint: random_state must be an integer, to be the same again")
        data = self._interactions(X, y)
        if validation is not None and not isinstance(validation, Interactions):
            raise TypeError(
                f"validation must be Interactions, not {type(validation).__name__}: make them with "
                "Interactions.from_frame"
            )
        self.seed_ = seed_of(self.random_state)
        n_threads = thread_count(self.n_threads)
        users = prepare_side("users", data.user_vocabulary, data.by_user, self)
        items = prepare_side("items", data.item_vocabulary, data.by_item, self)
        problem = make_problem(users, items, self)
        mean = mean_rating(data.by_user)
        state = initial_state(users, items, self, mean, n_threads)
        if start is not None:
            state = warm_state(state, users.vocabulary, items.vocabulary, start._fitted)
        if isinstance(self.sizing, BudgetSizing):
            with _bad_row_named(users, items):
                users, items, state = self._sized(
                    self.sizing, users, items, problem, state.model, start
                )
        metric = metric_of(self.metric)
        evaluate = None
        if validation is not None:
            evaluate = Validation(
                validation, users.vocabulary, items.vocabulary, metric.function, n_threads
            )
            if evaluate.n_unknown:
                warnings.warn(
                    f"validation: {evaluate.n_unknown} of {len(validation)} ratings have a user or "
                    "an item that training doesn't, and are left out "
                    "(validation.restrict_to(train) leaves them out without this warning)",
                    stacklevel=2,
                )
            if isinstance(self.metric, str):
                evaluate(state.model)  # ratings that it can't take fail now
        observers: list[Callable[[TrainingState[Factorisation]], object]] = []
        if checkpoint is not None:
            settings = {
                "random_state": self.seed_,
                "eval_every": self.eval_every,
                "metric": metric.name,
            }
            keeper = Checkpoint(
                Path(checkpoint), self.eval_every, identity_of(problem, state, validation, settings)
            )
            state = keeper.read(n_threads) or state
            if state.iteration > self.iterations:
                raise ValueError(
                    f"{checkpoint} holds iteration {state.iteration}, beyond "
                    f"iterations={self.iterations}: give another path, or more iterations"
                )
            observers.append(keeper.write)
        if self.callback is not None:
            callback = self.callback
            observers.append(lambda state: callback(state.history[-1]))
        with (
            training_progress(self.progress, self.iterations, state.iteration, metric.name) as show,
            _bad_row_named(users, items),
        ):
            state = train(
                lambda model, number: iterate(model, problem, number),
                state,
                iterations=self.iterations,
                evaluate=evaluate,
                eval_every=self.eval_every,
                metric=metric,
                patience=self.patience,
                observers=[show, *observers],
            )
        if state.best.largest_term < 1e-6 * np.abs(data.by_user.values).max():
            warnings.warn(
                "the predictions are all but 0, as the penalties outweigh these ratings: lower reg "
                "or projection_reg",
                stacklevel=2,
            )
        self._keep_history(state.history)
        self.best_iteration_ = state.best_iteration
        self._model = FittedModel(
            factors=state.best,
            users=users.vocabulary,
            items=items.vocabulary,
            user_rules=users.rules,
            item_rules=items.rules,
            seen=Seen(data.by_user.indptr, data.by_user.indices),
            mean_rating=mean,
        )
        return self

    def _sized(
        self,
        sizing: BudgetSizing,
        users: PreparedSide,
        items: PreparedSide,
        problem: Problem,
        model: Factorisation,
        start: Recommender | None,
    ) -> tuple[PreparedSide, PreparedSide, TrainingState[Factorisation]]:
        """Sizes by the budget, and the training's start, by the pilot that begins as ``model``."""
        sizing.beside_biases(model.users.n + model.items.n, biases=self.biases)  # before any work
        ready = start is not None and is_pilot(
            start._fitted, users, items, model.users.d, biases=self.biases
        )
        steps = sizing.pilot_iterations + sizing.rounds
        with progress_bar(self.progress, "Sizes", steps, 0) as show:
            pilot = model if ready else train_pilot(problem, model, sizing, show)
            learned = self.projection == "learned"
            return sized_by_budget(users, items, problem, pilot, sizing, learned=learned, show=show)

    def _keep_history(self, history: tuple[IterationRecord, ...]) -> None:
        self._history = history
        self.history_ = history_frame(history)

    def score(self, X: Any, y: ArrayLike | None = None) -> float:
        """The parameter ``metric`` on these ratings, negated where smaller values are better.

        So greater is better, as scikit-learn's searches need it. Pairs whose user or item the model
        doesn't know are predicted to be the mean rating.

        Parameters
        ----------
        X, y
            As in :meth:`fit`.

        Examples
        --------
        >>> import numpy as np
        >>> X = np.array([[1, 1], [1, 2], [2, 1]])
        >>> y = np.array([5.0, 3.0, 4.0])
        >>> MixedALS(dims=1, reg=0.1, metric="rmse").fit(X, y).score(X, y) < 0
        True
        """
        if isinstance(X, Interactions):
            frame = X.to_frame()
            y = frame["rating"]
            predicted = self.predict(frame["user"], frame["item"], unknown="mean")
        else:
            predicted = self.predict(X, unknown="mean")
        metric = metric_of(self.metric)
        value = metric.function(np.asarray(y, np.float32), predicted)
        return value if metric.greater_is_better else -value

    def _interactions(self, X: Any, y: ArrayLike | None) -> Interactions:
        """The ratings, and scikit-learn's attributes for what they came in."""
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if isinstance(X, Interactions):
            if y is not None:
                raise ValueError("y is given, but X are Interactions, which have their ratings")
            if not len(X):
                raise ValueError("there are no ratings: the interactions are empty")
            return X
        if y is None:
            raise ValueError(
                "fit requires y to be passed, but the target y is None: give the ratings, or "
                "Interactions in place of both"
            )
        if getattr(y, "ndim", 1) == 2:
            y = column_or_1d(y, warn=True)
        data = Interactions.from_arrays(*two_columns(X), y)
        self.n_features_in_ = 2
        names = column_names(X)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)
        return data

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that this predicts numbers, from ids of any type."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags(poor_score=True)  # the checks' tables have no ids
        tags.target_tags.required = True
        tags.input_tags.string = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to a file, which is either whole or what was there before.

        A callback, and a metric that is a function, are not in the file.

        Examples
        --------
        >>> from mixedals.synthetic import generate_ratings
        >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "movies.mixedals"
        >>> model.save(path)
        >>> path.exists()
        True
        """
        header, tensors = persist.model_to(self._fitted)
        write_file(path, "model", header | summary_of(self), tensors)


@contextmanager
def _bad_row_named(users: PreparedSide, items: PreparedSide) -> Iterator[None]:
    """Adds the id to the error of a row that has no solution."""
    try:
        yield
    except SolveError as error:
        if error.row is None:
            raise
        vocabulary = users.vocabulary if error.side == "users" else items.vocabulary
        raise type(error)(
            f"{error} Its id: {vocabulary.ids.tolist()[error.row]!r}", error.side, error.row
        ) from error


def load(path: str | os.PathLike[str]) -> MixedALS:
    """The fitted model that :meth:`MixedALS.save` wrote.

    Its ``sizing`` is the fitted one: steps of the number of ratings, or a size for each row. A
    budget is one again.

    Raises
    ------
    ModelFileError
        The file isn't a whole model file.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "movies.mixedals"
    >>> model.save(path)
    >>> load(path).n_parameters_ == model.n_parameters_
    True
    """
    header, tensors = read_file(path, "model")
    with understood(path):
        fitted = persist.model_from(
            header, tensors, thread_count(header["parameters"]["n_threads"])
        )
        return restored(fitted, header)


def summary_of(model: MixedALS) -> dict[str, Any]:
    """All but the fitted model, as JSON: what :func:`restored` is given besides it."""
    parameters = model.get_params(deep=False)
    for left_out in ("sizing", "callback", "random_state"):
        del parameters[left_out]
    if callable(model.metric):
        del parameters["metric"]
    parameters["dims"] = np.atleast_1d(model.dims).tolist()
    return {
        "parameters": parameters,
        "budget": asdict(model.sizing) if isinstance(model.sizing, BudgetSizing) else None,
        "seed": model.seed_,
        "best_iteration": model.best_iteration_,
        "history": persist.history_to(model._history),
    }


def restored(fitted: FittedModel, summary: Mapping[str, Any]) -> MixedALS:
    """The estimator that was fitted, its ``sizing`` the fitted one or a budget."""
    budget = summary.get("budget")
    sizing: BudgetSizing | dict[str, SideSizing] = {
        "users": fitted.user_rules.steps or fitted.factors.users.dims,
        "items": fitted.item_rules.steps or fitted.factors.items.dims,
    }
    if budget is not None:
        sizing = BudgetSizing(**budget)
    model = MixedALS(**summary["parameters"], sizing=sizing, random_state=summary["seed"])
    check_parameters(model.get_params(deep=False))
    model.seed_ = int(summary["seed"])
    history = persist.history_from(summary["history"])
    model._keep_history(history)
    model.best_iteration_ = persist.best_iteration_from(summary["best_iteration"], history)
    model._model = fitted
    return model
