"""What unargmaxable classes mean for data and inputs, as text for people and as JSON for machines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from argmaxable.core.head import Head
from argmaxable.core.labels import visible
from argmaxable.questions.impact.occurrence import Impact, Occurrence
from argmaxable.questions.impact.targets import DataFormat
from argmaxable.questions.impact.wins import Substitution, Wins, most_common

# Classes listed in text; --json has all of them.
_MOST_LISTED = 20
_MOST_WINNERS = 3
_MOST_DIGITS = 8
_READ_AS = {
    DataFormat.TEXT: "a text",
    DataFormat.LABELS: "a list of labels",
    DataFormat.COUNTS: "a list of counts",
    DataFormat.JSONL: "JSON Lines",
}


def describe_impact(found: Impact) -> list[str]:
    """Whether it matters, then the classes."""
    targets, total = found.targets, found.targets.total
    lines = ["", f"{visible(targets.name)}, read as {_READ_AS[targets.form]}: {_number(total)} targets."]
    if found.never:
        classes = "class" if found.unargmaxable == 1 else "classes"
        verb = "occurs" if len(found.never) == 1 else "occur"
        lines.append(
            f"{len(found.never):,} of the {found.unargmaxable:,} {classes} that can never be predicted "
            f"{verb} there: {_share(found.never_right, total)} can't be right."
        )
        lines += _listed(found.never, total)
    else:
        lines.append("None of the classes that can never be predicted occurs there.")
    if found.tied:
        tied = sum(each.count for each in found.tied)
        lines.append(f"At best tied: {_share(tied, total)}: {_labels(found.tied)}")
    if found.undecided:
        lines.append(f"Without a verdict: {_share(found.undecided, total)}.")
    if targets.absent:
        often_first = sorted(targets.missing.items(), key=lambda pair: -pair[1])[:_MOST_LISTED]
        shown = "  ".join(visible(what) for what, _ in often_first)
        lines.append(f"Not a class of the model: {_share(targets.absent, total)}: {shown}")
    return [*lines, f"Accuracy on this data is at most {_at_most(found.best_accuracy)}."]


def _listed(found: Sequence[Occurrence], total: float) -> Iterator[str]:
    for each in found[:_MOST_LISTED]:
        label, count = visible(each.verdict.label), _number(each.count)
        yield f"  {count:>12}  {_percent(each.count / total):>10}  {label} (class {each.verdict.class_id})"
    if len(found) > _MOST_LISTED:
        yield f"  … and {len(found) - _MOST_LISTED:,} more"


def _labels(found: Sequence[Occurrence]) -> str:
    shown = "  ".join(visible(each.verdict.label) for each in found[:_MOST_LISTED])
    return shown + ("  …" if len(found) > _MOST_LISTED else "")


def _share(count: float, total: float) -> str:
    return f"{_number(count)} of {_number(total)} targets ({_percent(count / total)})"


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) else f"{count:,.4g}"


def _percent(share: float) -> str:
    """With two digits after the point, or as many as it takes not to say 0 % of what is there."""
    digits = 2
    while 0 < 100 * share < 0.5 * 10.0**-digits and digits < _MOST_DIGITS:
        digits += 1
    return f"{100 * share:.{digits}f} %"


def _at_most(share: float) -> str:
    """The share rounded up, with enough digits that what is below 100 % does not read 100 %."""
    for digits in range(2, _MOST_DIGITS + 1):
        rounded = math.ceil(100 * share * 10**digits) / 10**digits
        if rounded < 100:
            return f"{rounded:.{digits}f} %"
    return "100 %"


def impact_record(found: Impact) -> dict[str, Any]:
    """The object under "data" that `verify --data … --json` prints."""
    targets = found.targets
    return {
        "file": targets.name,
        "format": targets.form.value,
        "targets": targets.total,
        "never": found.never_right,
        "tied": sum(each.count for each in found.tied),
        "undecided": found.undecided,
        "no_class": targets.absent,
        "best_accuracy": found.best_accuracy,
        "never_classes": [_occurrence(each) for each in found.never],
        "tied_classes": [_occurrence(each) for each in found.tied],
        "missing": targets.missing,
    }


def _occurrence(each: Occurrence) -> dict[str, Any]:
    return {"class": each.verdict.class_id, "label": each.verdict.label, "count": each.count}


def describe_wins(found: Wins, head: Head) -> list[str]:
    """Who wins, and who takes the place of those that can't."""
    often = "  ".join(f"{_label(head, c)} ({n:,})" for c, n in most_common(found.counts, _MOST_LISTED))
    classes = "class wins" if len(found.counts) == 1 else "classes win"
    lines = [
        "",
        f"At {found.inputs:,} saved inputs {len(found.counts):,} {classes}, most often:",
        f"  {often}",
    ]
    if found.outside:
        lines.append(
            f"{found.outside:,} of these inputs are won by a class that can never be predicted over the "
            "domain: they lie outside of it."
        )
    if found.substitutions:
        lines.append("Classes that can never be predicted, and what wins in their place:")
        lines += [_substitution(each, head) for each in found.substitutions[:_MOST_LISTED]]
    else:
        lines.append("No class that can never be predicted comes second at any of them.")
    rest = len(found.substitutions) - _MOST_LISTED
    return [*lines, *([f"  … and {rest:,} more"] if rest > 0 else [])]


def _substitution(each: Substitution, head: Head) -> str:
    parts = [
        f"{what} {counts.total():,} times, behind {_winners(counts, head)}"
        for what, counts in (("the target", each.instead), ("second", each.ahead))
        if counts
    ]
    return f"  {visible(each.verdict.label)}: {'; '.join(parts)}"


def _winners(counts: Counter[int], head: Head) -> str:
    shown = ", ".join(f"{_label(head, c)} ({n:,})" for c, n in most_common(counts, _MOST_WINNERS))
    return shown + (", …" if len(counts) > _MOST_WINNERS else "")


def _label(head: Head, class_id: int) -> str:
    return visible(head.label(class_id))


def wins_record(found: Wins, head: Head) -> dict[str, Any]:
    """The object under "features" that `verify --features … --json` prints."""
    return {
        "inputs": found.inputs,
        "outside": found.outside,
        "wins": _counts(found.counts, head),
        "substitutions": [
            {
                "class": each.verdict.class_id,
                "label": each.verdict.label,
                "second_behind": _counts(each.ahead, head),
                "target_but": _counts(each.instead, head),
                "nearest_input": each.nearest,
                "behind": each.behind,
            }
            for each in found.substitutions
        ],
    }


def _counts(counts: Counter[int], head: Head) -> list[dict[str, Any]]:
    ranked = most_common(counts, len(counts))
    return [{"class": class_id, "label": head.label(class_id), "count": count} for class_id, count in ranked]
