"""Groups of options: expanded in place, handed over as one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import click
from click.testing import CliRunner

from argmaxable.cli.option_groups import Only, OptionGroup, takes_groups
from argmaxable.cli.options import ModelOptions
from argmaxable.cli.parameters import Argument, Option, command_of
from argmaxable.models.model_ref import ModelRef


@dataclass(frozen=True)
class Colours(OptionGroup):
    red: Annotated[int, Option(help="How much red.")] = 1
    green: Annotated[bool, Option("--green")] = False
    blue: Annotated[str | None, Option()] = None


@takes_groups
def paint(
    wall: Annotated[str, Argument()],
    first: int = 0,
    *,
    colours: Colours,
    last: int = 9,
) -> None:
    """Paint it."""
    click.echo(f"{wall} {first} {last} {colours}")


@takes_groups
def dab(*, colours: Annotated[Colours, Only("blue", "red")]) -> None:
    click.echo(str(colours))


def ran(command: Callable[..., None], *arguments: str) -> str:
    result = CliRunner().invoke(command_of("command", command), arguments)
    assert result.exit_code == 0, result.output
    return result.output.strip()


def test_a_command_has_the_options_of_its_group_in_its_place() -> None:
    assert [*inspect.signature(paint).parameters] == ["wall", "first", "red", "green", "blue", "last"]
    assert [*inspect.signature(dab).parameters] == ["red", "blue"]


def test_a_group_is_handed_over_as_one() -> None:
    assert ran(dab, "--blue", "sky") == str(Colours(blue="sky"))
    expected = Colours(red=3, green=True)
    assert ran(paint, "north", "--last", "5", "--green", "--red", "3") == f"north 0 5 {expected}"


def test_options_left_out_keep_their_defaults() -> None:
    assert ran(dab) == str(Colours())


def test_a_model_is_named_by_its_options() -> None:
    chosen = ModelOptions(tensor="W", transpose=True, revision="v2")
    assert chosen.of("org/name") == ModelRef("org/name", tensor="W", transpose=True, revision="v2")
