"""Fitted models and training states to headers and tensors, and back.

What is read may come from a stranger: everything is checked that anything later relies on.
"""

from collections.abc import Collection, Mapping
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

# The common space of a file's rows may take so many times the file's own memory, and so much more:
# honest files stay far below, whatever their sizes.
_COMMON_SPACE_FACTOR = 256
_COMMON_SPACE_BYTES = 64 << 20
_LARGEST = float(np.finfo(np.float32).max)


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
    """The factorisation."""
    users, items = (
        _side_from(name, header[name], tensors, f"{prefix}{name}.", n_threads)
        for name in ("users", "items")
    )
    if users.d != items.d:
        raise ModelFileError("the sides differ in the dimension of the common space")
    needed = 4 * users.d * (users.n + items.n)
    there = sum(tensor.nbytes for tensor in tensors.values())
    if needed > _COMMON_SPACE_FACTOR * there + _COMMON_SPACE_BYTES:
        raise ModelFileError(f"{there} bytes that would need {needed} in the common space")
    return Factorisation(users, items, _number(header["mean"]))


def _side_from(name: str, header: Json, tensors: Tensors, prefix: str, n_threads: int) -> Side:
    n, d = _positive(header["n"]), _positive(header["d"])
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
        if (rows[1:] <= rows[:-1]).any():
            raise ModelFileError(f"{prefix}{p}.rows: must rise")
        covered[rows] += 1
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


def _integer(value: Any, least: int = 0) -> int:
    if type(value) is not int or value < least:
        raise ModelFileError(f"{value!r} stands where an integer from {least} must")
    return value


def _positive(value: Any) -> int:
    return _integer(value, 1)


def _number(value: Any, least: float = -_LARGEST) -> float:
    """A number that single precision holds."""
    if type(value) not in (int, float) or not least <= value <= _LARGEST:
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
    """The fitted model."""
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
    model = FittedModel(
        factors,
        users,
        items,
        rules_from(header["users_rules"], "users", {tier.p for tier in factors.users.tiers}),
        rules_from(header["items_rules"], "items", {tier.p for tier in factors.items.tiers}),
        seen,
        _number(header["mean_rating"]),
    )
    if strange := tensors.keys() - model_to(model)[1].keys():
        raise ModelFileError(f"tensors that no model has: {sorted(strange)}")
    return model


def _vocabulary_from(kind: str, tensors: Tensors, prefix: str, n: int) -> Vocabulary:
    arrays = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    vocabulary = Vocabulary.from_arrays(kind, arrays)
    if len(vocabulary) != n:
        raise ModelFileError(f"{prefix}: {len(vocabulary)} ids for {n} rows")
    return vocabulary


def rules_from(header: Json, side: str, sizes: Collection[int]) -> SideRules:
    """The rules of a side whose rows have those sizes."""
    steps = None
    if header["steps"] is not None:
        limits, dims = header["steps"]["limits"], header["steps"]["dims"]
        steps = SizeSteps(tuple(map(_number, limits)), tuple(map(_integer, dims)))
        if strange := set(steps.dims).difference(sizes):
            raise ModelFileError(f"{side}: sizes {sorted(strange)} without a tier")
    mean_count = _number(header["mean_count"])
    if not mean_count > 0:
        raise ModelFileError(f"{side}: a mean of {mean_count} ratings")
    price = header.get("price")
    return SideRules(
        _number(header["reg"], 0),
        _number(header["reg_exponent"], 0),
        mean_count,
        steps,
        None if price is None else _number(price, 0),
    )


def _check_seen(seen: Seen, n_items: int) -> None:
    indptr, indices = seen.indptr, seen.indices
    if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
        raise ModelFileError("seen.indptr: must rise from 0 to the number of pairs")
    if len(indices) and (indices.min() < 0 or indices.max() >= n_items):
        raise ModelFileError("seen.indices: out of bounds")
    falling = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if len(np.setdiff1d(falling, indptr)):
        raise ModelFileError("seen.indices: must rise in every row")


def history_to(history: tuple[IterationRecord, ...]) -> list[Json]:
    """The history as JSON."""
    return [asdict(record) for record in history]


def history_from(rows: list[Json]) -> tuple[IterationRecord, ...]:
    """The history from JSON."""

    def record(number: int, row: Json) -> IterationRecord:
        if row["iteration"] != number:
            raise ModelFileError(f"iteration {row['iteration']!r} where {number} must be")
        terms = {name: float(value) for name, value in row["objective"].items()}
        metric = None if row["metric"] is None else float(row["metric"])
        return IterationRecord(number, Objective(**terms), metric, float(row["seconds"]))

    return tuple(record(number, row) for number, row in enumerate(rows, 1))


def best_iteration_from(value: Any, history: tuple[IterationRecord, ...]) -> int:
    """The number of the best iteration, one of the history's."""
    if _integer(value) > len(history):
        raise ModelFileError(f"iteration {value} of {len(history)} as the best")
    return int(value)


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
    history = history_from(header["history"])
    return TrainingState(
        factors_from(header["model"], tensors, "model.", n_threads),
        factors_from(header["best"], tensors, "best.", n_threads),
        best_iteration_from(header["best_iteration"], history),
        float("nan") if header["best_metric"] is None else float(header["best_metric"]),
        history,
    )
