"""Well-known data sets in the layouts in which they were published, by name."""

from mixedals.datasets.fetching import FetchError, fetch
from mixedals.datasets.reading import Ratings, convert, read
from mixedals.datasets.registry import DATASETS, DataSet

__all__ = ["DATASETS", "DataSet", "FetchError", "Ratings", "convert", "fetch", "read"]
