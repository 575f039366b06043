"""The paper's protocol: which ratings are trained on, chosen by and tested on."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from mixedals.interactions import Interactions
from mixedals.splits import k_folds, split_at_random, split_by_time

N_FOLDS = 3
_FEWEST_RATINGS = 5
_SEED = 0


@dataclass(frozen=True)
class Parts:
    """Ratings to train on, to choose the best iteration by, and to test on.

    The last two hold only users and items that the first has.
    """

    train: Interactions
    validation: Interactions
    test: Interactions

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name).by_user.values
            if not len(values) or values.min() == values.max():
                kept = f"{len(values):,} ratings" + (f", all {values[0]:g}" if len(values) else "")
                raise ValueError(
                    f"{field.name}: {kept} are left by the protocol, which needs both 0 and 1 in "
                    "every part: there must be more ratings, or other bounds between 0 and 1"
                )


class Protocol:
    """What the paper makes of ratings.

    Ratings up to 2 become 0, those from 4 become 1, others are removed. The oldest 80 % are to
    train on, the next 10 % for validation, the last 10 % to test on; of equally old ones at a cut,
    those first by user and item count as older. Users and items need 5 ratings in training,
    counted once.

    Parameters
    ----------
    ratings
        Ratings with timestamps.
    bounds
        Ratings up to the first become 0, those from the second become 1.

    Examples
    --------
    >>> from mixedals.synthetic import generate_ratings
    >>> parts = Protocol(generate_ratings(100, 50, 2000)).parts
    >>> len(parts.train) > len(parts.test)
    True
    """

    def __init__(self, ratings: Interactions, bounds: tuple[float, float] = (2, 4)) -> None:
        self._binary = ratings.binarise(*bounds)

    @cached_property
    def parts(self) -> Parts:
        """The parts of the sweep."""
        train, validation, test = split_by_time(self._binary, (0.8, 0.1, 0.1))
        train = train.at_least(user=_FEWEST_RATINGS, item=_FEWEST_RATINGS)
        return Parts(train, validation.restrict_to(train), test.restrict_to(train))

    def folds(self) -> Iterator[Parts]:
        """The parts of the grid search: of training and validation together, 3 random folds.

        One fold at a time is to test on; a tenth of the others chooses the best iteration.
        """
        together, _ = split_by_time(self._binary, (0.9, 0.1))
        together = together.restrict_to(self.parts.train)
        seeds = np.random.SeedSequence(_SEED).spawn(N_FOLDS + 1)
        for seed, (rest, test) in zip(
            seeds[1:], k_folds(together, N_FOLDS, np.random.default_rng(seeds[0])), strict=True
        ):
            train, validation = split_at_random(rest, (0.9, 0.1), np.random.default_rng(seed))
            yield Parts(train, validation.restrict_to(train), test.restrict_to(train))
