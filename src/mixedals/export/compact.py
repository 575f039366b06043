"""The compact form: each row's own numbers, and the projections that carry them to the rest.

A folder of ``users.parquet`` and ``items.parquet`` (id, ``embedding`` of as many numbers as the row
has dimensions, ``bias`` where there are some), ``projections.parquet`` (``side``, ``p``,
``learned``, and ``projection``, d x p numbers row by row, for each p below d), ``compact.json``.
A row's vector in the common space is ``projection @ embedding``, or ``embedding`` itself at p = d.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals._atomic import replacing
from mixedals._ids import Vocabulary
from mixedals._threads import thread_count
from mixedals.export.vectors import made, sides_of, write_frame
from mixedals.modelfile import ModelFileError
from mixedals.recommender import Recommender
from mixedals.tiers import Side, Tier

_VERSION = 1
_MALFORMED = (KeyError, TypeError, ValueError, RecursionError)
_PROJECTIONS = {
    "side": pl.String(),
    "p": pl.Int32(),
    "learned": pl.Boolean(),
    "projection": pl.List(pl.Float32),
}


@dataclass(frozen=True)
class CommonSpace:
    """Both sides in the common space, with their ids.

    Attributes
    ----------
    user_ids, item_ids
        Ids in their own type.
    user_vectors, item_vectors
        float32 (n, d).
    user_biases, item_biases
        float32 (n,), or None.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_compact(model, folder)
    >>> read_compact(folder).user_vectors.shape == model.user_vectors_.shape
    True
    """

    user_ids: NDArray[Any]
    user_vectors: NDArray[np.float32]
    user_biases: NDArray[np.float32] | None
    item_ids: NDArray[Any]
    item_vectors: NDArray[np.float32]
    item_biases: NDArray[np.float32] | None


def write_compact(model: Recommender, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the compact form of a fitted model; ``compact.json`` comes last.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> [path.name for path in write_compact(model, folder)]
    ['users.parquet', 'items.parquet', 'projections.parquet', 'compact.json']
    """
    paths = []
    projections: list[dict[str, Any]] = []
    about: dict[str, Any] = {"version": _VERSION}
    for name, vocabulary, side, biases in sides_of(model):
        columns = {name: vocabulary.values, "embedding": _embeddings(side)}
        if biases is not None:
            columns["bias"] = pl.Series(biases)
        paths.append(write_frame(pl.DataFrame(columns), folder, f"{name}s.parquet"))
        projections += _projections(side)
        about |= {"d": side.d, f"{name}_ids": vocabulary.kind}
    frame = pl.DataFrame(projections, _PROJECTIONS)
    paths.append(write_frame(frame, folder, "projections.parquet"))
    paths.append(made(folder) / "compact.json")
    with replacing(paths[-1]) as temporary:
        temporary.write_text(json.dumps(about), encoding="utf-8")
    return paths


def read_compact(folder: str | os.PathLike[str]) -> CommonSpace:
    """Restore the vectors that the model had, bit for bit.

    Raises
    ------
    ModelFileError
        The folder doesn't hold a compact form, or not a whole one.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> model = MixedALS(iterations=3).fit(generate_ratings(100, 50, 1000))
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_compact(model, folder)
    >>> bool((read_compact(folder).item_vectors == model.item_vectors_).all())
    True
    """
    folder = Path(folder)
    try:
        about = json.loads((folder / "compact.json").read_text(encoding="utf-8"))
        if about["version"] > _VERSION:
            raise ModelFileError(f"written by a newer mixedals ({about['version']}): upgrade")
        projections = pl.read_parquet(folder / "projections.parquet")
        restored: dict[str, Any] = {}
        for name in ("user", "item"):
            frame = pl.read_parquet(folder / f"{name}s.parquet")
            restored |= _restored(frame, projections, name, about)
    except OSError:
        raise
    except (*_MALFORMED, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ModelFileError(f"{folder}: not a whole compact form ({error})") from error
    return CommonSpace(**restored)


def _embeddings(side: Side) -> pl.Series:
    """Each row's own numbers, in the order of the rows."""
    by_tier = pl.concat([pl.Series(tier.factors).arr.to_list() for tier in side.tiers])
    rows = np.concatenate([tier.rows for tier in side.tiers])
    return by_tier.gather(np.argsort(rows))


def _projections(side: Side) -> Iterator[dict[str, Any]]:
    for tier in side.tiers:
        learned = tier.projection is not None
        if tier.p < side.d or learned:
            matrix = np.eye(side.d, tier.p) if tier.projection is None else tier.projection
            yield {
                "side": side.name, "p": tier.p, "learned": learned,
                "projection": matrix.ravel().tolist(),
            }  # fmt: skip


def _restored(
    frame: pl.DataFrame, projections: pl.DataFrame, name: str, about: dict[str, Any]
) -> dict[str, Any]:
    d = int(about["d"])
    matrices = {
        int(row["p"]): _matrix(row, d)
        for row in projections.filter(side=f"{name}s").iter_rows(named=True)
    }
    embedding = frame["embedding"].cast(pl.List(pl.Float32))
    sizes = embedding.list.len().to_numpy()
    tiers = []
    for p in np.unique(sizes).tolist():
        if p != d and p not in matrices:
            raise ValueError(f"there is no projection for the {name}s of size {p}")
        rows = np.flatnonzero(sizes == p).astype(np.int32)
        numbers = embedding.gather(rows).explode() if p else embedding.clear().explode()
        factors = _finite(numbers, "embeddings").reshape(len(rows), p)
        tiers.append(Tier(rows, factors, matrices.get(p)))
    side = Side(f"{name}s", len(frame), d, tuple(tiers), None, thread_count(None))
    return {
        f"{name}_ids": Vocabulary.from_series(about[f"{name}_ids"], frame[name]).ids,
        f"{name}_vectors": side.common,
        f"{name}_biases": _finite(frame["bias"], "biases") if "bias" in frame.columns else None,
    }


def _matrix(row: dict[str, Any], d: int) -> NDArray[np.float32] | None:
    """A projection (d, p); None for the fixed one."""
    matrix = _finite(pl.Series(row["projection"]), "projections").reshape(d, row["p"])
    return matrix if row["learned"] else None


def _finite(values: pl.Series, what: str) -> NDArray[np.float32]:
    numbers: NDArray[np.float32] = values.cast(pl.Float32).to_numpy()
    if not np.isfinite(numbers).all():
        raise ValueError(f"{what} aren't finite numbers")
    return numbers
