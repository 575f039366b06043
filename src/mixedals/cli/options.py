"""Groups of options that several commands share, each a dataclass whose fields are options."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def with_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command, with the fields of each parameter that is a dataclass as options of its own."""
    parameters = []
    groups: dict[str, tuple[type, list[str]]] = {}
    for name, annotation in get_type_hints(command, include_extras=True).items():
        if is_dataclass(annotation) and isinstance(annotation, type):
            hints = get_type_hints(annotation, include_extras=True)
            groups[name] = annotation, list(hints)
            for field in fields(annotation):
                default = inspect.Parameter.empty if field.default is MISSING else field.default
                parameters.append(_option(field.name, default, hints[field.name]))
        elif name != "return":
            default = inspect.signature(command).parameters[name].default
            parameters.append(_option(name, default, annotation))

    @functools.wraps(command)
    def spread(**values: Any) -> Any:
        for name, (group, members) in groups.items():
            values[name] = group(**{member: values.pop(member) for member in members})
        return command(**values)

    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


def _option(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
