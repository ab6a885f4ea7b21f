"""Searches the best rank of classes that are never the argmax, from both sides.

Each certificate's support must be met by the classes not below c, at every x. So: take few classes that
meet all supports known, and verify c without them. A witness there ends the search, with the exact best
rank if the few were the fewest; a certificate adds a support. The number is the Tukey depth of c, NP-hard
in general, so a search stops at the k asked about or when its rounds are used up, and says what is proven
by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from argmaxable.check.checker import Checker, rival_certificate
from argmaxable.check.ranks import not_below, scores_at
from argmaxable.core.best_rank import BestRank, support_of
from argmaxable.questions.best_rank.disjoint import DisjointSupports
from argmaxable.questions.best_rank.hitting import best_shares, few_that_meet, smallest_meeting_set
from argmaxable.questions.best_rank.lower import prove_lower
from argmaxable.questions.best_rank.reduced import Found, peers, settle_without
from argmaxable.questions.best_rank.vertex import with_few_classes

if TYPE_CHECKING:
    from argmaxable.compute.identical_rows import IdenticalRows
    from argmaxable.core.arrays import Ids, Vector
    from argmaxable.core.progress import Deadline
    from argmaxable.core.verdict import Certificate

# Identical classes named one by one as supports; heads may have thousands of them.
_MOST_TWINS = 64
# Certificates that a class takes over from others: thousands may prove it, and packing them would take long.
_MOST_LENT = 64
# The share of the classes above a point that is tried to get below first.
_NEAREST = 0.25
# Supports in a row that may fail to raise the lower bound.
_PATIENCE = 16


@dataclass(eq=False)
class RankSearch:
    """Searches over one head and domain. Certificates known at the start are tried on all `classes`; those
    found for a class stay with it, so that its answer does not depend on which others came before."""

    checker: Checker
    twins: IdenticalRows
    classes: Ids
    seed: int = 0
    known: dict[int, list[Certificate]] = field(default_factory=dict)

    def learn(self, class_id: int, certificate: Certificate) -> None:
        """Keep a checked certificate, in few classes, for its class and for every other it proves."""
        certificate = with_few_classes(self.checker, class_id, certificate)
        self._keep(class_id, certificate)
        uppers = self.checker.bounds(self.classes, certificate)
        for other in self.classes[uppers <= 0].tolist():
            if other != class_id and len(self.known.get(other, ())) < _MOST_LENT:
                self._keep(other, certificate)

    def _keep(self, class_id: int, certificate: Certificate) -> None:
        self.known.setdefault(class_id, []).append(certificate)

    def best_rank(
        self,
        class_id: int,
        starts: Sequence[Vector],
        lent: Sequence[Certificate] = (),
        *,
        stop_at: int | None,
        rounds: int,
        deadline: Deadline,
    ) -> BestRank:
        """Bounds on the best rank of a class. `starts` are points z of the domain to count at, `lent` checked
        certificates to begin with; with `stop_at` = k the search ends once it is known whether the class is
        ever among the first k."""
        return _ClassSearch(self, class_id, starts, lent, stop_at, rounds, deadline).run()


class _ClassSearch:
    """The search for one class: supports from below, the best point so far from above."""

    def __init__(
        self,
        search: RankSearch,
        class_id: int,
        starts: Sequence[Vector],
        lent: Sequence[Certificate],
        stop_at: int | None,
        rounds: int,
        deadline: Deadline,
    ) -> None:
        self.search, self.class_id = search, class_id
        self.stop_at, self.rounds, self.deadline = stop_at, rounds, deadline
        # For the second part of the search; to prove that a class is never among the first k takes the first.
        self.reserve = rounds // (3 if stop_at is None else 6)
        self.rivals = search.checker.head.classes - 1
        self.disjoint = DisjointSupports(self.rivals + 1, np.random.default_rng((search.seed, class_id)))
        self.peers = peers(search.checker, search.twins, class_id)
        self.upper, self.reason = search.checker.head.classes, ""
        self.point: Vector | None = None
        for point in starts:
            self._count(point)
        self.certificates = list(lent)
        if not (lent and self._is_enough(best_shares(self.supports).needed)):
            self.certificates += [rival_certificate(peer) for peer in self.peers[:_MOST_TWINS].tolist()]
            self.certificates += search.known.get(class_id, [])

    def run(self) -> BestRank:
        self._pack()
        if self.stop_at is None:
            self._shrink()
        self._meet()
        return self._answer()

    @property
    def supports(self) -> list[Ids]:
        return [support_of(certificate) for certificate in self.certificates]

    def _goes_on(self, needed: int) -> bool:
        """Whether another round can tell more than that at least `needed` classes are not below."""
        if self.reason or needed + 1 >= self.upper or self._is_enough(needed):
            return False
        if self.rounds <= 0 or self.deadline.has_passed:
            self.reason = "the rounds of search were used up" if self.rounds <= 0 else "the time limit passed"
        return not self.reason

    def _is_enough(self, needed: int) -> bool:
        """Whether it is known if the class is ever among the first k."""
        k = self.stop_at
        return k is not None and (self.upper <= k or needed >= k)

    def _pack(self) -> None:
        """Supports with few classes in common, more and more of them: the cheapest lower bound."""
        for support in self.supports:
            self.disjoint.add_if_disjoint(support)
        needed, in_vain = best_shares(self.supports).needed, 0
        while in_vain < _PATIENCE and self._goes_on(needed) and self.rounds > self.reserve:
            if not self._extend():
                return
            before, needed = needed, best_shares(self.supports).needed
            in_vain = in_vain + 1 if needed <= before else 0

    def _extend(self) -> bool:
        """A support more, or another instead of one; False when neither was found."""
        disjoint = self.disjoint
        found = self._try_without(disjoint.used)
        if found.certificate is not None:
            disjoint.add(support_of(self.certificates[-1]))
            return True
        for place, excluded in disjoint.offers(self._note_scarce(found.point)):
            if self.rounds <= 0:
                break
            again = self._try_without(excluded)
            if again.certificate is not None:
                disjoint.replace(place, support_of(self.certificates[-1]))
                return True
            self._note_scarce(again.point)
        return False

    def _note_scarce(self, point: Vector | None) -> Ids:
        """The classes not below at a point; their prices rise."""
        above = None if point is None else not_below(self.search.checker, self.class_id, point)
        if above is None:
            return np.empty(0, np.intp)
        self.disjoint.note_scarce(above)
        return above

    def _shrink(self) -> None:
        """Points with fewer classes above: of those above the best point known, the ones nearest to the class
        become rivals again. A certificate, where there is one, is a support like any other."""
        share, last = _NEAREST, self.rounds - self.reserve // 2
        while self.point is not None and self.rounds > last and self._goes_on(1):
            above = not_below(self.search.checker, self.class_id, self.point)
            if above is None or share * len(above) < 1:
                return
            scores = scores_at(self.search.checker, self.point)
            before, farthest = self.upper, above[np.argsort(-scores[above], kind="stable")]
            self._try_without(farthest[: len(above) - int(share * len(above))])
            share = share if self.upper < before else share / 2

    def _meet(self) -> None:
        """Few classes that meet all supports, until some are all that can stand above the class; the fewest,
        which are dearer to find, only where few did not add a support."""
        while self._goes_on(best_shares(self.supports).needed):
            few = few_that_meet(self.supports)
            if self._try_without(few).certificate is not None:
                continue
            fewest = smallest_meeting_set(self.supports)
            if len(fewest) >= len(few) or not self._goes_on(len(fewest)):
                return
            if self._try_without(fewest).certificate is None:
                return

    def _try_without(self, excluded: Ids) -> Found:
        """Verify the class without others; a certificate adds a support."""
        self.rounds -= 1
        search = self.search
        excluded = np.union1d(excluded, self.peers)
        found = settle_without(search.checker, search.twins, self.class_id, excluded, seed=search.seed)
        if found.certificate is not None:
            self.certificates.append(
                with_few_classes(
                    search.checker, self.class_id, found.certificate, prices=self.disjoint.prices
                )
            )
        elif found.point is not None:
            self._count(found.point)
        elif not self.reason:
            self.reason = f"undecided without {len(excluded)} classes: {found.reason}"
        return found

    def _count(self, point: Vector) -> None:
        above = not_below(self.search.checker, self.class_id, point)
        if above is not None and (self.point is None or len(above) + 1 < self.upper):
            self.upper, self.point = len(above) + 1, point

    def _answer(self) -> BestRank:
        lower, proof = prove_lower(self.certificates)
        strict = [one for one in self.certificates if self.search.checker.bound(self.class_id, one).upper < 0]
        with_ties = (lower, proof) if len(strict) == len(self.certificates) else prove_lower(strict)
        return BestRank(
            class_id=self.class_id, label=self.search.checker.head.label(self.class_id), lower=lower,
            upper=self.upper, lower_with_ties=with_ties[0], proof=proof, proof_with_ties=with_ties[1],
            point=self.point, reason="" if lower == self.upper else self.reason,
        )  # fmt: skip
