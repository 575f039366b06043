"""From a budget to sizes and a start: the pilot, what it says of rows, and what is kept of it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mixedals.budget import BudgetSizing, Choice, choose_sizes
from mixedals.leaveoneout import leave_one_out, on_principal_axes
from mixedals.model import FittedModel
from mixedals.preparation import PreparedSide
from mixedals.sizing import UniformSizing
from mixedals.tiers import Factorisation, Side, Tier
from mixedals.trainer import Problem, TrainingState, iterate

Show = Callable[[int, str], None]


def pilot_of(estimator: Any) -> Any:
    """The pilot of an estimator that has a budget, to be fitted once for several budgets.

    Fitted to the same ratings, it is the ``start`` that any of them gives the same model from as
    without.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> data = generate_ratings(100, 50, 2000)
    >>> models = [MixedALS(sizing=BudgetSizing(parameters=n), iterations=5) for n in (500, 900)]
    >>> pilot = pilot_of(models[0]).fit(data)
    >>> [model.fit(data, start=pilot).n_parameters_ <= 900 for model in models]
    [True, True]
    """
    sizing: BudgetSizing = estimator.sizing
    return clone(estimator).set_params(
        dims=max(sizing.sizes(biases=estimator.biases)),
        sizing=UniformSizing(),
        iterations=sizing.pilot_iterations,
        callback=None,
    )


def is_pilot(
    model: FittedModel, users: PreparedSide, items: PreparedSide, d: int, *, biases: bool
) -> bool:
    """Tells whether a fitted model can do without pilot iterations: plain, and knows every row."""
    sides = ((model.factors.users, model.users, users), (model.factors.items, model.items, items))
    return (model.factors.users.biases is not None) == biases and all(
        (side.dims == d).all() and (known.match(prepared.vocabulary) >= 0).all()
        for side, known, prepared in sides
    )


def train_pilot(
    problem: Problem, start: Factorisation, sizing: BudgetSizing, show: Show
) -> Factorisation:
    """Iterations of a plain model."""
    model = start
    for number in range(1, sizing.pilot_iterations + 1):
        model, objective = iterate(model, problem, number)
        show(number, f"objective {objective.total:.5g}")
    return model


def sized_by_budget(
    users: PreparedSide,
    items: PreparedSide,
    problem: Problem,
    pilot: Factorisation,
    sizing: BudgetSizing,
    *,
    learned: bool,
    show: Show,
) -> tuple[PreparedSide, PreparedSide, TrainingState[Factorisation]]:
    """Both sides with the sizes that the pilot shows to be best, and the training's start.

    The start is the pilot on its principal axes, each row cut to its size. What an axis is worth to
    a row depends on the rows of the other side that still have it, so after an iteration with these
    sizes the choice is made again. Learned projections start from those that pad with zeros.
    """
    model = on_principal_axes(pilot, problem.user_ridge, problem.item_ridge)
    for number in range(1, sizing.rounds + 1):
        if number > 1:
            model, _ = iterate(model, problem, number)
        choice = _choice(problem, model, sizing, learned=learned)
        model = replace(
            model, users=_cut(model.users, choice.users), items=_cut(model.items, choice.items)
        )
        show(sizing.pilot_iterations + number, f"choice of sizes {number}")
    if learned:
        model = replace(model, users=_learning(model.users), items=_learning(model.items))
    users, items = (
        replace(side, dims=dims, rules=replace(side.rules, price=choice.price))
        for side, dims in ((users, choice.users), (items, choice.items))
    )
    return users, items, TrainingState(model, model)


def _choice(
    problem: Problem, model: Factorisation, sizing: BudgetSizing, *, learned: bool
) -> Choice:
    d, biases = model.users.d, model.users.biases is not None
    candidates = sizing.sizes(biases=biases)
    return choose_sizes(
        leave_one_out(problem.by_user, model.items, problem.user_ridge, model.mean, candidates),
        leave_one_out(problem.by_item, model.users, problem.item_ridge, model.mean, candidates),
        candidates,
        sizing.beside_biases(model.users.n + model.items.n, biases=biases),
        [d * p if learned and p < d else 0 for p in candidates],
    )


def _cut(side: Side, dims: NDArray[np.int32]) -> Side:
    """The side with the first ``dims`` numbers of each row alone, the others 0."""

    def tier(p: int) -> Tier:
        rows = np.flatnonzero(dims == p).astype(np.int32)
        return Tier(rows, np.ascontiguousarray(side.common[rows, :p]))

    return side.with_tiers(tier(int(p)) for p in np.unique(dims))


def _learning(side: Side) -> Side:
    """The same with projections that are learned, at first what they were."""
    return side.with_tiers(
        replace(tier, projection=np.eye(side.d, tier.p, dtype=np.float32))
        if 0 < tier.p < side.d
        else tier
        for tier in side.tiers
    )
