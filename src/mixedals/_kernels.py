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


def usable_levels() -> list[str]:
    """Levels that this installation has and this machine can run, lowest first."""
    built = _built_levels()
    if not built:
        raise ImportError("mixedals was installed without its native kernels: install it again")
    if built == ["baseline"]:
        return built
    highest = load(built[0]).cpu_level()
    return [level for level in built if int(level[1:]) <= highest]


def load(level: str) -> ModuleType:
    """Import the kernels of one level, which must be usable."""
    return importlib.import_module(f".{_PREFIX}{level}", __package__)


def _chosen_level() -> str:
    usable = usable_levels()
    level = os.environ.get("MIXEDALS_ISA") or usable[-1]
    if level not in usable:
        raise ImportError(
            f"MIXEDALS_ISA={level!r} can't be used here: "
            f"this machine and installation have {usable}"
        )
    return level


LEVEL = _chosen_level()
globals().update({name: value for name, value in vars(load(LEVEL)).items() if name[0] != "_"})
