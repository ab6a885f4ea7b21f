"""argmaxable check: re-check a proof bundle against its model, without a solver."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.claim import Recheck
from argmaxable.core.head import Head
from argmaxable.core.verdict import Status, Verdict
from argmaxable.proofs.bundle import read_all
from argmaxable.proofs.in_words import not_compared
from argmaxable.proofs.kind import Bundle
from argmaxable.proofs.recheck import recheck
from argmaxable.proofs.verdicts import VERDICTS
from argmaxable.questions.arithmetic.formats import rounded

Bundles = tuple[Bundle[Any, Any], ...]

_MOST_FAILURES = 20


@takes_groups
def check(
    bundle: Annotated[
        Path,
        Argument(metavar="BUNDLE", help="Folder that `argmaxable verify --output` or `sets --output` wrote."),
    ],
    model: options.Model,
    *,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, "labels", *options.HUB)],
    round_to: options.RoundTo = None,
    rational: Annotated[
        bool,
        Option(
            "--rational",
            help="Also prove each unargmaxable class by rational numbers alone: about 0.1 s per "
            "class with 120 features, 6 s with 576.",
        ),
    ] = False,
) -> None:
    """Re-check a proof bundle, exactly and without a solver.

    The counts, labels and file names that the bundle states are compared too.

    \b
    Examples:
      argmaxable check proofs model.onnx
      argmaxable check proofs model.onnx --rational

    \b
    Exit codes: 0 every claim is proven, 1 some claim is not, or the bundle
    contradicts itself or the model, 2 bad input, 3 nothing is wrong but some
    classes are undecided or missing.
    """
    bundles = read_all(bundle)
    head = source.of(model).load()
    if round_to is not None:
        head = rounded(head, round_to)
    with progress_bar("checking") as progress:
        outcomes = [recheck(one, head, rational=rational, progress=progress) for one in bundles]
    for one, found in zip(bundles, outcomes, strict=True):
        click.echo("\n".join(_said(one, found, head)))
    if rational and bundles[0].kind is VERDICTS:
        click.echo(_said_of_rationals(bundles[0].claims, outcomes[0]))
    for what in dict.fromkeys(what for one in bundles for what in not_compared(one, head)):
        click.echo(f"Not compared: {what}.")
    if any(found.failures or found.contradictions for found in outcomes):
        raise click.exceptions.Exit(1)
    raise click.exceptions.Exit(3 if any(found.undecided or found.missing for found in outcomes) else 0)


def _said(bundle: Bundle[Any, Any], found: Recheck, head: Head) -> Iterator[str]:
    """The outcome in words, the same for every kind of claim."""
    kind, total = bundle.kind, len(bundle.claims) + found.missing
    yield f"{found.proven:,} of {total:,} {kind.plural} proven{kind.scope(bundle)}."
    failed = {failure.key for failure in found.failures}
    proven = [
        claim
        for claim in bundle.claims
        if kind.key(claim) not in failed and not kind.states_nothing(claim, head)
    ]
    summary = kind.summary(proven, bundle)
    if summary:
        yield summary
    if found.undecided or found.missing:
        missing = f", {found.missing:,} classes without a {kind.noun}" if kind.covers_every_class else ""
        yield f"{found.undecided:,} undecided{missing}."
    for failure in found.failures[:_MOST_FAILURES]:
        yield f"{kind.subject(failure.key)}: {kind.noun} NOT PROVEN: {failure.why}."
    if len(found.failures) > _MOST_FAILURES:
        yield f"… and {len(found.failures) - _MOST_FAILURES:,} more."
    for contradiction in found.contradictions:
        yield f"{kind.files.header} is NOT TRUE: {contradiction}."


def _said_of_rationals(verdicts: tuple[Verdict, ...], found: Recheck) -> str:
    unargmaxable = {verdict.class_id for verdict in verdicts if verdict.status is Status.UNARGMAXABLE}
    proven = unargmaxable - {failure.key for failure in found.failures}
    return f"{len(proven):,} of {len(unargmaxable):,} unargmaxable classes proven by rational numbers alone."
