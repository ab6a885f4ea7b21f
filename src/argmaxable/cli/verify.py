"""argmaxable verify: a proven verdict for every class of a model's output layer."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.answers import parse_classes, write_file
from argmaxable.cli.ceiling import Ceiling, Question, Temperature, TopP, ceiling_remarks, question
from argmaxable.cli.data import DataOptions
from argmaxable.cli.gate import GateOptions
from argmaxable.cli.option_groups import OptionGroup, takes_groups
from argmaxable.cli.parameters import Option
from argmaxable.cli.places import require_file_place, require_folder_place
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.queries import QueryOptions
from argmaxable.cli.remarks import Remarks, remarks_on
from argmaxable.cli.top_k import TopK, require_places, top_k_remarks
from argmaxable.core.errors import InputError
from argmaxable.core.result import Result
from argmaxable.core.select import Selection
from argmaxable.core.verdict import Algorithm
from argmaxable.questions.arithmetic.formats import Float
from argmaxable.report.text import as_record, summary
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT
from argmaxable.workflow.verify_model import ModelVerdicts, Request, answer

_EPILOG = """\b
Examples:
  argmaxable verify model.onnx
  argmaxable verify head.npz --domain box:0:inf --output proofs
  argmaxable verify model.onnx --only 3,17,20-40 --json
  argmaxable verify model.onnx --dtype bf16
  argmaxable verify model.onnx --round-to int8
  argmaxable verify model.onnx --ceiling --temperature 0.7 --top-p 0.9
  argmaxable verify model.onnx --top-k 5 --output proofs
  argmaxable verify model.onnx --data corpus.txt
  argmaxable verify items.npy --queries users.npy
  argmaxable verify model.onnx --baseline baseline.json --format github

\b
Exit codes: 0 all argmaxable, 1 some unargmaxable, 2 bad input, 3 some
undecided or interrupted. With --baseline only classes that became
unargmaxable fail the run; classes listed in --allow never do. --fail-on sets
the rule.
"""


@dataclass(frozen=True)
class ClassOptions(OptionGroup):
    """Which classes to verify."""

    only: Annotated[str | None, Option(help="Classes to verify, e.g. 3,17,20-40.")] = None
    tokens: Annotated[list[str] | None, Option(help="Label of a class to verify; repeatable.")] = None
    script: Annotated[str | None, Option(help="Verify classes in this script: latin, cyrillic, han, …")] = (
        None
    )
    skip_special: Annotated[
        bool, Option("--skip-special", help="Skip special tokens such as <s> and [CLS].")
    ] = False
    skip_padding: Annotated[bool, Option("--skip-padding", help="Skip rows without a label.")] = False

    def selection(self) -> Selection:
        return Selection(
            only=None if self.only is None else tuple(parse_classes(self.only)),
            tokens=tuple(self.tokens or ()),
            script=self.script,
            skip_special=self.skip_special,
            skip_padding=self.skip_padding,
        )


@dataclass(frozen=True)
class CeilingOptions(OptionGroup):
    """What to tell about probabilities."""

    ceiling: Ceiling = False
    temperature: Temperature = None
    top_p: TopP = None

    def question(self) -> Question | None:
        return question(self.ceiling, self.temperature, self.top_p)


@dataclass(frozen=True)
class OutputOptions(OptionGroup):
    """What is written besides the answer on stdout, which is text or JSON."""

    output: Annotated[Path | None, Option(help="Write a proof bundle into this folder.")] = None
    rational: Annotated[
        bool,
        Option(
            "--rational",
            help="Solve for the exact weights of proofs and write them as whole numbers, for checkers that "
            "only add and compare (docs/checker.py).",
        ),
    ] = False
    report: Annotated[Path | None, Option(help="Write a page about the run into this .html file.")] = None
    everything: options.All = False
    as_json: options.Json = False

    def require_places(self) -> None:
        if self.rational and self.output is None:
            raise InputError("--rational needs --output FOLDER.")
        require_folder_place("--output", self.output)
        require_file_place("--report", self.report)

    def write_proofs(self, result: Result) -> None:
        """Write the proof bundle, if one is wanted."""
        if self.output is None:
            return
        from argmaxable.proofs.bundle import write_bundle  # every kind of claim, with its check
        from argmaxable.proofs.rationals import with_rational_weights

        write_bundle(with_rational_weights(result) if self.rational else result, self.output)


@takes_groups
def verify(
    model: options.Model,
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    *,
    queries: QueryOptions,
    classes: ClassOptions,
    method: Annotated[
        Algorithm, Option(help="Run one algorithm alone; auto combines several.")
    ] = Algorithm.AUTO,
    patience: Annotated[
        int | None, Option(help="Reflection steps (default 30; 2500 with --method reflection).")
    ] = None,
    work: options.EngineOptions,
    seed: Annotated[int, Option(help="Random seed; changes the evidence found, never a verdict.")] = 0,
    time_limit: options.TimeLimit = None,
    dtype: Annotated[
        Float | None,
        Option(help="Also decide which classes win when logits are computed in this format."),
    ] = None,
    round_to: options.RoundTo = None,
    probabilities: CeilingOptions,
    top_k: TopK = None,
    own: DataOptions,
    written: OutputOptions,
    gate: GateOptions,
    source: options.ModelOptions,
    stored: options.StoreOptions,
) -> None:
    """Prove for every class of MODEL whether it can ever be predicted."""
    require_places(top_k)
    written.require_places()
    own.require_files()
    judge = gate.judge(stored.db, as_json=written.as_json)
    asked = probabilities.question()
    request = Request(
        source.of(model), queries.domain_or(domain), classes.selection(), method=method, patience=patience,
        seed=seed, round_to=round_to,
    )  # fmt: skip
    with progress_bar("reading the model") as progress, stored.opened() as store:
        done = answer(
            request, store=store, overwrite=stored.overwrite, engine=work.engine(), time_limit=time_limit,
            progress=progress,
        )  # fmt: skip
    result, output = done.result, written.output
    written.write_proofs(result)
    ceilings, is_complete = ceiling_remarks(asked, done, output=output, time_limit=time_limit)
    places = top_k_remarks(top_k, done, output=output, time_limit=time_limit, engine=work.engine())
    ruling = judge(result)
    remarks = [
        queries.remarks(done), remarks_on(result, dtype), ceilings, places, own.remarks(result, model),
        gate.remarks(ruling),
    ]  # fmt: skip
    lines = _answer(request, done, written, remarks)
    click.echo(gate.printed(ruling, model, lines))
    raise click.exceptions.Exit(ruling.exit_code if is_complete or gate.never_fails else 3)


verify.__doc__ = f"{verify.__doc__}\n\n{_EPILOG}"


def _answer(
    request: Request, done: ModelVerdicts, written: OutputOptions, remarks: Sequence[Remarks]
) -> list[str]:
    """What is printed, a line with the JSON object if that is wanted; writes the page too."""
    page = None if written.report is None else write_file(_page(done.result, written.output), written.report)
    if written.as_json:
        record = as_record(done.result) | {"run": done.run_id}
        return [json.dumps(functools.reduce(dict.__or__, (each.record for each in remarks), record))]
    more = [line for each in remarks for line in each.lines]
    hints = _hints(request, done, written.output)
    return [
        *summary(done.result, everything=written.everything),
        *more,
        *hints,
        *([] if page is None else [page]),
    ]


def _hints(request: Request, done: ModelVerdicts, output: Path | None) -> list[str]:
    """What to do next."""
    lines, inputs = [], done.finding.inputs
    known = None if inputs is None else inputs.domain
    if request.domain != DEFAULT_DOMAIN_TEXT and known is not None and known != done.result.domain:
        lines.append(f"The file itself proves the domain {known}, which --domain auto uses.")
    if done.finding.activation == "sigmoid":
        lines.append(
            "The output is a sigmoid. This answer is about whether a label can score highest, not whether it "
            "can be on, or together with which labels. `argmaxable sets` decides that."
        )
    if done.was_known:
        lines.append(f"Already stored as run {done.run_id}; --overwrite verifies it again.")
    elif done.run_id is not None:
        more = "" if done.result.is_complete else "; the same command resumes it"
        lines.append(f"Stored as run {done.run_id} (argmaxable show {done.run_id}){more}.")
    if output is not None:
        check = shlex.join(["argmaxable", "check", str(output), str(request.ref.model), *_choices(request)])
        lines.append(f"Proofs: {output} (re-check them with: {check})")
    return lines


def _page(result: Result, output: Path | None) -> str:
    # Templates and their engine, which few runs need.
    from argmaxable.report.page.content import content_of
    from argmaxable.report.page.html import page
    from argmaxable.report.page.subject import subject_of_result
    from argmaxable.report.page.weights import weights_of

    return page(content_of(subject_of_result(result, str(output or "proofs"))), weights_of(result.head))


def _choices(request: Request) -> list[str]:
    """The options by which the head was found, for another command to find it again."""
    rounded = [] if request.round_to is None else ["--round-to", str(request.round_to)]
    return [*options.chosen_by(request.ref), *rounded]
