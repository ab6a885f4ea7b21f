"""A check-up as text for people and as one JSON object for machines."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.doctor.diagnosis import Checkup, Diagnosis

# Classes listed for each finding; --json has all of them.
_MOST_LISTED = 20
_WIDTH = 110
_INDENT = " " * 9


def describe(checkup: Checkup) -> list[str]:
    """What was looked at, each finding with its meaning, and the answer."""
    bias = "with bias" if checkup.has_bias else "no bias"
    size = f"{checkup.classes:,} classes × {checkup.features:,} features"
    lines = [f"{visible(checkup.model)}: {size}, {bias}"]
    if checkup.verified:
        of = "class was" if checkup.verified == 1 else "classes were"
        how = f"over the domain {checkup.domain}, logits in {checkup.number}"
        lines.append(f"{checkup.verified:,} {of} verified {how}.")
    for diagnosis in checkup.diagnoses:
        lines += ["", *_finding(diagnosis)]
    return [*lines, "", _answer(checkup)]


def _answer(checkup: Checkup) -> str:
    concerns, notes = len(checkup.concerns), len(checkup.diagnoses) - len(checkup.concerns)
    rest = f" {notes} to know about." if notes else ""
    if not concerns:
        return f"No concerns.{rest}"
    return f"{concerns} {'concern' if concerns == 1 else 'concerns'}.{rest}"


def _finding(diagnosis: Diagnosis) -> list[str]:
    found = diagnosis.found[0].upper() + diagnosis.found[1:]
    lines = [f"{'CONCERN' if diagnosis.is_concern else 'note':<8} {found}"]
    lines += _wrapped(_listed(diagnosis)) if diagnosis.classes else []
    counts = Counter(standing for _, standing in diagnosis.standings)
    if counts:
        proven = ", ".join(f"{count:,} {standing.in_words}" for standing, count in counts.items())
        some = "" if len(diagnosis.standings) == len(diagnosis.classes) else " (of the first ones)"
        lines += _wrapped(f"Verified{some}: {proven}.")
    return [*lines, *_wrapped(diagnosis.meaning), *_wrapped(f"What to do: {diagnosis.advice}")]


def _listed(diagnosis: Diagnosis) -> str:
    pairs = zip(diagnosis.classes[:_MOST_LISTED], diagnosis.labels, strict=False)
    shown = "  ".join(
        str(class_id) if label == str(class_id) else f"{class_id} {visible(label)}"
        for class_id, label in pairs
    )
    rest = len(diagnosis.classes) - _MOST_LISTED
    return f"{shown}  … and {rest:,} more" if rest > 0 else shown


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def as_record(checkup: Checkup) -> dict[str, Any]:
    """The object for one model in what `doctor --json` prints."""
    return {
        "model": checkup.model,
        "classes": checkup.classes,
        "features": checkup.features,
        "bias": checkup.has_bias,
        "domain": checkup.domain or None,
        "dtype": checkup.number or None,
        "verified": checkup.verified,
        "concerns": len(checkup.concerns),
        "findings": [_record(diagnosis) for diagnosis in checkup.diagnoses],
    }


def _record(diagnosis: Diagnosis) -> dict[str, Any]:
    standings = dict(diagnosis.standings)
    return {
        "kind": diagnosis.kind.value,
        "concern": diagnosis.is_concern,
        "found": diagnosis.found,
        "meaning": diagnosis.meaning,
        "advice": diagnosis.advice,
        "classes": [
            {
                "class": class_id,
                "label": label,
                "verdict": standings[class_id].value if class_id in standings else None,
            }
            for class_id, label in zip(diagnosis.classes, diagnosis.labels, strict=True)
        ],
    }
