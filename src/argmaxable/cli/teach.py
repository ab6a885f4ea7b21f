"""argmaxable teach: new rows for classes that a model does not read, from examples, written back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import write_file
from argmaxable.cli.example_options import ExampleOptions
from argmaxable.cli.option_groups import Only, OptionGroup, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.places import require_file_place
from argmaxable.cli.progress import progress_bar
from argmaxable.core.errors import InputError
from argmaxable.edit.teach.plan import DEFAULT_SECONDS, TeachingRules, targets_of
from argmaxable.edit.teach.plan import teach as teach_head
from argmaxable.models.write import (
    notes_on_growth,
    place_of_new_classes,
    require_editable,
    require_writable,
)
from argmaxable.questions.argmax import verify
from argmaxable.questions.explain.choose import class_ids
from argmaxable.report.answer import domain_line, domain_record
from argmaxable.report.page.teaching import teaching_page
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model
from argmaxable.workflow.teaching import lines_of, page_of, record_of
from argmaxable.workflow.write_back import write_back

if TYPE_CHECKING:
    from argmaxable.core.head import Head
    from argmaxable.core.progress import ProgressCallback
    from argmaxable.edit.teach.plan import Taught
    from argmaxable.run.plan import Engine
    from argmaxable.workflow.example_set import ExampleSet


@dataclass(frozen=True)
class LessonOptions(OptionGroup):
    """What to teach, and what it may cost."""

    all_unargmaxable: Annotated[
        bool,
        Option("--all-unargmaxable", help="Teach every class that can never be predicted and has examples."),
    ] = False
    add: Annotated[
        list[str] | None,
        Option(metavar="LABEL", help="Append a class that the model never had; repeatable."),
    ] = None
    look_alikes: Annotated[
        bool,
        Option("--look-alikes", help="Also teach classes that look like another class to the model."),
    ] = False
    max_change: Annotated[
        float | None,
        Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Write nothing if more than this share of ordinary inputs may change, by the 95 % bound.",
        ),
    ] = None
    blank: Annotated[
        int | None,
        Option(help="Blank class of a sequence model (default: 0 if inputs have several rows)."),
    ] = None
    seed: Annotated[int, Option(min=0, help="Random seed for held-out inputs and first negatives.")] = 0


@dataclass(frozen=True)
class OutcomeOptions(OptionGroup):
    """What is written."""

    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Where to write the taught copy, in MODEL's format."),
    ] = None
    dry_run: Annotated[bool, Option("--dry-run", help="Show the outcome without writing a model.")] = False
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the output if it exists.")] = False
    report: Annotated[
        Path | None,
        Option(metavar="FILE", help="Write a page that shows held-out examples before and after."),
    ] = None

    def target(self) -> Path | None:
        """Where the model goes; raises InputError before any work where that is not said or can't be."""
        if self.output is None and not self.dry_run:
            raise InputError(
                "where should the taught model go? Pass -o OUT, or --dry-run to see the outcome."
            )
        require_file_place("--report", self.report)
        return None if self.dry_run else self.output

    def write_report(self, taught: Taught, examples: ExampleSet) -> list[str]:
        """Write the page if one is wanted, and say so."""
        if self.report is None:
            return []
        return [write_file(teaching_page(page_of(taught, examples, taught.before.name)), self.report)]


@takes_groups
def teach(
    model: options.Model,
    classes: Annotated[
        list[str] | None,
        Argument(
            metavar="CLASS",
            help="Numbers or labels of classes to teach; label:7 for the class whose label is 7.",
        ),
    ] = None,
    *,
    files: OutcomeOptions,
    given: ExampleOptions,
    lesson: LessonOptions,
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    time_limit: Annotated[
        float, Option(help="Give up after this many seconds and write nothing.")
    ] = DEFAULT_SECONDS,
    work: Annotated[options.EngineOptions, Only("workers")],
    as_json: options.Json = False,
    source: Annotated[options.ModelOptions, Only(*options.TENSORS, "labels")],
) -> None:
    """Teach MODEL classes that it does not read, from examples.

    One new row of the output layer for each class is fitted to the model's own features. Nothing else
    changes: the network is not trained. Before anything is written it is proven that every taught class can
    be predicted, and every class that could before; how often inputs read differently is measured on held-out
    ones.

    \b
    Examples:
      argmaxable teach rec.onnx 嫖 --font A.ttf --held-out-font C.ttf -o new.onnx
      argmaxable teach model.onnx 37 é --features examples.npz -o new.onnx
      argmaxable teach rec.onnx --all-unargmaxable --font A.ttf -o new.onnx
      argmaxable teach rec.onnx --add 赟 --font A.ttf --font B.ttc#2 -o new.onnx

    \b
    Exit codes: 0 taught (or planned), 2 bad input or nothing could be taught,
    3 interrupted.
    """
    target = files.target()
    found = find_model(source.of(model), domain)
    if files.output is not None:
        require_writable(model, found.finding, files.output, overwrite=files.overwrite)
    head = found.head()
    if files.output is not None:
        require_editable(found.finding, head, is_growing=bool(lesson.add))
    with progress_bar() as progress:
        taught, examples = _taught(
            found, head, classes or [], given, lesson,
            seconds=time_limit, engine=work.engine(), progress=progress,
        )  # fmt: skip
    if target is not None:
        write_back(found, taught.before, taught.after, target, overwrite=files.overwrite)
    said = [*(f"note        {note}" for note in examples.notes), *files.write_report(taught, examples)]
    lines = [_json(found, taught, examples, target)] if as_json else [*_lines(found, taught, target), *said]
    click.echo("\n".join(lines))


def _taught(
    found: FoundModel,
    head: Head,
    named: list[str],
    given: ExampleOptions,
    lesson: LessonOptions,
    *,
    seconds: float,
    engine: Engine,
    progress: ProgressCallback,
) -> tuple[Taught, ExampleSet]:
    if not named and not lesson.add and not lesson.all_unargmaxable:
        raise InputError("nothing to teach: name classes, or pass --all-unargmaxable or --add LABEL.")
    chosen, before = class_ids(head, named), None
    if lesson.all_unargmaxable:
        before = verify(head, found.domain, engine=engine, time_limit=seconds, progress=progress)
        chosen = sorted({*chosen, *before.class_ids[before.status == "unargmaxable"].tolist()})
    add = lesson.add or []
    targets_of(head, chosen, add, lesson.blank)  # a mistake is told before the model runs on examples
    wanted = [*(head.label(class_id) for class_id in chosen), *add]
    examples = given.gather(found, head, wanted, seed=lesson.seed, progress=progress)
    if lesson.all_unargmaxable:
        chosen = _with_examples(head, chosen, class_ids(head, named), examples)
    blank = lesson.blank if lesson.blank is not None else 0 if examples.training.is_sequential else None
    rules = TeachingRules(
        blank=blank, allow_look_alikes=lesson.look_alikes, max_change=lesson.max_change,
        add_at=place_of_new_classes(found.finding), seed=lesson.seed,
    )  # fmt: skip
    return teach_head(
        head, found.domain, examples.training, chosen, add=add, held_out=examples.held_out, rules=rules,
        before=before, time_limit=seconds, engine=engine, progress=progress,
    ), examples  # fmt: skip


def _with_examples(head: Head, chosen: list[int], named: list[int], examples: ExampleSet) -> list[int]:
    """The unargmaxable classes that have examples to learn from, and those named."""
    labels = set(examples.training.labels)
    found = [class_id for class_id in chosen if class_id in named or head.label(class_id) in labels]
    if not found:
        raise InputError(f"no example of any of the {len(chosen):,} classes that can never be predicted.")
    return found


def _lines(found: FoundModel, taught: Taught, written: Path | None) -> list[str]:
    is_grown = taught.after.classes > taught.before.classes
    return [
        *lines_of(taught),
        domain_line(found.domain, found.domain_source),
        *(f"note        {note}" for note in (notes_on_growth(found.finding) if is_grown else [])),
        "nothing was written (--dry-run)" if written is None else f"written to {written}",
    ]


def _json(found: FoundModel, taught: Taught, examples: ExampleSet, written: Path | None) -> str:
    about = {"model": taught.before.name, **domain_record(found.domain, found.domain_source)}
    outcome = {"notes": examples.notes, "output": None if written is None else str(written)}
    return json.dumps(about | record_of(taught) | outcome)
