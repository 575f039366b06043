"""A fitted model as data: the factorisation, whose rows are whose, and what sized them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixedals import _kernels as kernels
from mixedals._ids import Vocabulary
from mixedals.sizing import SizeSteps
from mixedals.tiers import Factorisation


@dataclass(frozen=True)
class SideRules:
    """How the rows of a side are sized and penalised, fitted to the training's counts.

    Attributes
    ----------
    reg, reg_exponent
        As the estimator's parameters.
    mean_count
        Mean number of ratings over the rows that have any.
    steps
        Dimension by number of ratings; None where sizes don't follow from it.
    price
        Price of a parameter, by which a row's leave-one-out error chooses its dimension; None where
        sizes weren't chosen so.
    """

    reg: float
    reg_exponent: float
    mean_count: float
    steps: SizeSteps | None
    price: float | None = None

    def ridge(self, counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Penalty of each row: ``reg * (count / mean count) ** reg_exponent``."""
        relative = counts / self.mean_count
        with np.errstate(over="ignore"):
            ridge = (self.reg * relative**self.reg_exponent).astype(np.float32)
        if not np.isfinite(ridge).all():
            raise ValueError(
                f"reg={self.reg}, reg_exponent={self.reg_exponent}: the penalty of a row with "
                f"{counts.max()} ratings overflows single precision"
            )
        return ridge


@dataclass(frozen=True)
class Seen:
    """Which items each user has rated: compressed rows of item positions, rising in a row."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    def of(self, users: NDArray[np.int32]) -> "Seen":
        """The rows of these users, in their order."""
        first = self.indptr[users]
        counts = self.indptr[users + 1] - first
        indptr = np.append(0, counts.cumsum())
        positions = np.arange(indptr[-1]) + np.repeat(first - indptr[:-1], counts)
        return Seen(indptr, self.indices[positions])

    def relabelled(self, new_position: NDArray[np.int32]) -> "Seen":
        """The same with items at new positions, rising with the old; those at -1 are left out."""
        indices = new_position[self.indices]
        kept = indices >= 0
        return Seen(np.append(0, kept.cumsum())[self.indptr], indices[kept])

    def with_rows(self, at: NDArray[np.int64], n_rows: int, rows: "Seen") -> "Seen":
        """``n_rows`` rows: ``rows`` at the rising positions ``at``, the others from here in order.

        The rows here and those of ``at`` make up all of them.
        """
        counts = np.empty(n_rows, np.int64)
        counts[at] = np.diff(rows.indptr)
        here = np.ones(n_rows, bool)
        here[at] = False
        counts[here] = np.diff(self.indptr)
        # Rows of this between two of the others are consecutive: copied as one piece.
        cuts = self.indptr[at - np.arange(len(at))]
        pieces = []
        for i, (low, high) in enumerate(zip(np.append(0, cuts), cuts, strict=False)):
            pieces += [self.indices[low:high], rows.indices[rows.indptr[i] : rows.indptr[i + 1]]]
        pieces.append(self.indices[cuts[-1] if len(cuts) else 0 :])
        return Seen(np.append(0, counts.cumsum()), np.concatenate(pieces))

    def with_pairs(
        self, users: NDArray[np.int32], items: NDArray[np.int32], n_items: int, n_threads: int
    ) -> "Seen":
        """These, and the pairs of positions ``users``, ``items``, which may be there already."""
        n_users = len(self.indptr) - 1
        all_users = np.append(
            np.repeat(np.arange(n_users, dtype=np.int32), np.diff(self.indptr)), users
        )
        all_items = np.append(self.indices, items)
        _, order = kernels.order_of_pairs(all_users, all_items, n_users, n_items, n_threads)
        all_users, all_items = all_users[order], all_items[order]
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(all_users) != 0) | (np.diff(all_items) != 0)
        counts = np.bincount(all_users[new], minlength=n_users)
        return Seen(np.append(0, counts.cumsum()), all_items[new])


@dataclass(frozen=True)
class FittedModel:
    """All that a fitted model knows.

    Attributes
    ----------
    factors
        Both sides' embeddings.
    users, items
        The ids of the sides' rows.
    user_rules, item_rules
        For new rows.
    seen
        The training's pairs.
    mean_rating
        Weighted mean of the training's ratings.
    """

    factors: Factorisation
    users: Vocabulary
    items: Vocabulary
    user_rules: SideRules
    item_rules: SideRules
    seen: Seen
    mean_rating: float
