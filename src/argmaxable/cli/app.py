"""The command tree: every command by its name and a line of help; its module loads when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from keyword import iskeyword
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from argmaxable.core.version import VERSION

# The command NAME is the function NAME of the module argmaxable.cli.NAME; its docstring opens with this line.
COMMANDS = {
    "verify": "Tell for every class of MODEL's output layer whether any input can make it the argmax.",
    "check": "Re-check every claim of a proof bundle, exactly and without a solver.",
    "inspect": "Show the output layer found in MODEL, what else it could be, and how to choose.",
    "explain": "Explain classes: what holds them down and by how much, or by how much they can win.",
    "doctor": "Name rows of MODEL's output layer that stand out: untrained, zero, duplicated, of odd norm or "
    "bias.",
    "repair": "Change MODEL's output layer as little as possible so that unargmaxable classes can be the "
    "argmax.",
    "prune": "Write MODEL's output layer without the classes that no input of the domain can make the "
    "argmax.",
    "random": "Verify a random head; without bias and up to 9 features compare with Qhull.",
    "prevent": "Show that every class of a random head can win once rows have equal norms, or the bias is "
    "-|w|^2/2.",
    "regions": "Print how many rankings of C classes a generic head with d features can put out.",
    "ranking": "Decide whether any input ranks the classes in exactly this order, and prove it.",
    "rank": "Measure the rank of log P, at most d + 1 for a linear softmax head with d features (d + 2 with "
    "a bias).",
    "activations": "Measure the range of what reaches MODEL's output layer over a text.",
    "runs": "List stored runs, newest first, or delete some.",
    "show": "Show what a stored run found, or has found so far.",
    "compare": "Tell which classes changed their verdict from one model or stored run to another.",
    "table": "Write stored runs as a table: what each model is, how many classes it can never predict, the "
    "effort.",
    "report": "Write a report of a stored run or of a proof bundle: one file that needs no network and no "
    "other file.",
    "serve": "Show stored runs in a browser: what was found, why, how far a run is; and a playground to try "
    "heads.",
    "export": "Write the verdicts of a stored run for other programs.",
    "figure": "Draw a figure, or with NAME all the whole set, as SVG, PNG or PDF.",
    "store": "Check that a database of runs is sound: all of it can be read and agrees with itself.",
    "import": "Store verdicts that others published, as claims without evidence, to compare with.",
    "campaign": "Verify the models listed in FILE one after another, past those that fail.",
}


def command(name: str) -> Any:
    """The command with all its options; loads what it is made of."""
    word = f"{name}_" if iskeyword(name) else name
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(name)(getattr(import_module(f"argmaxable.cli.{word}"), word))
    return typer.main.get_command(alone)


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

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
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
