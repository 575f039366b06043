"""The methods that are compared: the models of each, and the penalties to choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixedals.budget import BudgetSizing
from mixedals.sizing import PopularitySizing, PowerLawSizing

_REG = (0.1, 0.3, 1.0, 3.0)
_PROJECTION_REG = (300.0, 1000.0, 3000.0, 10000.0)
_GAMMAS = (1.0, 0.5, 0.3, 0.2)


@dataclass(frozen=True)
class Point:
    """A model of a sweep.

    Attributes
    ----------
    label
        What sets it apart from the others of its arm.
    parameters
        Of ``MixedALS``, but for the penalties.
    """

    label: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Arm:
    """A method, and what is varied of it.

    Attributes
    ----------
    name
        What it is called on the command line.
    title
        What it is called in figures.
    points
        The models of the sweep, from the smallest to the largest, on which penalties are chosen.
    grid
        Values to try of each penalty.
    penalties
        What they are without a search.
    """

    name: str
    title: str
    points: Sequence[Point]
    grid: Mapping[str, Sequence[float]]
    penalties: Mapping[str, float]

    def __post_init__(self) -> None:
        labels = [point.label for point in self.points]
        if len(set(labels)) < len(labels):
            raise ValueError(f"two points of the arm {self.name!r} have the same label: {labels}")


def _by_dimension(dims: Sequence[int], **parameters: Any) -> list[Point]:
    return [Point(f"d = {d}", {"dims": d, **parameters}) for d in dims]


def _by_gamma(dims: Sequence[int], **parameters: Any) -> list[Point]:
    return [
        Point(f"gamma = {gamma:g}", {"dims": dims, "sizing": PopularitySizing(gamma), **parameters})
        for gamma in _GAMMAS
    ]


def _fixed(
    name: str, title: str, points: Sequence[Point], regs: Sequence[float] = _REG, reg: float = 3.0
) -> Arm:
    """An arm without learned projections."""
    return Arm(name, title, points, {"reg": regs}, {"reg": reg})


def _learned(
    name: str,
    title: str,
    points: Sequence[Point],
    regs: Sequence[float] = _REG,
    reg: float = 3.0,
    projection_regs: Sequence[float] = _PROJECTION_REG,
) -> Arm:
    grid = {"reg": regs, "projection_reg": projection_regs}
    return Arm(name, title, points, grid, {"reg": reg, "projection_reg": 300.0})


_PAPER = (2, 4, 6)
_LARGE = (2, 4, 8, 16)
_ROOT: dict[str, Any] = {"reg_exponent": 0.5}  # the penalty grows with the root of the count
_ROOT_REGS = (1.0, 3.0, 6.0, 10.0)

# Fewer ratings, as a sample has them, want smaller penalties than the paper tries.
_SMALL_PROJECTION_REG = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)

_THE_PAPERS = (
    _fixed("plain", "plain", _by_dimension((2, 3, 4, 5, 6))),
    _fixed("padded", "padded", _by_gamma(_PAPER, projection="padded")),
    _learned("projected", "projected", _by_gamma(_PAPER)),
    _learned(
        "sampled", "projected, sampled update", _by_gamma(_PAPER, projection_sampling="paper")
    ),
)

_FURTHER = (
    _learned(
        "projected-wide",
        "projected, wider grid",
        _by_gamma(_PAPER),
        projection_regs=_SMALL_PROJECTION_REG,
    ),
    _learned(
        "sampled-wide",
        "sampled, wider grid",
        _by_gamma(_PAPER, projection_sampling="paper"),
        projection_regs=_SMALL_PROJECTION_REG,
    ),
    _fixed(
        "plain-root", "plain, root penalty", _by_dimension((2, 3, 4, 5, 6), **_ROOT), _ROOT_REGS, 6
    ),
    _fixed(
        "padded-root",
        "padded, root penalty",
        _by_gamma(_PAPER, projection="padded", **_ROOT),
        _ROOT_REGS,
        6,
    ),
    _learned(
        "projected-root", "projected, root penalty", _by_gamma(_PAPER, **_ROOT), _ROOT_REGS, 6
    ),
    _fixed(
        "budget",
        "padded, sizes by a budget, root penalty",
        [
            Point(
                f"{n:g} a row",
                {"sizing": BudgetSizing(parameters_per_row=n), "projection": "padded", **_ROOT},
            )
            for n in (2.5, 3.0, 3.75, 4.25)
        ],
        _ROOT_REGS,
        6,
    ),
    _fixed("plain-large", "plain, to d = 16", _by_dimension((8, 12, 16))),
    _fixed("padded-large", "padded, to d = 16", _by_gamma(_LARGE, projection="padded")),
    _learned("projected-large", "projected, to d = 16", _by_gamma(_LARGE)),
    _learned(
        "power-law",
        "projected, power law",
        [
            Point(f"temperature = {t:g}", {"dims": _PAPER, "sizing": PowerLawSizing(t)})
            for t in (0.8, 0.6, 0.4, 0.2)
        ],
    ),
)

PAPER = tuple(arm.name for arm in _THE_PAPERS)
"""Names of the paper's methods."""

ARMS = {arm.name: arm for arm in (*_THE_PAPERS, *_FURTHER)}
"""All methods by name."""
