"""The kinds of claims, verdicts first: a new kind is one line here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argmaxable.proofs.ceilings import CEILINGS
from argmaxable.proofs.ranks import RANKS
from argmaxable.proofs.sets import SETS
from argmaxable.proofs.verdicts import VERDICTS

if TYPE_CHECKING:
    from argmaxable.proofs.kind import ClaimKind

KINDS: tuple[ClaimKind[Any, Any], ...] = (VERDICTS, CEILINGS, RANKS, SETS)
