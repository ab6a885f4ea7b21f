"""Rivals that are above a class at every point of the domain: k of them prove that it is never among the
first k, without a solve.

Small domains, such as what one user can reach, have many of them. Scores at some points of the domain propose
rivals; the checker decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from argmaxable.check.checker import Checker, rival_certificate
from argmaxable.compute.blocks import blocks
from argmaxable.core.best_rank import BestRank, RankProof
from argmaxable.questions.best_rank.descent import scores_of_all

if TYPE_CHECKING:
    from argmaxable.compute.coordinates import Coordinates
    from argmaxable.core.arrays import Ids
    from argmaxable.core.verdict import Certificate

# Points of the domain at which scores are compared.
_POINTS = 48
# Rivals tried for each that is needed; beyond k, spares for those that points alone took to be above.
_TRIED = 2


def always_above(
    checker: Checker, coordinates: Coordinates, classes: Ids, most: int, *, seed: int
) -> list[list[int]]:
    """For each class rivals that are proven to be strictly above it over the whole domain, at most `most`."""
    if coordinates.is_cone or not coordinates.is_bounded or not coordinates.size:
        return [[] for _ in classes]  # where scores have no scale, or no end, points tell nothing
    scores = scores_of_all(coordinates, _some_points(coordinates, seed))
    found: list[list[int]] = []
    for block in blocks(len(classes), coordinates.head.classes):
        some = classes[block]
        mine, rivals = _proposed(scores, some, most)
        proven = checker.rival_bounds(some[mine], rivals) < 0
        found += [rivals[proven & (mine == k)][:most].tolist() for k in range(len(some))]
    return found


def _proposed(scores: NDArray[np.float32], classes: Ids, most: int) -> tuple[Ids, Ids]:
    """Pairs of a class (by its place) and a rival, those farthest ahead at all points first."""
    lead = np.full((len(classes), scores.shape[1]), np.inf, np.float32)
    for row in scores:
        np.minimum(lead, row - row[classes][:, None], out=lead)
    tried = min(_TRIED * most, lead.shape[1])
    best = np.argpartition(-lead, tried - 1, axis=1)[:, :tried]
    leads = np.take_along_axis(lead, best, axis=1)
    order = np.argsort(-leads, axis=1, kind="stable")
    best, leads = np.take_along_axis(best, order, axis=1), np.take_along_axis(leads, order, axis=1)
    place, column = np.nonzero(leads > 0)
    return place, best[place, column]


def _some_points(coordinates: Coordinates, seed: int) -> NDArray[np.float32]:
    """Points of the domain, in coordinates, on its rim: scores differ most there."""
    generator = np.random.default_rng(seed)
    if coordinates.corners is not None:
        chosen = generator.permutation(len(coordinates.corners))[:_POINTS]
        return coordinates.corners[chosen].astype(np.float32)
    signs = generator.choice((-1.0, 1.0), (_POINTS, coordinates.size))
    if coordinates.radius is not None:
        return np.asarray(signs * coordinates.radius / np.sqrt(coordinates.size), np.float32)
    return np.where(signs > 0, coordinates.hi, coordinates.lo).astype(np.float32)


def never_among(checker: Checker, above: Mapping[int, Sequence[int]]) -> list[BestRank]:
    """The best ranks of classes that all their rivals given here are strictly above, everywhere."""
    shared = {rival: rival_certificate(rival) for rivals in above.values() for rival in rivals}
    return [_claim(checker, class_id, [shared[rival] for rival in above[class_id]]) for class_id in above]


def _claim(checker: Checker, class_id: int, certificates: Sequence[Certificate]) -> BestRank:
    proof, lower = RankProof(tuple(certificates), (1,) * len(certificates)), 1 + len(certificates)
    return BestRank(
        class_id=class_id, label=checker.head.label(class_id), lower=lower, upper=checker.head.classes,
        lower_with_ties=lower, proof=proof, proof_with_ties=proof, point=None,
    )  # fmt: skip
