from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from mixedals import Interactions

settings.register_profile("mixedals", deadline=None, derandomize=True)
settings.load_profile("mixedals")


@pytest.fixture(scope="session")
def stars() -> Interactions:
    """One to five stars of 300 users for 120 items."""
    # Not at the top: it imports polars, which crashes under the thread sanitizer, and the kernel
    # tests that run there don't need it.
    from mixedals.synthetic import generate_ratings

    return generate_ratings(300, 120, 6000, random_state=1)


@pytest.fixture(scope="session")
def likes(stars: Interactions) -> Interactions:
    """The same as 0 and 1."""
    return stars.binarise(at_most=2, at_least=4)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ratings that MIXEDALS_DATA names."""
    if "MIXEDALS_DATA" not in os.environ:
        pytest.skip("MIXEDALS_DATA doesn't name a folder of real ratings")
    return Path(os.environ["MIXEDALS_DATA"])


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
