"""The kinds of claims, verdicts first: a new kind is one line here."""

from __future__ import annotations

from typing import Any

from argmaxable.proofs.ceilings import CEILINGS
from argmaxable.proofs.kind import ClaimKind
from argmaxable.proofs.ranks import RANKS
from argmaxable.proofs.verdicts import VERDICTS

KINDS: tuple[ClaimKind[Any, Any], ...] = (VERDICTS, CEILINGS, RANKS)
