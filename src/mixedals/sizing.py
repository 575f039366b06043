"""How large an embedding each row gets: rules from a row's number of ratings to a dimension.

A sizing is any object with ``fit(counts, dims)`` that returns :class:`SizeSteps`. Sizes that don't
follow from the number of ratings are given row by row instead, as an array or a mapping.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedals._ids import Vocabulary


@dataclass(frozen=True)
class SizeSteps:
    """A dimension as a step function of the number of ratings.

    A row with ``n`` ratings gets ``dims[i]``, with ``i`` the number of ``limits`` below ``n``: a
    row on a limit gets the dimension under it.

    Examples
    --------
    >>> import numpy as np
    >>> steps = SizeSteps(limits=(10, 100), dims=(2, 4, 6))
    >>> steps(np.array([1, 10, 11, 1000])).tolist()
    [2, 2, 4, 6]
    """

    limits: tuple[float, ...]
    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.dims) != len(self.limits) + 1:
            raise ValueError("SizeSteps needs one dimension more than limits")
        if list(self.limits) != sorted(self.limits):
            raise ValueError("the limits of SizeSteps must rise")

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.int32]:
        """Dimension of each row, from its number of ratings."""
        return np.asarray(self.dims, np.int32)[np.searchsorted(self.limits, counts, side="left")]

    def fit(self, counts: NDArray[np.int64], dims: Sequence[int]) -> "SizeSteps":  # noqa: ARG002 - the protocol's
        """Themselves: fitted steps are a sizing too."""
        return self

    def among(self, present: Sequence[int]) -> "SizeSteps":
        """These steps with every dimension replaced by the nearest of ``present``."""
        return SizeSteps(self.limits, tuple(_nearest(self.dims, present).tolist()))


@runtime_checkable
class Sizing(Protocol):
    """A rule for dimensions that is fitted to the popularity of a side."""

    def fit(self, counts: NDArray[np.int64], dims: Sequence[int]) -> SizeSteps:
        """Steps for a side whose rows have ``counts`` ratings; ``dims`` are allowed, rising."""
        ...


@dataclass(frozen=True)
class PopularitySizing:
    """The paper's rule: ``round(f / (gamma * f_med))`` to the nearest allowed dimension.

    ``f`` is a row's number of ratings and ``f_med`` the median over the rows of its side that have
    any. Halfway between two dimensions, the smaller one is taken.

    Parameters
    ----------
    gamma
        Smaller values give larger embeddings. The paper uses 0.2 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([1, 10, 20, 30, 1000])
    >>> PopularitySizing(gamma=5).fit(counts, dims=(2, 4, 16))(counts).tolist()
    [2, 2, 2, 2, 4]
    >>> PopularitySizing(gamma=0.2).fit(counts, dims=(2, 4, 16))(counts).tolist()
    [2, 2, 4, 4, 16]
    """

    gamma: float = 0.2

    def fit(self, counts: NDArray[np.int64], dims: Sequence[int]) -> SizeSteps:
        """Steps for these counts' median."""
        rated = counts[counts > 0]
        return self.steps(float(np.median(rated)) if len(rated) else 1 / self.gamma, dims)

    def steps(self, median: float, dims: Sequence[int]) -> SizeSteps:
        """Steps halfway between the allowed dimensions, in units of ``gamma * median``."""
        if not self.gamma > 0:
            raise ValueError(f"PopularitySizing: gamma must be above 0, it is {self.gamma!r}")
        unit = self.gamma * median
        return SizeSteps(
            tuple(unit * (low + high) / 2 for low, high in pairwise(dims)),
            tuple(dims),
        )


@dataclass(frozen=True)
class UniformSizing:
    """The same dimension for every row: the largest allowed one.

    Examples
    --------
    >>> import numpy as np
    >>> UniformSizing().fit(np.array([1, 1000]), dims=(2, 4)).dims
    (4,)
    """

    def fit(self, counts: NDArray[np.int64], dims: Sequence[int]) -> SizeSteps:  # noqa: ARG002 - the protocol's
        """One step."""
        return SizeSteps((), (dims[-1],))


@dataclass(frozen=True)
class PowerLawSizing:
    """The scheme of Ginart et al. (arXiv 1909.11810) for collaborative filtering.

    Rows, sorted by popularity, are cut into partitions with equal sums of popularity; a partition
    of ``s`` rows gets the largest dimension times ``(s_min / s) ** temperature``, rounded to the
    nearest allowed one. Rows with equally many ratings are never separated, and where that makes a
    partition larger than the next less popular one, both count as equally large.

    Parameters
    ----------
    temperature
        0 gives every row the largest dimension, 1 gives every partition about equally many
        parameters.
    partitions
        How many partitions a side is cut into.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([1, 1, 1, 1, 2, 2, 4, 4])
    >>> PowerLawSizing(temperature=1.0, partitions=2).fit(counts, dims=(1, 2, 4))(counts).tolist()
    [1, 1, 1, 1, 1, 1, 4, 4]
    """

    temperature: float = 0.4
    partitions: int = 8

    def fit(self, counts: NDArray[np.int64], dims: Sequence[int]) -> SizeSteps:
        """Steps at the partitions' boundaries."""
        if not 0 <= self.temperature <= 1:
            raise ValueError(
                f"PowerLawSizing: temperature must be from 0 to 1, it is {self.temperature!r}"
            )
        if self.partitions < 1:
            raise ValueError(
                f"PowerLawSizing: partitions must be at least 1, it is {self.partitions!r}"
            )
        distinct, rows = np.unique(counts[counts > 0], return_counts=True)
        if len(distinct) == 0:
            return SizeSteps((), (dims[0],))
        popularity = distinct * rows
        # Popularity of all rows with more ratings decides the partition, the most popular first.
        above = popularity[::-1].cumsum()[::-1] - popularity
        partition = above * self.partitions // popularity.sum()
        sizes = np.maximum.accumulate(np.bincount(partition, weights=rows))
        smallest = sizes[sizes > 0].min()
        ideal = dims[-1] * (smallest / sizes[partition]) ** self.temperature
        last_of_step = np.flatnonzero(np.diff(partition))
        chosen = _nearest(ideal[np.append(last_of_step, len(distinct) - 1)], dims)
        return SizeSteps(tuple(distinct[last_of_step].astype(float)), tuple(chosen.tolist()))


SideSizing = Sizing | Mapping[object, int] | ArrayLike


def explicit_sizes(
    sizes: Mapping[object, int] | ArrayLike, vocabulary: Vocabulary, dims: Sequence[int], side: str
) -> NDArray[np.int32]:
    """Dimensions given row by row, by an array in the vocabulary's order or a mapping from id."""
    if isinstance(sizes, Mapping):
        codes = vocabulary.encode(list(sizes))
        out = np.full(len(vocabulary), -1, np.int64)
        out[codes[codes >= 0]] = _whole(list(sizes.values()))[codes >= 0]
        if missing := np.flatnonzero(out == -1).tolist():
            raise ValueError(
                f"sizing: {len(missing)} {side} have no size in the mapping, first "
                f"{vocabulary.ids[missing].tolist()[0]!r}"
            )
    else:
        out = _whole(sizes)
        if out.shape != (len(vocabulary),):
            raise ValueError(
                f"sizing: {side} need an array of {len(vocabulary)} sizes, one each in the order "
                f"of the interactions' {side}; it has the shape {out.shape}"
            )
    if len(strange := np.setdiff1d(out, dims)):
        raise ValueError(f"sizing: {side} have the sizes {strange.tolist()} that dims doesn't list")
    return out.astype(np.int32)


def _whole(sizes: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(sizes)
    if given.dtype.kind not in "iu":
        raise TypeError(f"sizing: sizes must be integers, but are of type {given.dtype}")
    return given.astype(np.int64)


def _nearest(values: ArrayLike, dims: Sequence[int]) -> NDArray[np.int64]:
    """The nearest of the rising ``dims`` to each value, the smaller one halfway."""
    middles = [(low + high) / 2 for low, high in pairwise(dims)]
    return np.asarray(dims)[np.searchsorted(middles, np.asarray(values), side="left")]
