"""What a training will be, before anything is trained: sizes, parameters, memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals._parameters import check_parameters
from mixedals.budget import BudgetSizing
from mixedals.interactions import Interactions
from mixedals.preparation import allowed_dims, prepare_side
from mixedals.recommender import Recommender


@dataclass(frozen=True)
class Plan:
    """Sizes of a model that is still to be trained.

    Attributes
    ----------
    tiers : polars.DataFrame
        A row for each embedding size of either side, as :func:`tier_table` gives it. Which row gets
        which size under a budget isn't known before the pilot is trained: then these are the
        pilot's.
    n_parameters
        All numbers that would be learned; with a budget the most that might be.
    ratings_bytes, model_bytes
        Memory of the ratings by user and by item, and of the model while it is trained (the
        iteration before, the one at work and the best one; vectors in the common space).

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> planned = plan(MixedALS(), generate_ratings(100, 50, 1000))
    >>> planned.tiers["p"].to_list()
    [2, 4, 6, 2, 4, 6]
    """

    tiers: pl.DataFrame
    n_parameters: int
    ratings_bytes: int
    model_bytes: int


def plan(estimator: Any, data: Interactions) -> Plan:
    """Sizes of the model that the estimator would fit to these ratings.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> data = generate_ratings(100, 50, 1000)
    >>> plan(MixedALS(dims=4), data).n_parameters == 4 * (data.n_users + data.n_items)
    True
    """
    check_parameters(estimator.get_params(deep=False))
    sides = {
        "users": prepare_side("users", data.user_vocabulary, data.by_user, estimator),
        "items": prepare_side("items", data.item_vocabulary, data.by_item, estimator),
    }
    d = max(allowed_dims(estimator))
    tables = [
        tier_table(
            name,
            side.dims,
            np.diff(side.ratings.indptr),
            d,
            learned=estimator.projection == "learned",
            biases=estimator.biases,
        )
        for name, side in sides.items()
    ]
    tiers = pl.concat(tables)
    n_rows = data.n_users + data.n_items
    n_embeddings = int((tiers["p"] * tiers["rows"]).sum())
    weights = data.by_user.weights
    n_parameters = int(tiers["parameters"].sum())
    if isinstance(estimator.sizing, BudgetSizing):
        left = estimator.sizing.beside_biases(n_rows, biases=estimator.biases)
        n_parameters = min(n_parameters, left + n_rows * estimator.biases)
    return Plan(
        tiers,
        n_parameters,
        ratings_bytes=(16 if weights is None else 24) * len(data)
        + (0 if data.timestamps is None else data.timestamps.nbytes),
        # In 32 bits: three states, each with embeddings and common space, and features (padded).
        model_bytes=4 * (3 * (n_embeddings + n_rows * d) + n_rows * (d + 8)),
    )


def tier_table(
    side: str,
    dims: NDArray[np.int32],
    counts: NDArray[np.int64],
    d: int,
    *,
    learned: bool,
    biases: bool,
) -> pl.DataFrame:
    """Where the parameters of a side go.

    Parameters
    ----------
    dims, counts
        Embedding size, and number of ratings, of each row (n,).
    d
        Dimension of the common space.
    learned, biases
        Whether projections are learned, and whether rows have biases.

    Returns
    -------
    polars.DataFrame
        ``side``, embedding size ``p``, number of ``rows``, their ``ratings``, their ``parameters``
        (embeddings, biases and the tier's projection).

    Examples
    --------
    >>> import numpy as np
    >>> sizes, counts = np.array([2, 2, 4], np.int32), np.array([3, 1, 9])
    >>> tier_table("users", sizes, counts, d=4, learned=True, biases=False).rows()
    [('users', 2, 2, 4, 12), ('users', 4, 1, 9, 4)]
    """
    rows = []
    for p in np.unique(dims).tolist():
        here = dims == p
        n = int(here.sum())
        projection = d * p if learned and p < d else 0
        rows.append(
            {
                "side": side,
                "p": p,
                "rows": n,
                "ratings": int(counts[here].sum()),
                "parameters": n * (p + biases) + projection,
            }
        )
    return pl.DataFrame(rows)


def fitted_counts(model: Recommender) -> dict[str, NDArray[np.int64]]:
    """Number of ratings of each row, for both sides of a fitted model.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> {side: int(counts.sum()) for side, counts in fitted_counts(model).items()}
    {'users': 1000, 'items': 1000}
    """
    fitted = model._fitted
    return {
        "users": np.diff(fitted.seen.indptr),
        "items": np.bincount(fitted.seen.indices, minlength=len(fitted.items)),
    }


def fitted_tiers(model: Recommender) -> pl.DataFrame:
    """Where the parameters of a fitted model went, as :func:`tier_table` for both its sides.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> int(fitted_tiers(model)["parameters"].sum()) == model.n_parameters_
    True
    """
    factors = model._fitted.factors
    counts = fitted_counts(model)
    return pl.concat(
        tier_table(
            side.name,
            side.dims,
            counts[side.name],
            side.d,
            learned=any(tier.projection is not None for tier in side.tiers),
            biases=side.biases is not None,
        )
        for side in (factors.users, factors.items)
    )
