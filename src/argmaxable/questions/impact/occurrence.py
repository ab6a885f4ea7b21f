"""How often the classes that can never be predicted occur among targets, and the accuracy that costs."""

from __future__ import annotations

from dataclasses import dataclass

from argmaxable.core.result import Result
from argmaxable.core.verdict import Status, Verdict
from argmaxable.questions.impact.targets import Targets


@dataclass(frozen=True, eq=False)
class Occurrence:
    """A class, and how often it is a target."""

    verdict: Verdict
    count: float


@dataclass(frozen=True, eq=False)
class Impact:
    """The unargmaxable classes that occur among the targets, the most frequent first.

    `tied` are those that only identical classes keep from winning: a framework's argmax may still return
    them, so they are not counted as wrong. `undecided` counts targets whose class has no verdict either way.
    """

    targets: Targets
    never: tuple[Occurrence, ...]
    tied: tuple[Occurrence, ...]
    undecided: float
    unargmaxable: int

    @property
    def never_right(self) -> float:
        """Targets whose class can never be predicted."""
        return sum(each.count for each in self.never)

    @property
    def best_accuracy(self) -> float:
        """No predictions on this data are right more often: neither classes that can never be predicted nor
        targets that are no class can be right."""
        return 1 - (self.never_right + self.targets.absent) / self.targets.total


def impact(result: Result, targets: Targets) -> Impact:
    """What the result's verdicts mean for these targets."""
    counts = targets.counts
    never = {v.class_id for v in result.unargmaxable}
    # A target is a label, and right if any class of that label is predicted.
    saved = {result.head.label(class_id) for class_id in range(result.head.classes) if class_id not in never}
    found = [
        Occurrence(verdict, counts[verdict.class_id])
        for verdict in result.unargmaxable
        if verdict.class_id in counts and verdict.label not in saved
    ]
    found.sort(key=lambda each: (-each.count, each.verdict.class_id))
    decided = {v.class_id for v in result.verdicts if v.status is not Status.UNDECIDED}
    return Impact(
        targets=targets,
        never=tuple(each for each in found if not each.verdict.is_tied),
        tied=tuple(each for each in found if each.verdict.is_tied),
        undecided=sum(count for class_id, count in counts.items() if class_id not in decided),
        unargmaxable=len(result.unargmaxable) - len(result.tied),
    )
