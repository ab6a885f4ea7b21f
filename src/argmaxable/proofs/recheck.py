"""Re-checks claims of any kind against their head, with no solver and no trust in whoever wrote them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from argmaxable.check.checker import Checker
from argmaxable.core.claim import Failure, Key, Recheck
from argmaxable.core.errors import BundleError, DomainError
from argmaxable.core.head import Head
from argmaxable.core.progress import ProgressCallback, ignore_progress
from argmaxable.proofs.in_words import contradictions
from argmaxable.proofs.kind import Bundle, C, S


def recheck(
    bundle: Bundle[C, S],
    head: Head,
    *,
    rational: bool = False,
    progress: ProgressCallback = ignore_progress,
) -> Recheck:
    """Check every claim of a bundle, and what it says in words; raises BundleError when it is about another
    head.

    Where floats decide, their rounding is bounded. With `rational`, each proof that a class is unargmaxable
    must also hold without them: its weights are computed as rational numbers, which takes its time, and
    `progress` hears how many of how many are done.
    """
    kind, checker = bundle.kind, _checker(bundle, head)
    failures = {failure.key: failure for failure in _out_of_place(bundle, head)}
    left = [claim for claim in bundle.claims if kind.key(claim) not in failures]
    failures |= {failure.key: failure for failure in kind.check(checker, left, bundle.settings)}
    if rational:
        left = [claim for claim in left if kind.key(claim) not in failures]
        failures |= {failure.key: failure for failure in kind.check_in_rationals(checker, left, progress)}
    empty = [kind.key(claim) for claim in bundle.claims if kind.states_nothing(claim, head)]
    claimed = {kind.key(claim) for claim in bundle.claims}
    known = {number for claim in bundle.claims for number, _ in kind.names(claim) if number < head.classes}
    return Recheck(
        proven=len(claimed - failures.keys() - set(empty)),
        undecided=len(empty),
        missing=head.classes - len(known) if kind.covers_every_class else 0,
        failures=tuple(failures.values()),
        contradictions=tuple(contradictions(bundle, checker.prepared)),
    )


def _checker(bundle: Bundle[C, S], head: Head) -> Checker:
    """A checker for claims that are said to be about this head; raises BundleError when they are not."""
    subject = f"the {bundle.kind.plural} are about"
    if bundle.sha256 != head.sha256():
        raise BundleError(
            f"these proofs are for another model: {subject} another head. Its SHA-256 is {bundle.sha256}, "
            f"that of {head.name} is {head.sha256()}. Pass the file that was verified, with the same "
            "--tensor and --round-to if any."
        )
    centre = bundle.centre
    if centre is not None and (len(centre) != head.features or not np.isfinite(centre).all()):
        raise BundleError("the bundle's centre does not fit the head.")
    try:
        return Checker(head, bundle.domain, centre=centre)
    except DomainError as error:
        raise BundleError(f"{subject} a domain that does not fit the head: {error}") from error


def _out_of_place(bundle: Bundle[C, S], head: Head) -> Iterator[Failure]:
    """Claims about classes that the head does not have, or about what has another claim."""
    kind, seen = bundle.kind, set[Key]()
    for claim in bundle.claims:
        key = kind.key(claim)
        stray = next((number for number, _ in kind.names(claim) if number >= head.classes), None)
        if stray is not None:
            yield Failure(key, f"the head has no class {stray}")
        elif key in seen:
            yield Failure(key, f"the {kind.subject(key).split()[0]} is claimed twice")
        seen.add(key)
