"""Commands of click made from annotated functions: each parameter's type says what the command line takes.

A parameter is `Annotated[type, Option(...)]` or `Annotated[type, Argument(...)]`. Its type is bool, int,
float, str, Path, an enum of strings, one of these or None, or a list of them. Typer reads such annotations
too, but takes 0.15 s to load pydantic for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import click


class Option:
    """An option, by its names; by default the parameter's name (`--name`, `--name/--no-name` of a bool)."""

    def __init__(
        self,
        *names: str,
        help: str = "",
        metavar: str | None = None,
        min: float | None = None,
        max: float | None = None,
        envvar: str | None = None,
    ) -> None:
        self.names, self.help, self.metavar, self.envvar = names, help, metavar, envvar
        self.range = (min, max)


@dataclass(frozen=True)
class Argument:
    """An argument, by its place."""

    metavar: str | None = None
    help: str = ""


@dataclass(frozen=True)
class _Kind:
    """A parameter's type: what one value is, and whether there may be several."""

    one: type
    is_list: bool

    @staticmethod
    def of(hint: Any) -> _Kind:
        (kind,) = [each for each in get_args(hint) if each is not NoneType] if _is_optional(hint) else (hint,)
        return _Kind(get_args(kind)[0], True) if get_origin(kind) is list else _Kind(kind, False)


def _is_optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


class _Member(click.Choice[str]):
    """A member of an enum, by its value."""

    def __init__(self, kind: type[Enum]) -> None:
        super().__init__([member.value for member in kind])
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return self._kind(super().convert(value, param, ctx))


def _click_type(kind: type, least: float | None = None, most: float | None = None) -> Any:
    if issubclass(kind, Enum):
        return _Member(kind)
    if issubclass(kind, Path):
        return click.Path(path_type=Path)
    if least is None and most is None:
        return kind
    return click.IntRange(least, most) if kind is int else click.FloatRange(least, most)  # type: ignore[arg-type]  # int's limits are ints


def _option(parameter: inspect.Parameter, kind: _Kind, option: Option) -> click.Option:
    dashed = f"--{parameter.name.replace('_', '-')}"
    is_flag = kind.one is bool
    names = option.names or ((f"{dashed}/--no-{dashed[2:]}",) if is_flag else (dashed,))
    settings: dict[str, Any] = (
        {"is_flag": True} if is_flag else {"type": _click_type(kind.one, *option.range)}
    )
    if parameter.default is inspect.Parameter.empty:
        settings["required"] = True
    elif parameter.default is not None:
        settings["default"] = getattr(parameter.default, "value", parameter.default)
    elif is_flag:
        settings["default"] = None  # neither said yes nor no
    return click.Option(
        [*names, parameter.name], help=option.help, metavar=option.metavar, multiple=kind.is_list,
        envvar=option.envvar, show_envvar=option.envvar is not None, show_default=True, **settings,
    )  # fmt: skip


class _Place(click.Argument):
    """An argument that says what it is for."""

    def __init__(self, name: str, about: str, **settings: Any) -> None:
        super().__init__([name], **settings)
        self.about = about

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return self.make_metavar(ctx), f"{self.about}  [required]" if self.required else self.about


def _argument(parameter: inspect.Parameter, kind: _Kind, argument: Argument) -> _Place:
    is_required = parameter.default is inspect.Parameter.empty
    name = argument.metavar or parameter.name.upper()
    name = name if is_required else f"[{name}]"
    return _Place(
        parameter.name, argument.help, metavar=f"{name}..." if kind.is_list else name,
        type=_click_type(kind.one), nargs=-1 if kind.is_list else 1, required=is_required,
    )  # fmt: skip


class _Command(click.Command):
    """A command whose help tells what its arguments are."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        places = [each.get_help_record(ctx) for each in self.params if isinstance(each, _Place)]
        if places:
            with formatter.section("Arguments"):
                formatter.write_dl(places)
        super().format_options(ctx, formatter)


def command_of(name: str, function: Callable[..., None]) -> click.Command:
    """The command that calls a function, with its docstring as help."""
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())

    def called(**values: Any) -> None:
        function(**{each.name: _given(values[each.name], each.default) for each in parameters})

    return _Command(
        name,
        params=[_parameter(each, hints[each.name]) for each in parameters],
        callback=called,
        help=inspect.getdoc(function),
    )


def _given(value: Any, default: Any) -> Any:
    """The value for the function: click has tuples for lists, and an empty one where nothing was said."""
    return (list(value) or default) if isinstance(value, tuple) else value


def _parameter(parameter: inspect.Parameter, hint: Any) -> click.Parameter:
    plain, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    kind = _Kind.of(plain)
    for extra in extras:
        if isinstance(extra, Argument):
            return _argument(parameter, kind, extra)
        if isinstance(extra, Option):
            return _option(parameter, kind, extra)
    return _option(parameter, kind, Option())
