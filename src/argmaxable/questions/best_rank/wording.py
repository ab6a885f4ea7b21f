"""Best ranks in words, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argmaxable.core.best_rank import BestRank, TopK
from argmaxable.core.labels import visible

# Labels listed in text; --json and the bundle have all of them.
_MOST_LISTED = 40
_SAID = {
    TopK.YES: "can, with an input at which fewer than {k} others are not below",
    TopK.NO: "never, proven: at every input at least {k} others are above",
    TopK.AT_BEST_TIED: "at best tied, proven: at every input at least {k} others are above or tie",
    TopK.UNKNOWN: "unknown: only bounds on the best rank are proven",
}


def describe(ranks: Sequence[BestRank], k: int) -> list[str]:
    """The answer for a k: how many classes for each kind, and which."""
    if not ranks:
        return ["", f"Every class can be among the first {k}: each can be the argmax."]
    lines = ["", f"Among the first {k}, the {len(ranks):,} classes that are never the argmax:"]
    for answer in TopK:
        some = [rank for rank in ranks if rank.is_among_first(k) is answer]
        if some:
            lines.append(f"{len(some):>6,} {_SAID[answer].format(k=k)}")
            lines.append(f"       {_listed(some, with_bounds=answer is not TopK.NO)}")
    return lines


def _listed(ranks: Sequence[BestRank], *, with_bounds: bool) -> str:
    def shown(rank: BestRank) -> str:
        return visible(rank.label) + (f" ({span(rank)})" if with_bounds else "")

    rest = len(ranks) - _MOST_LISTED
    return "  ".join(map(shown, ranks[:_MOST_LISTED])) + (f"  … and {rest:,} more" if rest > 0 else "")


def span(rank: BestRank) -> str:
    """The best rank as a number, or from which to which."""
    return str(rank.lower) if rank.is_exact else f"{rank.lower} to {rank.upper}"


def as_record(rank: BestRank, k: int) -> dict[str, Any]:
    """A best rank as plain JSON values, with the answer for a k."""
    return rank.as_record() | {"among_first": rank.is_among_first(k).value}
