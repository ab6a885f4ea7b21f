"""Where the domain of a question comes from: proven by the model's file, assumed, or the user's choice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Basis(StrEnum):
    """On what grounds a domain was chosen."""

    PROVEN = "proven"  # no input of the model leads to features outside of it, as its file shows
    ASSUMED = "assumed"  # the file does not say what reaches the head
    GIVEN = "given"  # the user asked about it


@dataclass(frozen=True)
class DomainSource:
    """The basis, and what the file says about the head's inputs, or why it says nothing."""

    basis: Basis
    why: str = ""

    def as_record(self) -> dict[str, str]:
        return {"basis": self.basis.value, "why": self.why}

    @staticmethod
    def from_record(record: Any) -> DomainSource:
        """Inverse of `as_record`; raises KeyError, TypeError or ValueError."""
        return DomainSource(Basis(record["basis"]), str(record["why"]))


GIVEN = DomainSource(Basis.GIVEN)
