"""Verdicts as the rows of a table: the report's own rounding, names and shares, for the server to write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.page.columns import blockers, character_name, short_lower, short_upper, shown_label
from argmaxable.report.page.groups import LabelKind, kinds_of
from argmaxable.report.page.wording import STATUSES
from argmaxable.report.rows import known_class

if TYPE_CHECKING:
    from argmaxable.store import Named

# Blockers in a row; a class's own page has more.
_IN_A_ROW = 3
# How colours are called in the style sheet.
ROLES = {Status.ARGMAXABLE: "can", Status.UNARGMAXABLE: "never", Status.UNDECIDED: "open"}


@dataclass(frozen=True)
class Reference:
    """Another class that a verdict refers to, with its share of a mixture if it has one."""

    class_id: int
    label: str
    role: str
    share: float | None = None

    @property
    def percent(self) -> str:
        """The share for people: a little is not nothing."""
        share = 100 * (self.share or 0.0)
        if 0 < share < 0.1:
            return "< 0.1 %"
        return f"{share:.1f} %" if share < 10 else f"{share:.0f} %"


@dataclass(frozen=True)
class ClassRow:
    """A verdict as it is shown. Bounds have three digits, rounded to the weak side; "" where unknown."""

    class_id: int
    number: int | None
    label: str
    name: str
    status: str
    role: str
    lower: str
    upper: str
    ahead: int | None
    steps: int
    method: str
    is_tied: bool
    references: tuple[Reference, ...]
    others: int

    @property
    def margin(self) -> str:
        if self.lower == self.upper:
            return self.lower or "–"
        if self.role == ROLES[Status.ARGMAXABLE] or not self.upper:
            return f"≥ {self.lower}" if self.lower else "–"
        return f"{self.lower} … {self.upper}" if self.lower else f"≤ {self.upper}"


def class_rows(verdicts: Sequence[Verdict], names: Mapping[int, Named]) -> list[ClassRow]:
    """A row for each verdict; `names` has the classes that they refer to."""
    return [
        ClassRow(
            class_id=verdict.class_id,
            number=known_class(verdict),
            label=shown_label(verdict.label),
            name=_code_point(verdict.label) if kind is LabelKind.CHARACTER else "",
            status=STATUSES[verdict.status],
            role=ROLES[verdict.status],
            lower=_number(short_lower(verdict.lower)),
            upper=_number(short_upper(verdict.upper)),
            ahead=verdict.ahead,
            steps=verdict.steps,
            method=verdict.method.value,
            is_tied=verdict.is_tied,
            references=references_of(verdict, names, most=_IN_A_ROW),
            others=max(0, _referred_to(verdict) - _IN_A_ROW),
        )
        for verdict, kind in zip(verdicts, kinds_of(verdicts), strict=True)
    ]


def _code_point(character: str) -> str:
    """Its number and name, without that of an ideograph, which only repeats the number."""
    name = character_name(character)
    return name.partition(" ")[0] if "IDEOGRAPH-" in name else name


def referred_to(verdicts: Iterable[Verdict], *, most: int = _IN_A_ROW) -> set[int]:
    """The classes that rows would name."""
    return {class_id for verdict in verdicts for class_id, _ in _shares(verdict, most)}


def references_of(verdict: Verdict, names: Mapping[int, Named], *, most: int) -> tuple[Reference, ...]:
    """The classes it ties with, or the heaviest of those that block it."""
    return tuple(reference(class_id, names, share) for class_id, share in _shares(verdict, most))


def reference(class_id: int, names: Mapping[int, Named], share: float | None = None) -> Reference:
    """The class by its name, or by its number where it has no verdict."""
    known = names.get(class_id)
    if known is None:
        return Reference(class_id, f"class {class_id}", ROLES[Status.UNDECIDED], share)
    return Reference(class_id, shown_label(known.label), ROLES[known.status], share)


def _shares(verdict: Verdict, most: int) -> list[tuple[int, float | None]]:
    if verdict.is_tied:
        return [(member, None) for member in verdict.tied_with[:most]]
    if verdict.certificate is None or verdict.status is not Status.UNARGMAXABLE:
        return []
    return list(blockers(verdict.certificate, most))


def _referred_to(verdict: Verdict) -> int:
    if verdict.is_tied:
        return len(verdict.tie_group) - 1
    if verdict.certificate is None or verdict.status is not Status.UNARGMAXABLE:
        return 0
    return int((verdict.certificate.weights > 0).sum())


def _number(value: float | int | None) -> str:
    if value is None:
        return ""
    text = f"{abs(value):,}" if isinstance(value, int) else f"{abs(value)}"
    return f"−{text}" if value < 0 else text
