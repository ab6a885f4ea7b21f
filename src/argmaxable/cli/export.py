"""argmaxable export: a stored run for other programs, or as a proof bundle for other people."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from argmaxable.cli import options
from argmaxable.cli.csv_options import Safe, csv_style
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.proofs.bundle import write_bundle
from argmaxable.report.csv_table import CsvStyle
from argmaxable.report.parquet import write_parquet
from argmaxable.report.rows import Row, as_rows, write_csv, write_jsonl
from argmaxable.store import RunSummary, State

if TYPE_CHECKING:
    from argmaxable.store import Store


class ExportFormat(StrEnum):
    """What a run can be written as."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    BUNDLE = "bundle"


_AS_TEXT = (ExportFormat.JSONL, ExportFormat.CSV)


def export(
    run: options.StoredRun,
    form: Annotated[
        ExportFormat, typer.Option("--format", help="A row for each verdict, or a bundle with all proofs.")
    ] = ExportFormat.JSONL,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File, or folder of a bundle (default: print jsonl or csv)."),
    ] = None,
    safe: Safe = None,
    db: options.Database = None,
) -> None:
    """Write the verdicts of a stored run for other programs.

    A bundle is what `verify --output` writes: anyone can re-check it with `argmaxable check`.

    \b
    Examples:
      argmaxable export 3 --format csv -o verdicts.csv
      argmaxable export 3 | jq -r 'select(.status == "unargmaxable").label'
      argmaxable export model.onnx --format bundle -o proofs

    \b
    Exit codes: 0 written, 2 bad input.
    """
    target = None if output == Path("-") else output
    if target is None and form not in _AS_TEXT:
        raise InputError(f"--format {form.value} can't be printed. Pass --output PATH.")
    with opened(db) as store:
        found = find_run(store, run)
        if form is ExportFormat.BUNDLE and target is not None:
            _write_bundle(store, found, target)
        else:
            _write_rows(store, found, form, target, csv_style(safe, is_printed=target is None))


def _write_bundle(store: Store, found: RunSummary, folder: Path) -> None:
    if found.state is State.IMPORTED:
        raise InputError(
            f"run {found.run_id} holds published verdicts without evidence: there is nothing to put into a "
            "bundle. Export it as csv, jsonl or parquet."
        )
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
