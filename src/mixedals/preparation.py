"""From ratings and parameters to what the trainer needs: the problem, and where to start."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._ids import Vocabulary
from mixedals._kernels import Csr
from mixedals._parameters import of_side
from mixedals.budget import BudgetSizing
from mixedals.interactions import Interactions
from mixedals.metrics import MetricFunction
from mixedals.model import FittedModel, SideRules
from mixedals.sizing import SizeSteps, Sizing, explicit_sizes
from mixedals.tiers import Factorisation, Side, Tier, initial_side
from mixedals.trainer import Problem, TrainingState


@dataclass(frozen=True)
class PreparedSide:
    """One side of the data, sized.

    Attributes
    ----------
    vocabulary
        Its ids.
    ratings
        The ratings by its rows.
    rules
        Penalties, and sizes of new rows.
    dims
        Embedding size of each row, int32 (n,).
    keys
        Hash keys of the ids, uint64 (n,).
    """

    vocabulary: Vocabulary
    ratings: Csr
    rules: SideRules
    dims: NDArray[np.int32]
    keys: NDArray[np.uint64]


def allowed_dims(estimator: Any) -> tuple[int, ...]:
    """Sizes that rows may have, rising: the parameter ``dims``, or a budget's candidates."""
    if isinstance(estimator.sizing, BudgetSizing):
        return estimator.sizing.sizes(biases=estimator.biases)
    return tuple(sorted(map(int, np.atleast_1d(estimator.dims))))


def prepare_side(name: str, vocabulary: Vocabulary, ratings: Csr, estimator: Any) -> PreparedSide:
    """Sizes and penalties of a side (``users`` or ``items``), by the estimator's parameters.

    With a budget, every row has the largest size: that of the pilot, which the choice is made from.
    """
    counts = np.diff(ratings.indptr)
    dims = allowed_dims(estimator)
    sizing = of_side(estimator.sizing, name)
    steps = None
    if isinstance(sizing, BudgetSizing):
        sizes = np.full(len(vocabulary), dims[-1], np.int32)
    elif isinstance(sizing, Sizing):
        steps = sizing.fit(counts, dims)
        if not isinstance(steps, SizeSteps):
            raise TypeError(
                f"sizing: {type(sizing).__name__}.fit must return SizeSteps, not a "
                f"{type(steps).__name__}; sizes row by row go in as "
                "sizing={'users': sizes, 'items': sizes}"
            )
        sizes = steps(counts)
        if len(strange := np.setdiff1d(sizes, dims)):
            raise ValueError(f"sizing: {name} got the sizes {strange.tolist()}, not in dims={dims}")
        steps = steps.among(np.unique(sizes).tolist())
    else:
        sizes = explicit_sizes(sizing, vocabulary, dims, name)
    rules = SideRules(
        float(of_side(estimator.reg, name)),
        float(estimator.reg_exponent),
        float(counts[counts > 0].mean()),
        steps,
    )
    return PreparedSide(vocabulary, ratings, rules, sizes, vocabulary.keys())


def make_problem(users: PreparedSide, items: PreparedSide, estimator: Any) -> Problem:
    """What the estimator's parameters say to minimise."""
    return Problem(
        by_user=users.ratings,
        by_item=items.ratings,
        user_ridge=users.rules.ridge(np.diff(users.ratings.indptr)),
        item_ridge=items.rules.ridge(np.diff(items.ratings.indptr)),
        user_beta=float(of_side(estimator.projection_reg, "users")),
        item_beta=float(of_side(estimator.projection_reg, "items")),
        user_keys=users.keys,
        item_keys=items.keys,
        sampled=estimator.projection_sampling == "paper",
        seed=estimator.seed_,
    )


def mean_rating(ratings: Csr) -> float:
    """The mean rating, weighted where ratings have weights."""
    if ratings.weights is not None and not ratings.weights.any():
        raise ValueError("every rating has the weight 0: there is nothing to learn from")
    if ratings.weights is None:
        return float(ratings.values.mean(dtype=np.float64))
    return float(np.average(ratings.values.astype(np.float64), weights=ratings.weights))


def initial_state(
    users: PreparedSide, items: PreparedSide, estimator: Any, mean: float, n_threads: int
) -> TrainingState[Factorisation]:
    """The paper's initial values, before the first iteration."""
    d = max(allowed_dims(estimator))

    def side(prepared: PreparedSide, name: str) -> Side:
        return initial_side(
            prepared.keys,
            prepared.dims,
            d,
            learned=estimator.projection == "learned",
            biases=estimator.biases,
            name=name,
            seed=estimator.seed_,
            n_threads=n_threads,
        )

    constant = mean if estimator.global_mean or estimator.biases else 0.0
    model = Factorisation(side(users, "users"), side(items, "items"), constant)
    return TrainingState(model, model)


def warm_state(
    state: TrainingState[Factorisation], users: Vocabulary, items: Vocabulary, start: FittedModel
) -> TrainingState[Factorisation]:
    """``state`` with what the fitted model knows of its rows, projections, and learned mean."""
    mean = state.model.mean
    model = replace(
        state.model,
        users=_adopted(state.model.users, start.factors.users, start.users.match(users)),
        items=_adopted(state.model.items, start.factors.items, start.items.match(items)),
        mean=start.factors.mean if _both_have_biases(state.model, start.factors) else mean,
    )
    return replace(state, model=model, best=model)


def _both_have_biases(one: Factorisation, other: Factorisation) -> bool:
    return one.users.biases is not None and other.users.biases is not None


def _adopted(side: Side, known: Side, position: NDArray[np.int32]) -> Side:
    """``side`` with the embeddings that ``known`` has at ``position`` (-1: none) in equal sizes."""
    known_tiers = {tier.p: tier for tier in known.tiers}

    def adopted(tier: Tier) -> Tier:
        source = known_tiers.get(tier.p)
        if source is None or not len(source.rows) or known.d != side.d:
            return tier
        at = np.full(known.n, -1, np.int64)
        at[source.rows] = np.arange(len(source.rows))
        place = np.where(position[tier.rows] < 0, -1, at[position[tier.rows]])
        factors = np.where((place >= 0)[:, None], source.factors[place], tier.factors)
        learned = tier.projection is not None and source.projection is not None
        return Tier(tier.rows, factors, source.projection if learned else tier.projection)

    biases = side.biases
    if biases is not None and known.biases is not None:
        biases = np.where(position >= 0, known.biases[position], biases)
    return replace(side.with_tiers(map(adopted, side.tiers)), biases=biases)


class Validation:
    """The metric of a factorisation on held-out ratings."""

    def __init__(
        self,
        held_out: Interactions,
        users: Vocabulary,
        items: Vocabulary,
        function: MetricFunction,
        n_threads: int,
    ) -> None:
        ratings = held_out.by_user
        user_rows = np.repeat(users.match(held_out.user_vocabulary), np.diff(ratings.indptr))
        item_rows = items.match(held_out.item_vocabulary)[ratings.indices]
        known = (user_rows >= 0) & (item_rows >= 0)
        self.n_unknown = int((~known).sum())
        if self.n_unknown == len(known):
            raise ValueError(
                "validation: none of its ratings has both a user and an item of training"
            )
        self._users, self._items = user_rows[known], item_rows[known]
        self._ratings = ratings.values[known]
        self._function = function
        self._n_threads = n_threads

    def __call__(self, model: Factorisation) -> float:
        """The metric at these factors."""
        return self._function(self._ratings, self.predictions(model))

    def predictions(self, model: Factorisation) -> NDArray[np.float32]:
        """Predicted ratings of the held-out pairs that training knows."""
        left, right = model.scoring
        return kernels.predict_pairs(left, right, self._users, self._items, self._n_threads)
