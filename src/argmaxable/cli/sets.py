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
from argmaxable.report.sets import describe_every, describe_sets, every_record, sets_record, stored_line
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model

if TYPE_CHECKING:
    from argmaxable.core.label_sets import LabelSets, SetTest
    from argmaxable.core.progress import ProgressCallback
    from argmaxable.questions.sets.every import EverySet
    from argmaxable.run.plan import Engine


@dataclass(frozen=True, eq=False)
class _Asked:
    """The model, the question, and its answer: about the sets, about every set, or both; and where the answer
    is stored, if it is."""

    found: FoundModel
    head: Head
    sets: LabelSets | None
    every: EverySet | None
    run_id: int | None = None
    was_known: bool = False


@takes_groups
def sets(
    model: options.Model,
    file: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="Label sets: .jsonl (a list of labels per line), .csv (a set per line) or .npz (a sparse "
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
    stored: options.StoreOptions,
    source: options.ModelOptions,
) -> None:
    """Decide which sets of labels MODEL can never predict.

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
        task = _Task(asked, test, found, work.engine(), time_limit, progress)
        answer = task.about_every() if asked.active is not None else task.about_sets(file, stored)
    lines = list(_written(answer, output, report, model))
    if as_json:
        click.echo(json.dumps(_record(answer)))
    else:
        click.echo("\n".join([*_said(answer, everything), *lines]))
    raise click.exceptions.Exit(_exit_code(answer))


@dataclass(frozen=True, eq=False)
class _Task:
    """A question about a model, and how it is worked on. Both ways to answer load the solvers, which nobody
    needs whose input is wrong."""

    asked: SetOptions
    test: SetTest
    found: FoundModel
    engine: Engine
    time_limit: float | None
    progress: ProgressCallback

    def _head(self) -> Head:
        head = self.found.head()
        self.test.require_labels(head.classes)
        return head

    def about_every(self) -> _Asked:
        """Answer for every set of at most K labels; such answers are not stored."""
        from argmaxable.questions.sets.every import every_set

        head, asked, test = self._head(), self.asked, self.test
        assert asked.active is not None
        every = every_set(
            head, self.found.domain, active=asked.active, kind=test.kind, thresholds=test.thresholds,
            tries=asked.count, seed=asked.seed, engine=self.engine, time_limit=self.time_limit,
            progress=self.progress,
        )  # fmt: skip
        return _Asked(self.found, head, every.tried, every)

    def about_sets(self, file: Path | None, stored: options.StoreOptions) -> _Asked:
        """About sets that are named one by one."""
        from argmaxable.compute.prepared import prepared
        from argmaxable.questions.sets.every import EverySet, EveryStatus, why_all_feasible
        from argmaxable.workflow.stored_run import Origin
        from argmaxable.workflow.stored_sets import SetQuestion, ask_stored

        head, found = self._head(), self.found
        why = why_all_feasible(head, found.domain, self.test, 2) if self.asked.all_pairs else ""
        if why:
            return _Asked(found, head, None, EverySet(2, EveryStatus.PROVEN, why))
        chosen = self.asked.chosen(file, head)
        sets = dict(zip(chosen.sets, chosen.counts, strict=True))
        with stored.opened() as store:
            done = ask_stored(
                SetQuestion(prepared(head), found.domain, self.test, sets), store,
                origin=Origin(found.origin, domain_source=found.domain_source), overwrite=stored.overwrite,
                engine=self.engine, time_limit=self.time_limit, progress=self.progress,
            )  # fmt: skip
        return _Asked(found, head, done.found, None, done.run_id, done.was_known)


def _written(answer: _Asked, output: Path | None, report: Path | None, model: str) -> Iterator[str]:
    """Write bundle and page where there are sets to write; yields what was written."""
    if answer.sets is None:
        for place in filter(None, (output, report)):
            why = "a condition on the rows settles all sets at once, so no single set was tried"
            click.echo(f"argmaxable: {place} is not written: {why}.", err=True)
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
    if answer.run_id is not None:
        yield stored_line(answer.run_id, was_known=answer.was_known, is_complete=_is_complete(answer))


def _record(answer: _Asked) -> dict[str, Any]:
    head, found = answer.head, answer.found
    record: dict[str, Any] = {"model": head.name, "labels": head.classes, "features": head.features}
    record |= domain_record(found.domain, found.domain_source)
    if answer.every is not None:
        record["every"] = every_record(answer.every)
    if answer.run_id is not None:
        record["run"] = f"sets:{answer.run_id}"
    return record if answer.sets is None else record | sets_record(answer.sets)


def _is_complete(answer: _Asked) -> bool:
    return answer.sets is None or answer.sets.is_complete


def _exit_code(answer: _Asked) -> int:
    """0 all can be predicted, 1 some can never be, 3 some undecided, interrupted or open."""
    if answer.every is not None:
        return {"proven": 0, "refuted": 1, "open": 3}[answer.every.status.value]
    assert answer.sets is not None
    if answer.sets.having(Feasibility.UNDECIDED) or not answer.sets.is_complete:
        return 3
    return 1 if answer.sets.having(Feasibility.INFEASIBLE) else 0
