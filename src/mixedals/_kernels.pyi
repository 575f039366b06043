"""The native kernels: arrays in, arrays out, all of them C-contiguous.

n, m: rows of this side and of the other. d: the common space. p: a tier's embedding size.
"""

from types import ModuleType
from typing import TypeVar

from numpy import float32, float64, int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

LEVEL: str

def usable_levels() -> list[str]:
    """Levels that this installation has and this machine can run, lowest first."""

def load(level: str) -> ModuleType:
    """Import the kernels of one level, which must be usable."""

class Csr:
    """Checked ratings in compressed rows: its indices are known to be in bounds."""

    def __init__(
        self,
        indptr: NDArray[int64],
        indices: NDArray[int32],
        values: NDArray[float32],
        n_columns: int,
        weights: NDArray[float32] | None = None,
    ) -> None: ...
    def transposed(self, n_threads: int) -> Csr: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    @property
    def nnz(self) -> int: ...
    @property
    def indptr(self) -> NDArray[int64]: ...
    @property
    def indices(self) -> NDArray[int32]: ...
    @property
    def values(self) -> NDArray[float32]: ...
    @property
    def weights(self) -> NDArray[float32] | None: ...

def cpu_level() -> int: ...

_Ids = TypeVar("_Ids", NDArray[int32], NDArray[int64])

def encode_integers(ids: _Ids, n_threads: int) -> tuple[_Ids, NDArray[int32]] | None:
    """Sorted distinct ids and each id's position there; None where they span too wide a range."""

def order_of_pairs(
    rows: NDArray[int32], columns: NDArray[int32], n_rows: int, n_columns: int, n_threads: int
) -> tuple[NDArray[int64], NDArray[uint32] | NDArray[int64]]:
    """Row pointers, and the order that sorts pairs by row, then column; equal ones as they were."""

_Values = TypeVar("_Values", NDArray[float32], NDArray[int32], NDArray[int64])

def take(values: _Values, positions: NDArray[uint32] | NDArray[int64], n_threads: int) -> _Values:
    """``values[positions]``, in parallel and without NumPy's copy of 32-bit positions."""

def hash_strings(text: NDArray[uint8], offsets: NDArray[int64]) -> NDArray[uint64]:
    """FNV-1a, 64 bits, of each string."""

def uniform(
    seed: int, stream: int, keys: NDArray[uint64], p: int, low: float, high: float, n_threads: int
) -> NDArray[float32]:
    """Numbers (n, p) that depend on the seed, the stream, the row's key and the column alone."""

def common_space(
    factors: NDArray[float32],
    projection: NDArray[float32] | None,
    rows: NDArray[int32],
    out: NDArray[float32],
    n_threads: int,
) -> None:
    """``out[rows] = factors @ projection.T``, or ``factors`` and zeros without a projection."""

def solve_rows(
    ratings: Csr,
    rows: NDArray[int32],
    common: NDArray[float32],
    known: NDArray[float32] | None,
    projection: NDArray[float32] | None,
    width: int,
    with_bias: bool,
    ridge: NDArray[float32],
    n_threads: int,
) -> tuple[NDArray[float32], NDArray[float64], NDArray[float64]]:
    """One ridge regression for each listed row.

    Factors (n, width), and one column more for the bias; each row's squared error with penalty;
    and the sum of the squares of its factors. A loss that isn't finite marks a row that has no
    solution.
    """

def leave_one_out(
    ratings: Csr,
    rows: NDArray[int32],
    features: NDArray[float32],
    known: NDArray[float32] | None,
    ridge: NDArray[float32],
    sizes: NDArray[int32],
    n_threads: int,
) -> NDArray[float64]:
    """Squared error, float64 (n, sizes), of predicting each rating of a row from its others.

    By the row's ridge regression on the first ``sizes[j]`` columns of ``features``; ``sizes``
    rise, and 0 predicts ``known`` alone. Infinite where rounding leaves nothing to be told.
    """

def projection_sums(
    ratings: Csr,
    rows: NDArray[int32],
    factors: NDArray[float32],
    common: NDArray[float32],
    known: NDArray[float32] | None,
    known_rows: NDArray[float32] | None,
    sample: tuple[int, float, NDArray[uint64], NDArray[uint64]] | None,
    n_threads: int,
) -> tuple[NDArray[float64], NDArray[float64]]:
    """Packed Q^T Q (d(d+1)/2, p(p+1)/2) and Q^T r (d, p), of all ratings or a sample.

    A sample is its hash key, the fraction kept, and the keys of rows and columns.
    """

def solve_projection(
    packed: NDArray[float64], rhs: NDArray[float64], beta: float
) -> NDArray[float32] | None:
    """The projection (d, p) that those sums have as solution; None where they are singular."""

def projection_product(
    ratings: Csr,
    rows: NDArray[int32],
    factors: NDArray[float32],
    common: NDArray[float32],
    known: NDArray[float32] | None,
    known_rows: NDArray[float32] | None,
    a: NDArray[float64],
    n_threads: int,
) -> NDArray[float64]:
    """Q^T Q a (d, p) without forming the matrix."""

def projection_rhs(
    ratings: Csr,
    rows: NDArray[int32],
    factors: NDArray[float32],
    common: NDArray[float32],
    known: NDArray[float32] | None,
    known_rows: NDArray[float32] | None,
    n_threads: int,
) -> NDArray[float64]:
    """Q^T r (d, p)."""

def predict_grid(
    left: NDArray[float32], right: NDArray[float32], n_threads: int
) -> NDArray[float32]:
    """Dot products of every row of ``left`` with every row of ``right``."""

def predict_pairs(
    left: NDArray[float32],
    right: NDArray[float32],
    left_rows: NDArray[int32],
    right_rows: NDArray[int32],
    n_threads: int,
) -> NDArray[float32]:
    """Dot products of pairs of rows; NaN where a row is -1."""

def top_k(
    queries: NDArray[float32],
    items: NDArray[float32],
    k: int,
    left_out_indptr: NDArray[int64],
    left_out: NDArray[int32],
    n_threads: int,
) -> tuple[NDArray[int32], NDArray[float32]]:
    """The k best items (n, k) of each query and their scores; -1 and NaN where there are fewer."""
