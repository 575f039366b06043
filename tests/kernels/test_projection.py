"""The update of a projection against the naive matrix Q of als_proj_step_2."""

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from kernel_cases import (
    CHUNK,
    at_every_level,
    csr_of,
    f32,
    generated,
    i32,
    known_or_none,
    magnitude,
    make_ratings,
    ratings_and_rows,
    refused,
    rounding,
    seeds,
)
from numpy import float32, float64, int32, uint64
from numpy.typing import NDArray

pytestmark = at_every_level

BLOCK = 128  # rows that are summed in single precision


@dataclass(frozen=True)
class Problem:
    ratings: reference.Ratings
    rows: NDArray[int32]
    factors: NDArray[float32]
    common: NDArray[float32]
    known: NDArray[float32] | None = None
    known_rows: NDArray[float32] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.common.shape[1], self.factors.shape[1]

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.rows, self.factors, self.common, self.known, self.known_rows

    def sums(
        self, kernels: ModuleType, sample: Any = None, n_threads: int = 1
    ) -> tuple[NDArray[float64], NDArray[float64]]:
        csr = csr_of(kernels, self.ratings)
        return kernels.projection_sums(csr, *self.arguments, sample, n_threads)

    def product(
        self, kernels: ModuleType, a: NDArray[float64], n_threads: int = 1
    ) -> tuple[NDArray[float64], NDArray[float64]]:
        csr = csr_of(kernels, self.ratings)
        product = kernels.projection_product(csr, *self.arguments, a, n_threads)
        return product, kernels.projection_rhs(csr, *self.arguments, n_threads)

    def system(self, kept: NDArray[np.bool_] | None = None) -> tuple[NDArray[float64], ...]:
        return reference.projection_system(self.ratings, *self.arguments, kept=kept)

    def magnitudes(self, kept: NDArray[np.bool_] | None = None) -> tuple[NDArray[float64], ...]:
        """Q, r and weights if every number had the sign that lets nothing cancel."""
        positive = replace(
            self,
            ratings=replace(self.ratings, values=np.abs(self.ratings.values)),
            factors=magnitude(self.factors),
            common=magnitude(self.common),
            known=None if self.known is None else -magnitude(self.known),
            known_rows=None if self.known_rows is None else -magnitude(self.known_rows),
        )
        return positive.system(kept)

    def unit(self) -> float:
        longest = int(np.diff(self.ratings.indptr).max(initial=0))
        return rounding(min(longest, CHUNK), BLOCK)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rng, ratings, rows = draw(ratings_and_rows())
    d = draw(st.integers(1, 20))
    p = draw(st.integers(1, min(d, 7)))
    return Problem(
        ratings,
        rows,
        f32(rng.normal(size=(len(rows), p))),
        f32(rng.normal(rng.uniform(-1, 1), 1, (ratings.n_columns, d))),
        known_or_none(rng, ratings.n_columns, draw(st.booleans())),
        known_or_none(rng, ratings.n_rows, draw(st.booleans())),
    )


def many_rows(d: int, p: int) -> Problem:
    """More rows than a block, in several parts."""
    rng = np.random.default_rng(d)
    ratings = make_ratings(rng, [*rng.integers(0, 6, 600), CHUNK + 500], 30, weighted=True)
    rows = rng.permutation(ratings.n_rows).astype(int32)[1:]
    return Problem(
        ratings,
        rows,
        f32(rng.normal(size=(len(rows), p))),
        f32(rng.normal(size=(30, d))),
        f32(rng.normal(size=30)),
        f32(rng.normal(size=ratings.n_rows)),
    )


def keys_of(problem: Problem, seed: int) -> tuple[NDArray[uint64], NDArray[uint64]]:
    rng = np.random.default_rng(seed)
    sizes = problem.ratings.n_rows, problem.ratings.n_columns
    return tuple(rng.integers(0, 2**64, n, dtype=uint64) for n in sizes)


def check_sums(
    problem: Problem,
    packed: NDArray[float64],
    rhs: NDArray[float64],
    kept: NDArray[np.bool_] | None = None,
) -> None:
    d, p = problem.shape
    q, r, w = problem.system(kept)
    q_size, r_size, _ = problem.magnitudes(kept)
    unit = problem.unit()
    expected = reference.packed_system(q, w, (d, p))
    assert packed.shape == expected.shape
    error = np.abs(packed - expected)
    assert (error <= unit * reference.packed_system(q_size, w, (d, p))).all()
    error = np.abs(rhs - (q.T @ (w * r)).reshape(d, p))
    assert (error <= unit * (q_size.T @ (w * r_size)).reshape(d, p)).all()


def check_solution(
    problem: Problem,
    a: NDArray[float32],
    beta: float,
    kept: NDArray[np.bool_] | None = None,
) -> None:
    q, r, w = problem.system(kept)
    q_size, r_size, _ = problem.magnitudes(kept)
    expected = reference.solve_projection(q, r, w, beta, problem.shape)
    size = np.linalg.norm(q_size.T @ (w[:, None] * q_size)) + beta
    left = size * np.linalg.norm(expected) + np.linalg.norm(q_size.T @ (w * r_size))
    least = beta + max(np.linalg.eigvalsh(q.T @ (w[:, None] * q))[0], 0)
    assert a.shape == problem.shape
    assert np.linalg.norm(a - expected) <= problem.unit() * left / least


@generated
@given(problem=problems())
def test_sums_are_those_of_q(kernels: ModuleType, problem: Problem) -> None:
    check_sums(problem, *problem.sums(kernels))


@generated
@given(problem=problems(), beta=st.floats(0.1, 1000))
def test_solution_is_that_of_q(kernels: ModuleType, problem: Problem, beta: float) -> None:
    check_solution(problem, kernels.solve_projection(*problem.sums(kernels), beta), beta)


def check_product(kernels: ModuleType, problem: Problem, a: NDArray[float64]) -> None:
    product, rhs = problem.product(kernels, a)
    q, r, w = problem.system()
    q_size, r_size, _ = problem.magnitudes()
    unit = problem.unit() + rounding(*problem.shape)
    expected = q.T @ (w * (q @ a.flatten()))
    bound = unit * (q_size.T @ (w * (q_size @ np.abs(a).flatten())))
    assert (np.abs(product.flatten() - expected) <= bound).all()
    error = np.abs(rhs.flatten() - q.T @ (w * r))
    assert (error <= unit * (q_size.T @ (w * r_size))).all()


@generated
@given(problem=problems(), seed=seeds)
def test_product_is_that_of_q(kernels: ModuleType, problem: Problem, seed: int) -> None:
    check_product(kernels, problem, np.random.default_rng(seed).normal(size=problem.shape))


@pytest.mark.parametrize("d", [3, 15, 16])
def test_a_row_of_many_ratings(kernels: ModuleType, d: int) -> None:
    """Sums in single precision alone would be off by 1e-4."""
    rng = np.random.default_rng(d)
    ratings = make_ratings(rng, [100_000], 50, weighted=False)
    x, y_bar = f32(rng.normal(size=(1, 2))), f32(rng.normal(1, 1, (50, d)))
    problem = Problem(ratings, i32(0), x, y_bar)
    check_sums(problem, *problem.sums(kernels))
    check_product(kernels, problem, rng.normal(1, 1, problem.shape))


@pytest.mark.parametrize(("d", "p"), [(6, 2), (15, 3), (16, 4), (20, 6)])
def test_many_rows(kernels: ModuleType, d: int, p: int) -> None:
    problem = many_rows(d, p)
    packed, rhs = problem.sums(kernels)
    check_sums(problem, packed, rhs)
    check_solution(problem, kernels.solve_projection(packed, rhs, 10.0), 10.0)
    check_product(kernels, problem, np.random.default_rng(p).normal(size=(d, p)))


@pytest.mark.parametrize("d", [4, 20])
def test_same_bits_for_any_number_of_threads(kernels: ModuleType, d: int) -> None:
    problem = many_rows(d, 3)
    sample = (1, 0.3, *keys_of(problem, 0))
    a = np.random.default_rng(0).normal(size=problem.shape)
    for n_threads in (2, 3):
        for one, several in [
            (problem.sums(kernels), problem.sums(kernels, None, n_threads)),
            (problem.sums(kernels, sample), problem.sums(kernels, sample, n_threads)),
            (problem.product(kernels, a), problem.product(kernels, a, n_threads)),
        ]:
            np.testing.assert_array_equal(one[0], several[0])
            np.testing.assert_array_equal(one[1], several[1])


# The paper's sample.


@generated
@given(problem=problems(), key=st.integers(0, 2**64 - 1), seed=seeds)
def test_all_of_a_sample_is_no_sample(
    kernels: ModuleType, problem: Problem, key: int, seed: int
) -> None:
    sampled = problem.sums(kernels, (key, 1.0, *keys_of(problem, seed)))
    for ours, whole in zip(sampled, problem.sums(kernels), strict=True):
        np.testing.assert_array_equal(ours, whole)


@generated
@given(problem=problems(), key=st.integers(0, 2**64 - 1), seed=seeds, beta=st.floats(0.1, 1000))
def test_the_papers_sample(
    kernels: ModuleType, problem: Problem, key: int, seed: int, beta: float
) -> None:
    fraction = 1 / problem.shape[1] ** 2
    keys = keys_of(problem, seed)
    kept = reference.sampled(key, fraction, *keys)
    packed, rhs = problem.sums(kernels, (key, fraction, *keys))
    check_sums(problem, packed, rhs, kept)
    check_solution(problem, kernels.solve_projection(packed, rhs, beta), beta, kept)


def test_a_sample_has_its_share_of_the_pairs(kernels: ModuleType) -> None:
    """And different keys give different samples."""
    keys = np.arange(1000, dtype=uint64)
    samples = [reference.sampled(key, 1 / 9, keys, keys) for key in (1, 2)]
    n = keys.size**2
    for sample in samples:
        assert abs(sample.sum() - n / 9) < 5 * np.sqrt(n * (1 / 9) * (8 / 9))
    assert abs((samples[0] & samples[1]).sum() - n / 81) < 5 * np.sqrt(n / 81)
    # The kernel's share is the same: with x, y and r of 1, each sum counts its ratings.
    m = keys.size
    ratings = make_ratings(np.random.default_rng(0), [20] * m, m, weighted=False)
    ones = f32(np.ones((m, 1)))
    problem = Problem(ratings, np.arange(m, dtype=int32), ones, ones)
    ((count,),), _ = problem.sums(kernels, (1, 1 / 9, keys, keys))
    rows = np.repeat(np.arange(m), 20)
    assert count == samples[0][rows, ratings.indices].sum()


# Systems without a solution.


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("d", [3, 20])
def test_a_singular_system_has_no_solution(kernels: ModuleType, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratings = make_ratings(rng, [30] * 50, 40, weighted=False)
    x = f32(np.outer(rng.normal(size=50), rng.normal(size=2)))  # all of one direction
    problem = Problem(ratings, np.arange(50, dtype=int32), x, f32(rng.normal(size=(40, d))))
    packed, rhs = problem.sums(kernels)
    assert kernels.solve_projection(packed, rhs, 0.0) is None
    check_solution(problem, kernels.solve_projection(packed, rhs, 1.0), 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sums_that_are_not_finite_have_no_solution(kernels: ModuleType, bad: float) -> None:
    packed, rhs = np.array([[2.0, 1, 2], [1, 0, 1], [2, 1, 2]]), np.ones((2, 2))
    assert kernels.solve_projection(packed, rhs, 1.0) is not None
    for sums in (packed, rhs):
        sums[0, 1] = bad
        assert kernels.solve_projection(packed, rhs, 1.0) is None
        sums[0, 1] = 1


def test_an_empty_tier_has_a_projection_of_zeros(kernels: ModuleType) -> None:
    ratings = make_ratings(np.random.default_rng(0), [], 0, weighted=False)
    problem = Problem(ratings, i32(), f32(np.ones((0, 2))), f32(np.ones((0, 4))))
    packed, rhs = problem.sums(kernels)
    assert not kernels.solve_projection(packed, rhs, 1.0).any()
    assert kernels.solve_projection(packed, rhs, 0.0) is None


# Borders.

RATINGS = make_ratings(np.random.default_rng(0), [2, 0, 3], 4, weighted=False)
KEYS = np.arange(5, dtype=uint64)
GOOD = {
    "rows": i32(2, 0),
    "factors": f32(np.ones((2, 2))),
    "common": f32(np.ones((4, 3))),
    "known": f32(np.ones(4)),
    "known_rows": f32(np.ones(3)),
    "n_threads": 1,
}
SAMPLE = (1, 0.5, KEYS[:3], KEYS[:4])
WRONG = [
    {"rows": i32(0, 3)},
    {"rows": i32(0, -1)},
    {"rows": i32(0)},
    {"rows": np.array([2, 0])},
    {"factors": f32(np.ones((3, 2)))},
    {"factors": f32(np.ones((2, 0)))},
    {"factors": np.ones((2, 2))},
    {"factors": f32(np.ones(2))},
    {"common": f32(np.ones((3, 3)))},
    {"common": f32(np.ones((4, 0)))},
    {"common": np.ones((4, 3))},
    {"known": f32(np.ones(3))},
    {"known_rows": f32(np.ones(4))},
    {"known_rows": f32(np.ones(2))},
    {"n_threads": 0},
]


@pytest.mark.parametrize(
    "changes",
    [
        *WRONG,
        {"sample": (1, 0.0, *SAMPLE[2:])},
        {"sample": (1, 1.1, *SAMPLE[2:])},
        {"sample": (1, np.nan, *SAMPLE[2:])},
        {"sample": (-1, 0.5, *SAMPLE[2:])},
        {"sample": (1, 0.5, KEYS[:2], KEYS[:4])},
        {"sample": (1, 0.5, KEYS[:3], KEYS[:3])},
    ],
    ids=repr,
)
def test_wrong_arguments_of_the_sums_are_refused(
    kernels: ModuleType, changes: dict[str, Any]
) -> None:
    csr, good = csr_of(kernels, RATINGS), GOOD | {"sample": SAMPLE}
    kernels.projection_sums(csr, **good)
    with pytest.raises(refused):
        kernels.projection_sums(csr, **(good | changes))


@pytest.mark.parametrize(
    "changes",
    [*WRONG, {"a": np.ones((2, 3))}, {"a": np.ones((3, 3))}, {"a": f32(np.ones((3, 2)))}],
    ids=repr,
)
def test_wrong_arguments_of_the_product_are_refused(
    kernels: ModuleType, changes: dict[str, Any]
) -> None:
    csr, good = csr_of(kernels, RATINGS), GOOD | {"a": np.ones((3, 2))}
    kernels.projection_product(csr, **good)
    with pytest.raises(refused):
        kernels.projection_product(csr, **(good | changes))


@pytest.mark.parametrize(
    ("packed", "rhs"),
    [
        (np.ones((6, 3)), np.ones((2, 2))),
        (np.ones((6, 3)), np.ones((2, 3))),
        (np.ones((6, 2)), np.ones((3, 2))),
        (f32(np.ones((6, 3))), np.ones((3, 2))),
        (np.ones(18), np.ones((3, 2))),
    ],
)
def test_wrong_sums_are_refused(
    kernels: ModuleType, packed: NDArray[Any], rhs: NDArray[Any]
) -> None:
    with pytest.raises(refused):
        kernels.solve_projection(packed, rhs, 1.0)
