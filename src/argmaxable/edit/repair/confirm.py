"""Verifies a repaired head. Points are known at which most classes should win: whatever they prove is not
searched for again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.result import Cost
from argmaxable.core.verdict import Method
from argmaxable.questions.argmax import run_plan
from argmaxable.run.plan import make_plan
from argmaxable.run.settled_classes import SettledClasses, points_as_witnesses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from argmaxable.core.arrays import Ids, Matrix, Vector
    from argmaxable.core.domain import Domain
    from argmaxable.core.head import Head
    from argmaxable.core.progress import ProgressCallback
    from argmaxable.core.result import Result
    from argmaxable.core.verdict import Verdict
    from argmaxable.run.plan import Engine


def verify_with_points(
    head: Head, domain: Domain, ids: Ids, points: Matrix, *, engine: Engine, progress: ProgressCallback
) -> Result:
    """Verdicts on all classes of the head, as `verify` gives them. `points` (z, one for each of `ids`) pass
    the checker first; the classes that they prove argmaxable are settled."""
    plan = make_plan(head, domain, engine=engine)
    checker = Checker(plan.prepared, domain)
    settled = SettledClasses(checker, checker.prepared.twins, plan.wanted)
    places = np.flatnonzero(settled.open[ids])
    gaps = checker.gaps(ids[places], points[places])
    settled.enter_gaps(ids[places], gaps, points_as_witnesses(points[places]), Method.INTERIOR_POINT)
    known = {verdict.class_id: verdict for verdict in settled.collect()}
    return run_plan(plan, progress=progress, journal=_Known(known, checker.centre))


@dataclass(frozen=True, eq=False)
class _Known:
    """The journal of a run that begins with what the points proved and is stored nowhere."""

    known: Mapping[int, Verdict]
    centre: Vector
    spent: Cost = field(default_factory=Cost)

    def record(self, verdicts: Sequence[Verdict], cost: Cost) -> None:
        pass
