"""The sweep by arm and model, and the differences between arms with their uncertainty."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mixedals.experiments.records import Records


@dataclass(frozen=True)
class Model:
    """A model of an arm, trained from several seeds.

    Attributes
    ----------
    fits
        A row for each seed, as :meth:`Records.fits` has them.
    """

    fits: pl.DataFrame

    @property
    def label(self) -> str:
        """The point's label."""
        return str(self.fits["point"][0])

    @property
    def n_parameters(self) -> int:
        """How many numbers were learned."""
        return int(self.fits["n_parameters"][0])

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of ``MixedALS``."""
        return dict(json.loads(self.fits["settings"][0]))

    @cached_property
    def details(self) -> list[dict[str, Any]]:
        """The scores' details, of each seed."""
        return [json.loads(text) for text in self.fits["details"]]

    def values(self, column: str) -> NDArray[np.float64]:
        """A column of the fits (seeds,)."""
        return np.asarray(self.fits[column], np.float64)

    def mean_without(self) -> NDArray[np.float64]:
        """Test AUC without each group of users in turn, the mean over the seeds (groups,)."""
        return _means([of["without"] for of in self.details])

    def mean_deciles(self, side: str, what: str) -> NDArray[np.float64]:
        """A value by popularity of a side, the mean over the seeds (10,); NaN where none is."""
        return _means([of["deciles"][side][what] for of in self.details])


@dataclass(frozen=True)
class Curve:
    """The models of an arm, from the smallest to the largest.

    Attributes
    ----------
    name, title
        The arm's.
    models
        With the seeds that all of them have.
    """

    name: str
    title: str
    models: list[Model]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Numbers of parameters (models,)."""
        return np.array([model.n_parameters for model in self.models])

    @property
    def largest(self) -> Model:
        """The largest model."""
        return self.models[-1]


@dataclass(frozen=True)
class Difference:
    """How far a model of one arm is above another arm at the same size.

    Attributes
    ----------
    n_parameters
        The size.
    auc, rmse
        Differences of the means over the seeds.
    error
        Standard error of that of AUC: from the seeds, and from the choice of users.
    """

    n_parameters: int
    auc: float
    rmse: float
    error: float

    @property
    def is_above(self) -> bool:
        """Whether it is above by more than two standard errors."""
        return self.auc > 2 * self.error

    @property
    def is_below(self) -> bool:
        """Whether it is below by more than two standard errors."""
        return self.auc < -2 * self.error


def _means(rows: list[list[float | None]]) -> NDArray[np.float64]:
    """The mean of each column; NaN where there is None."""
    return np.asarray(np.array(rows, np.float64).mean(axis=0))


def curves(records: Records) -> dict[str, Curve]:
    """The arms of the sweep by name, those that have models."""
    by_arm = {str(name): of for (name,), of in records.fits("sweep").group_by("arm")}
    titles: dict[str, str] = records.fact("titles")
    return {
        name: _curve(name, title, by_arm[name]) for name, title in titles.items() if name in by_arm
    }


def _curve(name: str, title: str, fits: pl.DataFrame) -> Curve:
    models = [of for _, of in fits.group_by("point", maintain_order=True)]
    shared = set.intersection(*(set(of["seed"]) for of in models))
    chosen = [Model(of.filter(pl.col("seed").is_in(shared)).sort("seed")) for of in models]
    return Curve(name, title, sorted(chosen, key=lambda model: model.n_parameters))


def differences(upper: Curve, lower: Curve) -> list[Difference]:
    """How far each model of ``upper`` is above ``lower``.

    It is compared with the model of the same label or, where ``lower`` has none, with what lies
    between the models on either side of its size. Sizes outside those of ``lower`` are left out.
    """
    weights = [_weights(model, lower) for model in upper.models]
    return [
        _difference(model, lower, of)
        for model, of in zip(upper.models, weights, strict=True)
        if of is not None
    ]


def difference(upper: Model, lower: Model) -> Difference:
    """How far a model is above another one, whatever its size."""
    return _difference(upper, Curve("", "", [lower]), np.ones(1))


def _weights(model: Model, curve: Curve) -> NDArray[np.float64] | None:
    """The share of each of the curve's models in what the model is compared with."""
    labels = [of.label for of in curve.models]
    if model.label in labels:
        return np.array([float(label == model.label) for label in labels])
    sizes, size = curve.sizes, model.n_parameters
    if not sizes[0] <= size <= sizes[-1]:
        return None
    return np.array([np.interp(size, sizes, unit) for unit in np.eye(len(sizes))])


def _difference(model: Model, curve: Curve, weights: NDArray[np.float64]) -> Difference:
    def by(values: Any) -> NDArray[np.float64]:
        """The difference of each value of an array that models have."""
        others = np.array([values(of) for of in curve.models])
        return np.asarray(values(model) - weights @ others)

    n_seeds = min(len(of.fits) for of in (model, *curve.models))
    auc = by(lambda of: of.values("test_auc")[:n_seeds])
    rmse = by(lambda of: of.values("test_rmse")[:n_seeds])
    without = by(Model.mean_without)
    jackknife = (len(without) - 1) * np.var(without)
    of_seeds = np.var(auc, ddof=1) / n_seeds if n_seeds > 1 else 0.0
    return Difference(
        model.n_parameters,
        float(auc.mean()),
        float(rmse.mean()),
        float(np.sqrt(jackknife + of_seeds)),
    )
