"""A report as Markdown: short enough for a model card, and safe in one whatever the labels hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.grid import Column, Grid, GridFormat, in_markdown, render
from argmaxable.report.page.columns import blockers, character_name, labels_by_class, shown_label
from argmaxable.report.page.groups import LabelGroup
from argmaxable.report.page.wording import CHARACTERS
from argmaxable.report.rows import finite, known_class

if TYPE_CHECKING:
    from argmaxable.report.page.content import Content

# A model card is read by people: how many unargmaxable classes get a row, how many are listed by label.
_MOST_ROWS, _MOST_LABELS, _MOST_GROUPS = 30, 400, 12
_BLOCKERS = 3


def markdown(content: Content) -> str:
    """The report, its last line ended."""
    return "\n".join(_lines(content)).rstrip("\n") + "\n"


def _lines(content: Content) -> Iterator[str]:
    subject = content.subject
    yield from (f"# {in_markdown(content.title)}: what it can never predict", "")
    yield from (f"**{in_markdown(content.answer)}**", "", in_markdown(content.domain_line), "")
    if subject.caveat:
        yield from (in_markdown(subject.caveat), "")
    yield from (
        f"{in_markdown(subject.size)}. {in_markdown(content.domain)} {in_markdown(content.claim)}",
        "",
    )
    if content.tied:
        yield from (_ties(content), "")
    if content.unargmaxable:
        yield from (f"## Never predicted: {len(content.unargmaxable):,}", "")
        if content.order:
            yield from (in_markdown(content.order), "")
        yield _unargmaxable_table(content)
        yield from _more_labels(content.unargmaxable[_MOST_ROWS:])
    if content.kinds:
        yield from ("## Kinds of classes", "", _group_table([*content.kinds, *_named(content.scripts)]))
    yield from ("## How the verdicts were reached", "", _way_table(content))
    yield from _proofs(content)
    if subject.source:
        yield in_markdown(subject.source)


def _ties(content: Content) -> str:
    where = "a group" if content.tie_groups == 1 else f"{content.tie_groups:,} groups"
    return (
        f"{len(content.tied):,} of them are in {where} of identical rows: at best tied, never the only "
        "argmax. A framework's argmax returns the first of a group."
    )


def _unargmaxable_table(content: Content) -> str:
    is_characters = content.noun is CHARACTERS
    columns = (
        Column("class", "class", is_number=True),
        Column(content.noun.one if content.noun.one != "class" else "label", "label"),
        *([Column("code point", "name")] if is_characters else []),
        *([Column("ahead", "ahead", is_number=True)] if content.order else []),
        Column("margin at most", "upper", is_number=True),
        Column("blocked by", "blockers"),
    )
    names = labels_by_class(content.subject.verdicts)
    rows = tuple(
        (
            known_class(verdict),
            names[verdict.class_id],
            *([character_name(verdict.label) or None] if is_characters else []),
            *([verdict.ahead] if content.order else []),
            finite(verdict.upper),
            _blocked_by(verdict, names) or None,
        )
        for verdict in content.unargmaxable[:_MOST_ROWS]
    )
    return render(Grid(columns, rows), GridFormat.MARKDOWN)


def _blocked_by(verdict: Verdict, names: dict[int, str]) -> str:
    """The heaviest classes of the mixture; of a tie its other members."""
    if verdict.is_tied:
        tied = [names.get(member, f"class {member}") for member in verdict.tied_with]
        more = f" and {len(tied) - _BLOCKERS:,} more" if len(tied) > _BLOCKERS else ""
        return f"tied with {', '.join(tied[:_BLOCKERS])}{more}"
    if verdict.certificate is None:
        return ""
    shown = blockers(verdict.certificate, _BLOCKERS)
    listed = ", ".join(f"{names.get(blocker, f'class {blocker}')} {share:.1%}" for blocker, share in shown)
    rest = len(verdict.certificate.classes) - len(shown)
    return f"{listed} and {rest:,} more" if rest else listed


def _more_labels(verdicts: Sequence[Verdict]) -> Iterator[str]:
    if verdicts:
        shown = "  ".join(in_markdown(shown_label(verdict.label)) for verdict in verdicts[:_MOST_LABELS])
        rest = len(verdicts) - _MOST_LABELS
        yield from (f"And: {shown}{f'  … and {rest:,} more' if rest > 0 else ''}", "")


def _named(scripts: Sequence[LabelGroup]) -> list[LabelGroup]:
    """Those with losses: a card has no room for the others."""
    return [
        LabelGroup(f"script: {group.name}", group.total, group.unargmaxable)
        for group in scripts
        if group.unargmaxable
    ]


def _group_table(groups: Sequence[LabelGroup]) -> str:
    columns = (
        Column("", "group"),
        Column("in all", "total", is_number=True),
        Column("never predicted", "unargmaxable", is_number=True),
        Column("share", "share", is_number=True),
    )
    rows = tuple(
        (group.name, group.total, group.unargmaxable, group.percent) for group in groups[:_MOST_GROUPS]
    )
    return render(Grid(columns, rows), GridFormat.MARKDOWN)


def _way_table(content: Content) -> str:
    columns = (
        Column("method", "method"),
        Column("can be predicted", "can", is_number=True, when_zero=False),
        Column("never predicted", "never", is_number=True, when_zero=False),
        Column("undecided", "undecided", is_number=True, when_zero=False),
        Column("what it means", "meaning"),
    )
    order = (Status.ARGMAXABLE, Status.UNARGMAXABLE, Status.UNDECIDED)
    rows = tuple(
        (way.method.value, *(way.counts[status] for status in order), way.meaning) for way in content.ways
    )
    return render(Grid(columns, rows), GridFormat.MARKDOWN)


def _proofs(content: Content) -> Iterator[str]:
    if not content.subject.has_evidence:
        yield from ("No evidence comes with published verdicts.", "")
        return
    yield from ("Every verdict has evidence that anyone can re-check, exactly and without a solver:", "")
    yield from ("```console", *(f"$ {command}" for command in content.subject.recheck), "```", "")
