"""What the estimator's parameters may be, each said once, and checked when ``fit`` is called."""

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np

from mixedals.budget import BudgetSizing
from mixedals.metrics import METRICS
from mixedals.sizing import Sizing

_T = TypeVar("_T")

# Single precision's; and a row's normal equations of this size take 128 MB a thread.
_LARGEST_NUMBER = float(np.finfo(np.float32).max)
_LARGEST_DIM = 4096


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, Integral) and not isinstance(v, bool) and int(v) >= least


def _threads(v: Any) -> bool:
    return _integer(1)(v) and int(v) <= 1024


def _number(v: Any) -> bool:
    return isinstance(v, Real) and not isinstance(v, bool) and 0 <= float(v) <= _LARGEST_NUMBER


def _dim(v: Any) -> bool:
    return _integer(1)(v) and int(v) <= _LARGEST_DIM


def _dims(v: Any) -> bool:
    positive = _dim
    if positive(v):
        return True
    many = isinstance(v, Sequence | np.ndarray) and not isinstance(v, str)
    return many and len(v) > 0 and all(map(positive, v)) and len(set(v)) == len(v)


def _a_side(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """One value for both sides, or a mapping with one for each."""
    return lambda v: (
        set(v) == {"users", "items"} and all(map(check, v.values()))
        if isinstance(v, Mapping)
        else check(v)
    )


def _sizing(v: Any) -> bool:
    given_row_by_row = (Mapping, Sequence, np.ndarray)
    if isinstance(v, Mapping):
        return set(v) == {"users", "items"} and all(
            isinstance(s, Sizing) or (isinstance(s, given_row_by_row) and not isinstance(s, str))
            for s in v.values()
        )
    return isinstance(v, Sizing | BudgetSizing)


def _boolean(v: Any) -> bool:
    return isinstance(v, bool | np.bool_)


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda v: v is None or check(v)


class _Range(NamedTuple):
    holds: Callable[[Any], bool]
    allowed: str


_penalty = _Range(
    _a_side(_number),
    f"a number from 0 to {_LARGEST_NUMBER:.2g}, or {{'users': number, 'items': number}}",
)

RANGES = {
    "dims": _Range(_dims, f"an integer from 1 to {_LARGEST_DIM}, or distinct ones"),
    "sizing": _Range(
        _sizing,
        "a sizing such as PopularitySizing(0.2), or {'users': sizes, 'items': sizes} where sizes "
        "is a sizing, an array or a mapping from id to size (a budget is for both sides)",
    ),
    "projection": _Range(lambda v: v in ("learned", "padded"), "'learned' or 'padded'"),
    "reg": _penalty,
    "reg_exponent": _Range(_number, f"a number from 0 to {_LARGEST_NUMBER:.2g}"),
    "projection_reg": _penalty,
    "projection_sampling": _Range(lambda v: v in (None, "paper"), "None or 'paper'"),
    "global_mean": _Range(_boolean, "True or False"),
    "biases": _Range(_boolean, "True or False"),
    "iterations": _Range(_integer(1), "an integer from 1"),
    "eval_every": _Range(_integer(1), "an integer from 1"),
    "metric": _Range(
        lambda v: callable(v) or v in METRICS,
        f"one of {sorted(METRICS)}, or a function of ratings and predictions",
    ),
    "patience": _Range(_or_none(_integer(1)), "None or an integer from 1"),
    "random_state": _Range(
        lambda v: v is None or _integer(0)(v) or hasattr(v, "integers") or hasattr(v, "randint"),
        "None, an integer from 0, or a NumPy random generator",
    ),
    "n_threads": _Range(_or_none(_threads), "None or an integer from 1 to 1024"),
    "progress": _Range(_or_none(_boolean), "None, True or False"),
    "callback": _Range(_or_none(callable), "None or a function of an IterationRecord"),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raises ValueError for the first parameter that is out of its range."""
    for name, (holds, allowed) in RANGES.items():
        value = parameters[name]
        if not holds(value):
            raise ValueError(f"{name}={value!r}: it must be {allowed}")


def of_side(value: Mapping[str, _T] | _T, side: str) -> _T:
    """The value of one side, where a parameter may be one for both or a mapping."""
    return value[side] if isinstance(value, Mapping) else value


def seed_of(random_state: Any) -> int:
    """A seed of 64 bits: the integer itself, drawn from a generator, or from the system."""
    if isinstance(random_state, Integral):
        return int(random_state) % 2**64
    if hasattr(random_state, "integers"):
        return int(random_state.integers(2**63))
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31))
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> np.uint64(1))
