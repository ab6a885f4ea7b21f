"""Writes statements into a folder, a file for each class."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.check.checker import Checker
from argmaxable.core.errors import InputError
from argmaxable.core.progress import Pace, Progress, ProgressCallback, ignore_progress
from argmaxable.core.verdict import Status, Verdict
from argmaxable.proofs.statements.smt2 import smt2_lines
from argmaxable.proofs.statements.statement import Statement, require_box, statements_of
from argmaxable.proofs.statements.vipr import rational_weights, vipr_lines

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head


class StatementFormat(StrEnum):
    """A language that other people's solvers or checkers read; also the suffix of its files."""

    SMT2 = "smt2"
    VIPR = "vipr"


@dataclass(frozen=True)
class Written:
    """The classes that have a file now, and those whose weights could not be made exact."""

    classes: tuple[int, ...]
    left_out: tuple[int, ...]


def write_statements(
    head: Head,
    domain: Domain,
    verdicts: Sequence[Verdict],
    folder: Path,
    form: StatementFormat,
    *,
    progress: ProgressCallback = ignore_progress,
) -> Written:
    """Write `class-N.smt2` or `class-N.vipr` for each unargmaxable class N of the verdicts into the folder.

    Creates the folder. Raises DomainError unless the domain is a box, BundleError for a certificate that does
    not prove its verdict, InputError when a file can't be written.
    """
    require_box(domain)
    checker = Checker(head, domain)
    total = sum(verdict.status is Status.UNARGMAXABLE for verdict in verdicts)
    pace = Pace()
    classes: list[int] = []
    left_out: list[int] = []
    for done, statement in enumerate(statements_of(checker, verdicts)):
        progress(Progress("statements", done, total, pace.seconds_left(done, total)))
        lines = _lines(checker, statement, form)
        if lines is None:
            left_out.append(statement.class_id)
            continue
        _write(lines, folder / f"class-{statement.class_id}.{form.value}")
        classes.append(statement.class_id)
    return Written(tuple(classes), tuple(left_out))


def _lines(checker: Checker, statement: Statement, form: StatementFormat) -> Iterable[str] | None:
    weights = rational_weights(checker, statement)
    if form is StatementFormat.SMT2:
        return smt2_lines(statement, weights)
    return None if weights is None else vipr_lines(statement, weights)


def _write(lines: Iterable[str], path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise InputError(f"can't write {path}: {error.strerror or error}.") from error
