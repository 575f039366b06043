"""The best size for every row under a budget: the choice, from what each size would cost each row.

A row's curve is its leave-one-out squared error at every candidate size. Going along its lower
convex hull, each step to a larger size saves some error a parameter, and less than the step before.
The best steps of all rows together are those that save the most a parameter, until the budget is
spent: the choice of least error plus a price for every parameter, at the price that meets the
budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

_CANDIDATES = (1, 2, 3, 4, 6, 8, 10, 12)
_BYTES = 4  # of a parameter, in single precision


@dataclass(frozen=True)
class BudgetSizing:
    """The size of every row, users' and items', that a budget of parameters is best spent on.

    A plain model of the largest candidate size, the pilot, is trained first. Turned to its
    principal axes, it says for every row how well each size predicts the row's ratings, each one
    left out in turn; the model itself starts from the pilot. Exactly one budget is given.

    Parameters
    ----------
    parameters
        Most parameters of the model, counted as ``n_parameters_`` does: embeddings, biases and
        learned projections. Fewer are taken where more would help no row.
    parameters_per_row
        The same for each user and item on average.
    bytes
        The same in bytes, four a parameter.
    candidates
        Sizes that a row may have, in place of the estimator's ``dims``. 0 is nothing but the bias,
        where biases are learned. None is 1, 2, 3, 4, 6, 8, 10, 12, and 0 where there are biases.
    pilot_iterations
        Iterations of the pilot.
    rounds
        How often sizes are chosen, each time but the first after an iteration with those before:
        more helps where the budget is small.

    Examples
    --------
    >>> from mixedals import MixedALS
    >>> from mixedals.synthetic import generate_ratings
    >>> data = generate_ratings(100, 50, 2000)
    >>> sizing = BudgetSizing(parameters=500, candidates=(1, 2, 4, 8))
    >>> model = MixedALS(sizing=sizing, projection="padded", iterations=5).fit(data)
    >>> 492 < model.n_parameters_ <= 500
    True
    """

    parameters: int | None = None
    parameters_per_row: float | None = None
    bytes: int | None = None
    candidates: Sequence[int] | NDArray[np.integer] | None = None
    pilot_iterations: int = 12
    rounds: int = 4

    def __post_init__(self) -> None:
        budgets = {
            "parameters": self.parameters,
            "parameters_per_row": self.parameters_per_row,
            "bytes": self.bytes,
        }
        given = {name: value for name, value in budgets.items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                "BudgetSizing needs one of parameters, parameters_per_row and bytes, it has "
                + (", ".join(given) or "none")
            )
        for name, value in given.items():
            if not _is_number(value) or not 0 < value < float("inf"):
                raise ValueError(f"BudgetSizing: {name}={value!r}: it must be a number above 0")
        if self.candidates is not None:
            sizes = np.atleast_1d(self.candidates).tolist()
            if not all(map(_is_size, sizes)) or len(set(sizes)) < len(sizes) or not any(sizes):
                raise ValueError(
                    f"BudgetSizing: candidates={self.candidates!r}: they must be distinct integers "
                    "from 0, and one of them above 0"
                )
            object.__setattr__(self, "candidates", tuple(sorted(map(int, sizes))))
        for name, steps in (("pilot_iterations", self.pilot_iterations), ("rounds", self.rounds)):
            if not _is_size(steps) or steps < 1:
                raise ValueError(f"BudgetSizing: {name}={steps!r}: it must be an integer from 1")

    def sizes(self, *, biases: bool) -> tuple[int, ...]:
        """The candidates, rising."""
        if self.candidates is None:
            return (0, *_CANDIDATES) if biases else _CANDIDATES
        if 0 in self.candidates and not biases:
            raise ValueError(
                "BudgetSizing: a row of size 0 is nothing but its bias: leave 0 out of the "
                "candidates, or learn biases"
            )
        return tuple(self.candidates)

    def budget(self, n_rows: int) -> int:
        """Most parameters of a model of so many users and items together."""
        if self.parameters is not None:
            return int(self.parameters)
        if self.parameters_per_row is not None:
            return int(self.parameters_per_row * n_rows)
        assert self.bytes is not None
        return int(self.bytes) // _BYTES

    def beside_biases(self, n_rows: int, *, biases: bool) -> int:
        """What is left for embeddings and projections; an error where that is too little."""
        left = self.budget(n_rows) - (n_rows if biases else 0)
        smallest = self.sizes(biases=biases)[0]
        if left < n_rows * smallest:
            raise _too_small(left, smallest, n_rows * smallest, n_rows)
        return left


def _too_small(left: int, smallest: int, taken: int, n_rows: int) -> ValueError:
    return ValueError(
        f"BudgetSizing: the budget leaves {max(left, 0):,} parameters for embeddings, but with the "
        f"smallest candidate, {smallest}, for all {n_rows:,} users and items they take {taken:,}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_size(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


@dataclass(frozen=True)
class Choice:
    """Sizes of both sides' rows, int32 (n,), and the price of a parameter that they follow from."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    price: float


def choose_sizes(
    user_errors: NDArray[np.float64],
    item_errors: NDArray[np.float64],
    candidates: Sequence[int],
    budget: int,
    projections: Sequence[int],
) -> Choice:
    """The sizes of least error whose parameters are within a budget.

    Parameters
    ----------
    user_errors, item_errors
        Each row's error at each candidate size, float64 (n, candidates); infinite where a size is
        out of the question.
    candidates
        Sizes, rising.
    budget
        Most parameters, of embeddings and projections together.
    projections
        Parameters of a projection from each candidate size, which count once for each side that
        has rows of this size.

    Returns
    -------
    Sizes to which no further step that saves error can be added within the budget, in the order of
    what they save a parameter. Without projections, a larger budget gives no row a smaller size.
    """
    n_users = len(user_errors)
    errors = np.concatenate([user_errors, item_errors])
    sizes = np.asarray(candidates, np.int64)
    steps = _steps_down(errors, sizes)
    spent = np.append(0, np.cumsum(sizes[steps.after] - sizes[steps.before]))
    spent += len(errors) * sizes[0]
    of_users = steps.rows < n_users
    for of_side, n in ((of_users, n_users), (~of_users, len(item_errors))):
        for j, parameters in enumerate(projections):
            if not parameters:
                continue
            moved = (steps.after == j).astype(np.int64) - (steps.before == j)
            there = np.append(0, np.cumsum(moved * of_side)) + (n if j == 0 else 0)
            spent += parameters * (there > 0)
    affordable = np.flatnonzero(spent <= budget)
    if not len(affordable):
        raise _too_small(budget, int(sizes[0]), int(spent[0]), len(errors))
    taken = int(affordable[-1])
    chosen = np.zeros(len(errors), np.int64)
    chosen[steps.rows[:taken]] = steps.after[:taken]  # of several steps of a row, the last
    dims = sizes[chosen].astype(np.int32)
    return Choice(dims[:n_users], dims[n_users:], float(np.append(steps.savings, 0)[taken]))


@dataclass(frozen=True)
class _Steps:
    """Steps of rows from one candidate to a larger one, those first that save most a parameter."""

    rows: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    savings: NDArray[np.float64]


def _steps_down(errors: NDArray[np.float64], sizes: NDArray[np.int64]) -> _Steps:
    """All steps along the lower convex hulls of the rows' errors, as long as they fall."""
    errors = np.where(np.isinf(errors[:, :1]), 0, errors)  # nothing to tell: no steps
    rows = np.arange(len(errors))
    at = np.zeros(len(errors), np.int64)
    last = np.full(len(errors), np.inf)
    found: list[tuple[NDArray[np.int64], ...]] = []
    savings: list[NDArray[np.float64]] = []
    while len(rows):
        further = sizes - sizes[at][:, None]
        saved = errors[rows, at][:, None] - errors[rows]
        rate = np.where(further > 0, saved / np.maximum(further, 1), -1)
        after = rate.argmax(axis=1)
        best = np.minimum(rate[np.arange(len(rows)), after], last)  # falls, to the last bit
        falls = best > 0
        rows, at, after, best = rows[falls], at[falls], after[falls], best[falls]
        found.append((rows, at, after))
        savings.append(best)
        at, last = after, best
    order = np.argsort(-np.concatenate(savings), kind="stable")
    of, before, after = (np.concatenate(part)[order] for part in zip(*found, strict=True))
    return _Steps(of, before, after, np.concatenate(savings)[order])
