"""Groups of options: a parameter of a command whose type is a group stands for all options of the group.

A group is a frozen dataclass whose fields are annotated as a command's parameters are, each with a default.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints


class OptionGroup:
    """The base of all groups."""


class Only:
    """Beside a group in `Annotated`: those of its options that the command has."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True)
class _Expanded:
    """A parameter that stands for a group, and the parameters that stand for it on the command line."""

    name: str
    group: type[OptionGroup]
    parameters: tuple[inspect.Parameter, ...]


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of its groups in place of them, in the order of the groups' fields."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    expanded: list[_Expanded] = []
    for parameter in inspect.signature(command).parameters.values():
        found = _expanded(parameter.name, hints[parameter.name])
        if found is None:
            parameters.append(
                parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            )
        else:
            expanded.append(found)
            parameters.extend(found.parameters)

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for each in expanded:
            given = {option.name: values.pop(option.name) for option in each.parameters}
            values[each.name] = each.group(**given)
        command(**values)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what a command is made from
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _expanded(name: str, hint: Any) -> _Expanded | None:
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    if not (isinstance(kind, type) and issubclass(kind, OptionGroup)):
        return None
    chosen = [name for extra in extras if isinstance(extra, Only) for name in extra.names]
    return _Expanded(name, kind, tuple(_options(kind, chosen)))


def _options(group: type[OptionGroup], chosen: list[str]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):  # type: ignore[arg-type]  # every group is a dataclass
        if not chosen or field.name in chosen:
            option = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            yield option.replace(annotation=hints[field.name])
