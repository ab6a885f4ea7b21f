"""The command tree."""

from __future__ import annotations

import typer

from argmaxable.cli.check import check
from argmaxable.cli.prevent import prevent
from argmaxable.cli.random import random
from argmaxable.cli.verify import verify
from argmaxable.version import VERSION

app = typer.Typer(
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


app.command()(verify)
app.command()(check)
app.command()(random)
app.command()(prevent)
