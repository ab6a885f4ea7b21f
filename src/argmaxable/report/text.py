"""A run as text for people and as one JSON object for machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from argmaxable.core.labels import visible

if TYPE_CHECKING:
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Facts
    from argmaxable.core.result import Cost
    from argmaxable.core.verdict import Verdict

# Labels listed in a summary; the proof bundle and --json have all of them.
_MOST_LABELS = 400


class Findings(Protocol):
    """What is told of a run: a Record has all of it, a stored run needs few of its verdicts for it."""

    @property
    def facts(self) -> Facts: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def cost(self) -> Cost: ...
    @property
    def is_complete(self) -> bool: ...
    @property
    def verified(self) -> int: ...
    @property
    def unargmaxable(self) -> tuple[Verdict, ...]: ...
    @property
    def tied(self) -> tuple[Verdict, ...]: ...
    @property
    def undecided(self) -> tuple[Verdict, ...]: ...


def summary(record: Findings) -> list[str]:
    """The answer first, then the classes it is about, then what it took."""
    lines = [_what(record), "", _answer(record)]
    unargmaxable = [verdict for verdict in record.unargmaxable if not verdict.is_tied]
    if unargmaxable:
        lines += ["", _labels(unargmaxable)]
    lines += _ties(record)
    if record.undecided:
        lines += ["", _undecided(record)]
    return [*lines, "", _cost(record)]


def _what(record: Findings) -> str:
    facts = record.facts
    size = f"{facts.classes:,} classes"
    if facts.features:  # not known of every published model
        size += f" × {facts.features:,} features, {'with bias' if facts.bias else 'no bias'}"
    return f"{visible(facts.name)}: {size}; domain: {record.domain}"


def _answer(record: Findings) -> str:
    total, unargmaxable = record.verified, len(record.unargmaxable)
    if unargmaxable:
        noun = "class" if total == 1 else "classes"
        scope = ", whatever the input" if record.domain.has_features else ""
        return f"{unargmaxable:,} of {total:,} {noun} {record.domain.never_predicted()}{scope}."
    if record.undecided or not record.is_complete:
        return f"No class of {total:,} was proven unargmaxable so far."
    return "The only class is always predicted." if total == 1 else f"All {total:,} classes can be predicted."


def _ties(record: Findings) -> list[str]:
    tied = record.tied
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


def _undecided(record: Findings) -> str:
    count = len(record.undecided)
    if not record.is_complete:
        return f"{count:,} undecided: stopped before the end. What is said above is proven."
    return (
        f"{count:,} undecided; the first, class {record.undecided[0].class_id}: {record.undecided[0].reason}."
    )


def _labels(verdicts: list[Verdict] | tuple[Verdict, ...]) -> str:
    shown = "  ".join(visible(verdict.label) for verdict in verdicts[:_MOST_LABELS])
    rest = len(verdicts) - _MOST_LABELS
    return f"{shown}  … and {rest:,} more" if rest > 0 else shown


def _cost(record: Findings) -> str:
    cost = record.cost
    text = f"{cost.seconds:.1f} s"
    if cost.solves:
        text += (
            f"; {cost.solves:,} solves, on average {cost.mean_steps:.1f} steps over {cost.mean_rows:.0f} rows"
        )
    return text


def as_record(record: Findings) -> dict[str, Any]:
    """The object that `verify --json` prints."""
    facts = record.facts
    return {
        "model": facts.name,
        "classes": facts.classes,
        "features": facts.features,
        "bias": facts.bias,
        "domain": str(record.domain),
        "verified": record.verified,
        "argmaxable": record.verified - len(record.unargmaxable) - len(record.undecided),
        "unargmaxable": len(record.unargmaxable),
        "tied": len(record.tied),
        "undecided": len(record.undecided),
        "complete": record.is_complete,
        "seconds": round(record.cost.seconds, 3),
        "phases": {name: round(seconds, 3) for name, seconds in record.cost.phases.items()},
        "solves": record.cost.solves,
        "mean_steps": round(record.cost.mean_steps, 2),
        "mean_rows": round(record.cost.mean_rows, 1),
        "unargmaxable_classes": [_class_record(verdict) for verdict in record.unargmaxable],
        "undecided_classes": [
            _class_record(verdict) | {"reason": verdict.reason} for verdict in record.undecided
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
