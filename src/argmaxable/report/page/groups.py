"""Who is lost: classes by kind (characters, word pieces, special tokens, padding) and by script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from argmaxable.core.select import SCRIPTS, is_padding, is_special, scripts_of
from argmaxable.core.verdict import Status, Verdict
from argmaxable.report.page.wording import is_character

# The script of special tokens and padding.
NOT_TEXT = "not text"


class Kind(StrEnum):
    """What a label stands for."""

    CHARACTER = "single characters"
    PIECE = "words and word pieces"
    SPECIAL = "special tokens"
    PADDING = "padding"
    UNNAMED = "classes without a label"


@dataclass(frozen=True)
class Group:
    """Classes that have something in common, and how many of them are lost."""

    name: str
    total: int
    lost: int

    @property
    def share(self) -> float:
        return self.lost / self.total

    @property
    def percent(self) -> str:
        """The share for people: a few of very many are not nobody."""
        if self.lost and self.share < 0.001:
            return "< 0.1 %"
        return f"{100 * self.share:.1f} %" if self.lost else "–"


def kinds_of(verdicts: Sequence[Verdict]) -> list[Kind]:
    """The kind of each class. Where every label is the class's number, the model has none."""
    if all(verdict.label == str(verdict.class_id) for verdict in verdicts):
        return [Kind.UNNAMED] * len(verdicts)
    return [_kind(verdict.label) for verdict in verdicts]


def _kind(label: str) -> Kind:
    if is_padding(label):
        return Kind.PADDING
    if is_special(label):
        return Kind.SPECIAL
    return Kind.CHARACTER if is_character(label) else Kind.PIECE


def scripts(verdicts: Sequence[Verdict], kinds: Sequence[Kind]) -> list[str]:
    """The script of each label, or what stands for one."""
    return [
        _script(scripts_of(verdict.label)) if kind in (Kind.CHARACTER, Kind.PIECE) else NOT_TEXT
        for verdict, kind in zip(verdicts, kinds, strict=True)
    ]


def _script(names: set[str]) -> str:
    if not names:
        return "no letters"
    if len(names) > 1:
        return "several"
    return min(names) if names <= SCRIPTS else "other"


def groups(verdicts: Sequence[Verdict], names: Sequence[str]) -> tuple[Group, ...]:
    """The groups of text that the names make, most losses first."""
    totals = Counter(names)
    lost = Counter(
        name for verdict, name in zip(verdicts, names, strict=True) if verdict.status is Status.UNARGMAXABLE
    )
    made = (Group(name, total, lost[name]) for name, total in totals.items() if name != NOT_TEXT)
    return tuple(sorted(made, key=lambda group: (-group.lost, -group.total, group.name)))
