"""The command tree."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from argmaxable.cli.activations import activations
from argmaxable.cli.campaign import campaign
from argmaxable.cli.check import check
from argmaxable.cli.compare import compare
from argmaxable.cli.doctor import doctor
from argmaxable.cli.explain import explain
from argmaxable.cli.export import export
from argmaxable.cli.figure import figure
from argmaxable.cli.import_ import import_
from argmaxable.cli.inspect import inspect
from argmaxable.cli.prevent import prevent
from argmaxable.cli.prune import prune
from argmaxable.cli.random import random
from argmaxable.cli.rank import rank
from argmaxable.cli.ranking import ranking
from argmaxable.cli.regions import regions
from argmaxable.cli.repair import repair
from argmaxable.cli.report import report
from argmaxable.cli.runs import runs
from argmaxable.cli.serve import serve
from argmaxable.cli.show import show
from argmaxable.cli.table import table
from argmaxable.cli.verify import verify
from argmaxable.core.version import VERSION


class _Commands(TyperGroup):
    """Typer has exit codes of its own for Ctrl-C (130) and a closed pipe (1); here they mean other things."""

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


app.command()(verify)
app.command()(check)
app.command()(inspect)
app.command()(explain)
app.command()(doctor)
app.command()(repair)
app.command()(prune)
app.command()(random)
app.command()(prevent)
app.command()(regions)
app.command()(ranking)
app.command()(rank)
app.command()(activations)
app.command()(runs)
app.command()(show)
app.command()(compare)
app.command()(table)
app.command()(report)
app.command()(serve)
app.command()(export)
app.command()(figure)
app.command("import")(import_)
app.command()(campaign)
