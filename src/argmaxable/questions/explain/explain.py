"""explain(head, domain, class_=...): a class's verdict with its reasons, each bound proven by the checker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from argmaxable.check.ranks import scores_at
from argmaxable.compute.blocks import row_blocks
from argmaxable.compute.coordinates import coordinates_of
from argmaxable.compute.identical_rows import IdenticalRows
from argmaxable.core.arrays import Vector
from argmaxable.core.best_rank import BestRank
from argmaxable.core.domain import Domain
from argmaxable.core.head import Head
from argmaxable.core.progress import Deadline
from argmaxable.core.verdict import Certificate, Status, Verdict
from argmaxable.prove.chebyshev import chebyshev_centre, is_finite_box
from argmaxable.questions.argmax import DEFAULT_DOMAIN, run_plan
from argmaxable.questions.best_rank.descent import points_with_few_above
from argmaxable.questions.best_rank.search import RankSearch
from argmaxable.questions.explain.choose import class_ids
from argmaxable.questions.explain.explanation import Competitor, Explanation, Share, Width
from argmaxable.questions.explain.growth import Growth, growth_needed
from argmaxable.questions.explain.margin import Margin, Margins, proven_gap
from argmaxable.run.plan import ONE_PROCESS, make_plan

# Solves spent on the best rank of a class.
ROUNDS = 24
# Competitors named.
_NEAREST = 8
# The Chebyshev programme takes all rivals at once: about a second for this many weights, minutes for more.
_MOST_FOR_CENTRE = 1_000_000


def explain(
    head: Head, domain: Domain = DEFAULT_DOMAIN, *, class_: int | str, rounds: int = ROUNDS, seed: int = 0
) -> Explanation:
    """Explain the verdict on one class, given by its number or its label.

    `rounds` solves are spent on the best rank an unargmaxable class can reach. Raises InputError for a
    class that does not exist, with labels near to the one given, or for a label that several classes have.
    """
    chosen = class_ids(head, [class_], one_each=True)
    explainer = Explainer(head, domain, chosen, rounds=rounds, seed=seed)
    return explainer.completed(explainer.begun(chosen[0]))


class Explainer:
    """Explains classes of one head over one domain; what is learned about one serves the others.

    Each explanation comes in two parts, so that what is known soon need not wait for what takes long. After
    `time_limit` seconds it `must_stop`; Ctrl-C while the verdicts are found makes it stop at once.
    """

    def __init__(
        self,
        head: Head,
        domain: Domain,
        classes: Sequence[int],
        *,
        rounds: int = ROUNDS,
        seed: int = 0,
        time_limit: float | None = None,
    ) -> None:
        self.rounds, self.seed, self.deadline = rounds, seed, Deadline(time_limit)
        plan = make_plan(head, domain, only=classes, engine=ONE_PROCESS, seed=seed, time_limit=time_limit)
        result = run_plan(plan)
        self.is_cut_short = not result.is_complete
        self.verdicts = {verdict.class_id: verdict for verdict in result.verdicts}
        self.head, self.domain = head, domain
        self.margins = Margins(plan.prepared, domain, centre=result.centre)
        self.checker, self.coordinates = self.margins.checker, self.margins.coordinates
        self.twins: IdenticalRows = self.checker.prepared.twins
        self.search = RankSearch(self.checker, self.twins, np.unique(np.array(classes, np.intp)), seed)

    @property
    def must_stop(self) -> bool:
        """Whether there is no time for another part."""
        return self.is_cut_short or self.deadline.has_passed

    def begun(self, class_id: int) -> Explanation:
        """The verdict, the margin and the mixture that proves it, without an input and a rank."""
        verdict = self.verdicts[class_id]
        margin = self.margins.of(class_id, self._known(verdict))
        mixture = () if verdict.status is Status.ARGMAXABLE else self._mixture(margin.certificate)
        return Explanation(
            verdict=verdict, domain=self.domain, margin=margin, mixture=mixture, growth=None, rank=None,
            input=None, competitors=(), width=None,
        )  # fmt: skip

    def completed(self, begun: Explanation) -> Explanation:
        """The explanation with the rest: how far a row must grow, the best rank, the input, who is near."""
        verdict, margin = begun.verdict, begun.margin
        if verdict.status is Status.ARGMAXABLE:
            point, width = self._widest(verdict.class_id, margin)
            return replace(
                begun,
                width=width,
                input=self._input(point),
                competitors=self._competitors(verdict.class_id, point),
            )
        growth, rank = self._growth(verdict), self._best_rank(verdict, margin)
        point = rank.point if rank.point is not None else margin.point
        return replace(
            begun,
            growth=growth,
            rank=rank,
            input=self._input(point),
            competitors=self._competitors(verdict.class_id, point),
        )

    def _known(self, verdict: Verdict) -> Margin:
        point = None if verdict.witness is None else self.checker.point(verdict.class_id, verdict.witness)
        return Margin(verdict.lower, verdict.upper, point, verdict.certificate)

    def _widest(self, class_id: int, margin: Margin) -> tuple[Vector | None, Width | None]:
        """The point with the widest ball around it in which the class wins: the one furthest ahead in
        logits, or the Chebyshev centre where that is not too dear."""
        if margin.point is None or self.head.classes == 1:
            return margin.point, None
        points, domain = [margin.point], self.domain
        if is_finite_box(domain) and self.head.weight.size <= _MOST_FOR_CENTRE:
            centre = chebyshev_centre(self.coordinates, self.checker, class_id)
            points += [] if centre.point is None else [centre.point]
        widths = [self._width_at(class_id, point) for point in points]
        best = max(range(len(points)), key=lambda number: widths[number].radius)
        return points[best], widths[best]

    def _width_at(self, class_id: int, point: Vector) -> Width:
        """The least distance to where a rival ties, gap / ‖w_c − w_i‖, and the least gap."""
        lower = proven_gap(self.checker, class_id, point)
        nearest = self._competitors(class_id, point)
        return Width(lower, nearest[0].distance if lower > 0 else 0.0)

    def _mixture(self, certificate: Certificate | None) -> tuple[Share, ...]:
        if certificate is None:
            return ()
        weights = certificate.weights / certificate.weights.sum()
        order = np.argsort(-weights, kind="stable")
        return tuple(
            Share(int(one), self.head.label(int(one)), float(weight))
            for one, weight in zip(certificate.classes[order], weights[order], strict=True)
            if weight > 0
        )

    def _growth(self, verdict: Verdict) -> Growth | None:
        is_beaten_by_twin = self.twins.beaten_by[verdict.class_id] >= 0
        if not self.coordinates.is_cone or verdict.status is not Status.UNARGMAXABLE or is_beaten_by_twin:
            return None
        return growth_needed(self.checker, verdict.class_id, seed=self.seed)

    def _best_rank(self, verdict: Verdict, margin: Margin) -> BestRank:
        class_id = verdict.class_id
        for certificate in (verdict.certificate, margin.certificate):
            if certificate is not None and self.checker.bound(class_id, certificate).upper <= 0:
                self.search.learn(class_id, certificate)
        starts = [
            *points_with_few_above(coordinates_of(self.checker.prepared, self.domain), np.array([class_id]))
        ]
        if margin.point is not None:
            starts.append(margin.point)
        return self.search.best_rank(
            class_id, starts, stop_at=None, rounds=self.rounds, deadline=self.deadline
        )

    def _input(self, point: Vector | None) -> Vector | None:
        return None if point is None else self.domain.place(point[None])[0][0]

    def _competitors(self, class_id: int, point: Vector | None) -> tuple[Competitor, ...]:
        """The nearest of the classes not below the class at the point z; where it is ahead of all, of all."""
        if point is None or self.head.classes == 1:
            return ()
        with np.errstate(all="ignore"):  # extreme heads overflow here and there
            ahead = scores_at(self.checker, point)
            ahead -= ahead[class_id]
            lengths = np.empty(self.head.classes)
            own = self.head.rows(np.array([class_id]))[0]
            for block in row_blocks(self.head.classes, self.head.features):
                lengths[block] = np.sqrt(((self.head.rows(block) - own) ** 2).sum(axis=1))
            distance = np.where(ahead == 0, 0.0, np.abs(ahead) / lengths)
        rivals = np.delete(np.arange(self.head.classes), class_id)
        above = rivals[ahead[rivals] >= 0]
        rivals = above if len(above) else rivals
        nearest = rivals[np.argsort(distance[rivals], kind="stable")[:_NEAREST]]
        return tuple(
            Competitor(int(one), self.head.label(int(one)), float(ahead[one]), float(distance[one]))
            for one in nearest
        )
