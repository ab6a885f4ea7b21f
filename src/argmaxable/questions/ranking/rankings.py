"""Can a head rank its classes so? An answer with evidence that order_check.py has checked.

An order asks for gaps (w_i − w_j)·x + (b_i − b_j) > 0, one for each of its pairs (section 3.2 of Grivas,
Bogoychev & Lopez 2022). So it is feasible exactly when class 0 is argmaxable in another head, the *head of
gaps*, whose row for class 0 is zero and whose other rows are minus the gaps' coefficients: all of `verify`
applies. Differences of floats may be rounded there; what it finds is checked against the true head.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.check.orders import OrderCertificate, proven_gap, proves_infeasible
from argmaxable.compute.blocks import row_blocks
from argmaxable.core.boxes import Everywhere
from argmaxable.core.errors import ArgmaxableError
from argmaxable.core.feasibility import Feasibility
from argmaxable.core.head import Head
from argmaxable.core.orders import Order, as_order
from argmaxable.core.progress import Deadline
from argmaxable.core.verdict import OwnDirection, Status
from argmaxable.questions.argmax import verify
from argmaxable.questions.ranking.exact_orders import Evidence, exact_certificate, settle_exactly, table_size
from argmaxable.run.plan import ONE_PROCESS

if TYPE_CHECKING:
    from argmaxable.core.arrays import Vector
    from argmaxable.core.domain import Domain

EVERYWHERE = Everywhere()
# Up to this many rational numbers exact simplex takes less than the 5 ms that a call of verify costs.
_SMALL_TABLE = 100
# Exact simplex costs minutes beyond this many.
_LARGEST_TABLE = 60_000


@dataclass(frozen=True, eq=False)
class RankingVerdict:
    """What is known about an order over a domain, and the evidence for it.

    A feasible one has a `point` z of the domain (see domain.py), where in every pair the first class beats
    the second by `margin` or more; an infeasible one a `certificate`; an undecided one a `reason`.
    """

    order: Order
    domain: Domain
    status: Feasibility
    point: Vector | None = None
    margin: float = 0.0
    certificate: OrderCertificate | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        """Whether the order is feasible; raises ArgmaxableError where that is undecided."""
        if self.status is Feasibility.UNDECIDED:
            raise ArgmaxableError(f"whether the order is feasible is undecided: {self.reason}.")
        return self.status is Feasibility.FEASIBLE


def is_feasible(
    head: Head,
    ranking: Order | Iterable[int],
    domain: Domain = EVERYWHERE,
    *,
    time_limit: float | None = None,
) -> RankingVerdict:
    """Whether some point of the domain ranks the classes so, strictly; a verdict is true or false as such.

    `ranking` is a full ranking (all class ids, the highest first) or an order: top([…], of=C) for its
    beginning, chain([…]) for some classes among themselves, Order(pairs) for anything else.
    After `time_limit` seconds no further way to find out is tried. Raises InputError when the order or the
    domain does not fit the head.
    """
    deadline = Deadline(time_limit)
    domain.require_features(head.features)
    domain.require_directions("a ranking")
    order = as_order(ranking, head.classes)
    question = _Question(head, domain, order, time_limit)
    size = table_size(head, domain, order)
    attempts = [question.look_for_a_cycle, question.look_with_floats]
    if size <= _LARGEST_TABLE:
        attempts.insert(1 if size <= _SMALL_TABLE else 2, question.look_exactly)
    for attempt in attempts:
        if deadline.has_passed:
            return RankingVerdict(order, domain, Feasibility.UNDECIDED, reason="out of time")
        verdict = question.verdict(attempt())
        if verdict is not None:
            return verdict
    reason = f"neither a point nor weights on its {len(order.pairs)} pairs were found that check"
    return RankingVerdict(order, domain, Feasibility.UNDECIDED, reason=reason)


@dataclass(frozen=True, eq=False)
class _Question:
    """Whether an order is feasible for a head over a domain, and ways to find out."""

    head: Head
    domain: Domain
    order: Order
    time_limit: float | None = None

    def verdict(self, evidence: Evidence | None) -> RankingVerdict | None:
        """What the evidence proves; None when it does not pass its check."""
        parts = (self.head, self.domain, self.order)
        if isinstance(evidence, OrderCertificate):
            if proves_infeasible(*parts, evidence):
                return RankingVerdict(self.order, self.domain, Feasibility.INFEASIBLE, certificate=evidence)
        elif evidence is not None:
            margin = proven_gap(*parts, evidence)
            if margin > 0:
                evidence.flags.writeable = False
                return RankingVerdict(
                    self.order, self.domain, Feasibility.FEASIBLE, point=evidence, margin=margin
                )
        return None

    def look_for_a_cycle(self) -> Evidence | None:
        """Pairs in a circle contradict each other, whatever the head."""
        cycle = self.order.cycle()
        return None if cycle is None else OrderCertificate(cycle, (1,) * len(cycle))

    def look_exactly(self) -> Evidence | None:
        """Exact simplex: always ends with the truth over a box, unless it takes too long."""
        return settle_exactly(self.head, self.domain, self.order)

    def look_with_floats(self) -> Evidence | None:
        """The verdict on class 0 of the head of gaps, with exact weights where it is a certificate."""
        gaps = self._gap_head()
        if gaps is None:
            return None
        result = verify(gaps, self.domain, only=[0], engine=ONE_PROCESS, time_limit=self.time_limit)
        found = result.verdicts[0]
        if found.status is Status.UNARGMAXABLE and found.certificate is not None:
            return exact_certificate(self.head, self.domain, self.order.pairs, found.certificate)
        if isinstance(found.witness, OwnDirection):
            return np.array(Checker(gaps, self.domain, centre=result.centre).point(0, found.witness))
        return None if found.witness is None else np.array(found.witness.values)

    def _gap_head(self) -> Head | None:
        """Class 0 with a zero row, then s_j − s_i for each pair; None where a difference overflows."""
        above, below = self.order.pairs.T
        rows, biases = np.zeros((len(above) + 1, self.head.features)), np.zeros(len(above) + 1)
        with np.errstate(over="ignore"):
            biases[1:] = self.head.biases(below) - self.head.biases(above)
            for block in row_blocks(len(above), self.head.features):
                rows[1:][block] = self.head.rows(below[block]) - self.head.rows(above[block])
        return Head(rows, biases) if np.isfinite(rows).all() and np.isfinite(biases).all() else None
