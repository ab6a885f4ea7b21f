"""A run as text for people and as one JSON object for machines."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from argmaxable.core.labels import visible
from argmaxable.core.verdict import farthest_first
from argmaxable.report.answer import Tally, answer, counted, domain_line, domain_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from argmaxable.core.domain import Domain
    from argmaxable.core.domain_source import DomainSource
    from argmaxable.core.head import Facts
    from argmaxable.core.result import Cost
    from argmaxable.core.verdict import Verdict

# Labels listed unless all are asked for.
_FEW_LABELS = 20
# Members of a tie that JSON lists for each of them: to list all would take the square of their number.
_MOST_FELLOWS = 400


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
    def domain_source(self) -> DomainSource | None: ...
    @property
    def wanted(self) -> int: ...
    @property
    def verified(self) -> int: ...
    @property
    def unargmaxable(self) -> tuple[Verdict, ...]: ...
    @property
    def tied(self) -> tuple[Verdict, ...]: ...
    @property
    def undecided(self) -> tuple[Verdict, ...]: ...


def summary(record: Findings, *, everything: bool = False) -> list[str]:
    """The answer first, then the classes it is about, then what it took. `everything` lists every label."""
    lines = [answer(tally_of(record)), domain_line(record.domain, record.domain_source)]
    unargmaxable = [verdict for verdict in record.unargmaxable if not verdict.is_tied]
    if unargmaxable:
        lines += ["", *_by_distance(unargmaxable, everything)]
    lines += _ties(record, everything)
    if record.is_complete and record.undecided:
        lines += ["", _undecided(record)]
    return [*lines, "", f"{_what(record)}; {_cost(record)}"]


def tally_of(record: Findings) -> Tally:
    """What the answer counts."""
    return Tally(
        classes=record.facts.classes,
        wanted=record.wanted,
        unargmaxable=len(record.unargmaxable),
        unknown=len(record.undecided) + record.wanted - record.verified,
        is_complete=record.is_complete,
        domain=record.domain,
        source=record.domain_source,
    )


def _what(record: Findings) -> str:
    facts = record.facts
    size = counted(facts.classes)
    if facts.features:  # not known of every published model
        size += f" × {counted(facts.features, 'feature', 'features')}, "
        size += "with bias" if facts.bias else "no bias"
    return f"{visible(facts.name)}: {size}"


def _ties(record: Findings, everything: bool) -> list[str]:
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
        _labels(tied, everything),
    ]


def _undecided(record: Findings) -> str:
    first = record.undecided[0]
    return f"Undecided, the first of them class {first.class_id} ({visible(first.label)}): {first.reason}."


def _by_distance(verdicts: Sequence[Verdict], everything: bool) -> list[str]:
    """The labels, farthest off first, and what that means."""
    ordered = farthest_first(verdicts)
    if len(ordered) == 1 or ordered[0].ahead is None:
        return [_labels(ordered, everything)]
    return [f"Farthest off first: {_labels(ordered, everything)}", _range(ordered)]


def _range(ordered: Sequence[Verdict]) -> str:
    """How many classes are ahead of the first and of the last of which that is known."""
    first, last = ordered[0], [verdict for verdict in ordered if verdict.ahead is not None][-1]
    labels = [visible(verdict.label) for verdict in (first, last)]
    return (
        "How many classes score higher in the class's own direction: "
        f"{first.ahead or 0:,} for {labels[0]}, {last.ahead:,} for {labels[1]}."
    )


def _labels(verdicts: Sequence[Verdict], everything: bool) -> str:
    shown = verdicts if everything else verdicts[:_FEW_LABELS]
    labels = "  ".join(visible(verdict.label) for verdict in shown)
    rest = len(verdicts) - len(shown)
    return f"{labels}  … and {rest:,} more (--all lists them)" if rest else labels


def _cost(record: Findings) -> str:
    cost = record.cost
    text = f"{cost.seconds:.1f} s"
    if cost.solves:
        steps = f"on average {cost.mean_steps:.1f} steps"
        if cost.solves == 1:
            steps = counted(round(cost.mean_steps), "step", "steps")
        text += f"; {counted(cost.solves, 'solve', 'solves')}, {steps} over {cost.mean_rows:.0f} rows"
    return text


def as_record(record: Findings) -> dict[str, Any]:
    """The object that `verify --json` prints."""
    facts = record.facts
    return {
        "answer": answer(tally_of(record)),
        "model": facts.name,
        "classes": facts.classes,
        "features": facts.features,
        "bias": facts.bias,
        **domain_record(record.domain, record.domain_source),
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
        "unargmaxable_classes": [
            _class_record(verdict) | {"ahead": verdict.ahead}
            for verdict in farthest_first(record.unargmaxable)
        ],
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
        record["tied_with"] = list(verdict.tied_with[:_MOST_FELLOWS])
    return record
