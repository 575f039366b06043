"""Every public name has an example in its docstring, and every example runs."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import mixedals

MODULES = [
    module.name
    for module in pkgutil.walk_packages(mixedals.__path__, "mixedals.")
    if not module.name.endswith("__main__")
]
# Those that the reference describes; what each makes public is in it, or in its __all__.
PUBLIC = [
    "mixedals", "mixedals.datasets", "mixedals.export", "mixedals.metrics", "mixedals.plan",
    "mixedals.plots", "mixedals.ranking", "mixedals.synthetic", "mixedals.tuning",
]  # fmt: skip
# Of these, methods too.
CLASSES = ["Interactions", "MixedALS"]
# Protocols of others, and what can't be shown without a network or data of others.
WITHOUT = {
    "mixedals.datasets.DataSet", "mixedals.datasets.FetchError", "mixedals.datasets.Ratings",
    "mixedals.datasets.convert", "mixedals.datasets.fetch",
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name, monkeypatch, capsys):
    monkeypatch.setenv("MPLBACKEND", "agg")
    module = importlib.import_module(name)
    failed = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed
    assert not failed, capsys.readouterr().out


def public() -> Iterator[tuple[str, object]]:
    for name in PUBLIC:
        module = importlib.import_module(name)
        here = [of for of in vars(module) if not of.startswith("_")]
        for member in getattr(module, "__all__", here):
            value = getattr(module, member)
            defined = getattr(value, "__module__", "")
            if callable(value) and (hasattr(module, "__all__") or defined == name):
                yield f"{name}.{member}", value
    for name in CLASSES:
        for member, value in inspect.getmembers(getattr(mixedals, name), inspect.isroutine):
            if not member.startswith("_") and value.__module__.startswith("mixedals"):
                yield f"{name}.{member}", value


@pytest.mark.parametrize(("name", "value"), [pytest.param(*of, id=of[0]) for of in public()])
def test_public_names_have_an_example(name, value):
    assert name in WITHOUT or ">>> " in (inspect.getdoc(value) or "")
