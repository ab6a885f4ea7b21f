"""The unargmaxable classes by kind (characters, word pieces, special tokens, padding) and by script."""

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


class LabelKind(StrEnum):
    """What a label stands for."""

    CHARACTER = "single characters"
    PIECE = "words and word pieces"
    SPECIAL = "special tokens"
    PADDING = "padding"
    UNNAMED = "classes without a label"


@dataclass(frozen=True)
class LabelGroup:
    """Classes that have something in common, and how many of them are unargmaxable."""

    name: str
    total: int
    unargmaxable: int

    @property
    def share(self) -> float:
        return self.unargmaxable / self.total

    @property
    def percent(self) -> str:
        """The share for people: a few of very many are not nobody."""
        if self.unargmaxable and self.share < 0.001:
            return "< 0.1 %"
        return f"{100 * self.share:.1f} %" if self.unargmaxable else "–"


def kinds_of(verdicts: Sequence[Verdict]) -> list[LabelKind]:
    """The kind of each class. Where every label is the class's number, the model has none."""
    if all(verdict.label == str(verdict.class_id) for verdict in verdicts):
        return [LabelKind.UNNAMED] * len(verdicts)
    return [_kind(verdict.label) for verdict in verdicts]


def _kind(label: str) -> LabelKind:
    if is_padding(label):
        return LabelKind.PADDING
    if is_special(label):
        return LabelKind.SPECIAL
    return LabelKind.CHARACTER if is_character(label) else LabelKind.PIECE


def scripts(verdicts: Sequence[Verdict], kinds: Sequence[LabelKind]) -> list[str]:
    """The script of each label, or what stands for one."""
    return [
        _script(scripts_of(verdict.label)) if kind in (LabelKind.CHARACTER, LabelKind.PIECE) else NOT_TEXT
        for verdict, kind in zip(verdicts, kinds, strict=True)
    ]


def _script(names: set[str]) -> str:
    if not names:
        return "no letters"
    if len(names) > 1:
        return "several"
    return min(names) if names <= SCRIPTS else "other"


def groups(verdicts: Sequence[Verdict], names: Sequence[str]) -> tuple[LabelGroup, ...]:
    """The groups of text that the names make, most losses first."""
    totals = Counter(names)
    unargmaxable = Counter(
        name for verdict, name in zip(verdicts, names, strict=True) if verdict.status is Status.UNARGMAXABLE
    )
    made = (LabelGroup(name, total, unargmaxable[name]) for name, total in totals.items() if name != NOT_TEXT)
    return tuple(sorted(made, key=lambda group: (-group.unargmaxable, -group.total, group.name)))
