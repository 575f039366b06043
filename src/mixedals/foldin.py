"""New rows into a fitted model, with everything else fixed."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mixedals._ids import Vocabulary
from mixedals._kernels import Csr
from mixedals.interactions import Interactions
from mixedals.model import FittedModel, Seen, SideRules
from mixedals.sizing import explicit_sizes
from mixedals.tiers import Side, Tier
from mixedals.updates import solve_rows

GivenSizes = Mapping[object, int] | ArrayLike | None


def fold_in_users(model: FittedModel, data: Interactions, dims: GivenSizes) -> FittedModel:
    """The model with the users of ``data`` in it, new or anew."""
    ratings = _in_columns_of(data.by_user, data.item_vocabulary, model.items, "items")
    sizes = _sizes(
        dims, data.user_vocabulary, ratings, model.users, model.factors.users, model.user_rules,
        "users",
    )  # fmt: skip
    side = _solved(model.factors.users, model.factors.items, ratings, sizes, model.user_rules,
                   model.factors.mean)  # fmt: skip
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
    sizes = _sizes(
        dims, data.item_vocabulary, ratings, model.items, model.factors.items, model.item_rules,
        "items",
    )  # fmt: skip
    side = _solved(model.factors.items, model.factors.users, ratings, sizes, model.item_rules,
                   model.factors.mean)  # fmt: skip
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


def _sizes(
    given: GivenSizes,
    vocabulary: Vocabulary,
    ratings: Csr,
    known: Vocabulary,
    side: Side,
    rules: SideRules,
    name: str,
) -> NDArray[np.int32]:
    """Sizes given by the caller, or by the fitted rule, or those that known rows have."""
    present = [tier.p for tier in side.tiers]
    if given is not None:
        return explicit_sizes(given, vocabulary, present, name)
    if rules.steps is not None:
        return rules.steps.among(present)(np.diff(ratings.indptr))
    position = known.match(vocabulary)
    if (position < 0).any():
        raise ValueError(
            f"the sizes of {name} were given row by row, so new {name} need theirs: pass dims="
        )
    return side.dims[position]


def _solved(
    side: Side,
    other: Side,
    ratings: Csr,
    sizes: NDArray[np.int32],
    rules: SideRules,
    mean: float,
) -> Side:
    """A side of the new rows alone, solved with the projections of ``side``."""
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
    return solve_rows(empty, other, ratings, rules.ridge(np.diff(ratings.indptr)), mean).side


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
