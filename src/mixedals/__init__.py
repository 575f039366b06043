"""Matrix factorisation in which every user and item has an embedding of its own size."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mixedals.budget import BudgetSizing
    from mixedals.estimator import MixedALS, load
    from mixedals.interactions import Interactions
    from mixedals.modelfile import ModelFileError
    from mixedals.recommender import UnknownIdError
    from mixedals.sizing import PopularitySizing, PowerLawSizing, SizeSteps, UniformSizing
    from mixedals.splits import k_folds, split_at_random, split_by_time

__version__ = "0.1.0"

# Where each public name lives. It is imported when first used: `import mixedals` stays quick.
_HOMES = {
    "BudgetSizing": "budget",
    "Interactions": "interactions",
    "MixedALS": "estimator",
    "ModelFileError": "modelfile",
    "PopularitySizing": "sizing",
    "PowerLawSizing": "sizing",
    "SizeSteps": "sizing",
    "UniformSizing": "sizing",
    "UnknownIdError": "recommender",
    "k_folds": "splits",
    "load": "estimator",
    "split_at_random": "splits",
    "split_by_time": "splits",
}

__all__ = [
    "BudgetSizing",
    "Interactions",
    "MixedALS",
    "ModelFileError",
    "PopularitySizing",
    "PowerLawSizing",
    "SizeSteps",
    "UniformSizing",
    "UnknownIdError",
    "k_folds",
    "load",
    "split_at_random",
    "split_by_time",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"mixedals.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'mixedals' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
