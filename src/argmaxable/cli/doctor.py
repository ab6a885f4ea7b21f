"""argmaxable doctor: a check-up of output layers, before or after fine-tuning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click

from argmaxable.cli import options
from argmaxable.cli.notices import NoticeFormat, NoticesAs, StepSummary, in_format, require_one_format
from argmaxable.cli.option_groups import takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.progress import progress_bar
from argmaxable.core.domains import AUTO, parse_domain_or_auto
from argmaxable.core.labels import visible
from argmaxable.core.progress import Progress
from argmaxable.doctor.diagnosis import Checkup
from argmaxable.doctor.examine import Tests, examine
from argmaxable.doctor.wording import as_record, describe
from argmaxable.questions.arithmetic.formats import Float


@takes_groups
def doctor(
    models: Annotated[list[str], Argument(metavar="MODEL", help="One or more models, as for verify.")],
    domain: Annotated[
        str,
        Option(
            help="Inputs of the head to consider, as for verify; auto: what the file proves, else box:100."
        ),
    ] = AUTO,
    dtype: Annotated[
        Float | None,
        Option(help="Format in which logits are computed (default: the one the weights are stored in)."),
    ] = None,
    time_limit: Annotated[
        float, Option(help="Verify suspicious classes of a model for at most this many seconds.")
    ] = 60.0,
    as_json: options.Json = False,
    form: NoticesAs = None,
    summary: StepSummary = None,
    *,
    source: options.ModelOptions,
) -> None:
    """Find rows that stand out: untrained, duplicated, zero.

    Finds rows at the mean of all rows (new tokens that nobody trained), end tokens that can never be
    predicted, a bias of the wrong length, and numbers that are not finite. Says what each finding means and
    what to do. Verifies suspicious classes only; use verify for all classes.

    \b
    Examples:
      argmaxable doctor models/my-llama
      argmaxable doctor model.onnx other.safetensors --json
      argmaxable doctor model.onnx --format sarif > doctor.sarif

    \b
    Exit codes: 0 no concerns, 1 some, 2 bad input.
    """
    require_one_format(form, as_json=as_json)
    tests = Tests(parse_domain_or_auto(domain), dtype, time_limit)
    checkups: list[Checkup] = []
    with progress_bar("examining") as progress:
        for done, model in enumerate(models):
            progress(Progress("examining", done, len(models), note=visible(model)))
            checkups.append(examine(source.of(model).find(), model, tests))
    if as_json:
        click.echo(json.dumps({"models": [as_record(checkup) for checkup in checkups]}))
    else:
        text = "\n\n".join("\n".join(describe(checkup)) for checkup in checkups)
        click.echo(text if form is None else _in_format(form, text, models, checkups, summary))
    raise click.exceptions.Exit(1 if any(checkup.concerns for checkup in checkups) else 0)


def _in_format(
    form: NoticeFormat, text: str, models: list[str], checkups: list[Checkup], summary: Path | None
) -> str:
    from argmaxable.workflow.gate.notices import doctor_rules, notices_of_checkup  # few runs need it

    found = [notices_of_checkup(checkup, model) for checkup, model in zip(checkups, models, strict=True)]
    return in_format(form, text.split("\n"), found, rules=doctor_rules(checkups), summary=summary)
