"""The regression of a row against its twin, and what its documentation promises."""

from collections.abc import Callable
from dataclasses import dataclass
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
from numpy import float32, float64, int32
from numpy.typing import NDArray

pytestmark = at_every_level

MAX_SMALL = 15  # features, of the kernel that keeps a row in registers


@dataclass(frozen=True)
class Problem:
    ratings: reference.Ratings
    rows: NDArray[int32]
    common: NDArray[float32]
    known: NDArray[float32] | None
    projection: NDArray[float32] | None
    width: int
    with_bias: bool
    ridge: NDArray[float32]

    @property
    def arguments(self) -> tuple[Any, ...]:
        return (
            self.rows, self.common, self.known, self.projection,
            self.width, self.with_bias, self.ridge,
        )  # fmt: skip

    def solve(
        self, kernels: ModuleType, n_threads: int = 1
    ) -> tuple[NDArray[float32], NDArray[float64]]:
        csr = csr_of(kernels, self.ratings)
        factors, losses, squares = kernels.solve_rows(csr, *self.arguments, n_threads)
        exact = np.square(factors.astype(np.float64)).sum(axis=1)
        np.testing.assert_allclose(squares, exact, rtol=1e-12)
        return factors, losses


@dataclass(frozen=True)
class Row:
    """The regression of one row in double precision, and how far rounding may move its answer.

    The kernels compute the solution of a system whose entries are off by ``unit`` times what they
    would be if every number were positive. ``gradient`` bounds what is then left of the gradient,
    (Z^T W Z + ridge I) x - Z^T W t, and ``loss`` the error of the objective.
    """

    z: NDArray[float64]
    target: NDArray[float64]
    weight: NDArray[float64]
    ridge: float
    x: NDArray[float64]
    gradient: float
    loss: float

    @classmethod
    def of(cls, problem: Problem, i: int) -> "Row":
        columns, values, weight = problem.ratings.row(problem.rows[i])
        known = reference.or_zeros(problem.known, problem.ratings.n_columns)[columns]
        shape = problem.width, problem.with_bias
        z = reference.features(problem.common, problem.projection, *shape)[columns]
        sizes = reference.features(
            magnitude(problem.common), magnitude(problem.projection), *shape
        )[columns]
        target, ridge = values - known, float(problem.ridge[i])
        x = reference.solve(z, target, weight, ridge)

        n, p = z.shape
        unit = rounding(min(n, CHUNK), p, problem.common.shape[1])
        root = np.sqrt(weight)
        a, t = root[:, None] * sizes, root * (np.abs(values) + np.abs(known))
        size = np.linalg.norm(x)
        gram = np.linalg.norm(a.T @ a) + ridge
        gradient = gram * size + np.linalg.norm(a.T @ t)
        loss = t @ t + gradient * size
        if n < p > MAX_SMALL:
            # The dual: x = Z^T alpha, where alpha solves a system of its own.
            alpha = np.linalg.norm(root * (target - z @ x)) / ridge if ridge else 0.0
            dual = (np.linalg.norm(a @ a.T) + ridge) * alpha
            gradient += np.linalg.norm(a) * dual
            loss += np.linalg.norm(t) * dual
        return cls(z, target, weight, ridge, x, unit * gradient, unit * loss)

    def gradient_at(self, x: NDArray[float64]) -> NDArray[float64]:
        return self.z.T @ (self.weight * (self.z @ x - self.target)) + self.ridge * x

    def objective_at(self, x: NDArray[float64]) -> float:
        error = reference.squared_error(self.z, self.target, self.weight, x)
        return error + self.ridge * float(x @ x)

    def least_eigenvalue(self) -> float:
        gram = self.z.T @ (self.weight[:, None] * self.z)
        return self.ridge + max(float(np.linalg.eigvalsh(gram)[0]), 0.0)


@st.composite
def problems(draw: st.DrawFn, longest: int = 60) -> Problem:
    rng, ratings, rows = draw(ratings_and_rows(longest))
    with_bias, projected = draw(st.booleans()), draw(st.booleans())
    width = draw(st.integers(1, 40))
    d = draw(st.integers(width, width + 8))
    return Problem(
        ratings,
        rows,
        f32(rng.normal(rng.uniform(-1, 1), 1, (ratings.n_columns, d))),
        known_or_none(rng, ratings.n_columns, draw(st.booleans())),
        f32(rng.normal(size=(d, width)) / np.sqrt(d)) if projected else None,
        width,
        with_bias,
        f32(10 ** rng.uniform(-3, 2, len(rows))),
    )


def one_row(
    z: NDArray[float32], values: NDArray[float32], ridge: float, weights: Any = None
) -> Problem:
    n, p = z.shape
    indptr = np.array([0, n])
    ratings = reference.Ratings(indptr, np.arange(n, dtype=int32), values, n, weights)
    return Problem(ratings, i32(0), z, None, None, p, False, f32([ridge]))


def many_rows(p: int, seed: int = 0) -> Problem:
    """Enough rows and ratings for several threads."""
    rng = np.random.default_rng(seed)
    counts = [*rng.integers(0, 25, 3000), 5000, 9000]
    ratings = make_ratings(rng, counts, 200, weighted=True)
    rows = rng.permutation(len(counts)).astype(int32)
    return Problem(
        ratings,
        rows,
        f32(rng.normal(size=(200, p))),
        f32(rng.normal(size=200)),
        None,
        p,
        False,
        f32(rng.uniform(0.1, 2, len(rows))),
    )


def check_against_twin(kernels: ModuleType, problem: Problem) -> None:
    factors, losses = problem.solve(kernels)
    expected, expected_losses = reference.solve_rows(problem.ratings, *problem.arguments)
    assert factors.shape == expected.shape
    assert losses.shape == expected_losses.shape
    for i, x in enumerate(factors.astype(float64)):
        row = Row.of(problem, i)
        assert np.linalg.norm(row.gradient_at(x)) <= row.gradient
        assert np.linalg.norm(x - expected[i]) <= row.gradient / row.least_eigenvalue()
        assert abs(losses[i] - row.objective_at(x)) <= row.loss
        assert abs(losses[i] - expected_losses[i]) <= row.loss
        if row.weight.size == 0:
            assert not x.any()
            assert losses[i] == 0


@generated
@given(problem=problems())
def test_equals_the_twin(kernels: ModuleType, problem: Problem) -> None:
    check_against_twin(kernels, problem)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 6, 7, 8, 15, 16, 17, 33, 40])
def test_long_rows_equal_the_twin(kernels: ModuleType, p: int, weighted: bool) -> None:
    rng = np.random.default_rng(p)
    counts = [CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17]
    check_against_twin(
        kernels,
        Problem(
            make_ratings(rng, counts, 300, weighted),
            i32(3, 1, 0, 2),
            f32(rng.normal(0.5, 1, (300, p))),
            f32(rng.normal(size=300)),
            None,
            p,
            False,
            f32([1e-3, 0.1, 1, 10]),
        ),
    )


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("p", [14, 15, 16, 24, 40])
def test_every_number_of_ratings_around_p(kernels: ModuleType, p: int, with_bias: bool) -> None:
    """From the dual's smallest system, over its border with the primal, and past it."""
    rng = np.random.default_rng(p)
    counts = list(range(p + 4))
    check_against_twin(
        kernels,
        Problem(
            make_ratings(rng, counts, 60, weighted=False),
            np.arange(len(counts), dtype=int32),
            f32(rng.normal(size=(60, p))),
            None,
            None,
            p,
            with_bias,
            f32(np.full(len(counts), 0.05)),
        ),
    )


@pytest.mark.parametrize("p", [64, 128, 129, 200])
def test_large_systems_equal_the_twin(kernels: ModuleType, p: int) -> None:
    """Those that are solved together, and those that are solved alone: too large, or too long."""
    rng = np.random.default_rng(p)
    counts = [0, 1, 17, 63, 64, 65, 127, 128, 129, 130, 199, 201, 300, 64 * p, 64 * p + 1]
    check_against_twin(
        kernels,
        Problem(
            make_ratings(rng, counts, 400, weighted=True),
            np.arange(len(counts), dtype=int32),
            f32(rng.normal(size=(400, p))),
            None,
            None,
            p,
            False,
            f32(rng.uniform(0.5, 5, len(counts))),
        ),
    )


@pytest.mark.parametrize("n", [5, 30, 300, 5000])
@pytest.mark.parametrize("p", [1, 6, 15, 16, 40])
def test_loss_of_a_fit_that_is_very_good(kernels: ModuleType, p: int, n: int) -> None:
    """The targets' sum of squares and what is fitted of it are alike in all but the last digits."""
    rng = np.random.default_rng(p)
    z = f32(rng.normal(size=(n, p)))
    values = f32(z @ rng.normal(size=p) + 1e-3 * rng.normal(size=n))
    problem = one_row(z, values, 1e-4, f32(rng.uniform(0.5, 2, n)))
    (x,), (loss,) = problem.solve(kernels)
    row = Row.of(problem, 0)
    assert loss == pytest.approx(row.objective_at(x.astype(float64)), rel=1e-3)
    assert loss < 1e-3 * (row.weight @ row.target**2)


@pytest.mark.parametrize("projected", [False, True])
def test_losses_add_up_to_the_objective(kernels: ModuleType, projected: bool) -> None:
    """Over tiers, with biases, a mean and a ridge a row: the terms of als_proj that hold x."""
    rng = np.random.default_rng(1)
    d, mean, dims = 20, 3.5, np.array([3, 20, 8, 3, 20, 8, 3])
    ratings = make_ratings(rng, [9, 60, 30, 0, 100, 18, 4], 40, weighted=True)
    ridge = f32(rng.uniform(0.5, 2, len(dims)))
    items = reference.Side(
        list(f32(rng.normal(size=(40, d))).astype(float64)),
        np.ones(40),
        biases=f32(rng.normal(size=40)).astype(float64),
    )
    projections = {p: f32(rng.normal(size=(d, p))) for p in (3, 8)} if projected else {}
    known = f32(items.biases + mean)
    vectors, biases, losses = [None] * len(dims), np.zeros(len(dims)), 0.0
    for p in (3, 8, 20):
        rows = np.flatnonzero(dims == p).astype(int32)
        problem = Problem(
            ratings, rows, f32(items.vectors), known, projections.get(p), p, True, ridge[rows]
        )
        factors, loss = problem.solve(kernels)
        losses += loss.sum()
        for u, x in zip(rows, factors.astype(float64), strict=True):
            vectors[u], biases[u] = x[:p], x[p]
    users = reference.Side(
        vectors,
        ridge.astype(float64),
        {p: a.astype(float64) for p, a in projections.items()},
        biases,
    )
    terms = reference.objective(ratings, users, items, d, beta=1.0, mean=mean)
    assert losses == pytest.approx(terms["error"] + terms["users"], rel=1e-5)


# Singular systems, without a ridge. Small integers make the sums exact, so that there is no doubt
# about the rank.


@generated
@given(
    seed=seeds,
    p=st.integers(1, 40),
    n=st.integers(1, 60),
    rank=st.integers(1, 40),
    weighted=st.booleans(),
)
def test_without_a_ridge_the_shortest_solution(
    kernels: ModuleType, seed: int, p: int, n: int, rank: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    rank = min(rank, p, n)
    z = rng.integers(-2, 3, (n, rank)) @ rng.integers(-2, 3, (rank, p))
    weights = f32(rng.integers(0, 2, n)) if weighted else None
    problem = one_row(f32(z), f32(rng.normal(size=n)), 0.0, weights)
    (x,), (loss,) = problem.solve(kernels)
    row = Row.of(problem, 0)
    root = np.sqrt(row.weight)
    singular = np.linalg.svd(root[:, None] * row.z, compute_uv=False)
    span = singular[singular > 1e-10 * singular[0]] if singular[0] else np.ones(1)
    # In double precision where singular, in single precision where the condition is good: the
    # kernel promises no more than a share of 1e-5 for the smallest pivot.
    condition = (span[0] / span[-1]) ** 2
    assert np.isfinite(x).all()
    error = np.linalg.norm(x - row.x)
    solution = np.linalg.norm(row.x) + np.linalg.norm(root * row.target) / span[-1]
    assert error <= rounding(n, p) * condition * solution
    assert abs(loss - row.objective_at(row.x)) <= row.loss + rounding(n, p) * condition * (
        row.weight @ row.target**2
    )


@pytest.mark.parametrize("n", [1, 2, 5, 7, 30, 2500])
@pytest.mark.parametrize("p", [2, 3, 8, 15, 16, 24])
def test_collinear_features_without_a_ridge(kernels: ModuleType, p: int, n: int) -> None:
    """Sums that rounding moves off singularity must not pass for regular ones."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = f32(rng.normal(size=(n, p)))
        z[:, 1:] = z[:, :1] * rng.integers(1, 9, p - 1).astype(float32)  # nearly exact multiples
        problem = one_row(z, f32(rng.normal(size=n)), 0.0)
        (x,), _ = problem.solve(kernels)
        expected = np.linalg.pinv(z.astype(float64), rcond=1e-5) @ problem.ratings.values
        assert x == pytest.approx(expected, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("p", [2, 8, 15, 16, 24, 40])
def test_one_collinear_feature_without_a_ridge(kernels: ModuleType, p: int) -> None:
    """The hardest to see: a single pivot that rounding may leave positive."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = f32(rng.normal(size=(CHUNK, p)))
        z[:, 1] = z[:, 0] * float32(rng.uniform(0.3, 3))
        problem = one_row(z, f32(rng.normal(size=CHUNK)), 0.0)
        (x,), _ = problem.solve(kernels)
        expected = np.linalg.pinv(z.astype(float64), rcond=1e-6) @ problem.ratings.values
        assert np.linalg.norm(x - expected) <= 1e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("p", [3, 8, 20])
def test_small_directions_that_are_data_are_kept(kernels: ModuleType, p: int, ridge: float) -> None:
    """Singular values of 1e-4 of the greatest: far above the features' rounding."""
    rng = np.random.default_rng(p)
    z = f32(30 * rng.normal(size=(200, 1)) + 3e-3 * rng.normal(size=(200, p)))
    problem = one_row(z, f32(z @ rng.normal(size=p)), ridge)
    (x,), _ = problem.solve(kernels)
    expected = Row.of(problem, 0).x
    assert np.linalg.norm(x - expected) <= 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize("p", [3, 8, 20, 40])
def test_fewer_ratings_than_features_without_a_ridge(kernels: ModuleType, p: int) -> None:
    for n in range(1, p):
        rng = np.random.default_rng(n)
        problem = one_row(f32(rng.normal(size=(n, p))), f32(rng.normal(size=n)), 0.0)
        (x,), (loss,) = problem.solve(kernels)
        row = Row.of(problem, 0)
        condition = np.linalg.cond(row.z) ** 2
        size = np.linalg.norm(row.x) * np.sqrt(condition)
        assert np.linalg.norm(x - row.x) <= rounding(n, p) * condition * size
        assert abs(loss) <= rounding(n, p) * condition * (row.target @ row.target)


@pytest.mark.parametrize("p", [1, 8, 20])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_weights_of_zero_leave_nothing(kernels: ModuleType, p: int, ridge: float) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 30):
        z, values = f32(rng.normal(size=(n, p))), f32(rng.normal(size=n))
        (x,), (loss,) = one_row(z, values, ridge, f32(np.zeros(n))).solve(kernels)
        assert not x.any()
        assert loss == 0


# Determinism.


@pytest.mark.parametrize("p", [6, 20])
def test_same_bits_for_any_number_of_threads(kernels: ModuleType, p: int) -> None:
    problem = many_rows(p)
    factors, losses = problem.solve(kernels)
    for n_threads in (2, 3):
        again, losses_again = problem.solve(kernels, n_threads)
        np.testing.assert_array_equal(factors, again)
        np.testing.assert_array_equal(losses, losses_again)


@generated
@given(problem=problems(), seed=seeds)
def test_a_permutation_of_rows_permutes(kernels: ModuleType, problem: Problem, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(problem.rows))
    permuted = Problem(
        problem.ratings,
        problem.rows[order],
        *problem.arguments[1:-1],
        problem.ridge[order],
    )
    factors, losses = problem.solve(kernels)
    again, losses_again = permuted.solve(kernels)
    np.testing.assert_array_equal(factors[order], again)
    np.testing.assert_array_equal(losses[order], losses_again)


@pytest.mark.parametrize("p", [6, 20, 64])
def test_what_is_solved_together_has_no_influence(kernels: ModuleType, p: int) -> None:
    """Every row beside others, and in other places, than before; and alone."""
    problem = many_rows(p)
    factors, losses = problem.solve(kernels)
    for order in (np.random.default_rng(1).permutation(len(problem.rows)), np.array([7])):
        some = Problem(
            problem.ratings,
            problem.rows[order],
            *problem.arguments[1:-1],
            problem.ridge[order],
        )
        again, losses_again = some.solve(kernels)
        np.testing.assert_array_equal(factors[order], again)
        np.testing.assert_array_equal(losses[order], losses_again)


# Numbers that don't fit.


@pytest.mark.parametrize("n", [1, 10, 60])
@pytest.mark.parametrize("p", [1, 7, 15, 16, 40])
@pytest.mark.parametrize("ridge", [0.0, 1.0])
@pytest.mark.parametrize(
    ("feature_scale", "rating_scale"),
    [(1, 1e30), (1e30, 1), (1e30, 1e30), (1e-30, 1e30), (1e-22, 1e18), (1, np.inf)],
)
def test_overflow_shows(
    kernels: ModuleType, n: int, p: int, ridge: float, feature_scale: float, rating_scale: float
) -> None:
    rng = np.random.default_rng(0)
    z = f32(rng.normal(size=(n, p)) * feature_scale)
    (x,), (loss,) = one_row(z, f32(rng.normal(size=n) * rating_scale), ridge).solve(kernels)
    assert np.isfinite(x).all() or not np.isfinite(loss)


@pytest.mark.parametrize("n", [1, 10, 60])
@pytest.mark.parametrize("p", [1, 7, 15, 16, 40])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["feature", "rating", "ridge"])
def test_what_is_not_finite_has_no_solution(
    kernels: ModuleType, n: int, p: int, bad: float, where: str
) -> None:
    rng = np.random.default_rng(0)
    z, values = f32(rng.normal(size=(n, p))), f32(rng.normal(size=n))
    if where == "feature":
        z[n // 2, p // 2] = bad
    if where == "rating":
        values[n // 2] = bad
    _, (loss,) = one_row(z, values, bad if where == "ridge" else 1.0).solve(kernels)
    assert not np.isfinite(loss)


# Borders.

RATINGS = make_ratings(np.random.default_rng(0), [2, 0, 3], 4, weighted=False)
GOOD = {
    "rows": i32(2, 0),
    "common": f32(np.ones((4, 3))),
    "known": f32(np.ones(4)),
    "projection": f32(np.ones((3, 2))),
    "width": 2,
    "with_bias": True,
    "ridge": f32([1, 1]),
    "n_threads": 1,
}


def solver(kernels: ModuleType) -> Callable[..., Any]:
    return lambda **changes: kernels.solve_rows(csr_of(kernels, RATINGS), **(GOOD | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": i32(0, 3)},
        {"rows": i32(-1, 0)},
        {"rows": i32(0)},
        {"rows": np.array([0, 2])},  # 64 bits
        {"rows": np.zeros((2, 1), int32)},
        {"common": f32(np.ones((3, 3)))},
        {"common": np.ones((4, 3))},  # double precision
        {"common": np.asfortranarray(f32(np.ones((4, 3))))},
        {"common": f32(np.ones((4, 6)))[:, ::2]},
        {"common": f32(np.ones(4))},
        {"known": f32(np.ones(3))},
        {"known": f32(np.ones((4, 1)))},
        {"projection": f32(np.ones((2, 3)))},
        {"projection": f32(np.ones((3, 1)))},
        {"width": 0},
        {"width": -1},
        {"width": 4, "projection": None},
        {"width": 2**31},
        {"ridge": f32([1])},
        {"ridge": f32([[1, 1]])},
        {"n_threads": 0},
        {"n_threads": -1},
    ],
    ids=repr,
)
def test_wrong_arguments_are_refused(kernels: ModuleType, changes: dict[str, Any]) -> None:
    solve = solver(kernels)
    solve()
    with pytest.raises(refused):
        solve(**changes)
