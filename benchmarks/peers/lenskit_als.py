"""LensKit's explicit ALS on the same ratings: seconds an iteration, by runs of two lengths.

Run by a Python that has LensKit: ``python lenskit_als.py RATINGS.parquet DIMENSION EPOCHS``.
"""

import json
import sys
import time

import pandas as pd
from lenskit.als import BiasedMFScorer
from lenskit.data import from_interactions_df
from lenskit.training import TrainingOptions

path, dimension, epochs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
frame = pd.read_parquet(path).rename(columns={"user": "user_id", "item": "item_id"})
dataset = from_interactions_df(frame[["user_id", "item_id", "rating"]])


def seconds(n: int) -> float:
    """Of a whole training of ``n`` epochs."""
    scorer = BiasedMFScorer(embedding_size=dimension, epochs=n, regularization=0.1)
    began = time.perf_counter()
    scorer.train(dataset, TrainingOptions(rng=0))
    return time.perf_counter() - began


seconds(1)  # compiles
short, long = (min(seconds(n) for _ in range(2)) for n in (1, 1 + epochs))
print(json.dumps({"seconds": (long - short) / epochs}))
