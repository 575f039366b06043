"""The leave-one-out errors of a row against a twin that leaves every rating out and fits anew."""

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
    make_ratings,
    ratings_and_rows,
    refused,
    rounding,
)
from numpy import float32, float64, int32
from numpy.typing import NDArray

pytestmark = at_every_level


@dataclass(frozen=True)
class Problem:
    ratings: reference.Ratings
    rows: NDArray[int32]
    features: NDArray[float32]
    known: NDArray[float32] | None
    ridge: NDArray[float32]
    sizes: NDArray[int32]

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.rows, self.features, self.known, self.ridge, self.sizes

    def errors(self, kernels: ModuleType, n_threads: int = 1) -> NDArray[float64]:
        csr = csr_of(kernels, self.ratings)
        return kernels.leave_one_out(csr, *self.arguments, n_threads)

    def rounding(self) -> NDArray[float64]:
        """How far rounding may move each row's error, at any of the sizes.

        1 - w h is at least ridge / (ridge + w |z|^2), and the prediction's error is that of the
        solution, whose system has at most the condition of the Gram matrix with its ridge.
        """
        bounds = np.zeros(len(self.rows))
        for i, u in enumerate(self.rows):
            columns, values, weight = self.ratings.row(u)
            if not len(columns):
                continue
            z = self.features[columns].astype(float64)
            known = reference.or_zeros(self.known, self.ratings.n_columns)[columns]
            root = np.sqrt(weight)
            gram = np.linalg.norm((root[:, None] * z).T @ (root[:, None] * z))
            condition = 1 + gram / float(self.ridge[i])
            target = root * (np.abs(values) + np.abs(known))
            unit = rounding(min(len(columns), CHUNK), self.features.shape[1])
            bounds[i] = unit * condition**2 * (1 + target @ target)
        return bounds


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    rng, ratings, rows = draw(ratings_and_rows(longest=25))
    p = draw(st.integers(1, 24))
    sizes = draw(st.lists(st.integers(0, p), max_size=5, unique=True).map(sorted))
    return Problem(
        ratings,
        rows,
        f32(rng.normal(rng.uniform(-1, 1), 1, (ratings.n_columns, p))),
        known_or_none(rng, ratings.n_columns, draw(st.booleans())),
        f32(10 ** rng.uniform(-1, 2, len(rows))),
        i32(*sizes),
    )


def check_against_twin(kernels: ModuleType, problem: Problem) -> None:
    errors = problem.errors(kernels)
    expected = reference.leave_one_out(problem.ratings, *problem.arguments)
    assert errors.shape == expected.shape
    assert (np.abs(errors - expected) <= problem.rounding()[:, None]).all()


@generated
@given(problem=problems())
def test_equals_leaving_out_and_fitting_anew(kernels: ModuleType, problem: Problem) -> None:
    check_against_twin(kernels, problem)


def of_all_sizes(p: int, counts: list[int], weighted: bool, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(
        make_ratings(rng, counts, 300, weighted),
        rng.permutation(len(counts)).astype(int32),
        f32(rng.normal(0.3, 1, (300, p))),
        f32(rng.normal(size=300)),
        f32(rng.uniform(3, 30, len(counts))),
        np.arange(p + 1, dtype=int32),
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 7, 8, 15, 16, 20])
def test_every_size_and_every_number_of_ratings(
    kernels: ModuleType, p: int, weighted: bool
) -> None:
    """Lanes are filled to any number; tight, for the ridge keeps the systems good."""
    problem = of_all_sizes(p, [0, 1, 2, 7, 8, 9, 16, 33], weighted)
    expected = reference.leave_one_out(problem.ratings, *problem.arguments)
    np.testing.assert_allclose(problem.errors(kernels), expected, rtol=2e-4, atol=1e-5)


@pytest.mark.parametrize("p", [3, 16])
def test_rows_longer_than_a_chunk(kernels: ModuleType, p: int) -> None:
    problem = replace(of_all_sizes(p, [CHUNK + 3], weighted=True), sizes=i32(p))
    expected = reference.leave_one_out(problem.ratings, *problem.arguments)
    np.testing.assert_allclose(problem.errors(kernels), expected, rtol=1e-4)


@pytest.mark.parametrize("p", [5, 20])
def test_a_size_does_not_depend_on_the_others(kernels: ModuleType, p: int) -> None:
    problem = of_all_sizes(p, [5, 60, 33], weighted=True)
    errors = problem.errors(kernels)
    for size in problem.sizes:
        alone = replace(problem, sizes=i32(size)).errors(kernels)
        np.testing.assert_allclose(alone[:, 0], errors[:, size], rtol=1e-5)
        narrow = replace(
            problem,
            features=f32(problem.features[:, : max(size, 1)]),
            sizes=i32(size),
        ).errors(kernels)
        np.testing.assert_allclose(narrow[:, 0], errors[:, size], rtol=1e-4)


@pytest.mark.parametrize("p", [6, 20])
def test_same_bits_for_any_number_of_threads(kernels: ModuleType, p: int) -> None:
    counts = [*np.random.default_rng(0).integers(0, 25, 3000).tolist(), 5000, 9000]
    problem = of_all_sizes(p, counts, weighted=True)
    errors = problem.errors(kernels)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(problem.errors(kernels, n_threads), errors)
    order = np.random.default_rng(1).permutation(len(counts))
    permuted = replace(problem, rows=problem.rows[order], ridge=problem.ridge[order])
    np.testing.assert_array_equal(permuted.errors(kernels), errors[order])


@pytest.mark.parametrize("p", [3, 20])
def test_what_rounding_leaves_untold_is_infinite(kernels: ModuleType, p: int) -> None:
    """Never a small error: a row must not be given dimensions by rounding."""
    problem = of_all_sizes(p, [p - 1, p], weighted=False)
    bare = replace(problem, ridge=f32([0, 0]))
    assert np.isfinite(bare.errors(kernels)[:, 0]).all()
    assert np.isinf(bare.errors(kernels)[:, -1]).all()
    for scale in (1e25, np.nan, np.inf):
        wild = replace(problem, features=f32(problem.features * scale))
        assert not np.isnan(wild.errors(kernels)).any()
        assert np.isinf(wild.errors(kernels)[:, -1]).all()


def test_collinear_features_stop_at_the_lost_pivot(kernels: ModuleType) -> None:
    problem = of_all_sizes(20, [50, 60], weighted=False)
    z = problem.features.copy()
    z[:, 8] = z[:, 2]
    errors = replace(problem, features=z, ridge=f32([0, 0])).errors(kernels)
    assert np.isfinite(errors[:, :9]).all()
    assert np.isinf(errors[:, 9:]).all()


GOOD = {
    "rows": i32(2, 0),
    "features": f32(np.ones((4, 3))),
    "known": f32(np.ones(4)),
    "ridge": f32([1, 1]),
    "sizes": i32(0, 3),
    "n_threads": 1,
}


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": i32(0, 3)},
        {"rows": i32(-1, 0)},
        {"rows": np.array([0, 2])},  # 64 bits
        {"features": f32(np.ones((3, 3)))},
        {"features": f32(np.ones((4, 0)))},
        {"features": np.ones((4, 3))},  # double precision
        {"known": f32(np.ones(3))},
        {"ridge": f32([1])},
        {"sizes": i32(0, 4)},
        {"sizes": i32(-1, 2)},
        {"sizes": i32(3, 1)},
        {"n_threads": 0},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    ratings = make_ratings(np.random.default_rng(0), [2, 0, 3], 4, weighted=False)
    csr = csr_of(kernels, ratings)
    kernels.leave_one_out(csr, **GOOD)
    with pytest.raises(refused):
        kernels.leave_one_out(csr, **(GOOD | changes))
