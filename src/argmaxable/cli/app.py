"""The command tree: every command by its group, name and a line of help; its module loads when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from argmaxable.core.errors import InputError
from argmaxable.core.version import VERSION

# The command NAME is the function NAME of the module argmaxable.cli.NAME; its docstring opens with this line,
# which fits beside its name in a terminal of 80 columns.
GROUPS = {
    "Verify": {
        "verify": "Prove for every class of MODEL whether it can ever be predicted.",
        "check": "Re-check a proof bundle, exactly and without a solver.",
        "campaign": "Verify the models listed in FILE, one after another.",
    },
    "Understand": {
        "inspect": "Show the output layer found in MODEL and what feeds it.",
        "explain": "Say what keeps a class from winning, or how safely it wins.",
        "doctor": "Name rows that stand out: untrained, duplicated, zero.",
        "observe": "Grade classes by what examples show, beside what is proven.",
        "ranking": "Decide whether any input ranks the classes in this order.",
    },
    "Fix": {
        "repair": "Change MODEL as little as possible so that every class can win.",
        "teach": "Teach MODEL classes that it does not read, from examples.",
        "prune": "Write the output layer without the classes that never win.",
    },
    "Runs": {
        "runs": "List stored runs, newest first, or delete some.",
        "show": "Show what a stored run found, or has found so far.",
        "compare": "Tell which classes changed from one model or run to another.",
        "table": "Write stored runs as a table for a paper.",
        "report": "Write a page about a stored run or a proof bundle.",
        "serve": "Show stored runs and a playground in the browser.",
        "export": "Write the verdicts of a stored run for other programs.",
        "store": "Check that a database of runs is sound.",
        "import": "Store verdicts that others published, to compare with.",
    },
    "Theory": {
        "random": "Verify a random head, and compare with Qhull where it can.",
        "prevent": "Show that equal norms, or a certain bias, free every class.",
        "regions": "Count the rankings that a head of a given size can put out.",
        "rank": "Measure the rank of a model's log-probabilities.",
        "activations": "Measure the range of the output layer's inputs over a text.",
        "figure": "Draw the papers' figures, of examples, models or runs.",
    },
}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}


def command(name: str) -> Any:
    """The command with all its options; loads what it is made of."""
    word = f"{name}_" if iskeyword(name) else name
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(getattr(import_module(f"argmaxable.cli.{word}"), word))
    return typer.main.get_command(alone)


# Newer versions of Typer have their own copy of click, whose names are not public.
_UsageError: Any = typer.BadParameter.__base__


@contextmanager
def _mistakes_as_errors_of_ours() -> Iterator[None]:
    """A wrong option ends in the same kind of line as a wrong file does."""
    try:
        yield
    except _UsageError as error:
        where = "argmaxable" if error.ctx is None else error.ctx.command_path
        message = error.format_message()
        end = "" if message.endswith((".", "?")) else "."
        raise InputError(f"{message}{end} `{where} --help` lists what it takes.") from None


class _Commands(TyperGroup):
    """Commands that are loaded when invoked; until then their line of help stands for them.

    Typer has exit codes of its own for Ctrl-C (130) and a closed pipe (1); here they mean other things.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else command(name), rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for name, group in GROUPS.items():
            with formatter.section(name):
                formatter.write_dl(list(group.items()))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        if not args:  # asks for help
            return super().make_context(info_name, args, parent, **extra)
        with _mistakes_as_errors_of_ours():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        try:
            with _mistakes_as_errors_of_ours():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("argmaxable: interrupted.", err=True)
            raise typer.Exit(3) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None


app = typer.Typer(
    cls=_Commands,
    name="argmaxable",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"argmaxable {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Prove, for every class of a classifier's output layer, that it can be the argmax or never can."""
