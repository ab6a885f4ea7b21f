"""What `verify` adds to its verdicts: how near to ordinary inputs the witnesses are, and what a machine's
arithmetic leaves of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from argmaxable.core.balls import NormSolid
from argmaxable.core.labels import visible
from argmaxable.core.result import Result
from argmaxable.questions.arithmetic.formats import Float

if TYPE_CHECKING:
    from argmaxable.questions.arithmetic.norm_surface import Surface

# Classes listed in text; --json has all of them.
_MOST_LISTED = 40


@dataclass(frozen=True)
class Remarks:
    """Lines for people, and what they say for machines."""

    lines: tuple[str, ...]
    record: dict[str, Any]


def remarks_on(result: Result, dtype: Float | None) -> Remarks:
    """What is worth knowing about the argmaxable classes of a result."""
    lines: list[str] = []
    record: dict[str, Any] = {}
    # Late: most runs need neither.
    if isinstance(result.domain, NormSolid):
        from argmaxable.questions.arithmetic.norm_surface import surface_of

        surface = surface_of(result)
        if surface is not None:
            lines += _on_surface(result, surface)
            record["solid_only"] = list(surface.solid_only)
    if dtype is not None:
        from argmaxable.questions.arithmetic.survival import survival
        from argmaxable.questions.arithmetic.wording import as_record, describe

        outcome = survival(result, dtype)
        lines += describe(outcome)
        record["arithmetic"] = as_record(outcome)
    return Remarks(tuple(lines), record)


def _on_surface(result: Result, surface: Surface) -> list[str]:
    inside = surface.solid_only
    if not surface.classes:
        return []
    if not inside:
        return [f"All {surface.classes:,} argmaxable classes win at the solid's surface, where inputs land."]
    shown = "  ".join(visible(result.head.label(class_id)) for class_id in inside[:_MOST_LISTED])
    rest = f"  … and {len(inside) - _MOST_LISTED:,} more" if len(inside) > _MOST_LISTED else ""
    return [
        f"{len(inside):,} of {surface.classes:,} argmaxable classes solid only: no winning input was found "
        "at the solid's surface, where inputs of ordinary variance land:",
        f"{shown}{rest}",
    ]
