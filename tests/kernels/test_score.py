"""The common space, predictions and top-k against their twins."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import (
    at_every_level,
    f32,
    generated,
    i32,
    magnitude,
    refused,
    rounding,
    seeds,
)
from numpy import float32, int32, int64
from numpy.typing import NDArray

pytestmark = at_every_level

TILE_QUERIES, TILE_ITEMS = 64, 1024


# The common space.


@generated
@given(
    seed=seeds,
    n=st.integers(0, 40),
    p=st.integers(1, 40),
    more=st.integers(0, 10),
    projected=st.booleans(),
)
def test_common_space(
    kernels: ModuleType, seed: int, n: int, p: int, more: int, projected: bool
) -> None:
    rng, d = np.random.default_rng(seed), p + more
    factors = f32(rng.normal(size=(n, p)))
    projection = f32(rng.normal(size=(d, p))) if projected else None
    rows = rng.permutation(n + 3)[:n].astype(int32)
    out = f32(rng.normal(size=(n + 3, d)))
    before = out.copy()
    kernels.common_space(factors, projection, rows, out, 1)
    expected = reference.common_space(factors, projection, d)
    bound = reference.common_space(magnitude(factors), magnitude(projection), d)
    assert (np.abs(out[rows] - expected) <= rounding(p) * bound).all()
    others = np.setdiff1d(np.arange(n + 3), rows)
    np.testing.assert_array_equal(out[others], before[others])
    if not projected:
        np.testing.assert_array_equal(out[rows], expected)


def test_a_side_of_many_tiers_fills_its_space(kernels: ModuleType) -> None:
    rng = np.random.default_rng(0)
    dims, d = rng.choice([2, 5, 9], 2000), 9
    vectors = [rng.normal(size=p) for p in dims]
    projections = {2: rng.normal(size=(d, 2)), 5: rng.normal(size=(d, 5))}
    out = {n_threads: f32(np.full((2000, d), np.nan)) for n_threads in (1, 2, 3)}
    for p in (2, 5, 9):
        rows = np.flatnonzero(dims == p).astype(int32)
        factors = f32([vectors[u] for u in rows])
        projection = f32(projections[p]) if p in projections else None
        for n_threads, space in out.items():
            kernels.common_space(factors, projection, rows, space, n_threads)
    expected = reference.Side(vectors, np.ones(2000), projections).common(d)
    np.testing.assert_allclose(out[1], expected, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(out[2], out[1])
    np.testing.assert_array_equal(out[3], out[1])


COMMON = {
    "factors": f32(np.ones((2, 2))),
    "projection": f32(np.ones((3, 2))),
    "rows": i32(3, 0),
    "out": f32(np.zeros((4, 3))),
    "n_threads": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"factors": f32(np.ones((3, 2)))},
        {"factors": f32(np.ones((2, 3)))},
        {"factors": f32(np.ones((2, 4))), "projection": None},
        {"factors": np.ones((2, 2))},
        {"projection": f32(np.ones((2, 2)))},
        {"projection": f32(np.ones((3, 3)))},
        {"projection": f32(np.ones((2, 3))).T},
        {"rows": i32(0, 4)},
        {"rows": i32(0, -1)},
        {"rows": i32(0)},
        {"rows": np.array([3, 0])},
        {"out": np.zeros((4, 3))},  # a converted copy would be filled and lost
        {"out": np.asfortranarray(f32(np.zeros((4, 3))))},
        {"out": f32(np.zeros((4, 6)))[:, ::2]},
        {"out": np.broadcast_to(float32(0), (4, 3))},  # read-only
        {"out": f32(np.zeros((4, 2)))},
        {"n_threads": 0},
    ],
    ids=repr,
)
def test_wrong_common_spaces_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    kernels.common_space(**COMMON)
    with pytest.raises(refused):
        kernels.common_space(**(COMMON | changes))


# Predictions.


@generated
@given(
    seed=seeds,
    n=st.integers(1, 30),
    m=st.integers(1, 30),
    d=st.integers(0, 70),
    pairs=st.integers(0, 50),
)
def test_predictions(kernels: ModuleType, seed: int, n: int, m: int, d: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = f32(rng.normal(size=(n, d))), f32(rng.normal(size=(m, d)))
    rows = [rng.integers(-1, size, pairs).astype(int32) for size in (n, m)]
    scores = kernels.predict_pairs(left, right, *rows, 1)
    expected = reference.predict_pairs(left, right, *rows)
    bound = rounding(d) * reference.predict_pairs(magnitude(left), magnitude(right), *rows)
    np.testing.assert_array_equal(np.isnan(scores), (rows[0] < 0) | (rows[1] < 0))
    known = ~np.isnan(scores)
    assert (np.abs(scores - expected)[known] <= bound[known]).all()


@generated
@given(seed=seeds, n=st.integers(0, 150), m=st.integers(0, 30), d=st.integers(0, 70))
def test_grids_of_predictions(kernels: ModuleType, seed: int, n: int, m: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = f32(rng.normal(size=(n, d))), f32(rng.normal(size=(m, d)))
    grid = kernels.predict_grid(left, right, 2)
    expected = left.astype(np.float64) @ right.astype(np.float64).T
    bound = rounding(d) * (np.abs(left).astype(np.float64) @ np.abs(right).astype(np.float64).T)
    assert (np.abs(grid - expected) <= bound).all()
    with pytest.raises(refused):
        kernels.predict_grid(left, f32(np.ones((m, d + 1))), 1)


def test_predictions_have_the_same_bits_for_any_number_of_threads(kernels: ModuleType) -> None:
    rng = np.random.default_rng(0)
    left, right = f32(rng.normal(size=(50, 13))), f32(rng.normal(size=(60, 13)))
    rows = [rng.integers(-1, size, 50_000).astype(int32) for size in (50, 60)]
    scores = kernels.predict_pairs(left, right, *rows, 1)
    for n_threads in (2, 3):
        again = kernels.predict_pairs(left, right, *rows, n_threads)
        np.testing.assert_array_equal(scores, again)


PAIRS = {
    "left": f32(np.ones((3, 2))),
    "right": f32(np.ones((4, 2))),
    "left_rows": i32(2, -1),
    "right_rows": i32(3, 0),
    "n_threads": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"left": f32(np.ones((3, 3)))},
        {"left": np.ones((3, 2))},
        {"right": f32(np.ones(4))},
        {"left_rows": i32(3, 0)},
        {"left_rows": i32(-2, 0)},
        {"left_rows": i32(0)},
        {"left_rows": np.array([2, 0])},
        {"right_rows": i32(4, 0)},
        {"right_rows": i32(0, -2)},
        {"n_threads": 0},
    ],
    ids=repr,
)
def test_wrong_pairs_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    kernels.predict_pairs(**PAIRS)
    with pytest.raises(refused):
        kernels.predict_pairs(**(PAIRS | changes))


# Top-k. Small integers make every score exact, and many of them equal.


def best(
    kernels: ModuleType,
    queries: NDArray[float32],
    items: NDArray[float32],
    k: int,
    left_out: Sequence[Sequence[int]],
    n_threads: int = 1,
) -> tuple[NDArray[int32], NDArray[float32]]:
    indptr = np.cumsum([0, *map(len, left_out)]).astype(int64)
    flat = np.array([i for row in left_out for i in row], int32)
    return kernels.top_k(queries, items, k, indptr, flat, n_threads)


def check_top_k(
    kernels: ModuleType,
    queries: NDArray[float32],
    items: NDArray[float32],
    k: int,
    left_out: Sequence[Sequence[int]],
) -> None:
    ids, scores = best(kernels, queries, items, k, left_out)
    with np.errstate(invalid="ignore"):
        all_scores = queries.astype(float) @ items.T.astype(float)
    expected_ids, expected_scores = reference.top_k(all_scores, k, left_out)
    np.testing.assert_array_equal(ids, expected_ids)
    np.testing.assert_array_equal(scores, expected_scores)


@generated
@given(
    seed=seeds,
    n=st.integers(0, 5),
    m=st.integers(0, 40),
    d=st.integers(0, 6),
    k=st.integers(1, 50),
    share=st.sampled_from([0, 0.2, 0.9, 1]),
    odd=st.sampled_from([0, 0.1]),
)
def test_top_k(
    kernels: ModuleType, seed: int, n: int, m: int, d: int, k: int, share: float, odd: float
) -> None:
    """Ties, k above the number of items, all left out, infinite scores, and scores of NaN."""
    rng = np.random.default_rng(seed)
    queries = f32(rng.integers(-2, 3, (n, d)))
    items = f32(rng.integers(-2, 3, (m, d)))
    strange = rng.random(items.shape) < odd
    items[strange] = rng.choice([np.inf, -np.inf, np.nan], strange.sum())
    left_out = [np.flatnonzero(rng.random(m) < share) for _ in range(n)]
    check_top_k(kernels, queries, items, k, left_out)


@pytest.mark.parametrize("k", [1, 10, 2 * TILE_ITEMS + 50])
def test_top_k_over_several_tiles(kernels: ModuleType, k: int) -> None:
    rng = np.random.default_rng(k)
    n, m = TILE_QUERIES + 1, 2 * TILE_ITEMS + 20
    queries, items = (f32(rng.integers(-9, 10, (size, 3))) for size in (n, m))
    seen = [np.flatnonzero(rng.random(m) < share) for share in rng.random(n)]
    check_top_k(kernels, queries[:4], items, k, seen[:4])
    alone, scores = best(kernels, queries, items, k, seen)
    for n_threads in (2, 3):
        ids, again = best(kernels, queries, items, k, seen, n_threads)
        np.testing.assert_array_equal(alone, ids)
        np.testing.assert_array_equal(scores, again)
    last, _ = best(kernels, queries[-1:], items, k, seen[-1:])
    np.testing.assert_array_equal(alone[-1:], last)


TOP_K = {
    "queries": f32(np.ones((2, 3))),
    "items": f32(np.ones((4, 3))),
    "k": 2,
    "left_out_indptr": np.array([0, 2, 3]),
    "left_out": i32(1, 3, 0),
    "n_threads": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"queries": f32(np.ones((2, 2)))},
        {"queries": f32(np.ones((3, 3)))},
        {"queries": np.ones((2, 3))},
        {"items": f32(np.ones((3, 3)))},
        {"items": f32(np.ones(4))},
        {"k": 0},
        {"k": -1},
        {"left_out_indptr": np.array([0, 3])},
        {"left_out_indptr": np.array([0, 2, 2])},
        {"left_out_indptr": np.array([0, 4, 3])},
        {"left_out_indptr": np.array([0, -1, 3])},
        {"left_out_indptr": np.array([1, 2, 3])},
        {"left_out_indptr": i32(0, 2, 3)},
        {"left_out": i32(3, 1, 0)},
        {"left_out": i32(1, 4, 0)},
        {"left_out": i32(-1, 3, 0)},
        {"left_out": np.array([1, 3, 0])},
        {"n_threads": 0},
    ],
    ids=repr,
)
def test_wrong_arguments_of_top_k_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    kernels.top_k(**TOP_K)
    with pytest.raises(refused):
        kernels.top_k(**(TOP_K | changes))


def test_more_results_than_memory(kernels: ModuleType) -> None:
    with pytest.raises(MemoryError):
        kernels.top_k(**(TOP_K | {"k": 2**62}))
