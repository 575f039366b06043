"""How good a model is on the test ratings: in all, by popularity, by who is among the users."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals import MixedALS
from mixedals._threads import thread_count
from mixedals.experiments.protocol import Parts
from mixedals.metrics import rmse, roc_auc
from mixedals.plan import fitted_tiers
from mixedals.preparation import Validation
from mixedals.ranking import N_DECILES, popularity_deciles

N_GROUPS = 20
_SEED = 0


@dataclass(frozen=True)
class Scores:
    """What is measured of a fitted model.

    Attributes
    ----------
    n_parameters, best_iteration
        Of the model.
    validation_auc
        At the best iteration.
    test_auc, test_rmse
        On the test ratings.
    details
        More, as JSON takes it: ``history``, pairs of iteration and validation AUC; ``without``,
        the test AUC without each of 20 random groups of users; ``tiers``, where the parameters
        went; ``deciles``, by tenth of popularity of ``users`` and of ``items``, the most popular
        first, the test ``auc`` (None where there is none) and the number of embedding
        ``parameters``.
    """

    n_parameters: int
    best_iteration: int
    validation_auc: float
    test_auc: float
    test_rmse: float
    details: dict[str, Any]


class Scorer:
    """Scores models on the test ratings, which it has made ready once for many of them.

    Parameters
    ----------
    parts
        What the models are fitted to, and the test ratings.
    n_threads
        None uses the CPUs that this process may use.
    """

    def __init__(self, parts: Parts, n_threads: int | None = None) -> None:
        train, test = parts.train, parts.test
        users, items = train.user_vocabulary, train.item_vocabulary
        self._ratings = test.by_user.values
        self._validation = Validation(test, users, items, roc_auc, thread_count(n_threads))
        self._rows = {
            "users": np.repeat(users.match(test.user_vocabulary), np.diff(test.by_user.indptr)),
            "items": items.match(test.item_vocabulary)[test.by_user.indices],
        }
        self._deciles = {
            "users": popularity_deciles(np.diff(train.by_user.indptr)),
            "items": popularity_deciles(np.diff(train.by_item.indptr)),
        }
        self._groups = np.random.default_rng(_SEED).integers(N_GROUPS, size=len(users))

    def scores(self, model: MixedALS) -> Scores:
        """The figures of a model, without details."""
        return self._scores(model, self._predictions(model), {})

    def detailed_scores(self, model: MixedALS) -> Scores:
        """The figures of a model, with details."""
        predicted = self._predictions(model)
        evaluated = model.history_.select("iteration", "metric").drop_nulls()
        groups = self._groups[self._rows["users"]]
        details = {
            "history": [list(row) for row in evaluated.iter_rows()],
            "without": auc_without_each(self._ratings, predicted, groups, N_GROUPS).tolist(),
            "tiers": fitted_tiers(model).to_dicts(),
            "deciles": {
                "users": self._by_decile("users", predicted, model.user_dims_),
                "items": self._by_decile("items", predicted, model.item_dims_),
            },
        }
        return self._scores(model, predicted, details)

    def _predictions(self, model: MixedALS) -> NDArray[np.float32]:
        return self._validation.predictions(model._fitted.factors)

    def _scores(
        self, model: MixedALS, predicted: NDArray[np.float32], details: dict[str, Any]
    ) -> Scores:
        return Scores(
            model.n_parameters_,
            model.best_iteration_,
            float(model.history_["metric"][model.best_iteration_ - 1]),
            roc_auc(self._ratings, predicted),
            rmse(self._ratings, predicted),
            details,
        )

    def _by_decile(
        self, side: str, predicted: NDArray[np.float32], dims: NDArray[np.int32]
    ) -> dict[str, list[Any]]:
        deciles = self._deciles[side]
        decile_of_pair = deciles[self._rows[side]]
        parameters = np.bincount(deciles, weights=dims, minlength=N_DECILES + 1)[1:]
        aucs = []
        for decile in range(1, N_DECILES + 1):
            here = decile_of_pair == decile
            ratings = self._ratings[here]
            both = len(ratings) > 0 and ratings.min() < ratings.max()
            aucs.append(roc_auc(ratings, predicted[here]) if both else None)
        return {"auc": aucs, "parameters": parameters.astype(int).tolist()}


def auc_without_each(
    ratings: NDArray[np.float32],
    predictions: NDArray[np.float32],
    groups: NDArray[np.integer[Any]],
    n_groups: int,
) -> NDArray[np.float64]:
    """ROC AUC without the pairs of each group in turn, for a jackknife.

    Parameters
    ----------
    ratings, predictions
        0 or 1, and what was predicted (n,).
    groups
        Group of each pair, from 0 (n,).
    n_groups
        How many groups there are.

    Returns
    -------
    float64 (n_groups,)
        NaN where the others are all 0 or all 1.
    """
    order = np.argsort(predictions, kind="stable")
    predictions, groups = predictions[order], groups[order]
    positive = ratings[order] == 1
    # Of equal predictions, the first and the one after the last.
    starts = np.flatnonzero(np.append(True, predictions[1:] != predictions[:-1]))
    ends = np.append(starts[1:], len(predictions))
    block = np.repeat(np.arange(len(starts)), ends - starts)[positive]
    group_of_positive = groups[positive]
    # wins[a, b]: in how many pairs a positive of group a stands above a negative of group b.
    wins = np.empty((n_groups, n_groups))
    for b in range(n_groups):
        below = np.append(0, np.cumsum(~positive & (groups == b)))
        mean_below = (below[starts] + below[ends]) / 2
        wins[:, b] = np.bincount(group_of_positive, mean_below[block], n_groups)
    counts = [np.bincount(groups[which], minlength=n_groups) for which in (positive, ~positive)]
    left = wins.sum() - wins.sum(axis=0) - wins.sum(axis=1) + wins.diagonal()
    pairs = np.prod([of.sum() - of for of in counts], axis=0, dtype=np.float64)
    out = np.full(n_groups, np.nan)
    np.divide(left, pairs, out=out, where=pairs > 0)
    return out
