"""The closed-form updates of one side, the other fixed: the paper's half-steps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._kernels import Csr
from mixedals.tiers import FloatArray, RowArray, Side, Tier

# Up to this many numbers in a projection its normal equations are formed and solved; above,
# conjugate gradients need less time and memory.
DENSE_LIMIT = 512

# Residual, relative to the right-hand side, at which conjugate gradients stop; their most steps.
_CG_TOLERANCE = 1e-5
_CG_STEPS = 100

# The least of ``beta`` and damping together, relative to the largest eigenvalue of ``Q^T Q``.
_CG_DAMPING = 1e-6

# Rows that their preconditioner is made from.
_PRECONDITIONER_ROWS = 1024


class SolveError(ArithmeticError):
    """A row's regression, or a projection's, has no finite solution.

    Attributes
    ----------
    side
        ``users`` or ``items``.
    row
        Position in the side of the first such row; None for a projection.
    """

    def __init__(self, message: str, side: str, row: int | None = None) -> None:
        super().__init__(message)
        self.side = side
        self.row = row


@dataclass(frozen=True)
class Sample:
    """The paper's sample of ratings for projections, each kept with probability ``1 / p**2``.

    A rating is in the sample by a hash of ``key`` and of its two ids, so in any order of rows.
    """

    key: int
    row_keys: NDArray[np.uint64]
    column_keys: NDArray[np.uint64]


@dataclass(frozen=True)
class Solution:
    """A side solved anew: its squared error over all ratings, and its penalty."""

    side: Side
    squared_error: float
    penalty: float


def solve_rows(
    side: Side,
    other: Side,
    ratings: Csr,
    ridge: NDArray[np.float32],
    mean: float,
) -> Solution:
    """Every row's embedding and bias anew: equations als_step, als_zero_step, als_proj_step.

    ``ratings`` has a row for each row of ``side``; ``ridge`` is float32 (n,).
    """
    known = other.known(mean)
    biases = None if side.biases is None else np.empty_like(side.biases)
    total = penalty = 0.0

    def solved(tier: Tier) -> Tier:
        nonlocal total, penalty
        ridge_of_tier = ridge[tier.rows]
        factors, loss, square = kernels.solve_rows(
            ratings, tier.rows, other.common, known, tier.projection, tier.p,
            biases is not None, ridge_of_tier, side.n_threads,
        )  # fmt: skip
        bad = np.flatnonzero(~np.isfinite(loss))
        if len(bad):
            row = int(tier.rows[bad[0]])
            raise SolveError(
                f"the regression of row {row} of the {side.name} overflows single precision: "
                "are its ratings or weights very large?", side.name, row,
            )  # fmt: skip
        total += float(loss.sum())
        penalty += float(np.einsum("i,i->", ridge_of_tier, square))  # no BLAS: the same bits
        if biases is not None:
            biases[tier.rows] = factors[:, -1]
            factors = np.ascontiguousarray(factors[:, :-1])
        return replace(tier, factors=factors)

    tiers = tuple(map(solved, side.tiers))
    return Solution(replace(side, tiers=tiers, biases=biases), total - penalty, penalty)


def solve_projections(
    side: Side,
    other: Side,
    ratings: Csr,
    beta: float,
    mean: float,
    sample: Sample | None = None,
) -> Side:
    """Every learned projection anew: equation als_proj_step_2, over all ratings or a sample."""

    def solved() -> Iterator[Tier]:
        for tier in side.tiers:
            if tier.projection is None:
                yield tier
                continue
            problem = ProjectionProblem(side, other, ratings, beta, mean, tier)
            if sample is None and tier.projection.size > DENSE_LIMIT:
                projection = problem.solve_by_gradients(tier.projection)
            else:
                projection = problem.sums(sample).solve(beta, side.name)
            yield replace(tier, projection=projection)

    return side.with_tiers(solved())


@dataclass(frozen=True)
class ProjectionSums:
    """The normal equations of a projection, exact: those of parts of its tier's rows add up.

    Attributes
    ----------
    packed
        ``Q^T Q`` by the upper triangles of both factors, float64 (d(d+1)/2, p(p+1)/2).
    rhs
        ``Q^T r``, float64 (d, p).
    """

    packed: NDArray[np.float64]
    rhs: NDArray[np.float64]

    def __add__(self, other: "ProjectionSums") -> "ProjectionSums":
        return ProjectionSums(self.packed + other.packed, self.rhs + other.rhs)

    def solve(self, beta: float, side: str) -> FloatArray:
        """The projection of that side, float32 (d, p), under the penalty ``beta``."""
        projection = kernels.solve_projection(self.packed, self.rhs, beta)
        if projection is None:
            raise SolveError(
                f"the projection from dimension {self.rhs.shape[1]} of the {side} has no unique "
                "solution, as it has too few different ratings: raise projection_reg (or reg, if "
                "the embeddings are all zero), or list fewer dims",
                side,
            )
        return projection


@dataclass(frozen=True)
class ProjectionProblem:
    """The regression of a tier's ratings on its projection."""

    side: Side
    other: Side
    ratings: Csr
    beta: float
    mean: float
    tier: Tier

    @property
    def _arguments(
        self,
    ) -> tuple[Csr, RowArray, FloatArray, FloatArray, FloatArray | None, FloatArray | None]:
        """What every kernel of this problem is given first."""
        known = self.other.known(self.mean)
        tier = self.tier
        return (
            self.ratings, tier.rows, tier.factors, self.other.common, known, self.side.biases
        )  # fmt: skip

    def sums(self, sample: Sample | None = None) -> ProjectionSums:
        """The normal equations, over all ratings or a sample."""
        sampled = None
        if sample is not None:
            fraction = 1 / self.tier.p**2
            sampled = (sample.key, fraction, sample.row_keys, sample.column_keys)
        packed, rhs = kernels.projection_sums(*self._arguments, sampled, self.side.n_threads)
        return ProjectionSums(packed, rhs)

    def solve_by_gradients(self, start: NDArray[np.float32]) -> NDArray[np.float32]:
        """Conjugate gradients from the previous projection, never forming ``Q^T Q``.

        Where beta is within the kernels' rounding of ``Q^T Q``, steps are damped (a proximal step:
        ``damping * |A - start|^2`` is added), so that what the ratings don't tell stays as it was.
        """
        rhs = kernels.projection_rhs(*self._arguments, self.side.n_threads)
        precondition, damping = self._preconditioner()
        solution = start.astype(np.float64)
        residual = rhs - self._product(solution)
        direction = preconditioned = precondition(residual)
        square = float(np.vdot(residual, preconditioned))
        enough = _CG_TOLERANCE * float(np.linalg.norm(rhs))
        for _ in range(_CG_STEPS):
            if not np.linalg.norm(residual) > enough:
                break
            product = self._product(direction) + damping * direction
            step = square / float(np.vdot(direction, product))
            solution = solution + step * direction
            residual = residual - step * product
            preconditioned = precondition(residual)
            previous, square = square, float(np.vdot(residual, preconditioned))
            direction = preconditioned + (square / previous) * direction
        if not np.isfinite(solution).all():
            raise SolveError(
                f"the projection from dimension {self.tier.p} of the {self.side.name} overflows: "
                "raise projection_reg, or scale the ratings down",
                self.side.name,
            )
        return solution.astype(np.float32)

    def _product(self, a: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(Q^T Q + beta I) flatten(a)``, as a matrix (d, p)."""
        return kernels.projection_product(*self._arguments, a, self.side.n_threads) + self.beta * a

    def _preconditioner(self) -> tuple[Callable[[NDArray[np.float64]], NDArray[np.float64]], float]:
        """The inverse of ``G (x) S + beta I``, near that of ``Q^T Q + beta I``; and the damping.

        G is the mean of ``y y^T`` over ratings and S the sum of ``x_u x_u^T`` over ratings, both
        of a sample of the tier's rows: equal where all rows rate alike.
        """
        every = -(-len(self.tier.rows) // _PRECONDITIONER_ROWS)
        rows, x = self.tier.rows[::every].copy(), self.tier.factors[::every].astype(np.float64)
        packed, _ = kernels.projection_sums(
            self.ratings, rows, np.ones((len(rows), 1), np.float32), self.other.common,
            None, None, None, self.side.n_threads,
        )  # fmt: skip
        d = self.side.d
        gram = np.zeros((d, d))
        gram[np.triu_indices(d)] = packed[:, 0]
        counts = self.ratings.indptr[rows + 1] - self.ratings.indptr[rows]
        outer = np.einsum("ui,uj,u->ij", x, x, counts * len(self.tier.rows) / len(rows))
        gram_values, gram_axes = np.linalg.eigh(gram / max(counts.sum(), 1), UPLO="U")
        outer_values, outer_axes = np.linalg.eigh(outer)
        scale = np.outer(gram_values.clip(0), outer_values.clip(0)) + self.beta
        damping = max((_CG_DAMPING * float(scale.max()) or 1.0) - self.beta, 0.0)
        scale += damping
        return (
            lambda r: gram_axes @ (gram_axes.T @ r @ outer_axes / scale) @ outer_axes.T
        ), damping
