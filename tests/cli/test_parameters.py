"""Commands made from annotated functions: every type that a parameter may have, given, left out and wrong."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
from click.testing import CliRunner

from argmaxable.cli.parameters import Argument, Option, command_of


class Colour(StrEnum):
    RED = "red"
    DARK_BLUE = "dark-blue"


class Called(Exception):
    """Carries what a command's function was called with."""


def everything(
    name: Annotated[str, Argument(metavar="NAME", help="What it is called.")],
    more: Annotated[list[Path] | None, Argument(help="Further files.")] = None,
    *,
    count: Annotated[int, Option("--count", "-n", min=1, max=9, help="How many.")] = 3,
    share: Annotated[float | None, Option(min=0)] = None,
    colour: Annotated[Colour, Option()] = Colour.RED,
    other_colour: Annotated[Colour | None, Option()] = None,
    loud: Annotated[bool, Option("--loud")] = False,
    safe: Annotated[bool | None, Option()] = None,
    words: Annotated[list[str] | None, Option(metavar="WORD")] = None,
    place: Annotated[Path | None, Option(envvar="A_PLACE")] = None,
    plain: int = 0,
) -> None:
    """Do everything."""
    raise Called(locals())


def run(*arguments: str, **environment: str) -> Any:
    return CliRunner(env=environment).invoke(command_of("everything", everything), arguments)


def values(*arguments: str, **environment: str) -> dict[str, Any]:
    failure = run(*arguments, **environment).exception
    assert isinstance(failure, Called), failure
    return failure.args[0]


DEFAULTS = {
    "name": "x", "more": None, "count": 3, "share": None, "colour": Colour.RED, "other_colour": None,
    "loud": False, "safe": None, "words": None, "place": None, "plain": 0,
}  # fmt: skip


def test_what_is_left_out_has_its_default() -> None:
    assert values("x") == DEFAULTS


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (("a.txt", "b.txt"), "more", [Path("a.txt"), Path("b.txt")]),
        (("--count", "9"), "count", 9),
        (("-n", "1"), "count", 1),
        (("--share", "0.5"), "share", 0.5),
        (("--colour", "dark-blue"), "colour", Colour.DARK_BLUE),
        (("--other-colour", "red"), "other_colour", Colour.RED),
        (("--loud",), "loud", True),
        (("--safe",), "safe", True),
        (("--no-safe",), "safe", False),
        (("--words", "a", "--words", "b"), "words", ["a", "b"]),
        (("--place", "there"), "place", Path("there")),
        (("--plain", "-4"), "plain", -4),
    ],
)
def test_a_value_arrives_as_its_type(arguments: tuple[str, ...], name: str, value: object) -> None:
    found = values("x", *arguments)
    assert found == DEFAULTS | {name: value}
    assert type(found[name]) is type(value)


def test_an_option_may_come_from_the_environment() -> None:
    assert values("x", A_PLACE="here")["place"] == Path("here")
    assert values("x", "--place", "there", A_PLACE="here")["place"] == Path("there")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument 'NAME'"),
        (("x", "--count", "0"), "0 is not in the range 1<=x<=9"),
        (("x", "--count", "two"), "'two' is not a valid integer"),
        (("x", "--share", "-1"), "-1.0 is not in the range x>=0"),
        (("x", "--colour", "green"), "'green' is not one of 'red', 'dark-blue'"),
        (("x", "--no-loud"), "No such option"),
        (("x", "--words"), "requires an argument"),
    ],
)
def test_a_wrong_value_is_named(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_help_tells_arguments_types_and_defaults() -> None:
    words = " ".join(run("--help").output.split())
    for part in (
        "Usage: everything [OPTIONS] NAME [MORE]...", "Do everything.",
        "NAME What it is called. [required]", "[MORE]... Further files.",
        "-n, --count INTEGER RANGE How many. [default: 3; 1<=x<=9]",
        "--colour [red|dark-blue] [default: red]",
        "--safe / --no-safe", "--words WORD", "--place PATH [env var: A_PLACE]",
    ):  # fmt: skip
        assert part in words, part
