"""Ceilings as text for people and as a part of the JSON object for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argmaxable.core.ceiling import Ceiling, Ceilings, Entry, Membership, Nucleus
from argmaxable.core.labels import visible

# Classes listed in text; the bundle and --json have all of them.
_MOST_LISTED = 20


def describe(
    found: Ceilings, members: Nucleus | None = None, *, argmaxable: frozenset[int] = frozenset()
) -> list[str]:
    """What is proven, then the classes whose probability is most limited; of the argmaxable ones too."""
    lines = ["", _headline(found), _limited(found)]
    weak = [c for c in found.lowest() if c.upper < 0.5 and c.class_id in argmaxable]
    if weak:
        lines += ["", f"{len(weak):,} can be the argmax, yet never reach 0.5: {_labels(weak)}"]
    if found.open:
        lines.append(_open(found))
    lowest = [ceiling for ceiling in found.lowest() if ceiling.upper < 1][:_MOST_LISTED]
    if lowest:
        lines += ["", "Lowest ceilings:", *(_row(ceiling) for ceiling in lowest)]
        rest = sum(1 for ceiling in found.classes if ceiling.upper < 1) - len(lowest)
        if rest:
            lines.append(f"  … and {rest:,} more below 1")
    return lines if members is None else [*lines, "", *_entries(members)]


def _headline(found: Ceilings) -> str:
    softmax = "softmax" if found.temperature == 1 else f"softmax at temperature {found.temperature:g}"
    return (
        f"Largest probability of each class ({softmax}): known to within {found.widest:.1e} "
        f"for all {len(found.classes):,} classes; {found.seconds:.1f} s."
    )


def _limited(found: Ceilings) -> str:
    half, most = (sum(1 for c in found.classes if c.upper < limit) for limit in (0.5, 0.9))
    near = sum(1 for c in found.classes if c.lower >= 1 - found.tolerance)
    return (
        f"{near:,} can come within {found.tolerance:g} of certainty; "
        f"{most:,} never reach 0.9, of which {half:,} never reach 0.5."
    )


def _open(found: Ceilings) -> str:
    count = len(found.open)
    if not found.is_complete:
        return f"{count:,} ceilings are still open: stopped before the end. What is said above is proven."
    return f"{count:,} ceilings are wider than {found.tolerance:g}: floats could bring them no closer."


def _row(ceiling: Ceiling) -> str:
    return f"  {ceiling.lower:.8f} to {ceiling.upper:.8f}  class {ceiling.class_id}  {visible(ceiling.label)}"


def _labels(some: Sequence[Ceiling | Membership]) -> str:
    shown = "  ".join(visible(each.label) for each in some[:_MOST_LISTED])
    return f"{shown}  … and {len(some) - _MOST_LISTED:,} more" if len(some) > _MOST_LISTED else shown


def _entries(members: Nucleus) -> list[str]:
    yes, no, unknown = (members.having(entry) for entry in (Entry.YES, Entry.NO, Entry.UNKNOWN))
    lines = [
        f"Nucleus of top-p {members.top_p:g}: {len(yes):,} classes can enter it, {len(no):,} never can, "
        f"{len(unknown):,} unknown."
    ]
    for what, some in (("Never", no), ("Unknown", unknown)):
        if some:
            lines.append(f"{what}: {_labels(some)}")
    return lines


def as_record(found: Ceilings, members: Nucleus | None = None) -> dict[str, Any]:
    """What `verify --ceiling --json` adds: all ceilings, the lowest first."""
    record: dict[str, Any] = {
        "temperature": found.temperature,
        "tolerance": found.tolerance,
        "widest": found.widest,
        "open": len(found.open),
        "complete": found.is_complete,
        "seconds": round(found.seconds, 3),
        "classes": [ceiling.as_record() for ceiling in found.lowest()],
    }
    if members is None:
        return {"ceilings": record}
    answers = {entry.value: [member.class_id for member in members.having(entry)] for entry in Entry}
    return {"ceilings": record, "nucleus": {"top_p": members.top_p, **answers}}
