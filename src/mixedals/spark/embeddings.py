"""Embeddings of a block's rows, each at its own size, in a row of Spark's.

Such a row of Spark's goes to another block (``target``) as a message, with only the embeddings that
it needs, or stays as what the block knows of itself (``target`` is ``source``).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mixedals.spark.arrays import array, cell
from mixedals.spark.blocks import Block
from mixedals.tiers import FloatArray, Side, Tier

SCHEMA = (
    "target bigint, source bigint, tiers binary, factors binary, ids binary, "
    "squared_error double, penalty double, error string"
)
ARROW_SCHEMA = pa.schema(
    [
        ("target", pa.int64()),
        ("source", pa.int64()),
        ("tiers", pa.binary()),
        ("factors", pa.binary()),
        ("ids", pa.binary()),
        ("squared_error", pa.float64()),
        ("penalty", pa.float64()),
        ("error", pa.string()),
    ]
)


def rows_of(
    block: Block,
    side: Side,
    dims: Sequence[int],
    targets: Sequence[int],
    squared_error: float = 0.0,
    penalty: float = 0.0,
) -> pa.Table:
    """The block's own row, then its messages to the other side's blocks, which go by ``targets``.

    ``side`` has the block's rows alone. The squared error and the penalty are those at it.
    """
    tiers, place = _positions(side, dims)
    needed = [(label, block.rows_for(number)) for number, label in enumerate(targets)]
    listed = [(block.label, np.arange(side.n, dtype=np.int32))]
    listed += [(label, rows) for label, rows in needed if len(rows)]
    codes, factors = [], []
    for _, rows in listed:
        of_rows = tiers[rows]
        codes.append(of_rows.tobytes() if len(dims) > 1 else b"")
        parts = (tier.factors[place[rows[of_rows == dims.index(tier.p)]]] for tier in side.tiers)
        factors.append(b"".join(part.tobytes() for part in parts))
    n = len(listed)
    return _table(
        target=[label for label, _ in listed],
        source=[block.label] * n,
        tiers=codes,
        factors=factors,
        ids=[block.id_bytes.to_pybytes()] + [None] * (n - 1),
        squared_error=[squared_error] * n,
        penalty=[penalty] * n,
        error=[None] * n,
    )


def failed_row(label: int, error: str) -> pa.Table:
    """The row of a block that has no solution."""
    return _table(
        target=[label], source=[label], tiers=[b""], factors=[b""], ids=[None],
        squared_error=[0.0], penalty=[0.0], error=[error],
    )  # fmt: skip


def _table(**columns: Sequence[object]) -> pa.Table:
    return pa.table(
        [pa.array(columns[field.name], field.type) for field in ARROW_SCHEMA], schema=ARROW_SCHEMA
    )


def _positions(side: Side, dims: Sequence[int]) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Each row's tier, by its number in ``dims``, and its place in that tier."""
    tiers, place = np.empty(side.n, np.uint8), np.empty(side.n, np.int32)
    for tier in side.tiers:
        tiers[tier.rows] = dims.index(tier.p)
        place[tier.rows] = np.arange(len(tier.rows), dtype=np.int32)
    return tiers, place


def tiers_of(
    cells: Iterable[tuple[NDArray[np.int32], pa.Table, int]],
    dims: Sequence[int],
    projections: Mapping[int, FloatArray],
) -> tuple[Tier, ...]:
    """The tiers of a side that is made up of the rows in some cells.

    Parameters
    ----------
    cells
        Positions of the rows in that side, and the table and its row with their embeddings.
    """
    found: dict[int, tuple[list[NDArray[np.int32]], list[FloatArray]]]
    found = {p: ([], []) for p in dims}
    for positions, table, row in cells:
        tiers = array(cell(table, "tiers", row), np.uint8)
        factors = array(cell(table, "factors", row), np.float32)
        first = 0
        for number, p in enumerate(dims):
            rows = positions[tiers == number] if len(dims) > 1 else positions
            end = first + len(rows) * p
            found[p][0].append(rows)
            found[p][1].append(factors[first:end].reshape(-1, p))
            first = end
    return tuple(
        Tier(np.concatenate(rows), np.concatenate(factors), projections.get(p))
        for p, (rows, factors) in found.items()
        if sum(map(len, rows))
    )
