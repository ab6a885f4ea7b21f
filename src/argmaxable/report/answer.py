"""The answer in a sentence or two, and the domain it is about: the same words wherever an answer is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argmaxable.core.domain_source import Basis

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import DomainSource


@dataclass(frozen=True)
class Tally:
    """What an answer counts. `classes` are the head's, `wanted` those asked about, `unknown` those of them
    without a proven verdict."""

    classes: int
    wanted: int
    unargmaxable: int
    unknown: int
    is_complete: bool
    domain: Domain
    source: DomainSource | None = None


def counted(number: int, one: str = "class", several: str = "classes") -> str:
    """The number with its noun."""
    return f"{number:,} {one if number == 1 else several}"


def answer(tally: Tally) -> str:
    """What was found out; a run that was cut short begins with what is not known."""
    if not tally.is_complete:
        return _cut_short(tally)
    among = counted(tally.wanted) + ("" if tally.wanted == tally.classes else " examined")
    left = f"; {tally.unknown:,} {_are(tally.unknown)} undecided" if tally.unknown else ""
    if tally.unargmaxable == tally.wanted == 1:
        return f"The class examined {never_predicted(tally.domain, tally.source)}."
    if tally.unargmaxable:
        return f"{tally.unargmaxable:,} of {among} {never_predicted(tally.domain, tally.source)}{left}."
    if tally.unknown:
        return f"{tally.wanted - tally.unknown:,} of {among} can be predicted{_where(tally)}{left}."
    if tally.classes == 1:
        return "The only class is always predicted."
    every = "The class examined" if tally.wanted == 1 else f"All {among}"
    return f"{every} can be predicted{_where(tally)}."


def _cut_short(tally: Tally) -> str:
    decided = tally.wanted - tally.unknown
    sentence = f"Not finished: {tally.unknown:,} of {counted(tally.wanted)} {_are(tally.unknown)} undecided."
    others = "The other class" if decided == 1 else f"The other {decided:,}"
    if not decided:
        return sentence
    if not tally.unargmaxable:
        return f"{sentence} {others} can be predicted{_where(tally)}."
    if tally.unargmaxable < decided:
        others = f"Of the other {decided:,}, {tally.unargmaxable:,}"
    return f"{sentence} {others} {never_predicted(tally.domain, tally.source)}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def never_predicted(domain: Domain, source: DomainSource | None) -> str:
    """What an unargmaxable class can't do, in words, with the inputs that this is about."""
    return domain.denial() if _scope(domain, source) else "can never be predicted, whatever the input"


def _scope(domain: Domain, source: DomainSource | None) -> str:
    """Where a verdict holds, to end a sentence with; "" where it holds for all inputs."""
    is_proven = source is not None and source.basis is Basis.PROVEN
    return "" if is_proven else domain.scope()


def _where(tally: Tally) -> str:
    return f" {_scope(tally.domain, tally.source)}".rstrip()


def domain_line(domain: Domain, source: DomainSource | None) -> str:
    """Which domain the answer is about, where it comes from, and whether it is an assumption."""
    if source is None or source.basis is Basis.GIVEN:
        return f"Domain: {domain}{'' if source is None else ', as asked'}."
    if source.basis is Basis.ASSUMED:
        return f"Domain: {domain}, an assumption: {source.why}. Choose another with --domain."
    return f"Domain: {domain}, which the file itself proves: {source.why}."


def domain_record(domain: Domain, source: DomainSource | None) -> dict[str, Any]:
    """The same for machines."""
    return {"domain": str(domain), "domain_source": None if source is None else source.as_record()}
