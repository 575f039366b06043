"""How good predictions are, from the ratings and the predictions of the same pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[Any]
MetricFunction = Callable[[NDArray[np.float32], NDArray[np.float32]], float]


def roc_auc(ratings: ArrayLike, predictions: ArrayLike) -> float:
    """Probability that a pair rated higher is predicted higher, ties counting half.

    Parameters
    ----------
    ratings
        Two distinct values, as 0 and 1 or False and True.
    predictions
        One for each rating.

    Raises
    ------
    ValueError
        The ratings have more or fewer values, or some number is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    ratings, predictions = _checked(ratings, predictions)
    positive = ratings == ratings.max() if len(ratings) else np.zeros(0, bool)
    others = ratings[~positive]
    if not len(others) or (others != others[0]).any():
        raise ValueError(
            f"roc_auc needs ratings of two values; these have {len(np.unique(ratings))}. "
            'Binarise them, or choose metric="rmse"'
        )
    fewer, more = np.sort(predictions[positive]), np.sort(predictions[~positive])
    swapped = len(fewer) > len(more)
    if swapped:
        fewer, more = more, fewer
    below = np.searchsorted(more, fewer, side="left")
    tied = fewer[more[below.clip(max=len(more) - 1)] == fewer]
    n_tied = np.searchsorted(more, tied, side="right") - np.searchsorted(more, tied, side="left")
    above = (below.sum(dtype=np.int64) + n_tied.sum(dtype=np.int64) / 2) / (len(fewer) * len(more))
    return float(1 - above if swapped else above)


def rmse(ratings: ArrayLike, predictions: ArrayLike) -> float:
    """Root of the mean squared error.

    Raises
    ------
    ValueError
        There are no ratings, or some number is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> rmse(np.array([4.0, 2.0]), np.array([3.0, 3.0]))
    1.0
    """
    ratings, predictions = _checked(ratings, predictions)
    if not len(ratings):
        raise ValueError("rmse needs ratings; there are none")
    error = np.subtract(ratings, predictions, dtype=np.float64)
    return float(np.sqrt(np.mean(error * error)))


def _checked(ratings: ArrayLike, predictions: ArrayLike) -> tuple[Numbers, Numbers]:
    """Both as arrays of as many numbers, none of them NaN."""
    arrays = {"ratings": np.asarray(ratings), "predictions": np.asarray(predictions)}
    if arrays["ratings"].shape != arrays["predictions"].shape or arrays["ratings"].ndim != 1:
        shapes = " and ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"there must be a prediction for each rating, but the shapes are {shapes}")
    for name, array in arrays.items():
        if np.isnan(array.min(initial=0)):
            raise ValueError(
                f"{np.isnan(array).sum():,} of {len(array):,} {name} are NaN, which is what a "
                "model predicts where it doesn't know user or item: leave them out"
            )
    return arrays["ratings"], arrays["predictions"]


@dataclass(frozen=True)
class Metric:
    """A function of ratings and predictions, and which way is better.

    Examples
    --------
    >>> METRICS["rmse"].better(0.8, than=0.9)
    True
    """

    name: str
    function: MetricFunction
    greater_is_better: bool = True

    def better(self, value: float, than: float) -> bool:
        """Tells whether ``value`` is better."""
        return value > than if self.greater_is_better else value < than


METRICS = {
    metric.name: metric
    for metric in (Metric("roc_auc", roc_auc), Metric("rmse", rmse, greater_is_better=False))
}


def metric_of(metric: str | MetricFunction) -> Metric:
    """The metric of that name; a callable is one whose greater values are better.

    Examples
    --------
    >>> metric_of("rmse").greater_is_better
    False
    """
    if isinstance(metric, str):
        return METRICS[metric]
    return Metric(getattr(metric, "__name__", "metric"), metric)
