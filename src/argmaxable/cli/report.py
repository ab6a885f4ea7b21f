"""argmaxable report: a run or a proof bundle as a page that one can mail or commit."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import write_file
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.stored_runs import find_run, opened, set_run_number
from argmaxable.core.errors import InputError
from argmaxable.report.page.content import content_of
from argmaxable.report.page.html import page, sets_page
from argmaxable.report.page.markdown import markdown
from argmaxable.report.page.subject import (
    Subject,
    require_same_head,
    subject_of_bundle,
    subject_of_run,
)
from argmaxable.report.page.weights import weights_of

if TYPE_CHECKING:
    from argmaxable.core.head import Head


class ReportFormat(StrEnum):
    """What a report can be written as."""

    HTML = "html"
    MARKDOWN = "markdown"


@takes_groups
def report(
    named: Annotated[
        str,
        Argument(
            metavar="RUN|BUNDLE",
            help="Number of a stored run, a model's name for its newest run, sets:NUMBER for stored sets of "
            "labels, or a proof bundle's folder.",
        ),
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="File to write (default: print it).")
    ] = None,
    form: Annotated[
        ReportFormat, Option("--format", help="A page for a browser, or text for a model card.")
    ] = ReportFormat.HTML,
    model: Annotated[
        str | None,
        Option(help="The model that was verified: adds norms and spectrum of its weights to the page."),
    ] = None,
    *,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, *options.HUB)],
    db: options.Database = None,
) -> None:
    """Write a page about a stored run or a proof bundle.

    One file that needs no network and no other file.

    \b
    Examples:
      argmaxable report 3 -o report.html
      argmaxable report proofs --model model.onnx -o report.html
      argmaxable report model.onnx --format markdown >> README.md

    \b
    Exit codes: 0 written, 2 bad input.
    """
    target = None if output == Path("-") else output
    number = set_run_number(named)
    if number is not None:
        if model is not None or form is not ReportFormat.HTML:
            raise InputError("a report about sets is a page for a browser: leave out --model and --format.")
        _write(_page_about_sets(number, db), target)
        return
    with progress_bar("writing the report"):
        subject = _subject(named, db)
        head = None
        if model is not None:
            head = source.of(model).load()
            require_same_head(subject, head, model)
        text = _text(subject, form, head)
    _write(text, target)


def _page_about_sets(number: int, db: str | None) -> str:
    with opened(db) as store:
        return sets_page(store.sets.read(number), store.sets.run(number).domain_source)


def _subject(named: str, db: str | None) -> Subject:
    # A model's name may happen to be a folder's, so only one with a manifest is taken for a bundle.
    if (Path(named) / "manifest.json").is_file():
        return subject_of_bundle(named)
    with opened(db) as store:
        return subject_of_run(store, find_run(store, named))


def _text(subject: Subject, form: ReportFormat, head: Head | None) -> str:
    content = content_of(subject)
    if form is ReportFormat.MARKDOWN:
        return markdown(content)
    return page(content, None if head is None else weights_of(head))


def _write(text: str, target: Path | None) -> None:
    """As UTF-8 whatever the terminal speaks: the page says that it is."""
    if target is None:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    else:
        click.echo(write_file(text, target))
