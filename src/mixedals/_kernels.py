"""The native kernels at the highest instruction-set level that this machine has.

``MIXEDALS_ISA`` in the environment (``v2``, ``v3``, ``v4`` or ``baseline``) forces a level. What
the kernels take and give is in ``_kernels.pyi``.
"""

import importlib
import os
import pkgutil
from types import ModuleType

_PREFIX = "_kernels_"


def _built_levels() -> list[str]:
    """Levels that this installation was built with, lowest first."""
    package = importlib.import_module(__package__)
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return sorted(name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))


def _load() -> tuple[str, ModuleType]:
    built = _built_levels()
    if not built:
        raise ImportError("mixedals was installed without its native kernels: install it again")
    lowest = importlib.import_module(f".{_PREFIX}{built[0]}", __package__)
    usable = built if built == ["baseline"] else [
        level for level in built if int(level[1:]) <= lowest.cpu_level()
    ]
    level = os.environ.get("MIXEDALS_ISA") or usable[-1]
    if level not in usable:
        raise ImportError(
            f"MIXEDALS_ISA={level!r} can't be used here: this machine and installation have {usable}"
        )
    return level, importlib.import_module(f".{_PREFIX}{level}", __package__)


LEVEL, _module = _load()
globals().update({name: value for name, value in vars(_module).items() if name[0] != "_"})
