"""Statements for other people's solvers, which `argmaxable export` makes of a stored run or a bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import parse_classes
from argmaxable.cli.option_groups import OptionGroup
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.stored_runs import find_run, opened, require_evidence
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.verdict import Status, Verdict
from argmaxable.proofs.bundle import read_bundle
from argmaxable.proofs.statements.write import StatementFormat, Written, write_statements
from argmaxable.proofs.verdicts import VERDICTS
from argmaxable.questions.arithmetic.formats import rounded

_MOST_NAMED = 20


@dataclass(frozen=True)
class StatementOptions(OptionGroup):
    """What statements are made of, besides verdicts."""

    model: Annotated[
        str | None,
        Option(metavar="MODEL", help="For smt2 and vipr: the model that the verdicts are about."),
    ] = None
    only: Annotated[str | None, Option(help="For smt2 and vipr: only these classes, e.g. 3,17,20-40.")] = None
    round_to: options.RoundTo = None

    def require_none(self) -> None:
        """Raise InputError if any is given, for formats that need none."""
        if any(value is not None for value in vars(self).values()):
            raise InputError("--model, --only and --round-to only work with --format smt2 and --format vipr.")

    def head(self, source: options.ModelOptions) -> Head:
        """The head with the weights that statements hold. Raises InputError."""
        if self.model is None:
            raise InputError("a statement needs the weights, which a run does not store. Pass --model MODEL.")
        head = source.of(self.model).load()
        return head if self.round_to is None else rounded(head, self.round_to)


@dataclass(frozen=True)
class _Proofs:
    """Verdicts with evidence, from wherever they are."""

    name: str
    sha256: object
    domain: Domain
    verdicts: Sequence[Verdict]


def write_for_solvers(
    proofs: str,
    form: StatementFormat,
    folder: Path,
    wanted: StatementOptions,
    *,
    source: options.ModelOptions,
    db: str | None,
) -> None:
    """Write a file for each unargmaxable class of a run or bundle, and say so. Exits with 3 when some class
    got none."""
    head = wanted.head(source)
    found = _find(proofs, db)
    if found.sha256 != head.sha256():
        raise InputError(
            f"the verdicts of {found.name} are about another head: its SHA-256 is {found.sha256}, that of "
            f"{head.name} is {head.sha256()}."
        )
    chosen = None if wanted.only is None else set(parse_classes(wanted.only))
    verdicts = [
        verdict
        for verdict in found.verdicts
        if verdict.status is Status.UNARGMAXABLE and (chosen is None or verdict.class_id in chosen)
    ]
    with progress_bar() as progress:
        written = write_statements(head, found.domain, verdicts, folder, form, progress=progress)
    click.echo(_said(written, form, folder))
    if written.left_out:
        raise click.exceptions.Exit(3)


def _find(named: str, db: str | None) -> _Proofs:
    """The verdicts of a bundle's folder, or else of a stored run."""
    if (Path(named) / VERDICTS.files.header).is_file():
        bundle = read_bundle(named)
        return _Proofs(named, bundle.sha256, bundle.domain, bundle.claims)
    with opened(db) as store:
        run = find_run(store, named)
        require_evidence(run)
        unargmaxable = tuple(store.verdicts(run.run_id, status=Status.UNARGMAXABLE))
    return _Proofs(f"run {run.run_id}", run.facts.sha256, run.domain, unargmaxable)


def _said(written: Written, form: StatementFormat, folder: Path) -> str:
    count = len(written.classes)
    said = (
        f"{count:,} unargmaxable {'class' if count == 1 else 'classes'} written to {folder} as {form.value}."
    )
    if not written.left_out:
        return said
    some = ", ".join(map(str, written.left_out[:_MOST_NAMED]))
    more = ", …" if len(written.left_out) > _MOST_NAMED else ""
    return (
        f"{said} {len(written.left_out):,} left out, whose weights could not be made exact ({some}{more}): "
        "--format smt2 needs no weights."
    )
