"""How far off the classes are that can never be predicted: a cheap measure, the same in every run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.result import Result
from argmaxable.core.verdict import Status
from argmaxable.search.own_direction import ahead_in_own_direction


def with_standing(result: Result, prepared: PreparedHead) -> Result:
    """The result with the `ahead` of unargmaxable classes that had none, ties apart: those have nobody ahead.

    Over a domain whose points are not of feature space no class has a direction, and none gets one.
    """
    missing = [
        place
        for place, verdict in enumerate(result.verdicts)
        if verdict.status is Status.UNARGMAXABLE and not verdict.is_tied and verdict.ahead is None
    ]
    if not (missing and result.domain.has_features):
        return result
    checker = Checker(prepared, result.domain, centre=result.centre)
    ids = np.array([result.verdicts[place].class_id for place in missing], np.intp)
    verdicts = list(result.verdicts)
    for place, ahead in zip(missing, ahead_in_own_direction(checker, ids).tolist(), strict=True):
        verdicts[place] = replace(verdicts[place], ahead=ahead)
    return replace(result, verdicts=tuple(verdicts))
