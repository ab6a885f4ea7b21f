"""argmaxable card: what a model's card says about classes that it can never predict."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import write_file
from argmaxable.cli.option_groups import takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.stored_runs import find_run, opened
from argmaxable.report.card import metadata, section, whole_card
from argmaxable.report.page.content import content_of
from argmaxable.report.page.subject import Subject, subject_of_bundle, subject_of_result, subject_of_run
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT

if TYPE_CHECKING:
    from argmaxable.report.page.content import Content


class CardPart(StrEnum):
    """What to write."""

    CARD = "card"
    SECTION = "section"
    METADATA = "metadata"


@takes_groups
def card(
    named: Annotated[
        str,
        Argument(
            metavar="MODEL|RUN|BUNDLE",
            help="Model file or directory, number of a stored run or the name of its model, or a proof "
            "bundle's folder.",
        ),
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="File to write (default: print it).")
    ] = None,
    part: Annotated[
        CardPart,
        Option(help="The whole card, its section in Markdown, or the metadata for its YAML header."),
    ] = CardPart.CARD,
    task: Annotated[
        str, Option(help="Task of the model in the metadata, by the hub's name: image-to-text, …")
    ] = "other",
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    *,
    source: options.ModelOptions,
    work: options.EngineOptions,
    stored: options.StoreOptions,
) -> None:
    """Write a model card's section about classes never predicted.

    A model is verified first, unless a finished run of it is stored. The metadata
    is a model-index entry for the Hugging Face hub.

    \b
    Examples:
      argmaxable card model.onnx -o README.md
      argmaxable card 3 --part section >> README.md
      argmaxable card 3 --part metadata --task image-to-text

    \b
    Exit codes: 0 written, 2 bad input.
    """
    with progress_bar("reading the model") as progress:
        if (Path(named) / "manifest.json").is_file():
            subject = subject_of_bundle(named)
        elif Path(named).exists():
            from argmaxable.workflow.verify_model import Request, answer  # every format

            request = Request(source.of(named), domain)
            with stored.opened() as store:
                done = answer(
                    request, store=store, overwrite=stored.overwrite, engine=work.engine(), progress=progress
                )
            subject = subject_of_result(done.result)
        else:
            subject = _stored(named, stored.db)
    text = _text(content_of(subject), part, task)
    if output is None or output == Path("-"):
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    else:
        click.echo(write_file(text, output))


def _stored(named: str, db: str | None) -> Subject:
    with opened(db) as store:
        return subject_of_run(store, find_run(store, named))


def _text(content: Content, part: CardPart, task: str) -> str:
    if part is CardPart.SECTION:
        return section(content)
    return metadata(content, task) if part is CardPart.METADATA else whole_card(content, task)
