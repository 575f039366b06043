"""New rows into a fitted model, with everything else fixed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedals._ids import Vocabulary
from mixedals._kernels import Csr
from mixedals.interactions import Interactions
from mixedals.leaveoneout import leave_one_out
from mixedals.model import FittedModel, Seen, SideRules
from mixedals.sizing import explicit_sizes
from mixedals.tiers import Side, Tier
from mixedals.updates import solve_rows

GivenSizes = Mapping[object, int] | ArrayLike | None


def fold_in_users(model: FittedModel, data: Interactions, dims: GivenSizes) -> FittedModel:
    """The model with the users of ``data`` in it, new or anew."""
    ratings = _in_columns_of(data.by_user, data.item_vocabulary, model.items, "items")
    factors = model.factors
    target = _Target(model.users, factors.users, factors.items, model.user_rules, factors.mean)
    side = target.solved(ratings, target.sizes(dims, data.user_vocabulary, ratings))
    users, old_at, new_at = model.users.merge(data.user_vocabulary)
    kept = ~np.isin(old_at, new_at)
    seen = model.seen.of(np.flatnonzero(kept).astype(np.int32)) if not kept.all() else model.seen
    return replace(
        model,
        users=users,
        factors=replace(
            model.factors,
            users=_merged(model.factors.users, old_at, side, new_at, len(users)),
        ),
        seen=seen.with_rows(
            new_at.astype(np.int64), len(users), Seen(ratings.indptr, ratings.indices)
        ),
    )


def fold_in_items(model: FittedModel, data: Interactions, dims: GivenSizes) -> FittedModel:
    """The model with the items of ``data`` in it, new or anew."""
    ratings = _in_columns_of(data.by_item, data.user_vocabulary, model.users, "users")
    factors = model.factors
    target = _Target(model.items, factors.items, factors.users, model.item_rules, factors.mean)
    side = target.solved(ratings, target.sizes(dims, data.item_vocabulary, ratings))
    items, old_at, new_at = model.items.merge(data.item_vocabulary)
    pairs_item = np.repeat(new_at, np.diff(ratings.indptr))
    position = np.where(np.isin(old_at, new_at), -1, old_at).astype(np.int32)
    return replace(
        model,
        items=items,
        factors=replace(
            model.factors,
            items=_merged(model.factors.items, old_at, side, new_at, len(items)),
        ),
        seen=model.seen.relabelled(position).with_pairs(
            ratings.indices, pairs_item, len(items), side.n_threads
        ),
    )


def _in_columns_of(ratings: Csr, columns: Vocabulary, known: Vocabulary, side: str) -> Csr:
    """The same ratings with columns at the model's positions."""
    position = known.match(columns)
    unknown = np.flatnonzero(position < 0)
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} of {len(columns)} {side} are not in the model, first "
            f"{columns.ids[unknown].tolist()[0]!r}: fold them in first, or leave their ratings out"
        )
    return Csr(
        ratings.indptr, position[ratings.indices], ratings.values, len(known), ratings.weights
    )


@dataclass(frozen=True)
class _Target:
    """The side that rows come into, the ids it has, and what they are solved against."""

    known: Vocabulary
    side: Side
    other: Side
    rules: SideRules
    mean: float

    def sizes(self, given: GivenSizes, vocabulary: Vocabulary, ratings: Csr) -> NDArray[np.int32]:
        """Sizes given by the caller, by the fitted rule, or those that known rows have."""
        present, name = [tier.p for tier in self.side.tiers], self.side.name
        if given is not None:
            return explicit_sizes(given, vocabulary, present, name)
        if self.rules.steps is not None:
            return self.rules.steps.among(present)(np.diff(ratings.indptr))
        position = self.known.match(vocabulary)
        sizes, new = self.side.dims[position], position < 0
        if new.any():
            if self.rules.price is None:
                raise ValueError(
                    f"the sizes of {name} were given row by row, so new {name} need theirs: pass "
                    "dims="
                )
            sizes[new] = self._cheapest(ratings, self.rules.price)[new]
        return sizes

    def _cheapest(self, ratings: Csr, price: float) -> NDArray[np.int32]:
        """Each row's size of least leave-one-out error and price."""
        tiers = self.side.tiers
        sizes = np.array([tier.p for tier in tiers], np.int32)
        projections = {tier.p: tier.projection for tier in tiers if tier.projection is not None}
        ridge = self.rules.ridge(np.diff(ratings.indptr))
        errors = leave_one_out(ratings, self.other, ridge, self.mean, sizes.tolist(), projections)
        cheapest: NDArray[np.int32] = sizes[np.argmin(errors + price * sizes, axis=1)]
        return cheapest

    def solved(self, ratings: Csr, sizes: NDArray[np.int32]) -> Side:
        """A side of the new rows alone, solved with the projections of this one."""
        side = self.side
        rows = {tier.p: np.flatnonzero(sizes == tier.p).astype(np.int32) for tier in side.tiers}
        tiers = (
            Tier(rows[tier.p], np.empty((len(rows[tier.p]), tier.p), np.float32), tier.projection)
            for tier in side.tiers
        )
        empty = replace(
            side,
            n=len(sizes),
            tiers=tuple(tiers),
            biases=None if side.biases is None else np.empty(len(sizes), np.float32),
        )
        ridge = self.rules.ridge(np.diff(ratings.indptr))
        return solve_rows(empty, self.other, ratings, ridge, self.mean).side


def _merged(
    old: Side, old_at: NDArray[np.int32], new: Side, new_at: NDArray[np.int32], n: int
) -> Side:
    """One side of ``n`` rows; where both have a row, the new one."""
    replaced = np.zeros(n, bool)
    replaced[new_at] = True

    def merged(before: Tier, after: Tier) -> Tier:
        kept = ~replaced[old_at[before.rows]]
        rows = np.append(old_at[before.rows[kept]], new_at[after.rows])
        order = np.argsort(rows)
        factors = np.concatenate([before.factors[kept], after.factors])
        return Tier(rows[order].astype(np.int32), factors[order], before.projection)

    biases = None
    if old.biases is not None and new.biases is not None:
        biases = np.empty(n, np.float32)
        biases[old_at] = old.biases
        biases[new_at] = new.biases
    pairs = zip(old.tiers, new.tiers, strict=True)
    return replace(old, n=n, tiers=tuple(merged(*pair) for pair in pairs), biases=biases)
