"""How well each row's ratings would be predicted at each size, every rating left out in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._kernels import Csr
from mixedals.tiers import Factorisation, FloatArray, Side, Tier


def on_principal_axes(
    model: Factorisation, user_ridge: FloatArray, item_ridge: FloatArray
) -> Factorisation:
    """The same predictions of a plain model, from a common space turned to its principal axes.

    The first p numbers of all rows are the best model of dimension p, for every p: best for the
    matrix of predictions whose rows and columns are weighted by the root of their penalty. In this
    measure both sides have the same length along each axis, as where training has come to its end.
    """
    users, items = model.users.common, model.items.common
    # X^T L X = R^T R for each side; the singular values of R_x R_y^T are those of the predictions.
    roots, inverses = zip(
        *(_root_of_gram(x, ridge) for x, ridge in ((users, user_ridge), (items, item_ridge))),
        strict=True,
    )
    left, values, right = np.linalg.svd(roots[0] @ roots[1].T)
    scale = np.sqrt(values)
    return replace(
        model,
        users=_turned(model.users, inverses[0] @ (left * scale)),
        items=_turned(model.items, inverses[1] @ (right.T * scale)),
    )


def _root_of_gram(
    x: FloatArray, weights: FloatArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """R with ``R^T R = X^T diag(weights) X``, and its pseudo-inverse, float64 (d, d).

    Where nothing has weight, all rows count alike.
    """
    wide = x.astype(np.float64)
    weighted = wide * weights[:, None] if weights.any() else wide
    gram = np.einsum("ui,uj->ij", wide, weighted)  # no BLAS: the same bits
    values, axes = np.linalg.eigh(gram)
    # Numbers of single precision: below this there is rounding alone, and these are squares.
    there = values > 1e-12 * max(values[-1], 0)
    root = np.sqrt(np.where(there, values, 0))
    return root[:, None] * axes.T, axes * np.where(there, 1 / np.where(there, root, 1), 0)


def _turned(side: Side, turn: NDArray[np.float64]) -> Side:
    rows = np.arange(side.n, dtype=np.int32)
    return replace(side, tiers=(Tier(rows, _times(side, turn.astype(np.float32))),))


def _times(side: Side, matrix: FloatArray) -> FloatArray:
    """The side's common space times a matrix (d, p): a row's bits depend on nothing else."""
    rows = np.arange(side.n, dtype=np.int32)
    out = np.empty((side.n, matrix.shape[1]), np.float32)
    transposed = np.ascontiguousarray(matrix.T)
    kernels.common_space(side.common, transposed, rows, out, side.n_threads)
    return out


def leave_one_out(
    ratings: Csr,
    other: Side,
    ridge: FloatArray,
    mean: float,
    sizes: Sequence[int],
    projections: Mapping[int, FloatArray] | None = None,
) -> NDArray[np.float64]:
    """Each row's squared error at each size, by the regression on its other ratings.

    Parameters
    ----------
    ratings
        By the rows whose sizes are in question.
    other
        The opposite side, fixed.
    ridge
        Penalty of each row, float32 (n,).
    mean
        The constant in every prediction.
    sizes
        Rising. Rows of a size p regress on the first p numbers of the other side's vectors in the
        common space...
    projections
        ...or, where there is a projection (d, p) from p, on their product with it.

    Returns
    -------
    float64 (n, sizes). Infinite where a row has too little to tell.
    """
    known = other.known(mean)
    every = np.arange(ratings.n_rows, dtype=np.int32)
    with_bias = other.biases is not None
    projections = projections or {}

    def errors(features: FloatArray, of: Sequence[int]) -> NDArray[np.float64]:
        widths = np.array(of, np.int32)
        if with_bias:
            features = np.column_stack([np.ones(len(features), np.float32), features])
            widths += 1
        return kernels.leave_one_out(
            ratings, every, features, known, ridge, widths, other.n_threads
        )

    out = np.empty((ratings.n_rows, len(sizes)))
    fixed = [j for j, p in enumerate(sizes) if p not in projections]
    if fixed:
        widest = max(sizes[j] for j in fixed)
        features = np.ascontiguousarray(other.common[:, : max(widest, 1)])
        out[:, fixed] = errors(features, [sizes[j] for j in fixed])
    for j, p in enumerate(sizes):
        if p in projections:
            out[:, [j]] = errors(_times(other, projections[p]), [p])
    return out
