"""Splitting ratings into parts: by time, at random, into folds."""

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals.interactions import Interactions


def split_by_time(
    data: Interactions, fractions: Sequence[float] = (0.8, 0.1, 0.1)
) -> tuple[Interactions, ...]:
    """Split ratings into parts by timestamp, the oldest first.

    Of ratings with the same timestamp at a cut, those first in canonical order (by user, then by
    item) go to the older part, so that the result never depends on the order of the input.

    Parameters
    ----------
    data : Interactions
        Ratings with timestamps.
    fractions : sequence of float
        The share of each part: positive, with the sum 1.

    Examples
    --------
    >>> from mixedals.synthetic import generate_ratings
    >>> [len(part) for part in split_by_time(generate_ratings(100, 50, 1000))]
    [800, 100, 100]
    """
    if data.timestamps is None:
        raise ValueError(
            "split_by_time needs timestamps: give the data some (timestamp=...), or use "
            "split_at_random"
        )
    times = data.timestamps
    cuts = _cuts(len(times), fractions)
    inner = cuts[cuts < len(times)]
    sorted_at_cuts = np.partition(times, inner) if len(inner) else times
    part = np.zeros(len(times), dtype=np.int16)
    for cut in inner:
        first_later = sorted_at_cuts[cut]
        later = times >= first_later
        n_older = len(times) - np.count_nonzero(later)
        later[np.flatnonzero(times == first_later)[: cut - n_older]] = False
        part += later
    return _parts(data, part, len(fractions))


def split_at_random(
    data: Interactions,
    fractions: Sequence[float] = (0.8, 0.1, 0.1),
    random_state: int | np.random.Generator = 0,
) -> tuple[Interactions, ...]:
    """Split ratings into parts at random.

    Parameters
    ----------
    data : Interactions
        Ratings.
    fractions : sequence of float
        The share of each part: positive, with the sum 1.
    random_state : int or numpy.random.Generator
        The same one gives the same parts, whatever the order of the input.

    Examples
    --------
    >>> from mixedals.synthetic import generate_ratings
    >>> train, test = split_at_random(generate_ratings(100, 50, 1000), (0.9, 0.1))
    >>> len(test)
    100
    """
    part = _shuffled(len(data), _cuts(len(data), fractions), random_state)
    return _parts(data, part, len(fractions))


def k_folds(
    data: Interactions, k: int = 5, random_state: int | np.random.Generator = 0
) -> Iterator[tuple[Interactions, Interactions]]:
    """Give pairs of training and held-out ratings; every rating is held out once, at random.

    Parameters
    ----------
    data : Interactions
        Ratings, at least ``k`` of them.
    k : int
        The number of folds, at least 2.
    random_state : int or numpy.random.Generator
        The same one gives the same folds, whatever the order of the input.

    Examples
    --------
    >>> from mixedals.synthetic import generate_ratings
    >>> [len(held_out) for _, held_out in k_folds(generate_ratings(100, 50, 1000), 4)]
    [250, 250, 250, 250]
    """
    if not isinstance(k, Integral):
        raise TypeError(f"k must be an integer, not {k!r}")
    if not 2 <= k <= len(data):
        raise ValueError(f"k must be from 2 to the number of ratings, {len(data):,}, not {k}")
    fold = _shuffled(len(data), _cuts(len(data), [1 / k] * k), random_state)
    return ((data.subset(fold != held), data.subset(fold == held)) for held in range(k))


def _cuts(n: int, fractions: Sequence[float]) -> NDArray[np.int64]:
    """Tell where parts of n ratings end, but the last: the cumulative shares, rounded."""
    shares = np.asarray(fractions, dtype=np.float64)
    if shares.ndim != 1 or not (shares > 0).all() or not np.isclose(shares.sum(), 1):
        raise ValueError(f"fractions must be positive and have the sum 1, not {tuple(fractions)}")
    return np.rint(np.cumsum(shares)[:-1] * n).astype(np.int64)


def _shuffled(
    n: int, cuts: NDArray[np.int64], random_state: int | np.random.Generator
) -> NDArray[np.integer[Any]]:
    """Give each of n ratings a part at random, in parts of the sizes between the cuts."""
    sizes = np.diff(cuts, prepend=0, append=n)
    part = np.repeat(np.arange(len(sizes), dtype=np.min_scalar_type(len(sizes))), sizes)
    np.random.default_rng(random_state).shuffle(part)
    return part


def _parts(
    data: Interactions, part: NDArray[np.integer[Any]], n_parts: int
) -> tuple[Interactions, ...]:
    return tuple(data.subset(part == i) for i in range(n_parts))
