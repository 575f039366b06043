"""Fitted models and training states to headers and tensors, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixedals._ids import Vocabulary
from mixedals.model import FittedModel, Seen, SideRules
from mixedals.modelfile import ModelFileError
from mixedals.sizing import SizeSteps
from mixedals.tiers import Factorisation, Side, Tier
from mixedals.trainer import IterationRecord, Objective, TrainingState

Tensors = dict[str, NDArray[Any]]
Json = dict[str, Any]


def factors_to(factors: Factorisation, prefix: str) -> tuple[Json, Tensors]:
    """Header and tensors of a factorisation."""
    header: Json = {"mean": factors.mean}
    tensors: Tensors = {}
    for name, side in (("users", factors.users), ("items", factors.items)):
        header[name] = {
            "n": side.n,
            "d": side.d,
            "learned": [tier.p for tier in side.tiers if tier.projection is not None],
            "dims": [tier.p for tier in side.tiers],
            "biases": side.biases is not None,
        }
        if side.biases is not None:
            tensors[f"{prefix}{name}.biases"] = side.biases
        for tier in side.tiers:
            at = f"{prefix}{name}.{tier.p}."
            tensors[at + "rows"] = tier.rows
            tensors[at + "factors"] = tier.factors
            if tier.projection is not None:
                tensors[at + "projection"] = tier.projection
    return header, tensors


def factors_from(header: Json, tensors: Tensors, prefix: str, n_threads: int) -> Factorisation:
    """The factorisation, every shape and index checked."""
    users, items = (
        _side_from(name, header[name], tensors, f"{prefix}{name}.", n_threads)
        for name in ("users", "items")
    )
    if users.d != items.d:
        raise ModelFileError("the sides differ in the dimension of the common space")
    return Factorisation(users, items, _number(header["mean"]))


def _side_from(name: str, header: Json, tensors: Tensors, prefix: str, n_threads: int) -> Side:
    n, d = _integer(header["n"]), _integer(header["d"])
    tiers = []
    covered = np.zeros(_bounded(n, tensors, prefix), np.int64)
    for p in map(_integer, header["dims"]):
        rows = _tensor(tensors, f"{prefix}{p}.rows", np.int32, (None,))
        factors = _tensor(tensors, f"{prefix}{p}.factors", np.float32, (len(rows), p))
        projection = None
        if p in header["learned"]:
            projection = _tensor(tensors, f"{prefix}{p}.projection", np.float32, (d, p))
        elif p > d:
            raise ModelFileError(f"{prefix}{p}: larger than the common space")
        if len(rows) and (rows.min() < 0 or rows.max() >= n):
            raise ModelFileError(f"{prefix}{p}.rows: out of bounds")
        if (np.diff(rows) <= 0).any():
            raise ModelFileError(f"{prefix}{p}.rows: must rise")
        np.add.at(covered, rows, 1)
        tiers.append(Tier(rows, factors, projection))
    if not (covered == 1).all():
        raise ModelFileError(f"{prefix}: rows are not each in one tier")
    biases = None
    if header["biases"]:
        biases = _tensor(tensors, prefix + "biases", np.float32, (n,))
    return Side(name, n, d, tuple(tiers), biases, n_threads)


def _bounded(n: int, tensors: Tensors, prefix: str) -> int:
    """``n``, where the tensors that are there can make it up: a header alone allocates nothing."""
    there = sum(
        len(tensor)
        for name, tensor in tensors.items()
        if name.startswith(prefix) and name.endswith(".rows")
    )
    if n != there:
        raise ModelFileError(f"{prefix}: {n} rows announced, {there} there")
    return n


def _tensor(
    tensors: Mapping[str, NDArray[Any]], name: str, dtype: type, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    if name not in tensors:
        raise ModelFileError(f"{name}: missing")
    tensor = tensors[name]
    fits = tensor.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, tensor.shape, strict=True)
    )
    if tensor.dtype != dtype or not fits:
        raise ModelFileError(f"{name}: is {tensor.dtype} {tensor.shape}, must be {shape}")
    if tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
        raise ModelFileError(f"{name}: not all of its numbers are finite")
    return tensor


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise ModelFileError(f"{value!r} stands where an integer must")
    return value


def _number(value: Any, least: float = -float("inf")) -> float:
    if not isinstance(value, int | float) or not least <= value < float("inf"):
        raise ModelFileError(f"{value!r} stands where a finite number from {least} must")
    return float(value)


def model_to(model: FittedModel) -> tuple[Json, Tensors]:
    """Header and tensors of a fitted model."""
    header, tensors = factors_to(model.factors, "")
    header = {"factors": header, "mean_rating": model.mean_rating}
    sides = (
        ("users", model.users, model.user_rules),
        ("items", model.items, model.item_rules),
    )
    for name, vocabulary, rules in sides:
        header[f"{name}_ids"] = vocabulary.kind
        tensors |= {f"{name}.ids.{key}": array for key, array in vocabulary.to_arrays().items()}
        header[f"{name}_rules"] = asdict(rules)
    tensors |= {"seen.indptr": model.seen.indptr, "seen.indices": model.seen.indices}
    return header, tensors


def model_from(header: Json, tensors: Tensors, n_threads: int) -> FittedModel:
    """The fitted model, everything checked that anything later relies on."""
    factors = factors_from(header["factors"], tensors, "", n_threads)
    users, items = (
        _vocabulary_from(header[f"{name}_ids"], tensors, f"{name}.ids.", side.n)
        for name, side in (("users", factors.users), ("items", factors.items))
    )
    seen = Seen(
        _tensor(tensors, "seen.indptr", np.int64, (len(users) + 1,)),
        _tensor(tensors, "seen.indices", np.int32, (None,)),
    )
    _check_seen(seen, len(items))
    return FittedModel(
        factors,
        users,
        items,
        _rules_from(header["users_rules"]),
        _rules_from(header["items_rules"]),
        seen,
        _number(header["mean_rating"]),
    )


def _vocabulary_from(kind: str, tensors: Tensors, prefix: str, n: int) -> Vocabulary:
    arrays = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    vocabulary = Vocabulary.from_arrays(kind, arrays)
    if len(vocabulary) != n:
        raise ModelFileError(f"{prefix}: {len(vocabulary)} ids for {n} rows")
    return vocabulary


def _rules_from(header: Json) -> SideRules:
    steps, price = header["steps"], header.get("price")
    return SideRules(
        _number(header["reg"], 0),
        _number(header["reg_exponent"], 0),
        _number(header["mean_count"], 0),
        None if steps is None else SizeSteps(tuple(steps["limits"]), tuple(steps["dims"])),
        None if price is None else _number(price, 0),
    )


def _check_seen(seen: Seen, n_items: int) -> None:
    indptr, indices = seen.indptr, seen.indices
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ModelFileError("seen.indptr: must rise from 0 to the number of pairs")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_items):
        raise ModelFileError("seen.indices: out of bounds")
    falling = np.flatnonzero(np.diff(indices) <= 0) + 1
    if len(np.setdiff1d(falling, indptr)):
        raise ModelFileError("seen.indices: must rise in every row")


def history_to(history: tuple[IterationRecord, ...]) -> list[Json]:
    """The history as JSON."""
    return [asdict(record) for record in history]


def history_from(rows: list[Json]) -> tuple[IterationRecord, ...]:
    """The history from JSON."""
    return tuple(
        IterationRecord(
            _integer(row["iteration"]), Objective(**row["objective"]), row["metric"], row["seconds"]
        )
        for row in rows
    )


def state_to(state: TrainingState[Factorisation]) -> tuple[Json, Tensors]:
    """Header and tensors of a training state."""
    model, tensors = factors_to(state.model, "model.")
    best, best_tensors = factors_to(state.best, "best.")
    header = {
        "model": model,
        "best": best,
        "best_iteration": state.best_iteration,
        "best_metric": None if np.isnan(state.best_metric) else state.best_metric,
        "history": history_to(state.history),
    }
    return header, tensors | best_tensors


def state_from(header: Json, tensors: Tensors, n_threads: int) -> TrainingState[Factorisation]:
    """The training state."""
    return TrainingState(
        factors_from(header["model"], tensors, "model.", n_threads),
        factors_from(header["best"], tensors, "best.", n_threads),
        int(header["best_iteration"]),
        float("nan") if header["best_metric"] is None else float(header["best_metric"]),
        history_from(header["history"]),
    )
