"""The model's state: two sides, each a list of tiers of rows with the same embedding size.

Everything here is immutable. An update gives a new side, so whoever holds an older one (the best
iteration, the last whole iteration) holds it unchanged at no cost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels

FloatArray = NDArray[np.float32]
RowArray = NDArray[np.int32]

# Streams of random numbers: what is drawn for one purpose never meets another's.
STREAMS = {"users": 0, "items": 1}
_PROJECTIONS = 2


@dataclass(frozen=True)
class Tier:
    """Rows of one side that share an embedding size ``p``.

    Attributes
    ----------
    rows
        Positions in the side, rising, int32 (n,).
    factors
        The rows' embeddings, float32 (n, p).
    projection
        Into the common space, float32 (d, p), learned. None is the fixed ``eye(d, p)``: the
        identity of the largest dimension, or padding with zeros.
    """

    rows: RowArray
    factors: FloatArray
    projection: FloatArray | None = None

    @property
    def p(self) -> int:
        """The embedding size."""
        return int(self.factors.shape[1])


@dataclass(frozen=True)
class Side:
    """The users, or the items.

    Attributes
    ----------
    name
        ``users`` or ``items``.
    n, d
        Number of rows, and dimension of the common space.
    tiers
        Rising in ``p``; every row is in one of them.
    biases
        float32 (n,), or None in a model without biases.
    n_threads
        Threads for what is derived from the tiers.
    """

    name: str
    n: int
    d: int
    tiers: tuple[Tier, ...]
    biases: FloatArray | None
    n_threads: int = 1

    @cached_property
    def common(self) -> FloatArray:
        """All rows in the common space, float32 (n, d)."""
        out = np.zeros((self.n, self.d), np.float32)
        for tier in self.tiers:
            kernels.common_space(tier.factors, tier.projection, tier.rows, out, self.n_threads)
        out.flags.writeable = False
        return out

    @cached_property
    def dims(self) -> NDArray[np.int32]:
        """Embedding size of each row, int32 (n,)."""
        out = np.zeros(self.n, np.int32)
        for tier in self.tiers:
            out[tier.rows] = tier.p
        out.flags.writeable = False
        return out

    @property
    def n_parameters(self) -> int:
        """Numbers that are learned: embeddings, learned projections, biases."""
        learned = sum(t.projection.size for t in self.tiers if t.projection is not None)
        return int(self.dims.sum()) + learned + (0 if self.biases is None else self.n)

    def known(self, mean: float) -> FloatArray | None:
        """What a prediction holds besides the dot product, one number a row; None for nothing."""
        if self.biases is not None:
            return self.biases + np.float32(mean)
        return np.full(self.n, mean, np.float32) if mean else None

    def with_tiers(self, tiers: Iterator[Tier]) -> "Side":
        """The same side with other tiers."""
        return replace(self, tiers=tuple(tiers))


@dataclass(frozen=True)
class Factorisation:
    """Both sides, and the constant that every prediction holds."""

    users: Side
    items: Side
    mean: float = 0.0

    @property
    def n_parameters(self) -> int:
        """As the paper counts: the sum of all dimensions, and the learned projections."""
        return self.users.n_parameters + self.items.n_parameters

    @property
    def largest_term(self) -> float:
        """What no term of a prediction exceeds in size."""
        sides = (self.users, self.items)
        product = float(np.prod([np.abs(side.common).max(initial=0) for side in sides]))
        biases = (float(np.abs(s.biases).max(initial=0)) for s in sides if s.biases is not None)
        return max(product, abs(self.mean), *biases)

    @cached_property
    def scoring(self) -> tuple[FloatArray, FloatArray]:
        """Two matrices whose rows' dot products are the predictions, mean and biases included."""
        offset = self.items.known(self.mean)
        if offset is None:
            return self.users.common, self.items.common
        biases = self.users.biases
        if biases is None:
            biases = np.zeros(self.users.n, np.float32)
        return (
            np.column_stack([self.users.common, biases, np.ones_like(biases)]),
            np.column_stack([self.items.common, np.ones_like(offset), offset]),
        )


def initial_projection(name: str, p: int, d: int, seed: int) -> FloatArray:
    """Xavier's initial values of a side's projection, float32 (d, p)."""
    bound = (6 / (d + p)) ** 0.5
    # The key of a projection's row is its tier and its place there.
    keys = np.uint64(p << 32) + np.arange(d, dtype=np.uint64)
    return kernels.uniform(seed, _PROJECTIONS + STREAMS[name], keys, p, -bound, bound, 1)


def initial_side(
    keys: NDArray[np.uint64],
    dims: NDArray[np.int32],
    d: int,
    *,
    learned: bool,
    biases: bool,
    name: str,
    seed: int,
    n_threads: int,
) -> Side:
    """The paper's initial values: embeddings in [-0.1, 0.1], Xavier's projections.

    They are a function of the seed, the side, each id's key and the component alone:
    neither the other rows nor any order has a part in them.
    """

    def tier(p: int) -> Tier:
        rows = np.flatnonzero(dims == p).astype(np.int32)
        factors = kernels.uniform(seed, STREAMS[name], keys[rows], p, -0.1, 0.1, n_threads)
        projection = initial_projection(name, p, d, seed) if learned and p != d else None
        return Tier(rows, factors, projection)

    return Side(
        name=name,
        n=len(dims),
        d=d,
        tiers=tuple(tier(int(p)) for p in np.unique(dims)),
        biases=np.zeros(len(dims), np.float32) if biases else None,
        n_threads=n_threads,
    )
