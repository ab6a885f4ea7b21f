"""Whether something can come out of a head: an order of its classes, a set of its labels."""

from __future__ import annotations

from enum import StrEnum


class Feasibility(StrEnum):
    """What is proven about an order or a set over a domain."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNDECIDED = "undecided"


def feasibility_of(lower: float, upper: float) -> Feasibility:
    """The status that proven bounds on a margin leave."""
    if lower > 0:
        return Feasibility.FEASIBLE
    return Feasibility.INFEASIBLE if upper <= 0 else Feasibility.UNDECIDED
