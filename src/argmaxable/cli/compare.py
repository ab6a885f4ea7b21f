"""argmaxable compare: what changed between two models or stored runs, or from one to several others."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.csv_options import Safe, csv_style
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.core.errors import InputError
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.report.changes import changes_grid
from argmaxable.report.grid import GridFormat, as_text, render
from argmaxable.report.side_by_side import Side, describe_pair, describe_sides, pair_record, sides_grid
from argmaxable.workflow.compare_models import CompareRequest, models_in, sides_of
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT

if TYPE_CHECKING:
    from argmaxable.report.csv_table import CsvStyle
    from argmaxable.store import Store


@takes_groups
def compare(
    names: Annotated[
        list[str],
        Argument(
            metavar="BASE OTHER",
            help="Models as for verify, numbers of stored runs, or models' names for their newest runs; a "
            "directory stands for its .gguf files.",
        ),
    ],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    dtype: Annotated[
        Float | None,
        Option(help="Also name classes that only just win when logits are computed in this format."),
    ] = None,
    form: Annotated[
        GridFormat | None,
        Option("--format", help="Write the classes that changed, or a row for each model, as a table."),
    ] = None,
    fail_on_new: Annotated[
        bool,
        Option(
            "--fail-on-new", help="Exit with 1 if a class became unargmaxable, or is new and unargmaxable."
        ),
    ] = False,
    safe: Safe = None,
    time_limit: Annotated[
        float | None, Option(help="Verify each model for at most this many seconds.")
    ] = None,
    *,
    work: Annotated[options.EngineOptions, Only("workers", "memory")],
    stored: options.StoreOptions,
    as_json: options.Json = False,
) -> None:
    """Show which classes changed between models or runs.

    One model before and after fine-tuning or quantisation, or over two domains. Models are verified first,
    unless the database has their verdicts. Classes are matched by label where both have labels, otherwise by
    number.

    \b
    Examples:
      argmaxable compare model.onnx model.int8.onnx
      argmaxable compare 3 4 --json
      argmaxable compare 3 4 --format csv > changes.csv
      argmaxable compare f16.gguf q8_0.gguf q4_0.gguf --dtype fp16
      argmaxable compare main/model.onnx model.onnx --fail-on-new

    \b
    Exit codes: 0 compared, 1 with --fail-on-new: some class became
    unargmaxable, 2 bad input, 3 with --fail-on-new: none did, but some run is
    not finished.
    """
    if as_json and form is not None:
        raise InputError("--json and --format can't be used together.")
    request = CompareRequest(domain, dtype, work.engine(), time_limit, stored.overwrite)
    chosen = models_in(names)
    with _store(stored, chosen) as store, progress_bar() as progress:
        sides = sides_of(chosen, store, request, find_run=find_run, progress=progress)
    click.echo(_said(sides, form, csv_style(safe), as_json=as_json))
    raise click.exceptions.Exit(_exit_code(sides) if fail_on_new else 0)


@contextmanager
def _store(stored: options.StoreOptions, chosen: Sequence[str]) -> Iterator[Store]:
    """The database; with --no-db one that does not last, since only runs can be compared."""
    if not stored.no_db:
        read_only = all(name.isdecimal() for name in chosen)  # runs by number: nothing is verified
        with opened(stored.db, read_only=read_only) as store:
            yield store
        return
    with TemporaryDirectory() as folder, opened(str(Path(folder) / "runs.db"), read_only=False) as store:
        yield store


def _said(sides: Sequence[Side], form: GridFormat | None, style: CsvStyle, *, as_json: bool) -> str:
    base, *others = sides
    if as_json:
        records = [pair_record(base, other) for other in others]
        return json.dumps(records[0] if len(others) == 1 else {"comparisons": records})
    if form is not None:
        grid = sides_grid(sides) if len(others) > 1 else changes_grid(others[0].changed)
        return render(grid, form, style).rstrip("\n")
    if len(others) > 1:
        return "\n".join([*as_text(sides_grid(sides)), *describe_sides(sides)])
    return "\n".join(describe_pair(base, others[0]))


def _exit_code(sides: Sequence[Side]) -> int:
    if any(side.became_unargmaxable for side in sides):
        return 1
    return 3 if any(side.run.counts.open for side in sides[1:]) else 0
