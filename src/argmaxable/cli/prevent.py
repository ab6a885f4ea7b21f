"""argmaxable prevent: show that equal norms, or a bias of −|w|²/2, leave no class unargmaxable."""

from __future__ import annotations

from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import exit_code
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.models.random_heads import Distribution, random_head, with_equal_norms, with_voronoi_bias
from argmaxable.questions.argmax import verify as verify_head
from argmaxable.report.text import summary


def prevent(
    classes: Annotated[int, Option(help="Number of classes.")] = 500,
    dim: Annotated[int, Option(help="Number of features.")] = 10,
    seed: Annotated[int, Option(help="Seed of the random head.")] = 0,
    distribution: Annotated[Distribution, Option(help="How weights are drawn.")] = Distribution.NORMAL,
    bias: Annotated[bool, Option("--bias", help="Use the bias b = -|w|^2/2 instead of equal norms.")] = False,
    off: Annotated[bool, Option("--off", help="Leave the random head as it is, for comparison.")] = False,
    time_limit: options.TimeLimit = None,
) -> None:
    """Show how equal norms, or a bias, let every class win.

    Every class of a random head can win once rows have equal norms, or the bias is -|w|^2/2.

    \b
    Examples:
      argmaxable prevent --classes 500 --dim 10
      argmaxable prevent --classes 500 --dim 10 --bias
      argmaxable prevent --classes 500 --dim 10 --off

    \b
    Exit codes: 0 when it shows what it says (with --off: some classes are
    unargmaxable), 1 when it does not, 2 bad input, 3 undecided.
    """
    head = random_head(classes, dim, seed=seed, distribution=distribution, bias=bias)
    if not off:
        head = with_voronoi_bias(head) if bias else with_equal_norms(head)
    with progress_bar() as progress:
        result = verify_head(head, time_limit=time_limit, progress=progress)
    click.echo("\n".join(summary(result)))
    code = exit_code(result)
    if off and code in (0, 1):
        code = 0 if result.unargmaxable else 1
        if code:
            click.echo(
                "Every class can win here even without prevention: try more classes or fewer features."
            )
    raise click.exceptions.Exit(code)
