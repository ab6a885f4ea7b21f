"""argmaxable check: re-check a proof bundle against its model, without a solver."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from argmaxable.cli import options
from argmaxable.cli.ceiling import check_ceilings
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.top_k import check_ranks
from argmaxable.core.head import Head
from argmaxable.core.verdict import Status
from argmaxable.proofs.bundle import Bundle, read_bundle
from argmaxable.proofs.recheck import Recheck, recheck
from argmaxable.questions.arithmetic.formats import rounded

_MOST_FAILURES = 20


@takes_groups
def check(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="Folder that `argmaxable verify --output` wrote.")
    ],
    model: options.Model,
    *,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, *options.HUB)],
    round_to: options.RoundTo = None,
    rational: Annotated[
        bool,
        typer.Option(
            "--rational",
            help="Also prove each unargmaxable class by rational numbers alone: about 0.1 s a class "
            "with 120 features, 6 s with 576, eight times as long for twice the features.",
        ),
    ] = False,
) -> None:
    """Re-check every verdict of a proof bundle, exactly and without a solver.

    \b
    Examples:
      argmaxable check proofs model.onnx
      argmaxable check proofs model.onnx --rational

    \b
    Exit codes: 0 every claim is proven, 1 some claim is not, 2 bad input,
    3 nothing is wrong but some classes are undecided or missing.
    """
    claims = read_bundle(bundle)
    head = source.of(model).load()
    if round_to is not None:
        head = rounded(head, round_to)
    found = _recheck_in_rationals(claims, head) if rational else recheck(claims, head)
    typer.echo(f"{found.proven:,} of {head.classes:,} verdicts proven over the domain {claims.domain}.")
    if rational:
        never = {claim.class_id for claim in claims.claims if claim.status is Status.UNARGMAXABLE}
        proven = len(never - {failure.class_id for failure in found.failures})
        typer.echo(f"{proven:,} of {len(never):,} unargmaxable classes proven by rational numbers alone.")
    if found.undecided or found.missing:
        typer.echo(f"{found.undecided:,} undecided, {found.missing:,} classes without a verdict.")
    for failure in found.failures[:_MOST_FAILURES]:
        typer.echo(f"class {failure.class_id}: NOT PROVEN: {failure.why}.")
    if len(found.failures) > _MOST_FAILURES:
        typer.echo(f"… and {len(found.failures) - _MOST_FAILURES:,} more.")
    failed = bool(found.failures)
    for check_more in (check_ceilings, check_ranks):
        failed |= check_more(bundle, head)
    raise typer.Exit(1 if failed else 3 if found.undecided or found.missing else 0)


def _recheck_in_rationals(claims: Bundle, head: Head) -> Recheck:
    with progress_bar() as progress:
        return recheck(claims, head, rational=True, progress=progress)
