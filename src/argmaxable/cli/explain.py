"""argmaxable explain: why a class can never be the argmax and how far off it is, or how safely it can."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from argmaxable.cli import options
from argmaxable.cli.option_groups import takes_groups
from argmaxable.core.errors import InputError
from argmaxable.core.verdict import Status
from argmaxable.questions.explain.choose import class_ids
from argmaxable.questions.explain.explain import ROUNDS, Explainer
from argmaxable.questions.explain.explanation import Explanation
from argmaxable.questions.explain.wording import as_record, first_lines, last_lines
from argmaxable.report.answer import domain_line
from argmaxable.workflow.find_model import DEFAULT_DOMAIN_TEXT, find_model


@takes_groups
def explain(
    model: options.Model,
    classes: Annotated[
        list[str],
        typer.Argument(
            metavar="CLASS...", help="Numbers or labels of classes; label:7 for the class whose label is 7."
        ),
    ],
    domain: options.DomainText = DEFAULT_DOMAIN_TEXT,
    rounds: Annotated[
        int, typer.Option(min=0, help="Solves to spend on the best rank an unargmaxable class can reach.")
    ] = ROUNDS,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the input found for each class, one a row, to this .npy file."
        ),
    ] = None,
    as_json: options.Json = False,
    *,
    source: options.ModelOptions,
) -> None:
    """Say what keeps a class from winning, or how safely it wins.

    For a class that can never be predicted: the mixture of classes that beats it, and how far off it is.

    \b
    Examples:
      argmaxable explain model.onnx 37
      argmaxable explain model.onnx é label:7 --domain box:100
      argmaxable explain model.onnx 37 --json -o input.npy

    \b
    Exit codes: 0 all argmaxable, 1 some unargmaxable, 2 bad input, 3 some
    undecided.
    """
    found = find_model(source.of(model), domain)
    head = found.head()
    chosen = class_ids(head, classes)
    if output is not None:
        _require_place(output)
    explainer = Explainer(head, found.domain, chosen, rounds=rounds)
    explained = [_explained(explainer, one, is_last=one == chosen[-1], as_json=as_json) for one in chosen]
    if output is not None:
        _write_inputs(output, explained, head.features)
    if as_json:
        told = {"model": head.name, "domain_source": found.domain_source.as_record()}
        typer.echo(json.dumps(told | {"classes": [as_record(one) for one in explained]}))
    else:
        typer.echo(f"\n{domain_line(found.domain, found.domain_source)}")
    raise typer.Exit(_exit_code(explained))


def _explained(explainer: Explainer, class_id: int, *, is_last: bool, as_json: bool) -> Explanation:
    """Explain a class, and for people print each part as soon as it is known: the best rank takes longest."""
    begun = explainer.begun(class_id)
    if not as_json:
        typer.echo("\n".join(first_lines(begun)))  # flushes
    done = explainer.completed(begun)
    lines = [*last_lines(done), *([] if is_last else [""])]
    if lines and not as_json:
        typer.echo("\n".join(lines))
    return done


def _require_place(output: Path) -> None:
    if output.suffix != ".npy":
        raise InputError(
            f"--output {output}: inputs are written as a NumPy array; name a file ending in .npy."
        )
    if not output.parent.is_dir():  # told before the work, not after it
        raise InputError(f"can't write {output}: {output.parent} is not a folder.")


def _write_inputs(output: Path, explained: list[Explanation], features: int) -> None:
    """One row for each class; NaN where no input was found."""
    rows = [np.full(features, np.nan) if one.input is None else one.input for one in explained]
    try:
        np.save(output, np.array(rows), allow_pickle=False)
    except OSError as error:
        raise InputError(f"can't write {output}: {error.strerror or error}.") from error


def _exit_code(explained: list[Explanation]) -> int:
    statuses = {one.verdict.status for one in explained}
    if Status.UNDECIDED in statuses:
        return 3
    return 1 if Status.UNARGMAXABLE in statuses else 0
