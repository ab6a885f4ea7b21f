"""The command tree: every command by its group, name and a line of help; its module loads when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

from argmaxable.cli.parameters import command_of
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
        "explain": "Explain what blocks a class, or how safely it wins.",
        "doctor": "Find rows that stand out: untrained, duplicated, zero.",
        "sets": "Decide which sets of labels MODEL can never predict.",
        "observe": "Measure which classes win on examples.",
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
        "compare": "Show which classes changed between models or runs.",
        "table": "Write stored runs as a table for a paper.",
        "report": "Write a page about a stored run or a proof bundle.",
        "card": "Write a model card's section about classes never predicted.",
        "serve": "Show stored runs and a playground in the browser.",
        "export": "Write the verdicts of a stored run for other programs.",
        "store": "Check that a database of runs is sound.",
        "import": "Import published verdicts, for comparison.",
    },
    "Theory": {
        "random": "Verify a random head, and compare with Qhull if possible.",
        "prevent": "Show how equal norms, or a bias, let every class win.",
        "regions": "Count the rankings that a head of a given size can produce.",
        "rank": "Measure the rank of a model's log-probabilities.",
        "activations": "Measure the range of the output layer's inputs over a text.",
        "figure": "Draw the papers' figures from examples, models or runs.",
    },
}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}


def command(name: str) -> click.Command:
    """The command with all its options; loads what it is made of."""
    word = f"{name}_" if iskeyword(name) else name
    return command_of(name, getattr(import_module(f"argmaxable.cli.{word}"), word))


def _in_words(error: click.UsageError) -> str:
    if not isinstance(error, click.NoSuchOption):
        return error.format_message()
    return f"No such option {error.option_name}.{_correction(error.option_name, error.possibilities or ())}"


def _correction(word: str, known: Iterable[str]) -> str:
    """A question about what was meant, if some word is close."""
    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


@contextmanager
def _mistakes_as_errors_of_ours() -> Iterator[None]:
    """A wrong option ends in the same kind of line as a wrong file does."""
    try:
        yield
    except click.UsageError as error:
        where = "argmaxable" if error.ctx is None else error.ctx.command_path
        message = _in_words(error)
        end = "" if message.endswith((".", "?")) else "."
        raise InputError(f"{message}{end} See `{where} --help`.") from None


class _Commands(click.Group):
    """Commands that are loaded when invoked; until then their line of help stands for them.

    Click has an exit code of its own for Ctrl-C and a closed pipe (1), which means something else here.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]}.{_correction(args[0], self.commands)}", ctx)
        name, found, rest = super().resolve_command(ctx, args)
        return name, found if name is None else command(name), rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name, group in GROUPS.items():
            with formatter.section(name):
                formatter.write_dl(list(group.items()))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if not args:  # asks for help
            return super().make_context(info_name, args, parent, **extra)
        with _mistakes_as_errors_of_ours():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _mistakes_as_errors_of_ours():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("argmaxable: interrupted.", err=True)
            raise click.exceptions.Exit(3) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None


app = _Commands(
    "argmaxable",
    help="Prove, for every class of a classifier's output layer, that it can be the argmax or that "
    "it never can.",
    commands={name: click.Command(name, help=line) for name, line in COMMANDS.items()},
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app = click.version_option(VERSION, prog_name="argmaxable", message="%(prog)s %(version)s")(app)
