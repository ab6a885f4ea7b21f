"""All that a report says, ready to be written as HTML or Markdown."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.core.labels import visible
from argmaxable.core.verdict import Method, Status, Strength, Verdict, farthest_first
from argmaxable.report.answer import Tally, answer, domain_line
from argmaxable.report.page.groups import LabelGroup, LabelKind, groups, kinds_of, scripts
from argmaxable.report.page.wording import (
    CLAIM,
    METHODS,
    STATUSES,
    STRENGTHS,
    Noun,
    noun_for,
)

if TYPE_CHECKING:
    from argmaxable.report.page.subject import Subject


@dataclass(frozen=True)
class Way:
    """How many verdicts were reached in one way."""

    method: Method
    meaning: str
    counts: dict[Status, int]


@dataclass(frozen=True, eq=False)
class Content:
    """The parts of a report that both formats have."""

    subject: Subject
    noun: Noun
    title: str
    answer: str
    domain_line: str
    domain: str
    claim: str
    counts: dict[Status, int]
    unargmaxable: tuple[Verdict, ...]
    order: str
    tied: tuple[Verdict, ...]
    tie_groups: int
    kinds: tuple[LabelGroup, ...]
    scripts: tuple[LabelGroup, ...]
    ways: tuple[Way, ...]
    strengths: dict[str, int]


def content_of(subject: Subject) -> Content:
    """Everything that verdicts and facts tell by themselves."""
    verdicts = subject.verdicts
    kinds = kinds_of(verdicts)
    is_named = LabelKind.UNNAMED not in kinds
    noun = noun_for([verdict.label for verdict in verdicts] if is_named else [])
    unargmaxable = tuple(farthest_first(subject.having(Status.UNARGMAXABLE)))
    tied = tuple(verdict for verdict in unargmaxable if verdict.is_tied)
    return Content(
        subject=subject,
        noun=noun,
        title=visible(subject.facts.name),
        answer=answer(_tally(subject)),
        domain_line=domain_line(subject.domain, subject.domain_source),
        domain=subject.domain.in_words(),
        claim=CLAIM.format(one=noun.one),
        counts={status: len(subject.having(status)) for status in STATUSES},
        unargmaxable=unargmaxable,
        order=_order(unargmaxable, noun),
        tied=tied,
        tie_groups=len({verdict.tie_group for verdict in tied}),
        kinds=groups(verdicts, [kind.value for kind in kinds]) if unargmaxable and is_named else (),
        scripts=groups(verdicts, scripts(verdicts, kinds)) if unargmaxable and is_named else (),
        ways=_ways(verdicts),
        strengths=_strengths(verdicts),
    )


def _order(unargmaxable: tuple[Verdict, ...], noun: Noun) -> str:
    """By what the unargmaxable classes are sorted; "" where nothing is known to sort by."""
    if len(unargmaxable) < 2 or unargmaxable[0].ahead is None:
        return ""
    return f"Farthest off first: by how many {noun.many} score higher in a {noun.one}'s own direction."


def _tally(subject: Subject) -> Tally:
    missing = subject.wanted - len(subject.verdicts)
    return Tally(
        classes=subject.facts.classes,
        wanted=subject.wanted,
        unargmaxable=len(subject.having(Status.UNARGMAXABLE)),
        unknown=len(subject.having(Status.UNDECIDED)) + missing,
        is_complete=subject.is_complete and not missing,
        domain=subject.domain,
        source=subject.domain_source,
    )


def _ways(verdicts: tuple[Verdict, ...]) -> tuple[Way, ...]:
    """In the order in which methods are tried."""
    found = Counter((verdict.method, verdict.status) for verdict in verdicts)
    used = [method for method in Method if any(found[method, status] for status in Status)]
    return tuple(
        Way(
            method,
            METHODS[method],
            {status: found[method, status] for status in STATUSES},
        )
        for method in used
    )


def _strengths(verdicts: tuple[Verdict, ...]) -> dict[str, int]:
    found = Counter(verdict.strength for verdict in verdicts if verdict.strength is not None)
    return {STRENGTHS[strength]: found[strength] for strength in Strength if found[strength]}
