"""What there is to say about one class: why it can never be the argmax and how far off it is, or how
safely it can."""

from __future__ import annotations

from dataclasses import dataclass, field

from argmaxable.core.arrays import Vector
from argmaxable.core.best_rank import BestRank
from argmaxable.core.domain import Domain
from argmaxable.core.verdict import Verdict
from argmaxable.questions.explain.growth import Growth
from argmaxable.questions.explain.margin import Margin


@dataclass(frozen=True, slots=True)
class Share:
    """A class of a mixture that holds another down, with its weight; a mixture's weights add up to 1."""

    class_id: int
    label: str
    weight: float


@dataclass(frozen=True, slots=True)
class Competitor:
    """A class near another at an input: its score there less the other's, and how far x is from where
    both tie."""

    class_id: int
    label: str
    ahead: float
    distance: float


@dataclass(frozen=True, slots=True)
class Width:
    """How safely a class wins at an input: `margin` logits ahead, proven, and so in a ball of that radius
    around it (as floats find it; the ball may reach out of the domain)."""

    margin: float
    radius: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """A class's verdict over a domain, with what it means.

    `mixture` always scores at least −margin.upper logits more than an unargmaxable class, heaviest share
    first. `input` is a feature vector x: where the class has the best rank found, or for an argmaxable one
    the widest found, with its `width`. `competitors` are the nearest of those not below it there, or of all
    if none is.
    """

    verdict: Verdict
    domain: Domain
    margin: Margin
    mixture: tuple[Share, ...]
    growth: Growth | None
    rank: BestRank | None
    input: Vector | None = field(repr=False)
    competitors: tuple[Competitor, ...]
    width: Width | None

    @property
    def deficit(self) -> tuple[float, float]:
        """From how much extra bias frees the class at the earliest, to how much surely does."""
        return self.margin.deficit
