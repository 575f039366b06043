"""Ratings made up from a planted model of mixed dimensions, with a popularity skew."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals.interactions import Interactions
from mixedals.sizing import PopularitySizing

# Shares of one to five stars, as rating sites see them.
_STAR_SHARES = (0.06, 0.12, 0.27, 0.34, 0.21)


def generate_ratings(
    n_users: int = 6_000,
    n_items: int = 3_000,
    n_ratings: int = 600_000,
    *,
    dims: Sequence[int] = (2, 4, 6),
    user_skew: float = 1.0,
    item_skew: float = 1.4,
    noise: float = 1.0,
    random_state: Any = 0,
) -> Interactions:
    """One to five stars for ``n_ratings`` different pairs, with timestamps.

    Every row has true tastes in as many dimensions as its popularity carries (the paper's rule);
    a rating is their dot product and noise, cut into stars.

    Parameters
    ----------
    n_users, n_items, n_ratings
        Sizes. Ids are integers from 1; rows that happen to get no rating don't appear.
    dims
        True dimensions that rows may have.
    user_skew, item_skew
        The k-th most popular row is rated in proportion to ``(k + n / 100) ** -skew``: 0 is
        everybody alike.
    noise
        Standard deviation of the noise, where that of the tastes' dot product is 1.
    random_state
        A seed, or a ``numpy.random.Generator``.

    Examples
    --------
    >>> data = generate_ratings(100, 50, 1000)
    >>> len(data)
    1000
    """
    if n_ratings > n_users * n_items // 2:
        raise ValueError(
            f"n_ratings={n_ratings}: at most half of all pairs, {n_users * n_items // 2}"
        )
    rng = np.random.default_rng(random_state)
    users, items = _pairs(rng, (n_users, n_items), (user_skew, item_skew), n_ratings)
    tastes = [
        _tastes(rng, np.bincount(rows, minlength=n), sorted(dims))
        for rows, n in ((users, n_users), (items, n_items))
    ]
    score = np.empty(n_ratings, np.float32)
    for first in range(0, n_ratings, 1 << 20):  # in pieces, for the memory of the gathered rows
        part = slice(first, first + (1 << 20))
        score[part] = np.einsum("ij,ij->i", tastes[0][users[part]], tastes[1][items[part]])
    score /= max(float(score.std()), 1e-12)
    score += noise * rng.standard_normal(n_ratings, dtype=np.float32)
    limits = np.quantile(score, np.cumsum(_STAR_SHARES)[:-1])
    return Interactions.from_arrays(
        users + 1,
        items + 1,
        np.searchsorted(limits, score).astype(np.float32) + 1,
        timestamps=rng.integers(1_000_000_000, 1_500_000_000, n_ratings),
    )


def _pairs(
    rng: np.random.Generator, sizes: tuple[int, int], skews: tuple[float, float], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``n`` different pairs, each row in proportion to its popularity."""
    cumulative = []
    for size, skew in zip(sizes, skews, strict=True):
        # Permuted, so that popular rows stand anywhere among the ids.
        weights = rng.permutation((np.arange(1, size + 1) + size / 100) ** -skew)
        cumulative.append(np.cumsum(weights) / weights.sum())
    pairs = np.empty(0, np.int64)
    while len(pairs) < n:
        more = n + n // 8 + 16
        drawn = [np.searchsorted(c, rng.random(more)).clip(max=len(c) - 1) for c in cumulative]
        pairs = np.union1d(pairs, drawn[0] * sizes[1] + drawn[1])
    pairs = pairs[np.sort(rng.choice(len(pairs), n, replace=False, shuffle=False))]
    return pairs // sizes[1], pairs % sizes[1]


def _tastes(
    rng: np.random.Generator, counts: NDArray[np.int64], dims: Sequence[int]
) -> NDArray[np.float32]:
    """A vector for each row, of which only as many numbers as its dimension aren't zero."""
    size = PopularitySizing(gamma=0.2).fit(counts, dims)(counts)
    # Later dimensions matter less, as in real data.
    scale = 0.8 ** np.arange(dims[-1])
    tastes = rng.standard_normal((len(counts), dims[-1])) * scale
    tastes[np.arange(dims[-1]) >= size[:, None]] = 0
    return tastes.astype(np.float32)
