"""argmaxable export: a stored run for other programs, or as a proof bundle for other people."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from argmaxable.cli import options
from argmaxable.cli.csv_options import Safe, csv_style
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Option
from argmaxable.cli.statements import StatementOptions, write_for_solvers
from argmaxable.cli.stored_runs import find_run, opened, require_evidence, set_run_number
from argmaxable.core.errors import InputError
from argmaxable.proofs.bundle import write_bundle
from argmaxable.proofs.sets import write_sets
from argmaxable.proofs.statements.write import StatementFormat
from argmaxable.report.csv_table import CsvStyle
from argmaxable.report.parquet import write_parquet
from argmaxable.report.rows import Row, as_rows, write_csv, write_jsonl

if TYPE_CHECKING:
    from argmaxable.store import RunSummary, Store


class ExportFormat(StrEnum):
    """What a run can be written as."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    BUNDLE = "bundle"
    SMT2 = StatementFormat.SMT2
    VIPR = StatementFormat.VIPR


_AS_TEXT = (ExportFormat.JSONL, ExportFormat.CSV)


@takes_groups
def export(
    run: options.StoredRun,
    form: Annotated[
        ExportFormat | None,
        Option(
            "--format",
            help="A row for each verdict; a bundle with all proofs; or for each unargmaxable class over a"
            " box a file for SMT solvers (smt2) or, with its proof, for VIPR's checker (vipr)."
            " Default: from the output's suffix, else jsonl.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "--output", "-o", help="File, or folder for bundle, smt2 and vipr (default: print jsonl or csv)."
        ),
    ] = None,
    safe: Safe = None,
    db: options.Database = None,
    *,
    statements: StatementOptions,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, *options.HUB)],
) -> None:
    """Write the verdicts of a stored run for other programs.

    A bundle is what `verify --output` writes: anyone can re-check it with `argmaxable check`.
    With smt2 and vipr, RUN may also be a bundle's folder. Neither holds weights: pass the model too.

    \b
    Examples:
      argmaxable export 3 --format csv -o verdicts.csv
      argmaxable export 3 | jq -r 'select(.status == "unargmaxable").label'
      argmaxable export model.onnx --format bundle -o proofs
      argmaxable export sets:1 --format bundle -o proofs
      argmaxable export 3 --format smt2 --model model.onnx -o statements
      argmaxable export proofs --format vipr --model model.onnx -o certificates

    \b
    Exit codes: 0 written, 2 bad input, 3 some classes have no VIPR certificate.
    """
    target = None if output == Path("-") else output
    form = form or _format_of(target)
    if target is None and form not in _AS_TEXT:
        raise InputError(f"--format {form.value} can't be printed. Pass --output PATH.")
    if form in (ExportFormat.SMT2, ExportFormat.VIPR) and target is not None:
        write_for_solvers(run, StatementFormat(form.value), target, statements, source=source, db=db)
        return
    statements.require_none()
    number = set_run_number(run)
    if number is not None:
        _write_sets(number, form, target, db)
        return
    with opened(db) as store:
        found = find_run(store, run)
        if form is ExportFormat.BUNDLE and target is not None:
            _write_bundle(store, found, target)
        else:
            _write_rows(store, found, form, target, csv_style(safe, is_printed=target is None))


def _format_of(target: Path | None) -> ExportFormat:
    """What the suffix of a file says; JSON lines where it says nothing."""
    suffix = "" if target is None else target.suffix.lower().removeprefix(".")
    return next((form for form in ExportFormat if form.value == suffix), ExportFormat.JSONL)


def _write_sets(number: int, form: ExportFormat, target: Path | None, db: str | None) -> None:
    if form is not ExportFormat.BUNDLE or target is None:
        raise InputError("sets are exported as a bundle: pass --format bundle --output FOLDER.")
    with opened(db) as store:
        write_sets(store.sets.read(number), target)


def _write_bundle(store: Store, found: RunSummary, folder: Path) -> None:
    require_evidence(found)
    write_bundle(store.read(found.run_id), folder)


def _write_rows(
    store: Store, found: RunSummary, form: ExportFormat, target: Path | None, style: CsvStyle
) -> None:
    rows = as_rows(found.facts.name, store.verdicts(found.run_id, with_evidence=False))
    if target is None:
        _write_text(rows, form, sys.stdout, style)
        return
    try:
        if form is ExportFormat.PARQUET:
            write_parquet(rows, target)
        else:
            with target.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                _write_text(rows, form, stream, style)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror or error}.") from error


def _write_text(rows: Iterable[Row], form: ExportFormat, stream: TextIO, style: CsvStyle) -> None:
    if form is ExportFormat.CSV:
        write_csv(rows, stream, style)
    else:
        write_jsonl(rows, stream)
