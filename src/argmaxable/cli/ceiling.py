"""The options of `verify` about probabilities, and what they add to its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from argmaxable.cli.parameters import Option
from argmaxable.cli.progress import progress_bar
from argmaxable.cli.remarks import Remarks
from argmaxable.core.errors import InputError
from argmaxable.workflow.verify_model import ModelVerdicts

Ceiling = Annotated[
    bool, Option("--ceiling", help="Also bound the largest probability that each class can have.")
]
Temperature = Annotated[
    float | None, Option(help="With --ceiling: divide scores by this before the softmax.")
]
TopP = Annotated[
    float | None,
    Option(
        "--top-p", help="With --ceiling: also decide which classes can enter the top-p nucleus of this mass."
    ),
]


@dataclass(frozen=True)
class Question:
    """What the user wants to know about probabilities."""

    temperature: float
    top_p: float | None


def question(wanted: bool, temperature: float | None, top_p: float | None) -> Question | None:
    """The question the options ask; None when they ask none. Raises InputError for what makes no sense."""
    for name, value in (("--temperature", temperature), ("--top-p", top_p)):
        if value is not None and not wanted:
            raise InputError(f"{name} needs --ceiling.")
    if top_p is not None:
        from argmaxable.questions.ceiling.nucleus import require_share

        require_share(top_p)
    if temperature is not None and not 0 < temperature < float("inf"):
        raise InputError(f"--temperature must be above 0 and finite, found {temperature:g}.")
    return Question(1.0 if temperature is None else temperature, top_p) if wanted else None


def ceiling_remarks(
    asked: Question | None, done: ModelVerdicts, *, output: Path | None, time_limit: float | None
) -> tuple[Remarks, bool]:
    """The answer, written into the bundle's folder if there is one; and whether it is complete."""
    if asked is None:
        return Remarks((), {}), True
    result = done.result
    # Late: few runs ask about probabilities.
    from argmaxable.proofs.ceilings import write_ceilings
    from argmaxable.questions.ceiling.compute import ceilings
    from argmaxable.questions.ceiling.nucleus import nucleus
    from argmaxable.questions.ceiling.wording import as_record, describe

    if not result.is_complete:
        return Remarks(("", "No ceilings: the run stopped before they were computed."), {}), False
    left = None if time_limit is None else max(time_limit - result.cost.seconds, 1e-3)
    with progress_bar("ceilings") as progress:
        found = ceilings(
            done.prepared, result.domain, only=[verdict.class_id for verdict in result.verdicts],
            temperature=asked.temperature, time_limit=left, progress=progress,
        )  # fmt: skip
    members = None
    if asked.top_p is not None:
        members = nucleus(done.prepared, found, asked.top_p, verdicts=result.verdicts)
    if output is not None:
        write_ceilings(found, output, members)
    argmaxable = frozenset(verdict.class_id for verdict in result.argmaxable)
    lines = describe(found, members, argmaxable=argmaxable)
    return Remarks(tuple(lines), as_record(found, members)), found.is_complete
