"""Whether a run passes, and because of which classes it doesn't."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from argmaxable.workflow.gate.allowed import Allowed

if TYPE_CHECKING:
    from argmaxable.core.result import Result
    from argmaxable.core.verdict import Verdict
    from argmaxable.report.comparison import Comparison
    from argmaxable.workflow.gate.baseline import Baseline


class FailOn(StrEnum):
    """What makes a run fail, from strict to lenient."""

    UNDECIDED = "undecided"
    UNARGMAXABLE = "unargmaxable"
    NEW = "new"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Ruling:
    """The unargmaxable classes of a result: those that make it fail, those that were in the baseline, those
    that are allowed. `change` is what became of the baseline's classes, if there is one."""

    fail_on: FailOn
    result: Result
    failing: tuple[Verdict, ...]
    known: tuple[Verdict, ...]
    allowed: Allowed
    baseline: Baseline | None = None
    change: Comparison | None = None

    @property
    def undecided(self) -> tuple[Verdict, ...]:
        """Those that are not allowed to be."""
        return tuple(v for v in self.result.undecided if v.class_id not in self.allowed.classes)

    @property
    def exit_code(self) -> int:
        """0 passed; 1 some class fails; 3 some class is undecided, or the run was stopped before its end."""
        if self.fail_on is FailOn.NONE:
            return 0
        if self.fail_on is FailOn.UNDECIDED and (self.undecided or not self.result.is_complete):
            return 3
        if self.failing:
            return 1
        return 0 if self.result.is_complete else 3


def rule(
    result: Result, fail_on: FailOn, *, baseline: Baseline | None = None, allowed: Allowed | None = None
) -> Ruling:
    """Judge a result. A class is new unless the baseline says that it is unargmaxable."""
    allowed = allowed or Allowed()
    change = None if baseline is None else baseline.compared_with(result)
    left = [verdict for verdict in result.unargmaxable if verdict.class_id not in allowed.classes]
    new = {v.class_id for v in (left if change is None else change.newly_unargmaxable)}
    only_new = fail_on is FailOn.NEW
    return Ruling(
        fail_on=fail_on,
        result=result,
        failing=tuple(v for v in left if not only_new or v.class_id in new),
        known=tuple(v for v in left if v.class_id not in new),
        allowed=allowed,
        baseline=baseline,
        change=change,
    )
