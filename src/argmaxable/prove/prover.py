"""Settles single classes: the lazy interior point first, then wider or larger attempts, then exact
simplex. A pure function of head, domain and class, so it runs in any process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker, rival_certificate
from argmaxable.compute.coordinates import Coordinates, coordinates_of
from argmaxable.core.progress import NO_DEADLINE, Deadline
from argmaxable.core.verdict import FinePoint, Method, Point
from argmaxable.prove.attempt import Answer
from argmaxable.prove.lazy import Blockers, LazySolver, without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from argmaxable.core.arrays import Ids

# An unbounded domain is stood in for by a box; a class undecided there is tried in wider ones.
_REACHES = (1e4, 1e8)
# Classes solved side by side; one where there are many features: a look is nothing beside a solve there, and
# tables take memory.
_TOGETHER, _MANY_FEATURES = 8, 256
# Exact simplex costs minutes beyond this many rational numbers in its table.
_LARGEST_EXACT_TABLE = 60_000
# Over a hull it takes in vectors and rivals as it needs them; its numbers grow with the features.
_MOST_EXACT_FEATURES = 24
# Rivals tried on their own before a class is left undecided.
_RIVALS_TRIED = 8


@dataclass(frozen=True, eq=False)
class Settled:
    """An answer and the method that found it."""

    answer: Answer
    method: Method


class Prover:
    """Proves or refutes that classes of one head are argmaxable over one domain.

    Exact simplex can take minutes for one class. It raises TimeIsOver at the deadline.
    """

    def __init__(
        self,
        checker: Checker,
        *,
        ignored: Ids,
        tied: frozenset[int],
        score: NDArray[np.float64] | None,
        seed: int,
        deadline: Deadline = NO_DEADLINE,
    ) -> None:
        self.checker, self.ignored, self.seed, self.deadline = checker, ignored, seed, deadline
        self.coordinates = self._coordinates(ignored)
        blockers = Blockers.of(self.coordinates) if score is None else Blockers(score)
        self.solver = LazySolver(self.coordinates, checker, blockers, tied)

    def _coordinates(self, ignored: Ids, *, reach: float = 1.0) -> Coordinates:
        return coordinates_of(self.checker.prepared, self.checker.domain, ignored=ignored, reach=reach)

    def settle(self, class_id: int) -> Settled:
        """The class's witness or certificate, checked, or an answer with the reason for neither."""
        return self.settle_together([class_id])[0]

    @property
    def together(self) -> int:
        """How many classes are best settled side by side."""
        return _TOGETHER if self.coordinates.size < _MANY_FEATURES else 1

    def settle_together(self, classes: list[int]) -> list[Settled]:
        """The same for some classes, side by side."""
        if not self.coordinates.size:
            return [self._settle_at_the_only_point(class_id) for class_id in classes]
        return [self._conclude(answer) for answer in self.solver.solve_together(classes)]

    def _conclude(self, answer: Answer) -> Settled:
        if not _is_settled(answer):
            answer = self._try_again(answer)
        if _is_settled(answer):
            if answer.certificate is not None:
                self.solver.blockers.proved(answer.certificate.classes, answer.certificate.weights)
            return Settled(answer, Method.INTERIOR_POINT)
        return self._settle_by_one_rival(answer) or self._settle_exactly(answer)

    def _settle_at_the_only_point(self, class_id: int) -> Settled:
        """All gaps are the same at every point of the domain: whoever wins at one is the proof."""
        point = self.coordinates.some_point()
        gaps = self.checker.gaps(np.array([class_id]), point)
        if gaps.settle(np.array([class_id in self.solver.tied]))[0]:
            answer = Answer(class_id, point[0], None, 0, 0, 1)
        else:
            answer = Answer(class_id, None, rival_certificate(int(gaps.rival[0])), 0, 1, 1)
        return Settled(answer, Method.OWN_DIRECTION)

    def _try_again(self, first: Answer) -> Answer:
        """More rows, drawn at random; then wider stand-ins for an unbounded domain; then fewer rivals."""
        answer = first
        for solver in self._other_solvers(first.class_id):
            extra = self._random_rows(solver.coordinates, first.class_id)
            again = solver.solve(first.class_id, extra=extra)
            answer = replace(again, steps=answer.steps + again.steps, scans=answer.scans + again.scans)
            if _is_settled(answer):
                break
        return answer

    def _other_solvers(self, class_id: int) -> Iterator[LazySolver]:
        yield self.solver
        if not (self.coordinates.is_cone or self.checker.domain.is_bounded):
            for reach in _REACHES:
                yield self._solver_in(self._coordinates(self.ignored, reach=reach), self.solver.blockers)
        harmless = self._always_behind(class_id)
        if len(harmless):
            ignored = np.union1d(self.ignored, harmless)
            coordinates = self._coordinates(ignored)
            yield self._solver_in(coordinates, Blockers.of(coordinates))

    def _solver_in(self, coordinates: Coordinates, blockers: Blockers) -> LazySolver:
        return LazySolver(coordinates, self.checker, blockers, self.solver.tied)

    def _always_behind(self, class_id: int) -> Ids:
        """Rivals that score below the class all over the domain. With enormous biases their slacks are so
        large that floats see nothing beside them."""
        rivals = without(self.coordinates.usable, class_id)
        return np.asarray(rivals[self.checker.rival_bounds(rivals, np.full(len(rivals), class_id)) < 0])

    def _random_rows(self, coordinates: Coordinates, class_id: int) -> Ids:
        usable = without(coordinates.usable, class_id)
        count = min(len(usable), 4 * coordinates.size)
        return np.random.default_rng((self.seed, class_id)).choice(usable, count, replace=False)

    def _settle_by_one_rival(self, answer: Answer) -> Settled | None:
        """A tie with a single rival, met exactly at the rim of the domain, escapes floats."""
        rivals = without(self.coordinates.usable, answer.class_id)
        uppers = self.checker.rival_bounds(np.full(len(rivals), answer.class_id), rivals)
        for rival in rivals[np.argsort(uppers)[:_RIVALS_TRIED]].tolist():
            certificate = rival_certificate(rival)
            if self.checker.bound(answer.class_id, certificate).upper <= 0:
                return Settled(replace(answer, certificate=certificate, reason=""), Method.ONE_RIVAL)
        return None

    def _settle_exactly(self, answer: Answer) -> Settled:
        coordinates, usable = self.coordinates, without(self.coordinates.usable, answer.class_id)
        if coordinates.radius is not None:
            return _unsettled(answer, "exact simplex needs a box or a hull")
        is_small = coordinates.size <= _MOST_EXACT_FEATURES
        if coordinates.corners is None:
            is_small = len(usable) <= _LARGEST_EXACT_TABLE // (coordinates.size + 1)
        if not is_small:
            return _unsettled(answer, "too large for exact simplex")
        tied = answer.class_id in self.solver.tied
        # Both load rational arithmetic.
        if coordinates.corners is not None:
            from argmaxable.prove.exact_mixtures import settle_over_mixtures

            witness, certificate = settle_over_mixtures(
                coordinates, self.checker, answer.class_id, tied=tied, deadline=self.deadline
            )
        else:
            from argmaxable.prove.simplex import settle_exactly

            witness, certificate = settle_exactly(
                coordinates, self.checker, answer.class_id, usable, tied=tied, deadline=self.deadline
            )
        settled = witness is not None or certificate is not None
        reason = "" if settled else answer.reason + "; exact simplex found no answer that checks"
        fine = witness if isinstance(witness, FinePoint) else None
        found = replace(
            answer, point=witness.values if isinstance(witness, Point) else None, fine=fine,
            certificate=certificate, rows=len(usable), reason=reason,
        )  # fmt: skip
        return Settled(found, Method.SIMPLEX if settled else Method.NONE)


def _unsettled(answer: Answer, why: str) -> Settled:
    return Settled(replace(answer, reason=f"{answer.reason}; {why}"), Method.NONE)


def _is_settled(answer: Answer) -> bool:
    return answer.point is not None or answer.certificate is not None
