"""What every kernel means: plain NumPy in double precision, written from the paper's equations.

The native kernels are right where they agree with this file. Names in backquotes such as
``als_proj_step`` are the labels of the paper's equations; x, y and A are its letters, for users'
rows. Items' rows are the same with the letters changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy import float32, float64, int32, int64, uint64
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[float64]
Matrix = NDArray[float64]
Ints = NDArray[int64]
Keys = NDArray[uint64]


@dataclass(frozen=True)
class Ratings:
    """Ratings in compressed rows: row u's are those from ``indptr[u]`` to ``indptr[u + 1]``."""

    indptr: NDArray[int64]
    indices: NDArray[int32]
    values: NDArray[float32]
    n_columns: int
    weights: NDArray[float32] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def row(self, u: int) -> tuple[Ints, Vector, Vector]:
        """Columns, values and weights of the ratings P(u)."""
        span = slice(self.indptr[u], self.indptr[u + 1])
        columns = self.indices[span].astype(int64)
        weights = np.ones(len(columns)) if self.weights is None else self.weights[span]
        return columns, self.values[span].astype(float64), weights.astype(float64)


def or_zeros(known: ArrayLike | None, n: int) -> Vector:
    return np.zeros(n) if known is None else np.asarray(known, float64)


# The regression of a row.


def features(
    common: ArrayLike, projection: ArrayLike | None, width: int, with_bias: bool
) -> Matrix:
    """Rows A^T y_bar (``als_proj_step``) or y[0:width] (``als_zero_step``), then 1 for the bias."""
    y_bar = np.asarray(common, float64)
    z = y_bar[:, :width] if projection is None else y_bar @ np.asarray(projection, float64)
    return np.hstack([z, np.ones((len(z), 1))]) if with_bias else z


def solve(z: Matrix, target: Vector, weight: Vector, ridge: float) -> Vector:
    """(Z^T W Z + ridge I)^-1 Z^T W t (``als_step``); the shortest of all minimisers if singular.

    The same minimum as that of least squares with sqrt(ridge) I below sqrt(W) Z, which never
    squares the condition number.
    """
    p = z.shape[1]
    root = np.sqrt(weight)
    stacked = np.vstack([root[:, None] * z, np.sqrt(ridge) * np.eye(p)])
    return np.linalg.lstsq(stacked, np.append(root * target, np.zeros(p)), rcond=None)[0]


def squared_error(z: Matrix, target: Vector, weight: Vector, x: Vector) -> float:
    """The first sum of ``als_one``, weighted."""
    return float(weight @ (z @ x - target) ** 2)


def solve_rows(
    ratings: Ratings,
    rows: Sequence[int],
    common: ArrayLike,
    known: ArrayLike | None,
    projection: ArrayLike | None,
    width: int,
    with_bias: bool,
    ridge: ArrayLike,
) -> tuple[Matrix, Vector]:
    """Every listed row's x of ``als_proj_step``, and ``als_proj_one`` there."""
    z = features(common, projection, width, with_bias)
    known = or_zeros(known, ratings.n_columns)
    factors, losses = np.zeros((len(rows), z.shape[1])), np.zeros(len(rows))
    for i, (u, penalty) in enumerate(zip(rows, np.asarray(ridge, float64), strict=True)):
        columns, values, weight = ratings.row(u)
        target = values - known[columns]
        x = factors[i] = solve(z[columns], target, weight, penalty)
        losses[i] = squared_error(z[columns], target, weight, x) + penalty * x @ x
    return factors, losses


def leave_one_out(
    ratings: Ratings,
    rows: Sequence[int],
    features: ArrayLike,
    known: ArrayLike | None,
    ridge: ArrayLike,
    sizes: Sequence[int],
) -> Matrix:
    """Squared error of each listed row, at each size: every rating left out, and x fitted anew."""
    z_all, known = np.asarray(features, float64), or_zeros(known, ratings.n_columns)
    errors = np.zeros((len(rows), len(sizes)))
    for i, (u, penalty) in enumerate(zip(rows, np.asarray(ridge, float64), strict=True)):
        columns, values, weight = ratings.row(u)
        target = values - known[columns]
        for j, p in enumerate(sizes):
            z = z_all[columns, :p]
            for k in range(len(columns)):
                others = np.arange(len(columns)) != k
                x = solve(z[others], target[others], weight[others], penalty)
                errors[i, j] += weight[k] * (target[k] - z[k] @ x) ** 2
    return errors


# The projection of a tier.


def interactions(ratings: Ratings, rows: Sequence[int]) -> tuple[Ints, Ints, Vector, Vector]:
    """Position in ``rows``, column, value and weight of every rating of the listed rows."""
    spans = [ratings.row(u) for u in rows]
    position = np.repeat(np.arange(len(rows)), [len(columns) for columns, _, _ in spans])
    parts = zip(*spans, strict=True) if spans else ([], [], [])
    columns, values, weights = (np.concatenate([[], *part]) for part in parts)
    return position, columns.astype(int64), values, weights


def projection_system(
    ratings: Ratings,
    rows: Sequence[int],
    factors: ArrayLike,
    common: ArrayLike,
    known: ArrayLike | None = None,
    known_rows: ArrayLike | None = None,
    kept: NDArray[np.bool_] | None = None,
) -> tuple[Matrix, Vector, Vector]:
    """Q_p, of rows flatten(y_bar x^T), r_p and weights, of ``als_proj_step_2``.

    ``kept[u, i]`` is false for the pairs that a sample leaves out.
    """
    x, y_bar = np.asarray(factors, float64), np.asarray(common, float64)
    known = or_zeros(known, ratings.n_columns)
    known_rows = or_zeros(known_rows, ratings.n_rows)
    position, columns, values, w = interactions(ratings, rows)
    u = np.asarray(rows, int64)[position]
    outer = y_bar[columns][:, :, None] * x[position][:, None, :]
    q = outer.reshape(len(w), y_bar.shape[1] * x.shape[1])
    r = values - known[columns] - known_rows[u]
    chosen = slice(None) if kept is None else kept[u, columns]
    return q[chosen], r[chosen], w[chosen]


def solve_projection(
    q: Matrix, r: Vector, w: Vector, beta: float, shape: tuple[int, int]
) -> Matrix:
    """A_p of ``als_proj_step_2``: its flatten undone, d slices of length p."""
    return solve(q, r, w, beta).reshape(shape)


def packed_system(q: Matrix, w: Vector, shape: tuple[int, int]) -> Matrix:
    """Q^T W Q: entry ((i, j), (k, m)) in row (i, k), column (j, m) of two upper triangles."""
    d, p = shape
    gram = (q.T @ (w[:, None] * q)).reshape(d, p, d, p)
    (i, k), (j, m) = np.triu_indices(d), np.triu_indices(p)
    return gram[i[:, None], j, k[:, None], m]


# Hashes: random numbers that are a function of what they are for.


def mix(x: ArrayLike) -> Keys:
    """The finaliser of SplitMix64."""
    x = np.atleast_1d(np.asarray(x, uint64)) + uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> uint64(27))) * uint64(0x94D049BB133111EB)
    return x ^ (x >> uint64(31))


def uniform(seed: int, stream: int, keys: Keys, p: int, low: float, high: float) -> Matrix:
    """Numbers (n, p) on [low, high): 24 bits each, of the seed, stream, key and column hashed."""
    start = mix(mix(seed) ^ uint64(stream))
    bits = mix(mix(start ^ keys)[:, None] ^ np.arange(p, dtype=uint64)) >> uint64(40)
    low, high = float(float32(low)), float(float32(high))
    return low + (high - low) * (bits.astype(float64) / 2**24)


def sampled(key: int, fraction: float, row_keys: Keys, column_keys: Keys) -> NDArray[np.bool_]:
    """The pairs (n, m) that the paper's subsampling keeps, each with probability ``fraction``."""
    if fraction == 1:
        return np.ones((len(row_keys), len(column_keys)), bool)
    hashes = mix(mix(uint64(key) ^ row_keys)[:, None] ^ column_keys)
    return hashes < uint64(int(fraction * 2**64))


def fnv1a(text: bytes) -> int:
    """FNV-1a, 64 bits."""
    state = 0xCBF29CE484222325
    for byte in text:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


# The common space and what is read from it.


def common_space(factors: ArrayLike, projection: ArrayLike | None, d: int) -> Matrix:
    """x_bar = A x, or x padded with zeros (``als_zero``)."""
    x = np.asarray(factors, float64)
    a = np.eye(d, x.shape[1]) if projection is None else np.asarray(projection, float64)
    return x @ a.T


def predict_pairs(
    left: ArrayLike, right: ArrayLike, left_rows: Sequence[int], right_rows: Sequence[int]
) -> Vector:
    """x_bar . y_bar of every pair; NaN where a row is -1."""
    x, y = np.asarray(left, float64), np.asarray(right, float64)
    return np.array(
        [
            x[u] @ y[i] if u >= 0 and i >= 0 else np.nan
            for u, i in zip(left_rows, right_rows, strict=True)
        ]
    )


def top_k(scores: ArrayLike, k: int, left_out: Sequence[Sequence[int]]) -> tuple[Ints, Matrix]:
    """Of each row of scores the k greatest, equal ones by position, by sorting them all."""
    scores = np.asarray(scores, float64)
    ids, best = np.full((len(scores), k), -1), np.full((len(scores), k), np.nan)
    for q, row in enumerate(scores):
        allowed = [i for i in range(len(row)) if i not in left_out[q] and not np.isnan(row[i])]
        order = sorted(allowed, key=lambda i: (-row[i], i))[:k]
        ids[q, : len(order)], best[q, : len(order)] = order, row[order]
    return ids, best


# The objective.


@dataclass(frozen=True)
class Side:
    """The users' parameters, or the items'.

    ``vectors``: x of every row, each of its own size. ``projections``: the learned A_p, by p;
    a size without one is padded with zeros. ``ridge``: the row's lambda.
    """

    vectors: Sequence[Vector]
    ridge: Vector
    projections: dict[int, Matrix] = field(default_factory=dict)
    biases: Vector | None = None

    def common(self, d: int) -> Matrix:
        rows = [common_space(x[None], self.projections.get(len(x)), d) for x in self.vectors]
        return np.vstack([np.zeros((0, d)), *rows])

    def penalty(self) -> float:
        """The sum of lambda |x|^2; a bias is one more component of x."""
        biases = or_zeros(self.biases, len(self.vectors))
        norms = np.array([x @ x for x in self.vectors]) + biases**2
        return float(self.ridge @ norms)


def objective(
    ratings: Ratings, users: Side, items: Side, d: int, beta: float, mean: float = 0.0
) -> dict[str, float]:
    """The terms of ``als_proj``, with weights, a lambda a row, biases and a mean."""
    x_bar, y_bar = users.common(d), items.common(d)
    user_bias = or_zeros(users.biases, ratings.n_rows)
    item_bias = or_zeros(items.biases, ratings.n_columns)
    u, i, values, weights = interactions(ratings, range(ratings.n_rows))
    predicted = mean + user_bias[u] + item_bias[i] + np.sum(x_bar[u] * y_bar[i], axis=1)
    learned = [*users.projections.values(), *items.projections.values()]
    return {
        "error": float(weights @ (predicted - values) ** 2),
        "users": users.penalty(),
        "items": items.penalty(),
        "projections": beta * float(sum((matrix**2).sum() for matrix in learned)),
    }


# Grouping.


def order_of_pairs(
    rows: Sequence[int], columns: Sequence[int], n_rows: int
) -> tuple[list[int], list[int]]:
    """Row pointers, and the stable order by row, then column."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i], columns[i]))
    indptr = [sum(row < u for row in rows) for u in range(n_rows + 1)]
    return indptr, order


def transposed(ratings: Ratings) -> Ratings:
    """The same ratings with their columns as rows, each in the order of the rows."""
    rows = np.repeat(np.arange(ratings.n_rows), np.diff(ratings.indptr))
    order = sorted(range(len(rows)), key=lambda k: ratings.indices[k])
    indptr = np.searchsorted(np.sort(ratings.indices), np.arange(ratings.n_columns + 1))
    return Ratings(
        indptr.astype(int64),
        rows[order].astype(int32),
        ratings.values[order],
        ratings.n_rows,
        None if ratings.weights is None else ratings.weights[order],
    )


def encode(ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sorted distinct ids, and each id's position there."""
    vocabulary = sorted(set(ids))
    code_of = {identity: code for code, identity in enumerate(vocabulary)}
    return vocabulary, [code_of[identity] for identity in ids]
