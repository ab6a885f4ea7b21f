"""argmaxable sets: which sets of labels a model can never put out, with proof."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.answers import write_file
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.places import require_file_place, require_folder_place
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.set_options import SetOptions
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Head
from argmaxable.report.answer import domain_line, domain_record
from argmaxable.report.sets import describe_every, describe_sets, every_record, sets_record
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model

if TYPE_CHECKING:
    from argmaxable.core.label_sets import LabelSets, SetTest
    from argmaxable.core.progress import ProgressCallback
    from argmaxable.questions.sets.every import EverySet
    from argmaxable.run.plan import Engine


@dataclass(frozen=True, eq=False)
class _Asked:
    """The model, the question, and its answer: about the sets, about every set, or both."""

    found: FoundModel
    head: Head
    sets: LabelSets | None
    every: EverySet | None


@takes_groups
def sets(
    model: options.Model,
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="Label sets: .jsonl (a list of labels a line), .csv (a set a line) or .npz (a sparse "
            "matrix, examples × labels, as scipy.sparse.save_npz writes it).",
        ),
    ] = None,
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    *,
    asked: SetOptions,
    work: Annotated[options.EngineOptions, Only("workers")],
    time_limit: options.TimeLimit = None,
    output: Annotated[Path | None, Option(help="Write a proof bundle of the sets into this folder.")] = None,
    report: Annotated[Path | None, Option(help="Write a page about the sets into this .html file.")] = None,
    everything: Annotated[
        bool, Option("--all", help="List all sets that can never be predicted, not only 20.")
    ] = False,
    as_json: options.Json = False,
    source: options.ModelOptions,
) -> None:
    """Tell which sets of labels MODEL can never predict.

    \b
    Examples:
      argmaxable sets model.onnx train.jsonl
      argmaxable sets model.onnx train.npz --probability 0.3 --output proofs
      argmaxable sets model.tflite --random 2 --count 10000 --kind top
      argmaxable sets model.onnx --all-pairs
      argmaxable sets model.onnx --active 3 --count 5000

    \b
    Exit codes: 0 all can be predicted, 1 some can never be, 2 bad input,
    3 some undecided, interrupted or, with --active, open.
    """
    asked.require_one_question(file)
    require_folder_place("--output", output)
    require_file_place("--report", report)
    test = asked.test()
    with progress_bar("reading the model") as progress:
        found = find_model(source.of(model), domain)
        answer = _answer(asked, test, found, file, work.engine(), time_limit, progress)
    lines = list(_written(answer, output, report, model))
    if as_json:
        click.echo(json.dumps(_record(answer)))
    else:
        click.echo("\n".join([*_said(answer, everything), *lines]))
    raise click.exceptions.Exit(_exit_code(answer))


def _answer(
    asked: SetOptions,
    test: SetTest,
    found: FoundModel,
    file: Path | None,
    engine: Engine,
    time_limit: float | None,
    progress: ProgressCallback,
) -> _Asked:
    # The solvers, which nobody needs whose input is wrong.
    from argmaxable.questions.sets.every import EverySet, EveryStatus, every_set, why_all_feasible
    from argmaxable.questions.sets.sets import sets as ask

    head = found.head()
    test.require_labels(head.classes)
    if asked.active is not None:
        every = every_set(
            head, found.domain, active=asked.active, kind=test.kind, thresholds=test.thresholds,
            tries=asked.count, seed=asked.seed, engine=engine, time_limit=time_limit, progress=progress,
        )  # fmt: skip
        return _Asked(found, head, every.tried, every)
    why = why_all_feasible(head, found.domain, test, 2) if asked.all_pairs else ""
    if why:
        return _Asked(found, head, None, EverySet(2, EveryStatus.PROVEN, why))
    chosen = asked.chosen(file, head)
    answered = ask(
        head, found.domain, chosen.sets, counts=chosen.counts, kind=test.kind, thresholds=test.thresholds,
        engine=engine, time_limit=time_limit, progress=progress,
    )  # fmt: skip
    return _Asked(found, head, answered, None)


def _written(answer: _Asked, output: Path | None, report: Path | None, model: str) -> Iterator[str]:
    """Write bundle and page where there are sets to write; yields what was written."""
    if answer.sets is None:
        return
    if output is not None:
        from argmaxable.proofs.sets import write_sets

        write_sets(answer.sets, output)
        choices = options.chosen_by(answer.found.ref)
        check = shlex.join(["argmaxable", "check", str(output), model, *choices])
        yield f"Proofs: {output} (re-check them with: {check})"
    if report is not None:
        from argmaxable.report.page.html import sets_page

        yield write_file(sets_page(answer.sets, answer.found.domain_source), report)


def _said(answer: _Asked, everything: bool) -> Iterator[str]:
    source = answer.found.domain_source
    if answer.every is not None:
        yield from describe_every(answer.every)
    elif answer.sets is not None:
        yield from describe_sets(answer.sets, source, everything=everything)
    yield domain_line(answer.found.domain, source)


def _record(answer: _Asked) -> dict[str, Any]:
    head, found = answer.head, answer.found
    record: dict[str, Any] = {"model": head.name, "labels": head.classes, "features": head.features}
    record |= domain_record(found.domain, found.domain_source)
    if answer.every is not None:
        record["every"] = every_record(answer.every)
    return record if answer.sets is None else record | sets_record(answer.sets)


def _exit_code(answer: _Asked) -> int:
    """0 all can be predicted, 1 some can never be, 3 some undecided, interrupted or open."""
    if answer.every is not None:
        return {"proven": 0, "refuted": 1, "open": 3}[answer.every.status.value]
    assert answer.sets is not None
    if answer.sets.having(Feasibility.UNDECIDED) or not answer.sets.is_complete:
        return 3
    return 1 if answer.sets.having(Feasibility.INFEASIBLE) else 0
