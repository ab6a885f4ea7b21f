"""argmaxable explain: why a class can never be the argmax and how far off it is, or how safely it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import click
import numpy as np

from argmaxable.cli import options
from argmaxable.cli.option_groups import takes_groups
from argmaxable.cli.parameters import Argument, Option
from argmaxable.cli.places import require_file_place
from argmaxable.cli.progress import progress_bar
from argmaxable.core.domain import Domain
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.core.verdict import Status
from argmaxable.questions.explain.choose import class_ids
from argmaxable.questions.explain.explain import ROUNDS, Explainer
from argmaxable.questions.explain.explanation import Explanation
from argmaxable.questions.explain.wording import as_record, first_lines, last_lines
from argmaxable.report.answer import domain_line
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, FoundModel, find_model


@takes_groups
def explain(
    model: options.Model,
    classes: Annotated[
        list[str],
        Argument(
            metavar="CLASS", help="Numbers or labels of classes; label:7 for the class whose label is 7."
        ),
    ],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    rounds: Annotated[
        int, Option(min=0, help="Number of solves to spend on the best rank of an unargmaxable class.")
    ] = ROUNDS,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Write the input found for each class to this .npy file, one per row."),
    ] = None,
    time_limit: options.TimeLimit = None,
    as_json: options.Json = False,
    *,
    source: options.ModelOptions,
) -> None:
    """Explain what blocks a class, or how safely it wins.

    For a class that can never be predicted: the mixture of classes that beats it, and how far off it is.

    \b
    Examples:
      argmaxable explain model.onnx 37
      argmaxable explain model.onnx é label:7 --domain box:100
      argmaxable explain model.onnx 37 --json -o input.npy

    \b
    Exit codes: 0 all argmaxable, 1 some unargmaxable, 2 bad input, 3 some
    undecided or interrupted.
    """
    if output is not None:
        _require_place(output)
    with progress_bar("reading the model"):
        found = find_model(source.of(model), domain)
        head = found.head()
        chosen = class_ids(head, classes)
    explained, is_complete = _explain(
        head, found.domain, chosen, rounds=rounds, time_limit=time_limit, as_json=as_json
    )
    if output is not None:
        _write_inputs(output, explained, head.features)
    if as_json:
        told = {"model": head.name, "domain_source": found.domain_source.as_record(), "complete": is_complete}
        click.echo(json.dumps(told | {"classes": [as_record(one) for one in explained]}))
    else:
        click.echo("\n".join(_closing(found, len(explained), len(chosen), is_complete)))
    raise click.exceptions.Exit(_exit_code(explained) if is_complete else 3)


def _explain(
    head: Head, domain: Domain, chosen: list[int], *, rounds: int, time_limit: float | None, as_json: bool
) -> tuple[list[Explanation], bool]:
    """Explain the classes as far as time and Ctrl-C allow; and whether all is told. For people each part is
    printed as soon as it is known: the best rank takes longest."""
    explained: list[Explanation] = []
    say = _silent if as_json else _say
    try:
        with progress_bar("finding the verdicts"):
            explainer = Explainer(head, domain, chosen, rounds=rounds, time_limit=time_limit)
        for class_id in chosen:
            if explainer.must_stop:
                return explained, False
            name = visible(head.label(class_id))
            with progress_bar(f"{name}: closing in on its margin"):
                explained.append(explainer.begun(class_id))
            say([*([""] if len(explained) > 1 else []), *first_lines(explained[-1])])
            if explainer.must_stop:
                return explained, False
            with progress_bar(f"{name}: looking for its best rank"):
                explained[-1] = explainer.completed(explained[-1])
            say(last_lines(explained[-1]))
    except KeyboardInterrupt:
        return explained, False
    return explained, True


def _say(lines: list[str]) -> None:
    if lines:
        click.echo("\n".join(lines))  # flushes


def _silent(lines: list[str]) -> None:
    """For JSON, which says it all at the end."""


def _closing(found: FoundModel, explained: int, chosen: int, is_complete: bool) -> list[str]:
    lines = ["", domain_line(found.domain, found.domain_source)]
    if not is_complete:
        lines[:0] = ["", f"Not finished: stopped at class {max(explained, 1):,} of {chosen:,}."]
    return lines


def _require_place(output: Path) -> None:
    if output.suffix != ".npy":
        raise InputError(
            f"--output {output}: inputs are written as a NumPy array; name a file ending in .npy."
        )
    require_file_place("--output", output)


def _write_inputs(output: Path, explained: list[Explanation], features: int) -> None:
    """One row for each class; NaN where no input was found."""
    rows = [np.full(features, np.nan) if one.input is None else one.input for one in explained]
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        np.save(output, np.array(rows), allow_pickle=False)
    except OSError as error:
        raise InputError(f"can't write {output}: {error.strerror or error}.") from error


def _exit_code(explained: list[Explanation]) -> int:
    statuses = {one.verdict.status for one in explained}
    if Status.UNDECIDED in statuses:
        return 3
    return 1 if Status.UNARGMAXABLE in statuses else 0
