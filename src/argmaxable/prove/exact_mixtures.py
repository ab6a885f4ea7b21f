"""The exact simplex over a hull: the weights μ of its vectors are the unknowns.

Class c wins at a mixture exactly when Σ μ_j (s_c − s_i)(p_j) > 0 for every rival i, and weights λ of rivals
prove that it never does when Σ λ_i (s_c − s_i)(p_j) ≤ 0 at every vector. Few vectors and few rivals decide:
the programme starts with some, and takes in what its answer does not hold for. Needed where floats can't tell
a margin from 0: a hull with 0 inside and a head without bias, or vectors that lie in a plane but for
rounding.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import flint
import numpy as np
from numpy.typing import NDArray

from argmaxable.core.verdict import Certificate, Point, Witness
from argmaxable.exact.dyadic import Dyadic
from argmaxable.prove.simplex import ExactProblem, certificate_of, fine_point_at, solve_exactly

if TYPE_CHECKING:
    from argmaxable.check.checker import Checker
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids
    from argmaxable.core.progress import Deadline
    from argmaxable.prove.simplex import Vertex

# How often vectors or rivals may be taken in.
_ROUNDS = 200


def settle_over_mixtures(
    coordinates: Coordinates, checker: Checker, class_id: int, *, tied: bool, deadline: Deadline
) -> tuple[Witness | None, Certificate | None]:
    """A checked witness or certificate by exact simplex, or neither. Raises TimeIsOver."""
    return _Mixtures(coordinates, checker, class_id, tied).settle(deadline)


class _Mixtures:
    """The programme of one class over the vectors and rivals taken in so far."""

    def __init__(self, coordinates: Coordinates, checker: Checker, class_id: int, tied: bool) -> None:
        self.coordinates, self.checker, self.class_id, self.tied = coordinates, checker, class_id, tied
        inputs = coordinates.domain.corner_inputs()
        assert inputs is not None
        self.inputs = Dyadic.of(inputs)
        self.more = coordinates.size + 1  # taken in at a time
        self.rivals, self.corners = self._first(inputs)

    @np.errstate(over="ignore", invalid="ignore")  # a guess to begin with: any vectors and rivals will do
    def _first(self, inputs: NDArray[np.float64]) -> tuple[Ids, Ids]:
        """The vectors at which the class is least behind, and who is ahead there."""
        coordinates = self.coordinates
        usable = coordinates.usable[coordinates.usable != self.class_id]
        head = coordinates.head
        scores = inputs @ head.rows(usable).T + head.biases(usable)
        own = inputs @ head.rows(np.array([self.class_id]))[0] + head.biases(np.array([self.class_id]))[0]
        corners = np.argsort(scores.max(axis=1) - own)[: 2 * self.more]
        return np.unique(usable[scores[corners].argmax(axis=1)]), corners

    def settle(self, deadline: Deadline) -> tuple[Witness | None, Certificate | None]:
        for _ in range(_ROUNDS):
            problem = self._problem()
            vertex = solve_exactly(problem, deadline=deadline)
            if vertex is None:
                break
            if vertex.t <= 0:
                certificate = certificate_of(self.coordinates, problem, vertex)
                if self.checker.bound(self.class_id, certificate).upper <= 0:
                    return None, certificate
                found, self.corners = _with_worst(self.corners, self._against(certificate), self.more)
            else:
                weights = self._weights(vertex)
                above = self._above(weights)
                if not above:
                    return self._witness(weights), None
                found, self.rivals = _with_worst(self.rivals, above, self.more)
            if not found:
                break
        return None, None

    def _problem(self) -> ExactProblem:
        """Each weight is from 0 to 1: they have no scale, so that no sum need be asked for."""
        scores = self._scores(np.append(self.rivals, self.class_id), self.inputs[self.corners])
        unit = flint.fmpq(2) ** scores.exponent
        ahead = scores.integers[:-1] - scores.integers[-1]
        table = [[flint.fmpq(int(value)) * unit for value in line] for line in ahead]
        zero, one, count = flint.fmpq(0), flint.fmpq(1), len(self.corners)
        return ExactProblem(self.rivals, table, [zero] * len(table), [zero] * count, [one] * count)

    def _scores(self, ids: Ids, inputs: Dyadic) -> Dyadic:
        """Scores of classes (n × inputs), exactly."""
        head = self.coordinates.head
        turned = Dyadic(inputs.integers.T, inputs.exponent)
        return Dyadic.of(head.rows(ids)) @ turned + Dyadic.of(head.biases(ids))[:, None]

    def _against(self, certificate: Certificate) -> dict[int, Any]:
        """The vectors at which the certificate's weights prove nothing, and by how much."""
        scores = self._scores(np.append(certificate.classes, self.class_id), self.inputs)
        weights = np.array(certificate.whole, dtype=object)
        ahead = weights.sum() * scores.integers[-1] - weights @ scores.integers[:-1]
        return {j: value for j, value in enumerate(ahead.tolist()) if value > 0}

    def _weights(self, vertex: Vertex) -> list[Fraction]:
        weights = [Fraction(0)] * len(self.inputs.integers)
        for corner, weight in zip(self.corners.tolist(), vertex.x, strict=True):
            weights[corner] = weight
        return weights

    def _above(self, weights: list[Fraction]) -> dict[int, Any]:
        """The rivals that are not below the class at a mixture, and by how much, exactly."""
        used = [j for j, weight in enumerate(weights) if weight]
        common = int(np.lcm.reduce([weights[j].denominator for j in used], dtype=object))
        whole = np.array([int(weights[j] * common) for j in used], dtype=object)
        ids = self.coordinates.usable
        inputs = self.inputs[np.array(used)]
        mixed = Dyadic((whole @ inputs.integers)[None], inputs.exponent)
        head, total = self.coordinates.head, int(whole.sum())
        rows = Dyadic.of(head.rows(ids)) @ Dyadic(mixed.integers.T, mixed.exponent)
        scores = rows + Dyadic.of(head.biases(ids))[:, None] * total
        values = dict(zip(ids.tolist(), scores.integers[:, 0].tolist(), strict=True))
        own = values.pop(self.class_id)
        return {rival: value - own for rival, value in values.items() if value >= own}

    def _witness(self, weights: list[Fraction]) -> Witness | None:
        point = np.array([[float(weight) for weight in weights]])
        if self.checker.gaps(np.array([self.class_id]), point).settle(np.array([self.tied]))[0]:
            return Point(point[0])
        return None if self.tied else fine_point_at(self.checker, self.class_id, weights)


def _with_worst(known: Ids, found: dict[int, Any], most: int) -> tuple[bool, Ids]:
    """Whether there is anything new, and what is known with the worst of it."""
    seen = set(known.tolist())
    new = sorted((each for each in found if each not in seen), key=lambda each: -found[each])[:most]
    return bool(new), np.append(known, np.array(new, np.intp))
