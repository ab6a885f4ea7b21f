"""What every kind of claim has to say about itself: how it is called, stored, and checked.

A new kind is one subclass in its own module and one line in `proofs/kinds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from argmaxable.check.checker import Checker
from argmaxable.compute.prepared import PreparedHead
from argmaxable.core.arrays import Vector
from argmaxable.core.claim import ClassClaim, Failure, Key
from argmaxable.core.domain import Domain
from argmaxable.core.head import Head
from argmaxable.core.progress import ProgressCallback
from argmaxable.proofs.evidence import (
    POINTS_AND_CERTIFICATES,
    ArrayTypes,
    EvidenceReader,
    EvidenceWriter,
    Line,
)

C = TypeVar("C")
K = TypeVar("K", bound=ClassClaim)
S = TypeVar("S")


@dataclass(frozen=True)
class ClaimFiles:
    """The files of one kind of claim: the header, a line for each claim, the arrays that lines refer to."""

    header: str
    lines: str
    arrays: str

    @staticmethod
    def named(name: str) -> ClaimFiles:
        return ClaimFiles(f"{name}.json", f"{name}.jsonl", f"{name}.npz")


class ClaimKind(ABC, Generic[C, S]):
    """A kind of claim C, all made under the settings S (a temperature, say)."""

    noun: ClassVar[str]
    plural: ClassVar[str]
    format: ClassVar[str]
    # Still read. It does not name its files, so nothing ties them to the header.
    earlier_format: ClassVar[str]
    files: ClassVar[ClaimFiles]
    arrays: ClassVar[ArrayTypes] = POINTS_AND_CERTIFICATES
    # Whether a class of the head without such a claim is missing one.
    covers_every_class: ClassVar[bool] = False
    # Whether a folder with nothing but such claims is a bundle.
    stands_alone: ClassVar[bool] = False

    @abstractmethod
    def key(self, claim: C) -> Key:
        """What the claim is about. No two claims of a bundle may have the same key."""

    @abstractmethod
    def names(self, claim: C) -> Iterable[tuple[int, str]]:
        """The classes that the claim names, with their labels."""

    @abstractmethod
    def subject(self, key: Key) -> str:
        """What a claim with this key is about, for people: "class 7"."""

    @abstractmethod
    def encode(self, claim: C, evidence: EvidenceWriter) -> Line:
        """The line of a claim; its evidence goes to the writer."""

    @abstractmethod
    def decode(self, line: Line, evidence: EvidenceReader) -> C:
        """The claim of a line. Lines are untrusted: raises ValueError, KeyError or TypeError for bad ones."""

    @abstractmethod
    def read_settings(self, header: Line) -> S:
        """The settings that a header states, with the errors of `decode`."""

    @abstractmethod
    def check(self, checker: Checker, claims: Sequence[C], settings: S) -> Iterable[Failure]:
        """The claims that their evidence does not prove. Each has a key of its own, and names classes of the
        head only."""

    @abstractmethod
    def states_nothing(self, claim: C, head: Head) -> bool:
        """Whether a claim is one that every head of this size meets."""

    @abstractmethod
    def scope(self, bundle: Bundle[C, S]) -> str:
        """For people: over which domain or under which settings the claims are made, after a space."""

    def summary(self, proven: Sequence[C], bundle: Bundle[C, S]) -> str:
        """For people: a sentence about the claims that hold, where there is something to sum up."""
        return ""

    def contradictions(self, bundle: Bundle[C, S], head: PreparedHead) -> Iterable[str]:
        """What the header or the lines say in words that the claims or the head contradict."""
        return ()

    def check_in_rationals(
        self, checker: Checker, claims: Sequence[C], progress: ProgressCallback
    ) -> Iterable[Failure]:
        """The claims that rational numbers alone do not prove, for kinds that can be proven so."""
        return ()


class ClassClaimKind(ClaimKind[K, S]):
    """A kind of claim about single classes."""

    covers_every_class: ClassVar[bool] = True

    def key(self, claim: K) -> Key:
        return claim.class_id

    def names(self, claim: K) -> Iterable[tuple[int, str]]:
        return ((claim.class_id, claim.label),)

    def subject(self, key: Key) -> str:
        return f"class {key}"


@dataclass(frozen=True, eq=False)
class Bundle(Generic[C, S]):
    """The claims of one kind as read: nothing in them has been checked but their form.

    `manifest` is the header as it stands in its file. `centre` rebuilds own-direction witnesses. `digests`
    are the SHA-256 of the other files as they were read, by name.
    """

    kind: ClaimKind[C, S]
    manifest: dict[str, Any]
    domain: Domain
    settings: S
    centre: Vector | None
    claims: tuple[C, ...]
    digests: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Bundle({len(self.claims):,} {self.kind.plural} over {self.domain})"

    @property
    def sha256(self) -> object:
        """The fingerprint of the head that the claims are said to be about."""
        return self.manifest["head"].get("sha256")

    @property
    def names_its_files(self) -> bool:
        """Whether the header says which files and labels belong to it; those of 0.1.0 do not."""
        return bool(self.manifest["format"] == self.kind.format)
