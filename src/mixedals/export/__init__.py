"""What a fitted model knows, in forms that other software takes.

A prediction is ``user_vector . item_vector``, plus the biases of both where a model has some; the
mean rating, where it is part of predictions, is in the items' biases.
"""

from mixedals.export.compact import CommonSpace, read_compact, write_compact
from mixedals.export.index import build_index, index_recall, query_vectors, write_index
from mixedals.export.vectors import write_numpy, write_parquet

__all__ = [
    "CommonSpace",
    "build_index",
    "index_recall",
    "query_vectors",
    "read_compact",
    "write_compact",
    "write_index",
    "write_numpy",
    "write_parquet",
]
