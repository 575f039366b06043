"""Packages that not everybody needs: imported when used, named by their extra when missing."""

import importlib
from typing import Any


class MissingExtraError(ImportError):
    """A package isn't installed that comes with one of the extras."""


def require(package: str, extra: str) -> Any:
    """The module of that name, which the extra of that name installs."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise MissingExtraError(
            f'{error.name} is not installed: pip install "mixedals[{extra}]" installs it'
        ) from error
