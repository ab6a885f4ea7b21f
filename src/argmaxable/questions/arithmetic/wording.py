"""What becomes of classes in a machine's arithmetic, as text for people and as JSON for machines."""

from __future__ import annotations

import math
from typing import Any

from argmaxable.core.labels import visible
from argmaxable.questions.arithmetic.survival import Fate, Outcome, Survival

# Classes listed in text; --json has all of them.
_MOST_LISTED = 40


def describe(survival: Survival) -> list[str]:
    """The answer first, then the classes it is about."""
    name, total = survival.number.value, len(survival.fates)
    thin, unargmaxable = survival.having(Outcome.ON_PAPER_ONLY), survival.having(Outcome.UNARGMAXABLE)
    surviving = total - len(thin) - len(unargmaxable)
    if not total:
        return [f"In {name}: no class is argmaxable."]
    lines = [
        f"In {name}: {surviving:,} of {total:,} argmaxable classes lead by more than its rounding errors."
    ]
    if thin:
        lines += [
            f"{len(thin):,} on paper only: no input was found where the class leads by more than the errors, "
            "so rounding decides whether it wins (in brackets its best lead, in units of the error bound):",
            _listed(thin),
        ]
    if unargmaxable:
        lines += [
            f"{len(unargmaxable):,} can never be predicted with weights rounded to {name}, proven:",
            _listed(unargmaxable),
        ]
    if survival.merged:
        members = sum(map(len, survival.merged))
        groups = "a group" if len(survival.merged) == 1 else f"{len(survival.merged):,} groups"
        lines.append(f"{members:,} classes in {groups} have the same row and bias once rounded: they tie.")
    return lines


def _listed(fates: tuple[Fate, ...]) -> str:
    shown = "  ".join(f"{visible(fate.label)} ({fate.units:.2g})" for fate in fates[:_MOST_LISTED])
    rest = len(fates) - _MOST_LISTED
    return f"{shown}  … and {rest:,} more" if rest > 0 else shown


def as_record(survival: Survival) -> dict[str, Any]:
    """The object under "arithmetic" that `verify --dtype … --json` prints."""
    thin, unargmaxable = survival.having(Outcome.ON_PAPER_ONLY), survival.having(Outcome.UNARGMAXABLE)
    return {
        "dtype": survival.number.value,
        "argmaxable": len(survival.fates),
        "survive": len(survival.fates) - len(thin) - len(unargmaxable),
        "on_paper_only": [_record(fate) for fate in thin],
        "unargmaxable": [_record(fate) for fate in unargmaxable],
        "merged": [list(group) for group in survival.merged],
    }


def _record(fate: Fate) -> dict[str, Any]:
    units = fate.units if math.isfinite(fate.units) else None
    return {"class": fate.class_id, "label": fate.label, "units": units}
