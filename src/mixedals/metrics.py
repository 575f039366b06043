"""How good predictions are, from the ratings and the predictions of the same pairs."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MetricFunction = Callable[[NDArray[np.float32], NDArray[np.float32]], float]


def roc_auc(ratings: NDArray[np.float32], predictions: NDArray[np.float32]) -> float:
    """Probability that a pair rated higher is predicted higher, ties counting half.

    Parameters
    ----------
    ratings
        Two distinct values, as 0 and 1.
    predictions
        One for each rating.

    Examples
    --------
    >>> import numpy as np
    >>> roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    low, high = ratings.min(initial=np.inf), ratings.max(initial=-np.inf)
    positive = ratings == high
    if low >= high or not (positive | (ratings == low)).all():
        raise ValueError(
            f"roc_auc needs ratings of two values; these have {len(np.unique(ratings))}. "
            "Binarise them (Interactions.binarise), or choose metric='rmse'"
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


def rmse(ratings: NDArray[np.float32], predictions: NDArray[np.float32]) -> float:
    """Root of the mean squared error.

    Examples
    --------
    >>> import numpy as np
    >>> rmse(np.array([4.0, 2.0]), np.array([3.0, 3.0]))
    1.0
    """
    error = np.subtract(ratings, predictions, dtype=np.float64)
    return float(np.sqrt(np.mean(error * error)))


@dataclass(frozen=True)
class Metric:
    """A function of ratings and predictions, and which way is better."""

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
    """The metric of that name; a callable is one whose greater values are better."""
    if isinstance(metric, str):
        return METRICS[metric]
    return Metric(getattr(metric, "__name__", "metric"), metric)
