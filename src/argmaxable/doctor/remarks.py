"""What each kind of odd row means and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from argmaxable.doctor.diagnosis import Diagnosis, FindingKind, Standing

if TYPE_CHECKING:
    from argmaxable.core.arrays import Ids
    from argmaxable.core.head import Head
    from argmaxable.doctor.rows import OddRows


@dataclass(frozen=True, eq=False)
class Patient:
    """A head with everything known about its classes: those that end a text, special ones, padding (without
    a label), those that stand for text, and what was proven about suspects."""

    head: Head
    odd: OddRows
    ends: frozenset[int]
    special: frozenset[int]
    padding: frozenset[int]
    ordinary: frozenset[int]
    standings: Mapping[int, Standing]

    def unargmaxable(self, classes: Iterable[int]) -> list[int]:
        """Those of the classes that no input is known to make a machine predict."""
        return [c for c in classes if c in self.standings and self.standings[c].never_wins]


def diagnoses_of(subject: Patient) -> Iterator[Diagnosis]:
    """All that is to be said about a head, in order of kinds."""
    for describe in _KINDS:
        yield from describe(subject)


def _diagnosis(
    subject: Patient,
    kind: FindingKind,
    classes: Iterable[int],
    found: str,
    meaning: str,
    advice: str,
    *,
    is_concern: bool,
) -> Diagnosis:
    chosen = tuple(int(class_id) for class_id in classes)
    return Diagnosis(
        kind=kind,
        is_concern=is_concern,
        found=found,
        meaning=meaning,
        advice=advice,
        classes=chosen,
        labels=tuple(subject.head.label(class_id) for class_id in chosen),
        standings=tuple((c, subject.standings[c]) for c in chosen if c in subject.standings),
    )


def _endings(subject: Patient) -> Iterator[Diagnosis]:
    never = subject.unargmaxable(sorted(subject.ends))
    if never:
        yield _diagnosis(
            subject, FindingKind.CANNOT_END, never,
            f"{_count(never, 'token')} that should end a text can never be predicted.",
            "Greedy decoding can't stop by itself: it runs to the length limit.",
            "Train the row (some examples must end with it), free it with `argmaxable repair`, or stop "
            "decoding at another token.",
            is_concern=len(never) == len(subject.ends),
        )  # fmt: skip


def _other_special(subject: Patient) -> Iterator[Diagnosis]:
    odd = set(subject.odd.at_mean.tolist())  # named below, with the reason
    never = subject.unargmaxable(sorted(subject.special - subject.ends - odd))
    if never:
        yield _diagnosis(
            subject, FindingKind.CANNOT_END, never,
            f"{_count(never, 'special token')} can never be predicted.",
            "Harmless for tokens that only ever stand in the input (padding, masks, the start of a text).",
            "Nothing, unless the model should write one of them.",
            is_concern=False,
        )  # fmt: skip


def _at_mean(subject: Patient) -> Iterator[Diagnosis]:
    rows = subject.odd.at_mean.tolist()
    named = [class_id for class_id in rows if class_id not in subject.padding]
    if named:
        yield _diagnosis(
            subject, FindingKind.AT_MEAN, named,
            f"{_count(named, 'row')} at the mean of the others.",
            "transformers' resize_token_embeddings leaves new tokens like this: they were added and "
            "never trained. "
            "A mean of rows never scores above all of them, whatever the input.",
            "Train the output layer (with LoRA: name lm_head in modules_to_save or the new rows in "
            "trainable_token_indices), start new rows from related tokens, or drop them.",
            is_concern=True,
        )  # fmt: skip
    padded = [class_id for class_id in rows if class_id in subject.padding]
    if padded:
        yield _diagnosis(
            subject, FindingKind.AT_MEAN, padded,
            f"{_count(padded, 'row')} without a token at the mean of the others.",
            "The head was padded to a round number, and the new rows can't get in the way.",
            "Nothing. If they were meant for new tokens, save the tokenizer that has them.",
            is_concern=False,
        )  # fmt: skip


def _zero(subject: Patient) -> Iterator[Diagnosis]:
    rows = [class_id for class_id in subject.odd.zero.tolist() if class_id not in subject.padding]
    ordinary = subject.unargmaxable(class_id for class_id in rows if class_id in subject.ordinary)
    if rows:
        yield _diagnosis(
            subject, FindingKind.ZERO, rows,
            f"{_count(rows, 'row')} of zeros only.",
            "The logit is the same at every input. A row that was never trained, or the padding_idx of an "
            "embedding that the head is tied to.",
            "Nothing for a padding token. Otherwise train the row, or drop it.",
            is_concern=bool(ordinary),
        )  # fmt: skip


def _duplicates(subject: Patient) -> Iterator[Diagnosis]:
    known = {*subject.odd.zero.tolist(), *subject.padding}
    rows = [class_id for class_id in subject.odd.shadowed.tolist() if class_id not in known]
    # The first of a group of identical rows is what a framework's argmax returns.
    first = set(subject.odd.twins.ties) - set(subject.odd.twins.ignored.tolist())
    beaten = [class_id for class_id in rows if class_id in subject.ordinary and class_id not in first]
    if rows:
        yield _diagnosis(
            subject, FindingKind.DUPLICATE, rows,
            f"{_count(rows, 'class', 'classes')} with the weights of another class.",
            "Only the one with the largest bias can be predicted; where that is shared they tie, and a "
            "framework's argmax returns the first of them.",
            "Train them apart, or merge them. Rows that were never trained can be dropped.",
            is_concern=bool(beaten),
        )  # fmt: skip


def _near_mean(subject: Patient) -> Iterator[Diagnosis]:
    yield from _outliers(
        subject, FindingKind.NEAR_MEAN, subject.odd.near_mean,
        "far closer to the mean than the others",
        "Hardly trained: new tokens move away from the mean step by step, rare ones stay near it.",
    )  # fmt: skip


def _norms(subject: Patient) -> Iterator[Diagnosis]:
    yield from _outliers(
        subject, FindingKind.NORM, subject.odd.norm,
        "with a norm far from the others",
        "A small row was hardly trained; a large one wins wherever its direction is met, and takes "
        "much of the other classes' probability.",
    )  # fmt: skip


def _biases(subject: Patient) -> Iterator[Diagnosis]:
    yield from _outliers(
        subject, FindingKind.BIAS, subject.odd.bias,
        "with a bias far from the others",
        "A large bias makes a class the answer when the input says little (often a blank or an end mark); "
        "a very low one is how a class is switched off.",
    )  # fmt: skip


def _outliers(
    subject: Patient, kind: FindingKind, suspects: Ids, what: str, meaning: str
) -> Iterator[Diagnosis]:
    rows = [class_id for class_id in suspects.tolist() if class_id not in subject.padding]
    never = subject.unargmaxable(class_id for class_id in rows if class_id in subject.ordinary)
    if rows:
        yield _diagnosis(
            subject, kind, rows,
            f"{_count(rows, 'row')} {what}.",
            meaning,
            "See what the classes are. `argmaxable explain` shows what blocks an unargmaxable class.",
            is_concern=bool(never),
        )  # fmt: skip


def _padding(subject: Patient) -> Iterator[Diagnosis]:
    rows = sorted(subject.padding)
    if rows:
        yield _diagnosis(
            subject, FindingKind.PADDING, rows,
            f"{_count(rows, 'row')} without a token.",
            "Heads are padded to round numbers. Sampling can still draw such a number, and so can "
            "greedy decoding if a row is argmaxable. No tokenizer can decode it.",
            "Mask these numbers when decoding, or cut the head to the vocabulary.",
            is_concern=False,
        )  # fmt: skip


def _count(rows: list[int], word: str, plural: str = "") -> str:
    return f"{len(rows):,} {word if len(rows) == 1 else plural or word + 's'}"


_KINDS = (
    _endings,
    _other_special,
    _at_mean,
    _near_mean,
    _zero,
    _duplicates,
    _norms,
    _biases,
    _padding,
)
