"""A ruling as text for people and as JSON for machines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from argmaxable.core.labels import visible
from argmaxable.report.answer import never_predicted
from argmaxable.workflow.gate.ruling import FailOn, Ruling

if TYPE_CHECKING:
    from argmaxable.core.verdict import Verdict

# Classes listed in text; --json has all of them.
_MOST_LISTED = 40


def describe(ruling: Ruling) -> list[str]:
    """What changed, what is allowed, and whether the run passes."""
    return ["", *_change(ruling), *_allowed(ruling), _outcome(ruling)]


def _change(ruling: Ruling) -> Iterator[str]:
    if ruling.baseline is None or ruling.change is None:
        return
    name, domain = visible(ruling.baseline.name), ruling.baseline.domain
    new, recovered = ruling.change.newly_unargmaxable, ruling.change.recovered
    yield f"Compared with {name}, classes matched by {ruling.change.matching.value}:"
    if domain and domain != str(ruling.result.domain):
        yield f"  The baseline is about another domain: {domain}."
    for classes, said in ((new, "can never be predicted now"), (recovered, "can be predicted again")):
        if classes:
            yield f"  {_count(classes)} {said}: {_listed(_labels(ruling, classes))}"
    if not new:
        yield "  Nothing new: the baseline has every class that can never be predicted."


def _labels(ruling: Ruling, classes: Sequence[Verdict]) -> Iterator[str]:
    return (ruling.result.head.label(verdict.class_id) for verdict in classes)


def _allowed(ruling: Ruling) -> Iterator[str]:
    allowed = ruling.allowed
    if allowed.classes:
        labels = (ruling.result.head.label(class_id) for class_id in sorted(allowed.classes))
        yield f"Allowed by {visible(allowed.name)}: {_listed(labels)}"
    if allowed.unused:
        yield f"Not needed in {visible(allowed.name)}: {_listed(allowed.unused)}"


def _outcome(ruling: Ruling) -> str:
    code, wanted = ruling.exit_code, f"--fail-on {ruling.fail_on.value}"
    if ruling.fail_on is FailOn.NONE:
        return f"PASS ({wanted})."
    if code == 0:
        return f"PASS ({wanted}): {_passed(ruling)}."
    if code == 1:
        since = ", new since the baseline" if _is_new(ruling) else ""
        never = never_predicted(ruling.result.domain, ruling.result.domain_source)
        return f"FAIL ({wanted}): {_count(ruling.failing)} {never}{since}."
    left = f"{len(ruling.undecided):,} undecided" if ruling.result.is_complete else "stopped before the end"
    return f"FAIL ({wanted}): {left}."


def _is_new(ruling: Ruling) -> bool:
    return ruling.fail_on is FailOn.NEW


def _passed(ruling: Ruling) -> str:
    never = len(ruling.result.unargmaxable)
    if _is_new(ruling):
        return f"none of {never:,} is new" if never else "every class can be predicted"
    return "all of these are allowed" if never else "no class is unargmaxable"


def _count(classes: Sequence[Verdict]) -> str:
    return f"{len(classes):,} {'class' if len(classes) == 1 else 'classes'}"


def _listed(labels: Iterable[str]) -> str:
    every = [visible(label) for label in labels]
    rest = len(every) - _MOST_LISTED
    return "  ".join(every[:_MOST_LISTED]) + (f"  … and {rest:,} more" if rest > 0 else "")


def as_record(ruling: Ruling) -> dict[str, Any]:
    """The object under "gate" that `verify --json` prints."""
    baseline, change = ruling.baseline, ruling.change
    record: dict[str, Any] = {
        "fail_on": ruling.fail_on.value,
        "exit_code": ruling.exit_code,
        "failing": _records(ruling, ruling.failing),
        "allowed": sorted(ruling.allowed.classes),
        "not_needed": list(ruling.allowed.unused),
    }
    if baseline is None or change is None:
        return record
    return record | {
        "baseline": baseline.name,
        "baseline_domain": baseline.domain or None,
        "matched_by": change.matching.value,
        "new": _records(ruling, change.newly_unargmaxable),
        "recovered": _records(ruling, change.recovered),
    }


def _records(ruling: Ruling, classes: Sequence[Verdict]) -> list[dict[str, Any]]:
    labels = _labels(ruling, classes)
    return [
        {"class": verdict.class_id, "label": label} for verdict, label in zip(classes, labels, strict=True)
    ]
