"""What the kernel tests share: the levels that they run at, generated ratings, rounding errors."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import settings
from hypothesis import strategies as st
from numpy import float32, float64, int32, int64
from numpy.typing import ArrayLike, NDArray

from mixedals import _kernels

LEVELS = _kernels.usable_levels()
at_every_level = pytest.mark.parametrize("kernels", [*map(_kernels.load, LEVELS)], ids=LEVELS)

generated = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32 - 1)
refused = (ValueError, TypeError, OverflowError)

# The kernels sum at most this many ratings in single precision.
CHUNK = 2048


def f32(a: ArrayLike) -> NDArray[float32]:
    return np.ascontiguousarray(a, float32)


def i32(*numbers: int) -> NDArray[int32]:
    return np.array(numbers, int32)


def rounding(*lengths: int) -> float:
    """Relative error of a result that passed through sums of so many terms in single precision.

    Rounding errors grow as the square root of a sum's length; 8 stands for the handful of
    operations besides the sums, and for what luck may add.
    """
    return float(np.finfo(float32).eps) * (8 + sum(np.sqrt(n) for n in lengths))


def csr_of(kernels: ModuleType, ratings: reference.Ratings) -> Any:
    return kernels.Csr(
        ratings.indptr, ratings.indices, ratings.values, ratings.n_columns, ratings.weights
    )


def make_ratings(
    rng: np.random.Generator, counts: Sequence[int], n_columns: int, weighted: bool
) -> reference.Ratings:
    """Random ratings, so many a row; about a quarter of the weights are 0."""
    n = sum(counts) if n_columns else 0
    counts = counts if n_columns else [0] * len(counts)
    weights = f32(rng.uniform(0, 3, n) * (rng.random(n) > 0.25)) if weighted else None
    return reference.Ratings(
        np.concatenate([[0], np.cumsum(counts)]).astype(int64),
        rng.integers(0, max(n_columns, 1), n).astype(int32),
        f32(rng.normal(rng.uniform(-3, 3), 1, n)),
        n_columns,
        weights,
    )


@st.composite
def ratings_and_rows(
    draw: st.DrawFn, longest: int = 60
) -> tuple[np.random.Generator, reference.Ratings, NDArray[int32]]:
    """Ratings of a few rows, some of them empty, and some of the rows in any order."""
    rng = np.random.default_rng(draw(seeds))
    count = st.one_of(st.integers(0, min(longest, 60)), st.integers(0, longest))
    counts = draw(st.lists(count, max_size=6))
    ratings = make_ratings(rng, counts, draw(st.integers(0, 50)), draw(st.booleans()))
    listed = draw(st.integers(0, len(counts)))
    return rng, ratings, rng.permutation(len(counts))[:listed].astype(int32)


def known_or_none(rng: np.random.Generator, n: int, there: bool) -> NDArray[float32] | None:
    return f32(rng.normal(size=n)) if there else None


def magnitude(a: ArrayLike | None) -> NDArray[float64] | None:
    return None if a is None else np.abs(np.asarray(a, float64))
