"""argmaxable export: a stored run for other programs, or as a proof bundle for other people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from argmaxable.cli import options
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.proofs.bundle import write_bundle
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


_AS_TEXT: dict[ExportFormat, Callable[[Iterable[Row], TextIO], None]] = {
    ExportFormat.JSONL: write_jsonl,
    ExportFormat.CSV: write_csv,
}


def export(
    run: options.StoredRun,
    form: Annotated[
        ExportFormat | None,
        typer.Option(
            "--format",
            help="A row for each verdict, or a bundle with all proofs (default: as the output's suffix says, "
            "else jsonl).",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File, or folder of a bundle (default: print jsonl or csv)."),
    ] = None,
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
    form = form or _format_of(target)
    if target is None and form not in _AS_TEXT:
        raise InputError(f"--format {form.value} can't be printed. Pass --output PATH.")
    with opened(db) as store:
        found = find_run(store, run)
        if form is ExportFormat.BUNDLE and target is not None:
            _write_bundle(store, found, target)
        else:
            _write_rows(store, found, form, target)


def _format_of(target: Path | None) -> ExportFormat:
    """What the suffix of a file says; JSON lines where it says nothing."""
    suffix = "" if target is None else target.suffix.lower().removeprefix(".")
    return next((form for form in ExportFormat if form.value == suffix), ExportFormat.JSONL)


def _write_bundle(store: Store, found: RunSummary, folder: Path) -> None:
    if found.state is State.IMPORTED:
        raise InputError(
            f"run {found.run_id} holds published verdicts without evidence: there is nothing to put into a "
            "bundle. Export it as csv, jsonl or parquet."
        )
    write_bundle(store.read(found.run_id), folder)


def _write_rows(store: Store, found: RunSummary, form: ExportFormat, target: Path | None) -> None:
    rows = as_rows(found.facts.name, store.verdicts(found.run_id, with_evidence=False))
    if target is None:
        _AS_TEXT[form](rows, sys.stdout)
        return
    try:
        if form is ExportFormat.PARQUET:
            write_parquet(rows, target)
        else:
            with target.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream:
                _AS_TEXT[form](rows, stream)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror or error}.") from error
