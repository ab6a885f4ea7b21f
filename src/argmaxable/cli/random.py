"""argmaxable random: draw a random head, verify it, and compare with Qhull where that is possible."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import exit_code
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.domains import parse_domain
from argmaxable.core.verdict import Algorithm
from argmaxable.models.random_heads import Distribution, random_head
from argmaxable.questions.argmax import verify as verify_head
from argmaxable.report.text import summary


def random(
    classes: Annotated[int, Option(help="Number of classes.")] = 20,
    dim: Annotated[int, Option(help="Number of features.")] = 2,
    seed: Annotated[int, Option(help="Seed of the random head.")] = 0,
    distribution: Annotated[Distribution, Option(help="How weights are drawn.")] = Distribution.NORMAL,
    bias: Annotated[bool, Option("--bias", help="Also draw a bias.")] = False,
    domain: Annotated[
        str,
        Option(help="everywhere, box:R, box:LO:HI, ball:R, hull:FILE.npy, reach:FILE.npz or file:PATH."),
    ] = "box:100",
    method: Annotated[Algorithm, Option(help="Run one algorithm alone.")] = Algorithm.AUTO,
    patience: Annotated[
        int | None, Option(help="Reflection steps (default 30; 2500 with --method reflection).")
    ] = None,
    time_limit: options.TimeLimit = None,
    plot: Annotated[Path | None, Option(help="Draw the hull (2 or 3 features) into this file.")] = None,
) -> None:
    """Verify a random head, and compare with Qhull if possible.

    Qhull needs a head without a bias and with at most 9 features.

    \b
    Examples:
      argmaxable random --classes 300 --dim 8 --seed 3
      argmaxable random --classes 30 --dim 2 --plot hull.png
      argmaxable random --classes 300 --dim 8 --method reflection --patience 50

    \b
    Exit codes: as for verify.
    """
    # Late: Qhull's and matplotlib's modules take a tenth of a second that other commands need not spend.
    from argmaxable.questions.qhull import LARGEST_DIMENSION, compare_with_qhull
    from argmaxable.report.figures.hull import hull, require_drawable
    from argmaxable.report.figures.style import require_format, save

    feature_domain = parse_domain(domain)
    if plot is not None:
        require_drawable(dim)
        require_format(plot)
    head = random_head(classes, dim, seed=seed, distribution=distribution, bias=bias)
    with progress_bar() as progress:
        result = verify_head(
            head, feature_domain, method=method, patience=patience, time_limit=time_limit, progress=progress
        )
    click.echo("\n".join(summary(result)))
    # Only then are the argmaxable classes of a head without bias the vertices of its hull.
    is_comparable = not bias and dim <= LARGEST_DIMENSION and feature_domain.surrounds_origin
    if is_comparable and result.is_complete:
        agreement = compare_with_qhull(result)
        click.echo(agreement.describe())
    if plot is not None:
        save(hull(result), plot)
        click.echo(f"Picture: {plot}")
    raise click.exceptions.Exit(exit_code(result))
