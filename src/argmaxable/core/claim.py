"""Claims: what is stated about a head over a domain, and what a re-check of the evidence found.

Verdicts, ceilings and best ranks are claims about one class, others are about sets of labels. How each kind
is stored and checked is said by one class in `proofs/`, listed in `proofs/kinds.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# What a claim is about, and what no two claims of a kind have in common: the number of a class, or those of
# all labels in a set.
Key = int | tuple[int, ...]


class ClassClaim(Protocol):
    """Anything that is stated about one class."""

    @property
    def class_id(self) -> int: ...

    @property
    def label(self) -> str: ...


@dataclass(frozen=True)
class Failure:
    """A claim that its evidence does not prove, and why."""

    key: Key
    why: str


@dataclass(frozen=True)
class Recheck:
    """The outcome of a re-check: how many claims hold, how many state nothing (`undecided`), how many classes
    have no claim though each should (`missing`), the claims that are not proven, and what the bundle says in
    words that is not so (`contradictions`): its counts, its labels, the files it names."""

    proven: int
    undecided: int
    missing: int
    failures: tuple[Failure, ...]
    contradictions: tuple[str, ...] = ()
