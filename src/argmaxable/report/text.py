"""A run as text for people and as one JSON object for machines."""

from __future__ import annotations

import math
from typing import Any

from argmaxable.labels import visible
from argmaxable.result import Result
from argmaxable.verdict import Verdict

# Labels listed in a summary; the proof bundle and --json have all of them.
_MOST_LABELS = 400


def summary(result: Result) -> list[str]:
    """The answer first, then the classes it is about, then what it took."""
    lines = [_what(result), "", _answer(result)]
    lost = [verdict for verdict in result.unargmaxable if not verdict.is_tied]
    if lost:
        lines += ["", _labels(lost)]
    lines += _ties(result)
    if result.undecided:
        lines += ["", _undecided(result)]
    return [*lines, "", _cost(result)]


def _what(result: Result) -> str:
    head = result.head
    bias = "with bias" if head.bias is not None else "no bias"
    return (
        f"{head.name}: {head.classes:,} classes × {head.features:,} features, {bias}; domain: {result.domain}"
    )


def _answer(result: Result) -> str:
    total, lost = len(result.verdicts), len(result.unargmaxable)
    if lost:
        verb = "class can" if lost == 1 else "classes can"
        return f"{lost:,} of {total:,} {verb} never be predicted, whatever the input."
    if result.undecided:
        return f"No class of {total:,} was proven unargmaxable so far."
    return "The only class is always predicted." if total == 1 else f"All {total:,} classes can be predicted."


def _ties(result: Result) -> list[str]:
    tied = result.tied
    if not tied:
        return []
    groups = len({verdict.tie_group for verdict in tied})
    where = "a group" if groups == 1 else f"{groups:,} groups"
    return [
        "",
        f"{len(tied):,} of them in {where} of identical rows: at best tied, never the unique argmax. "
        "A framework's argmax returns the first of a group.",
        "",
        _labels(tied),
    ]


def _undecided(result: Result) -> str:
    count = len(result.undecided)
    if not result.is_complete:
        return f"{count:,} undecided: stopped before the end. What is said above is proven."
    return (
        f"{count:,} undecided; the first, class {result.undecided[0].class_id}: {result.undecided[0].reason}."
    )


def _labels(verdicts: list[Verdict] | tuple[Verdict, ...]) -> str:
    shown = "  ".join(visible(verdict.label) for verdict in verdicts[:_MOST_LABELS])
    rest = len(verdicts) - _MOST_LABELS
    return f"{shown}  … and {rest:,} more" if rest > 0 else shown


def _cost(result: Result) -> str:
    cost = result.cost
    text = f"{cost.seconds:.1f} s"
    if cost.solves:
        text += (
            f"; {cost.solves:,} solves, on average {cost.mean_steps:.1f} steps over {cost.mean_rows:.0f} rows"
        )
    return text


def as_record(result: Result) -> dict[str, Any]:
    """The object that `verify --json` prints."""
    head = result.head
    return {
        "model": head.name,
        "classes": head.classes,
        "features": head.features,
        "bias": head.bias is not None,
        "domain": str(result.domain),
        "verified": len(result.verdicts),
        "argmaxable": len(result.argmaxable),
        "unargmaxable": len(result.unargmaxable),
        "tied": len(result.tied),
        "undecided": len(result.undecided),
        "complete": result.is_complete,
        "seconds": round(result.cost.seconds, 3),
        "phases": {name: round(seconds, 3) for name, seconds in result.cost.phases.items()},
        "solves": result.cost.solves,
        "mean_steps": round(result.cost.mean_steps, 2),
        "mean_rows": round(result.cost.mean_rows, 1),
        "unargmaxable_classes": [_class_record(verdict) for verdict in result.unargmaxable],
        "undecided_classes": [
            _class_record(verdict) | {"reason": verdict.reason} for verdict in result.undecided
        ],
    }


def _class_record(verdict: Verdict) -> dict[str, Any]:
    record: dict[str, Any] = {
        "class": verdict.class_id,
        "label": verdict.label,
        "lower": verdict.lower if math.isfinite(verdict.lower) else None,
        "upper": verdict.upper if math.isfinite(verdict.upper) else None,
        "method": verdict.method.value,
    }
    if verdict.tie_group:
        record["tied_with"] = list(verdict.tied_with[:_MOST_LABELS])
    return record
