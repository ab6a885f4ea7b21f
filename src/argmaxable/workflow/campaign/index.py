"""The outcome of a campaign as a page of Markdown: a table for each family, and for each model with
unargmaxable classes some of their labels.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from argmaxable.core.domain_source import Basis
from argmaxable.core.errors import InputError
from argmaxable.core.labels import visible
from argmaxable.core.version import VERSION
from argmaxable.report.csv_table import Cell
from argmaxable.report.grid import Column, Grid, GridFormat, in_markdown, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from argmaxable.workflow.campaign.plan import Campaign, CampaignFamily, CampaignModel
    from argmaxable.workflow.campaign.run import ModelOutcome, ModelSummary

_FEW_LABELS = 5
_BASES = {Basis.PROVEN: "proven", Basis.ASSUMED: "assumed", Basis.GIVEN: "asked for"}
_COLUMNS = (
    Column("model", "model"),
    Column("C", "classes", is_number=True),
    Column("d", "features", is_number=True),
    Column("bias", "bias"),
    Column("domain", "domain"),
    Column("which is", "basis"),
    Column("left out", "left_out", is_number=True, when_zero=False),
    Column("unargmaxable", "unargmaxable", is_number=True),
    Column("tied", "tied", is_number=True),
    Column("undecided", "undecided", is_number=True),
    Column("such as", "labels"),
    Column("seconds", "seconds", is_number=True, digits=1),
    Column("solves", "solves", is_number=True),
    Column("from", "origin"),
)


def index_page(campaign: Campaign, outcomes: Sequence[ModelOutcome], *, machine: str) -> str:
    """The page; models without an outcome are left out. `machine` says on what the times were measured."""
    by_name = {outcome.entry.name: outcome for outcome in outcomes}
    parts = [f"# {in_markdown(campaign.title)}", campaign.about, _totals(outcomes, machine)]
    for family in campaign.families:
        parts.extend(_family(family, by_name))
    parts.append(_failures(outcomes))
    return "\n\n".join(part for part in parts if part) + "\n"


def write_index(page: str, path: Path) -> None:
    """Write the page, whole or not at all; raises InputError when that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".index-") as folder:
            unfinished = Path(folder, path.name)
            unfinished.write_text(page, encoding="utf-8")
            os.replace(unfinished, path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"the index {path} can't be written ({reason}). Pass another --index.") from error


def _totals(outcomes: Sequence[ModelOutcome], machine: str) -> str:
    """Counts of heads rather than of runs: the same one may be there over several domains."""
    answers = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    heads = {answer.facts.sha256 for answer in answers}
    affected = {answer.facts.sha256 for answer in answers if answer.unargmaxable}
    undecided = sum(answer.undecided for answer in answers)
    return (
        f"{_count(len(heads), 'output layer')} in {_count(len(answers), 'run')}: {len(affected):,} with "
        f"classes that can never be predicted, {_count(undecided, 'class', 'classes')} undecided. Every "
        f"verdict has evidence that was checked exactly. argmaxable {VERSION}, {machine}."
    )


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def _family(family: CampaignFamily, by_name: Mapping[str, ModelOutcome]) -> Iterator[str]:
    answered = [
        (entry, outcome.answer)
        for entry in family.entries
        if (outcome := by_name.get(entry.name)) is not None and outcome.answer is not None
    ]
    if not answered:
        return
    yield f"## {in_markdown(family.name)}"
    yield family.about
    rows = tuple(_row(entry, answer) for entry, answer in answered)
    yield render(Grid(_COLUMNS, rows), GridFormat.MARKDOWN).rstrip("\n")
    yield _notes([entry for entry, _ in answered])
    for entry, answer in answered:
        if answer.unargmaxable and answer.has_names:
            yield f"### {in_markdown(entry.name)}"
            yield _labels(answer)


def _row(entry: CampaignModel, answer: ModelSummary) -> tuple[Cell, ...]:
    facts = answer.facts
    step = max(1, len(answer.labels) // _FEW_LABELS)
    few = "  ".join(visible(label) for label in answer.labels[::step][:_FEW_LABELS])
    return (
        entry.name,
        facts.classes,
        facts.features,
        facts.bias,
        str(answer.domain),
        None if answer.domain_source is None else _BASES[answer.domain_source.basis],
        facts.classes - answer.verified,
        answer.unargmaxable,
        answer.tied,
        answer.undecided,
        few if answer.unargmaxable > 0 else None,
        answer.cost.seconds,
        answer.cost.solves,
        _place(entry.source),
    )


def _place(source: str) -> str:
    """The model's id or path; of a file in a package the package, since the campaign has the rest."""
    first, *others = source.split(" + ")
    if first.startswith("pypi:"):
        first = first.removeprefix("pypi:").partition("!")[0].replace("==", " ")
    return f"{first} and {len(others)} more" if others else first


def _notes(entries: Sequence[CampaignModel]) -> str:
    """Where the models are known from, once where that is the same for all, and what else is to be said."""
    sources = {entry.cites for entry in entries}
    shared = sources.pop() if len(sources) == 1 else ""
    lines = [f"Known from: {in_markdown(shared)}."] if shared else []
    for entry in entries:
        said = ["" if shared else entry.cites, "inferred" if entry.is_inferred else "", entry.note]
        if any(said):
            lines.append(f"* {in_markdown(entry.name)}: {in_markdown('; '.join(filter(None, said)))}")
    return "\n".join(lines)


def _labels(answer: ModelSummary) -> str:
    shown = "  ".join(in_markdown(visible(label)) for label in answer.labels)
    rest = answer.unargmaxable - len(answer.labels)
    share = f"{answer.unargmaxable:,} of {answer.verified:,}"
    if answer.tied:
        share += f" ({answer.tied:,} at best tied with identical rows)"
    return f"{share}: {shown}" + (f" … and {rest:,} more" if rest > 0 else "")


def _failures(outcomes: Sequence[ModelOutcome]) -> str:
    """Names only: messages may tell about the machine, and the command printed them."""
    failed = [outcome.entry for outcome in outcomes if outcome.answer is None]
    if not failed:
        return ""
    lines = [f"* {in_markdown(entry.name)} ({in_markdown(entry.source)})" for entry in failed]
    return "\n".join(["## Not verified\n", *lines])
