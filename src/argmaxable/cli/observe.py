"""argmaxable observe: which classes win on examples, beside what is proven."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import click

from argmaxable.cli import options
from argmaxable.cli.example_options import ExampleOptions
from argmaxable.cli.option_groups import Only, takes_groups
from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.questions.argmax import verify
from argmaxable.questions.observe.grades import Grade, Observation
from argmaxable.questions.observe.grades import observe as observe_head
from argmaxable.report.answer import counted, domain_line, domain_record
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model
from argmaxable.workflow.teaching import listed, rate_record

if TYPE_CHECKING:
    from argmaxable.core.rate import Rate


@takes_groups
def observe(
    model: options.Model,
    *,
    given: Annotated[ExampleOptions, Only("features", "font", "words", "copies", "images", "preprocess")],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    seed: Annotated[
        int, Option(min=0, help="Random seed for what is held out, if all examples have one source.")
    ] = 0,
    time_limit: options.TimeLimit = None,
    work: Annotated[options.EngineOptions, Only("workers")],
    as_json: options.Json = False,
    source: options.ModelOptions,
) -> None:
    """Measure which classes win on examples.

    Each class wins on some example, was never seen to win, or is proven never to win.
    Only the last is a proof.

    \b
    Examples:
      argmaxable observe model.onnx --features examples.npz
      argmaxable observe rec.onnx --font A.ttf --font B.ttc#2 --copies 6 --json
      argmaxable observe classifier.onnx --images photos

    \b
    Exit codes: 0 graded, 2 bad input.
    """
    found = find_model(source.of(model), domain)
    head = found.head()
    with progress_bar() as progress:
        examples = given.gather_all(found, head, seed=seed, progress=progress)
        result = verify(head, found.domain, engine=work.engine(), time_limit=time_limit, progress=progress)
        seen = observe_head(result, examples, seed=seed)
    click.echo(json.dumps(_record(found, seen)) if as_json else "\n".join(_lines(found, seen)))


def _lines(found: FoundModel, seen: Observation) -> list[str]:
    never = seen.having(Grade.NEVER_SEEN)
    shown = [each for each in never if each.examples]
    proven = [each.label for each in seen.having(Grade.UNARGMAXABLE)]
    lines = [
        f"measured    {counted(len(seen.having(Grade.WINS)))} won on some example",
        f"            {counted(len(never))} never won, but are not proven unable to",
        f"            {counted(len(shown))} of these have examples: {listed([each.label for each in shown])}",
        f"precision   never seen to win: {seen.never_again} did not win on held-out examples either"
        f"{_percent(seen.never_again)}",
        f"            wins: {seen.again} won on held-out examples too{_percent(seen.again)}",
        f"            (held out in turn: {', '.join(seen.folds)})",
        f"proven      {counted(len(proven))} can never be predicted: {listed(proven)}",
    ]
    if seen.outside:
        lines.append(
            f"            but won at {seen.outside:,} rows of examples, which are outside the domain"
        )
    return [*lines, domain_line(found.domain, found.domain_source)]


def _percent(rate: Rate) -> str:
    return f" ({100 * rate.value:.3g} %)" if rate.total else ""


def _record(found: FoundModel, seen: Observation) -> dict[str, Any]:
    return {
        **domain_record(found.domain, found.domain_source),
        "classes": [
            {"class": each.class_id, "label": each.label, "grade": each.grade.name.lower(),
             "examples": each.examples, "read": each.read}
            for each in seen.classes
        ],
        "precision": {"never_seen": rate_record(seen.never_again), "wins": rate_record(seen.again)},
        "folds": list(seen.folds),
        "wins_outside_the_domain": seen.outside,
    }  # fmt: skip
