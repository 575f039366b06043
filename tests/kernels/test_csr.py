"""Compressed rows: sorting, transposing and encoding against plain Python."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import at_every_level, csr_of, f32, generated, i32, make_ratings, refused, seeds
from numpy import int32, int64, uint32
from numpy.typing import NDArray

pytestmark = at_every_level


def check_equal(csr: Any, ratings: reference.Ratings) -> None:
    assert (csr.n_rows, csr.n_columns) == (ratings.n_rows, ratings.n_columns)
    assert csr.nnz == len(ratings.indices)
    for name in ("indptr", "indices", "values"):
        np.testing.assert_array_equal(getattr(csr, name), getattr(ratings, name), strict=True)
    if ratings.weights is None:
        assert csr.weights is None
    else:
        np.testing.assert_array_equal(csr.weights, ratings.weights, strict=True)


@generated
@given(
    seed=seeds,
    counts=st.lists(st.integers(0, 12), max_size=30),
    m=st.integers(0, 20),
    weighted=st.booleans(),
    n_threads=st.integers(1, 3),
)
def test_transposed(
    kernels: ModuleType, seed: int, counts: list[int], m: int, weighted: bool, n_threads: int
) -> None:
    ratings = make_ratings(np.random.default_rng(seed), counts, m, weighted)
    csr = csr_of(kernels, ratings)
    check_equal(csr, ratings)
    other = csr.transposed(n_threads)
    check_equal(other, reference.transposed(ratings))
    check_equal(other.transposed(n_threads).transposed(n_threads), reference.transposed(ratings))


def test_arrays_outlive_their_csr(kernels: ModuleType) -> None:
    ratings = make_ratings(np.random.default_rng(0), [3, 4], 5, weighted=True)
    csr = csr_of(kernels, ratings).transposed(1)
    kept = csr.indptr, csr.indices, csr.values, csr.weights
    del csr
    expected = reference.transposed(ratings)
    for array, name in zip(kept, ("indptr", "indices", "values", "weights"), strict=True):
        np.testing.assert_array_equal(array, getattr(expected, name))


def pairs(
    rng: np.random.Generator, n: int, n_rows: int, n_columns: int
) -> tuple[NDArray[int32], NDArray[int32]]:
    n = n if n_rows and n_columns else 0
    return (
        rng.integers(0, max(n_rows, 1), n).astype(int32),
        rng.integers(0, max(n_columns, 1), n).astype(int32),
    )


@generated
@given(
    seed=seeds,
    n=st.integers(0, 300),
    n_rows=st.integers(0, 20),
    n_columns=st.integers(0, 20),
    n_threads=st.integers(1, 3),
)
def test_order_of_pairs(
    kernels: ModuleType, seed: int, n: int, n_rows: int, n_columns: int, n_threads: int
) -> None:
    rows, columns = pairs(np.random.default_rng(seed), n, n_rows, n_columns)
    indptr, order = kernels.order_of_pairs(rows, columns, n_rows, n_columns, n_threads)
    expected_indptr, expected_order = reference.order_of_pairs(rows, columns, n_rows)
    assert order.dtype == uint32
    assert indptr.tolist() == expected_indptr
    assert order.tolist() == expected_order


ID_LIMITS = {int32: 2**31, int64: 2**63}


@generated
@given(
    data=st.data(),
    dtype=st.sampled_from([int32, int64]),
    n_threads=st.integers(1, 3),
)
def test_encode_integers(
    kernels: ModuleType, data: st.DataObject, dtype: Any, n_threads: int
) -> None:
    limit = ID_LIMITS[dtype]
    base = data.draw(st.integers(-limit, limit - 1))
    near = st.integers(base, min(base + 1000, limit - 1))
    ids = data.draw(st.lists(near, max_size=50))
    vocabulary, codes = kernels.encode_integers(np.array(ids, dtype), n_threads)
    assert vocabulary.dtype == dtype
    assert codes.dtype == int32
    assert (vocabulary.tolist(), codes.tolist()) == reference.encode(ids)


@pytest.mark.parametrize(
    "ids", [i32(-(2**31), 2**31 - 1), np.array([-(2**63), 2**63 - 1]), np.array([0, 2**32])]
)
def test_ids_far_apart_are_left_to_others(kernels: ModuleType, ids: NDArray[Any]) -> None:
    assert kernels.encode_integers(ids, 1) is None


GOOD = {
    "indptr": np.array([0, 2, 3]),
    "indices": i32(0, 3, 1),
    "values": f32([1, 2, 3]),
    "n_columns": 4,
    "weights": f32([1, 1, 0]),
}


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": np.array([], int64)},
        {"indptr": np.array([0])},
        {"indptr": np.array([0, 2, 4])},
        {"indptr": np.array([0, 2, 2])},
        {"indptr": np.array([1, 2, 3])},
        {"indptr": np.array([-1, 2, 3])},
        {"indptr": np.array([0, 4, 3])},
        {"indptr": np.array([0, -1, 3])},
        {"indptr": i32(0, 2, 3)},
        {"indptr": np.array([[0, 2, 3]])},
        {"indices": i32(0, 4, 1)},
        {"indices": i32(0, -1, 1)},
        {"indices": np.array([0, 2**32, 1])},  # 0 in 32 bits
        {"indices": f32([0, 3, 1])},
        {"indices": i32(0, 9, 3, 9, 1, 9)[::2]},
        {"indices": i32(0, 3)},
        {"values": f32([1, 2])},
        {"values": np.array([1.0, 2, 3])},
        {"values": None},
        {"weights": f32([1, 1])},
        {"weights": np.ones(3)},
        {"n_columns": 3},
        {"n_columns": 0},
        {"n_columns": -1},
        {"n_columns": 2**31},
    ],
    ids=repr,
)
def test_wrong_ratings_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    kernels.Csr(**GOOD)
    with pytest.raises(refused):
        kernels.Csr(**(GOOD | changes))


PAIRS = {"rows": i32(0, 1), "columns": i32(2, 0), "n_rows": 2, "n_columns": 3, "n_threads": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": i32(0, 2)},
        {"rows": i32(0, -1)},
        {"rows": i32(0)},
        {"rows": np.array([0, 1])},
        {"columns": i32(3, 0)},
        {"columns": i32(-1, 0)},
        {"n_rows": -1},
        {"n_rows": -1, "rows": i32(), "columns": i32()},
        {"n_rows": -5, "rows": i32(), "columns": i32()},
        {"n_rows": 2**31, "rows": i32(), "columns": i32()},
        {"n_columns": -1, "rows": i32(), "columns": i32()},
        {"n_columns": -5, "rows": i32(), "columns": i32()},
        {"n_threads": 0},
        {"n_threads": -3},
    ],
    ids=repr,
)
def test_wrong_pairs_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    kernels.order_of_pairs(**PAIRS)
    with pytest.raises(refused):
        kernels.order_of_pairs(**(PAIRS | changes))


def test_wrong_threads_and_ids_are_refused(kernels: ModuleType) -> None:
    with pytest.raises(refused):
        kernels.Csr(**GOOD).transposed(0)
    with pytest.raises(refused):
        kernels.encode_integers(i32(1, 2), 0)
    with pytest.raises(refused):
        kernels.encode_integers(f32([1, 2]), 1)
    with pytest.raises(refused):
        kernels.encode_integers(i32(1, 2)[None], 1)
