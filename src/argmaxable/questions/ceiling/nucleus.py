"""Top-p sampling: can a class ever enter the nucleus, the smallest set of the likeliest classes whose mass is
at least p? At x it does so exactly when the classes above it have a mass below p.

Yes: a point where the mass of the classes at least as likely as c is proven to be below p. Flat points help:
pulled towards the middle of the domain a point keeps much of its order while all masses shrink.
No: c and each class not above it have at most c's ceiling K, so the classes above have at least 1 − C·K of
the mass at every x; where that is p or more, c never enters. What is neither is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.check.probabilities import CeilingChecker, never_enters
from argmaxable.compute.prepared import PreparedHead, prepared
from argmaxable.core.arrays import Vector
from argmaxable.core.ceiling import Ceiling, Ceilings, Entry, Membership, Nucleus
from argmaxable.core.errors import InputError
from argmaxable.core.head import Head
from argmaxable.core.verdict import Verdict

# How far points are pulled towards the middle of the domain.
_PULLS = (1.0, 0.5, 0.2, 0.05, 0.01)
# Points held at a time.
_BATCH = 1024


def nucleus(
    head: Head | PreparedHead, found: Ceilings, top_p: float, *, verdicts: Iterable[Verdict] = ()
) -> Nucleus:
    """Which classes can enter the nucleus of mass `top_p` at some input of the domain of their ceilings.

    Witnesses of `verdicts` are tried where a ceiling's own point does not do. Raises InputError when the
    ceilings are about another head or `top_p` is not a share.
    """
    require_share(top_p)
    ready = prepared(head)
    if ready.facts.sha256 != found.facts.sha256:
        raise InputError(f"these ceilings are about another head than {ready.head.name}.")
    search = _Search(ready, found, top_p)
    for first in range(0, len(found.classes), _BATCH):
        some = found.classes[first : first + _BATCH]
        search.attempt({c.class_id: c.point for c in some if c.point is not None})
    left = [verdict for verdict in verdicts if verdict.class_id in search.left]
    search.attempt({v.class_id: search.checker.point(v.class_id, v.witness) for v in left if v.witness})
    return Nucleus(top_p=top_p, members=tuple(search.membership(ceiling) for ceiling in found.classes))


def require_share(top_p: float) -> None:
    """Raise InputError unless p is above 0 and at most 1."""
    if not 0 < top_p <= 1:
        raise InputError(f"top-p is a share of the probability above 0 and at most 1, found {top_p}.")


class _Search:
    """Points tried so far: the least mass above each class and where it was met."""

    def __init__(self, ready: PreparedHead, found: Ceilings, top_p: float) -> None:
        head = ready.head
        self.checker = Checker(ready, found.domain)
        self.bounds = CeilingChecker(self.checker, temperature=found.temperature)
        self.top_p = top_p
        # A single class is the whole nucleus, at every point.
        self.left = {c.class_id for c in found.classes} if head.classes > 1 else set()
        self.sealed = {c.class_id for c in found.classes if never_enters(c.upper, head.classes, top_p)}
        self.best: dict[int, tuple[float, Vector]] = {}

    def attempt(self, points: dict[int, Vector]) -> None:
        """Try points, and what is left of them when pulled towards the middle, for classes still left."""
        domain = self.bounds.domain
        middle = np.clip(0.0, *domain.bounds(self.bounds.head.features))
        for pull in _PULLS:
            ids = np.array([class_id for class_id in points if class_id in self.left], np.intp)
            if not len(ids):
                return
            given = np.array([points[class_id] for class_id in ids.tolist()])
            pulled = np.clip(middle + pull * (given - middle), *domain.bounds(self.bounds.head.features))
            masses = self.bounds.mass_above(ids, pulled)
            for class_id, mass, point in zip(ids.tolist(), masses.tolist(), pulled, strict=True):
                if mass < self.best.get(class_id, (2.0, point))[0]:
                    self.best[class_id] = mass, point
                if mass < self.top_p:
                    self.left.discard(class_id)

    def membership(self, ceiling: Ceiling) -> Membership:
        is_left = ceiling.class_id in self.left
        mass, point = self.best.get(ceiling.class_id, (1.0 if is_left else 0.0, None))
        if not is_left:
            return Membership(ceiling.class_id, ceiling.label, Entry.YES, mass, point)
        entry = Entry.NO if ceiling.class_id in self.sealed else Entry.UNKNOWN
        return Membership(ceiling.class_id, ceiling.label, entry, mass, None)
